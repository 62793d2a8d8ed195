/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/heldmounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/plan.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/guardlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/spawner.h"

static int read_table(struct mount_table *ret_table, struct error *err)
{
	AUTO(auto_close) int fd = mountinfo_open(err);

	return fd < 0 ? -(int)ERR_SYSTEM : mount_table_read(ret_table, fd, err);
}

static size_t find(const struct mount_table *table, const struct mount_entry *entry)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->entries[i].id == entry->id &&
		    strcmp(table->entries[i].point, entry->point) == 0)
			return i;
	return SIZE_MAX;
}

int heldmounts_init(struct heldmounts *held, struct error *err)
{
	int r = read_table(&held->table, err);

	if (r < 0)
		return r;
	held->seen_ms = calloc(held->table.count + 1, sizeof(*held->seen_ms));
	return held->seen_ms ? 0 : error_set(err, ERR_NOMEM, 0, "remember the host's mounts");
}

void heldmounts_deinit(struct heldmounts *held)
{
	mount_table_deinit(&held->table);
	free(held->seen_ms);
	*held = (struct heldmounts){ .table = MOUNT_TABLE_INIT };
}

/* Whether a job with PLAN, begun while it was there, got a copy of what was mounted at POINT. */
static bool shows(const struct plan *plan, const char *point)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_BIND &&
		    (path_covers(op->source, point) || path_covers(point, op->source)))
			return true;
	}
	return false;
}

static void record(const struct job *job, const char *point)
{
	struct event_message event = { .job = job->id, .uid = job->identity.uid, .pid = job->pid1 };

	(void)snprintf(event.detail, sizeof(event.detail), "%.*s", (int)sizeof(event.detail) - 1,
		       point);
	recorderlink_send(&job->spawner->recorder, EVENT_MOUNT_HELD, &event);
}

static void look_at_job(const struct job *job, const struct heldmounts *held,
			const struct mount_table *now)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	if (!job->up || job->exited || !job->guarded.plan)
		return;
	if (guardlink_plan_read(job->guarded.plan, &plan, &err) < 0) {
		log_failure(&err, "mounts of job %llu", (unsigned long long)job->id);
		return;
	}
	for (size_t i = 0; i < held->table.count; i++) {
		const struct mount_entry *entry = &held->table.entries[i];

		if (held->seen_ms[i] <= job->guarded.begun_ms && find(now, entry) == SIZE_MAX &&
		    shows(&plan, entry->point))
			record(job, entry->point);
	}
}

static bool is_any_gone(const struct heldmounts *held, const struct mount_table *now)
{
	for (size_t i = 0; i < held->table.count; i++)
		if (find(now, &held->table.entries[i]) == SIZE_MAX)
			return true;
	return false;
}

/* NOW, which is taken, are the mounts from now on. */
static int replace_take(struct heldmounts *held, struct mount_table *now, struct error *err)
{
	uint64_t *seen_ms = calloc(now->count + 1, sizeof(*seen_ms));

	if (!seen_ms)
		return error_set(err, ERR_NOMEM, 0, "remember the host's mounts");
	for (size_t i = 0; i < now->count; i++) {
		size_t before = find(&held->table, &now->entries[i]);

		seen_ms[i] = before == SIZE_MAX ? spawner_real_ms() : held->seen_ms[before];
	}
	heldmounts_deinit(held);
	held->table = *now;
	held->seen_ms = seen_ms;
	*now = (struct mount_table)MOUNT_TABLE_INIT;
	return 0;
}

void heldmounts_changed(struct spawner *spawner)
{
	AUTO(mount_table_deinit) struct mount_table now = MOUNT_TABLE_INIT;
	struct heldmounts *held = &spawner->heldmounts;
	struct error err = ERROR_INIT;

	if (read_table(&now, &err) < 0) {
		log_failure(&err, "the host's mounts");
		return;
	}
	if (is_any_gone(held, &now))
		for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++)
			for (const struct job *job = spawner->jobs[i]; job; job = job->next)
				look_at_job(job, held, &now);
	if (replace_take(held, &now, &err) < 0)
		log_failure(&err, "the host's mounts");
}
