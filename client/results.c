/* SPDX-License-Identifier: Apache-2.0 */
#include "client/convert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"

/* Each public object begins with its public part and owns the event that its strings lie in. */
struct job_object {
	struct fsbox_job job;
	struct conn_event *event;
	struct fsbox_note *notes;
};

struct exit_object {
	struct fsbox_exit end;
	struct conn_event *event;
};

struct list_object {
	struct fsbox_job_list list;
	struct conn_event *event;
	struct fsbox_job_info *jobs;
};

struct why_object {
	struct fsbox_why why;
	struct conn_event *event;
};

static const char *const no_items[] = { NULL };

/*
 * The items of LIST ended by NULL, in place: one more slot is made where there is none. LIST keeps
 * owning everything.
 */
static bool end_with_null(struct string_list *list, const char *const **ret_items)
{
	*ret_items = no_items;
	if (list->count == 0)
		return true;
	if (list->count == list->capacity) {
		char **grown = reallocarray(list->items, list->count + 1, sizeof(*grown));

		if (!grown)
			return false;
		list->items = grown;
		list->capacity = list->count + 1;
	}
	list->items[list->count] = NULL;
	*ret_items = (const char *const *)list->items;
	return true;
}

struct fsbox_job *convert_job_take(struct conn_event *event, struct fsbox_error *err)
{
	struct spawn_result *result = &event->result.spawn;
	struct job_object *object = calloc(1, sizeof(*object));
	struct fsbox_job *job = NULL;

	if (!object) {
		(void)convert_no_memory(err);
		(void)conn_event_free(event);
		return NULL;
	}
	job = &object->job;
	object->event = event;
	object->notes = calloc(result->suppressed.count + 1, sizeof(*object->notes));
	*job = (struct fsbox_job){
		.id = result->job,
		.cookie = result->cookie,
		.pid = result->pid,
		.pidfd = result->pidfd_fd,
		.lifeline = event->lifeline_fd,
		.engine = engine_name(result->engine),
		.room = room_name(result->room),
		.policy_digest = result->policy_digest,
		.rules = result->rules,
		.suppressed = object->notes,
		.suppressed_count = result->suppressed.count,
	};
	if (!object->notes || !end_with_null(&result->withheld, &job->withheld) ||
	    !end_with_null(&result->warnings, &job->warnings) ||
	    !end_with_null(&result->limits.unenforced, &job->unenforced)) {
		(void)convert_no_memory(err);
		return fsbox_job_free(job);
	}
	for (size_t i = 0; i < result->suppressed.count; i++)
		object->notes[i] = (struct fsbox_note){
			.path = result->suppressed.items[i].path,
			.reason = result->suppressed.items[i].reason,
		};
	return job;
}

struct fsbox_job *fsbox_job_free(struct fsbox_job *job)
{
	struct job_object *object = (struct job_object *)job;

	if (!object)
		return NULL;
	(void)conn_event_free(object->event); /* with pidfd and lifeline */
	free(object->notes);
	free(object);
	return NULL;
}

void fsbox_job_end(struct fsbox_job *job)
{
	struct job_object *object = (struct job_object *)job;

	if (object->event->lifeline_fd >= 0)
		(void)close(steal_fd(&object->event->lifeline_fd));
	job->lifeline = -1;
}

static enum fsbox_reason public_reason(enum exit_reason reason)
{
	switch (reason) {
	case EXIT_EXITED:
		return FSBOX_EXITED;
	case EXIT_SIGNALED:
		return FSBOX_SIGNALED;
	case EXIT_TIMEOUT:
		return FSBOX_TIMEOUT;
	case EXIT_OOM:
		return FSBOX_OOM;
	case EXIT_LOST:
		return FSBOX_LOST;
	}
	return FSBOX_LOST;
}

struct fsbox_exit *convert_exit_take(struct conn_event *event, struct fsbox_error *err)
{
	struct wait_result *result = event->request == 0 ? &event->exited : &event->result.wait;
	struct exit_object *object = calloc(1, sizeof(*object));

	if (!object) {
		(void)convert_no_memory(err);
		(void)conn_event_free(event);
		return NULL;
	}
	object->event = event;
	object->end = (struct fsbox_exit){
		.job = result->job,
		.reason = public_reason(result->reason),
		.reason_name = exit_reason_name(result->reason),
		.code = (int)result->code,
		.signal = (int)result->signal,
		.core_dumped = result->core_dumped,
		.wall_ms = result->wall_ms,
		.user_ms = result->usage.user_ms,
		.sys_ms = result->usage.sys_ms,
		.max_rss_kib = result->usage.max_rss_kib,
		.repaired = result->repaired,
	};
	if (!end_with_null(&result->planted, &object->end.planted)) {
		(void)convert_no_memory(err);
		return fsbox_exit_free(&object->end);
	}
	return &object->end;
}

struct fsbox_exit *fsbox_exit_free(struct fsbox_exit *end)
{
	struct exit_object *object = (struct exit_object *)end;

	if (!object)
		return NULL;
	(void)conn_event_free(object->event);
	free(object);
	return NULL;
}

int fsbox_exit_status(const struct fsbox_exit *end)
{
	switch (end->reason) {
	case FSBOX_EXITED:
		return end->code & 0xff;
	case FSBOX_SIGNALED:
		return 128 + end->signal;
	case FSBOX_TIMEOUT:
		return 124;
	case FSBOX_OOM:
		return 137;
	case FSBOX_LOST:
		return 123;
	}
	return 123;
}

struct fsbox_job_list *convert_list_take(struct conn_event *event, struct fsbox_error *err)
{
	const struct msg_job_list *jobs = &event->result.list.jobs;
	struct list_object *object = calloc(1, sizeof(*object));

	if (object)
		object->jobs = calloc(jobs->count + 1, sizeof(*object->jobs));
	if (!object || !object->jobs) {
		(void)convert_no_memory(err);
		(void)conn_event_free(event);
		free(object);
		return NULL;
	}
	for (size_t i = 0; i < jobs->count; i++) {
		const struct msg_job *job = &jobs->items[i];

		object->jobs[i] = (struct fsbox_job_info){
			.id = job->job,
			.uid = job->uid,
			.pid = job->pid,
			.state = job_state_name(job->state),
			.profile = job->profile,
			.command = job->command,
			.label = job->label,
			.started_ms = job->started_ms,
			.engine = engine_name(job->engine),
			.room = room_name(job->room),
			.detached = job->detached,
		};
	}
	object->event = event;
	object->list = (struct fsbox_job_list){ .jobs = object->jobs, .count = jobs->count };
	return &object->list;
}

struct fsbox_job_list *fsbox_job_list_free(struct fsbox_job_list *list)
{
	struct list_object *object = (struct list_object *)list;

	if (!object)
		return NULL;
	(void)conn_event_free(object->event);
	free(object->jobs);
	free(object);
	return NULL;
}

struct fsbox_why *convert_why_take(struct conn_event *event, struct fsbox_error *err)
{
	const struct why_result *result = &event->result.why;
	struct why_object *object = calloc(1, sizeof(*object));

	if (!object) {
		(void)convert_no_memory(err);
		(void)conn_event_free(event);
		return NULL;
	}
	object->event = event;
	object->why.access = result->access;
	object->why.real = result->real;
	object->why.hint = result->hint;
	if (result->rule) {
		object->why.rule_path = result->rule->path;
		object->why.rule_source = rule_source_name(result->rule->source);
		object->why.rule_origin = result->rule->origin;
	}
	return &object->why;
}

struct fsbox_why *fsbox_why_free(struct fsbox_why *why)
{
	struct why_object *object = (struct why_object *)why;

	if (!object)
		return NULL;
	(void)conn_event_free(object->event);
	free(object);
	return NULL;
}
