/* SPDX-License-Identifier: Apache-2.0 */

/* ps, inspect, wait, signal: about jobs that already run. */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/command.h"
#include "client/ctl/request.h"
#include "client/ctl/show.h"
#include "client/ctl/signals.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "proto/json/json.h"

/*
 * A request that failed: unknown jobs and refusals are answers (1); anything else means that the daemon
 * could not do its work.
 */
static int failed(const struct ctl *ctl, const char *what, const struct fsbox_error *err)
{
	output_error(ctl, what, err);
	if (strcmp(err->kind, "job-unknown") == 0 || strcmp(err->kind, "not-authorized") == 0 ||
	    strcmp(err->kind, "timeout") == 0)
		return CTL_NO;
	return CTL_FAILED;
}

static uint64_t now_ms(void)
{
	struct timespec now = { .tv_sec = 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const char *age_of(char out[static 32], uint64_t started_ms)
{
	uint64_t now = now_ms();

	return output_age(out, now > started_ms ? now - started_ms : 0);
}

/* ---- ps ------------------------------------------------------------------------------ */

static void print_jobs(const struct ctl *ctl, const struct msg_job_list *jobs)
{
	output_style(ctl, stdout, STYLE_BOLD);
	(void)printf("%-6s %-7s %-9s %-8s %-10s %-15s %-16s %s", "JOB", "PID", "STATE", "AGE",
		     "PROFILE", "NETWORK", "COMMAND", "LABEL");
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputc('\n', stdout);

	for (size_t i = 0; i < jobs->count; i++) {
		const struct msg_job *job = &jobs->items[i];
		char age[32];

		(void)printf("%-6" PRIu64 " %-7d %-9s %-8s ", job->job, (int)job->pid,
			     job_state_name(job->state), age_of(age, job->started_ms));
		(void)output_padded(stdout, job->profile, 10);
		(void)printf(" %-15s ", room_name(job->room));
		(void)output_padded(stdout, job->command, 16);
		(void)fputc(' ', stdout);
		output_text(stdout, job->label ? job->label : (job->detached ? "(detached)" : ""));
		(void)fputc('\n', stdout);
	}
}

int command_ps(struct ctl *ctl)
{
	const union method_params params = { .list = { .all = ctl->args.all } };
	struct conn_event *event = NULL;
	struct fsbox_error err;

	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	if (conn_request(fsbox_conn(ctl->box), METHOD_LIST, &params, &event, &err) < 0)
		return failed(ctl, NULL, &err);
	if (ctl->args.json)
		(void)printf("%s\n", event->json);
	else if (event->result.list.jobs.count > 0)
		print_jobs(ctl, &event->result.list.jobs);
	else
		output_note(ctl, "no job runs");
	(void)conn_event_free(event);
	return CTL_OK;
}

/* ---- inspect ------------------------------------------------------------------------- */

static void row(const char *name, const char *value)
{
	if (!value)
		return;
	(void)printf("%-14s ", name);
	output_text(stdout, value);
	(void)fputc('\n', stdout);
}

static void print_limits(const struct limits_result *limits)
{
	char text[32];

	if (limits->memory_bytes > 0)
		row("memory", output_bytes(text, limits->memory_bytes));
	if (limits->wall_ms > 0)
		row("timeout", output_age(text, limits->wall_ms));
	if (limits->pids > 0)
		(void)printf("%-14s %" PRIu32 "\n", "processes", limits->pids);
	if (limits->cpus_milli > 0)
		(void)printf("%-14s %" PRIu32 ".%03" PRIu32 "\n", "processors",
			     limits->cpus_milli / 1000, limits->cpus_milli % 1000);
	for (size_t i = 0; i < limits->unenforced.count; i++)
		row("not enforced", limits->unenforced.items[i]);
}

static void rows(const char *name, const struct string_list *values)
{
	for (size_t i = 0; i < values->count; i++)
		row(name, values->items[i]);
}

static void print_mounts(const struct inspect_result *result)
{
	rows("masked", &result->masks);
	rows("placeholder", &result->placeholders);
	rows("pinned", &result->pins);
	if (result->watched.count > 0)
		(void)printf("%-14s %zu absent paths\n", "watched", result->watched.count);
	if (result->repaired > 0)
		(void)printf("%-14s %" PRIu32 " times\n", "repaired", result->repaired);
	rows("planted", &result->planted);
}

static void print_hosts(const struct msg_net *hosts)
{
	rows("allowed host", &hosts->allow);
	rows("denied host", &hosts->deny);
	for (size_t i = 0; i < hosts->forward.count; i++)
		(void)printf("%-14s %" PRIu32 "\n", "forwarded", hosts->forward.items[i]);
}

static void print_inspect(const struct inspect_result *result)
{
	const struct msg_job *job = &result->job;
	char age[32];

	(void)printf("%-14s %" PRIu64 "\n", "job", job->job);
	row("label", job->label);
	row("command", job->command);
	(void)printf("%-14s %s, started %s ago, pid %d, uid %" PRIu32 "%s\n", "state",
		     job_state_name(job->state), age_of(age, job->started_ms), (int)job->pid,
		     job->uid, job->detached ? ", detached" : "");
	row("directory", result->cwd);
	row("profile", job->profile);
	row("engine", engine_name(job->engine));
	row("network", room_name(job->room));
	if (result->hosts)
		print_hosts(result->hosts);
	if (result->rules > 0)
		(void)printf("%-14s %" PRIu32 ", digest %s\n", "rules", result->rules,
			     result->policy_digest ? result->policy_digest : "-");
	print_limits(&result->limits);
	for (size_t i = 0; i < result->suppressed.count; i++) {
		(void)printf("%-14s ", "left out");
		output_text(stdout, result->suppressed.items[i].path);
		(void)fputs(": ", stdout);
		output_text(stdout, result->suppressed.items[i].reason);
		(void)fputc('\n', stdout);
	}
	for (size_t i = 0; i < result->withheld.count; i++)
		row("withheld", result->withheld.items[i]);
	for (size_t i = 0; i < result->warnings.count; i++)
		row("warning", result->warnings.items[i]);
	print_mounts(result);
}

/* What is over: the reason in the protocol's words, for we have no public struct of it here. */
static void print_exited(const struct wait_result *exited)
{
	char name[32];

	(void)printf("%-14s %s", "ended", exit_reason_name(exited->reason));
	if (exited->reason == EXIT_EXITED)
		(void)printf(" with status %" PRIu32, exited->code);
	else if (exited->reason == EXIT_SIGNALED)
		(void)printf(" by %s", signal_label(name, (int)exited->signal));
	(void)printf(", %" PRIu64 " ms (user %" PRIu64 " ms, system %" PRIu64 " ms), at most ",
		     exited->wall_ms, exited->usage.user_ms, exited->usage.sys_ms);
	(void)printf("%s\n", output_bytes(name, exited->usage.max_rss_kib * 1024));
}

int command_inspect(struct ctl *ctl)
{
	union method_params params = { .inspect = { .job = 0 } };
	struct conn_event *event = NULL;
	struct error fail = ERROR_INIT;
	struct fsbox_error err;

	if (job_parse(ctl->args.words[0], &params.inspect.job, &fail) < 0)
		return output_usage(ctl, NULL, &fail);
	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	if (conn_request(fsbox_conn(ctl->box), METHOD_INSPECT, &params, &event, &err) < 0)
		return failed(ctl, "inspect", &err);
	if (ctl->args.json) {
		(void)printf("%s\n", event->json);
	} else {
		print_inspect(&event->result.inspect);
		if (event->result.inspect.exited)
			print_exited(event->result.inspect.exited);
	}
	(void)conn_event_free(event);
	return CTL_OK;
}

/* ---- wait, signal -------------------------------------------------------------------- */

int command_wait(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	int timeout_ms = args->timeout_ms == 0          ? -1
			 : args->timeout_ms > INT32_MAX ? INT32_MAX
							: (int)args->timeout_ms;
	struct fsbox_exit *end = NULL;
	struct error fail = ERROR_INIT;
	struct fsbox_error err;
	uint64_t job = 0;
	int status = CTL_OK;

	if (job_parse(args->words[0], &job, &fail) < 0)
		return output_usage(ctl, NULL, &fail);
	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	if (fsbox_wait(ctl->box, job, NULL, timeout_ms, &end, &err) < 0) {
		if (strcmp(err.kind, "timeout") == 0)
			(void)snprintf(err.message, sizeof(err.message), "the job still runs");
		return failed(ctl, "wait", &err);
	}

	status = end->reason == FSBOX_EXITED && end->code == 0 ? CTL_OK : CTL_NO;
	if (args->json) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct json_writer writer;

		json_writer_init(&writer, &out);
		show_end_json(&writer, end);
		status = output_json(ctl, stdout, &writer, &out, status);
	} else {
		char text[80];

		(void)printf("%s\n", show_end_text(text, end));
	}
	(void)fsbox_exit_free(end);
	return status;
}

int command_signal(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	struct error fail = ERROR_INIT;
	struct fsbox_error err;
	uint64_t job = 0;
	int signo = 0;
	int r = job_parse(args->words[0], &job, &fail);

	if (r == 0 && !signal_parse(args->words[1], &signo))
		r = error_set(&fail, ERR_INVALID, 0,
			      "'%s' is no signal; 'kill -l' lists their names", args->words[1]);
	if (r < 0)
		return output_usage(ctl, NULL, &fail);
	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	if (fsbox_signal(ctl->box, job, NULL, signo, &err) < 0)
		return failed(ctl, "signal", &err);
	if (args->json)
		(void)puts("{}");
	return CTL_OK;
}
