/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's answer to "what would this spawn enforce?". */

#include <inttypes.h>
#include <stdlib.h>

#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/command.h"
#include "client/ctl/grants.h"
#include "client/ctl/show.h"
#include "common/scope.h"

static void print_rules(const struct ctl *ctl, const struct msg_rule_list *rules)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct msg_rule *rule = &rules->items[i];
		enum output_style style = rule->access == ACCESS_DENY         ? STYLE_BAD
					  : rule->access == ACCESS_READ_WRITE ? STYLE_WARN
									      : STYLE_PLAIN;

		output_style(ctl, stdout, style);
		(void)printf("%-9s", access_name(rule->access));
		output_style(ctl, stdout, STYLE_PLAIN);
		(void)printf("  %-9s  ", rule_source_name(rule->source));
		output_text(stdout, rule->path);
		if (rule->origin) {
			output_style(ctl, stdout, STYLE_DIM);
			(void)fputs("  ", stdout);
			output_text(stdout, rule->origin);
			output_style(ctl, stdout, STYLE_PLAIN);
		}
		(void)fputc('\n', stdout);
	}
}

static void print_strings(const char *name, const struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		(void)printf("%-9s  ", name);
		output_text(stdout, list->items[i]);
		(void)fputc('\n', stdout);
	}
}

static void print_notes(const struct policy_result *policy)
{
	for (size_t i = 0; i < policy->notes.count; i++) {
		(void)fputs("note       ", stdout);
		output_text(stdout, policy->notes.items[i].path);
		(void)fputs(": ", stdout);
		output_text(stdout, policy->notes.items[i].reason);
		(void)fputc('\n', stdout);
	}
	print_strings("withheld", &policy->withheld);
	print_strings("warning", &policy->warnings);
}

static void print_hosts(const struct msg_net *hosts)
{
	print_strings("allow", &hosts->allow);
	print_strings("deny", &hosts->deny);
	for (size_t i = 0; i < hosts->forward.count; i++)
		(void)printf("%-9s  %" PRIu32 "\n", "forward", hosts->forward.items[i]);
}

static void print_policy(const struct ctl *ctl, const struct policy_result *policy)
{
	print_rules(ctl, &policy->rules);
	print_strings("write ~", &policy->write_regexes);
	print_strings("deny ~", &policy->deny_regexes);
	print_strings("final ro", &policy->final_read_only_paths);
	(void)printf("\nnetwork    %s (%s)\n", net_mode_name(policy->net), room_name(policy->room));
	if (policy->hosts)
		print_hosts(policy->hosts);
	(void)printf("engine     %s\n", engine_name(policy->engine));
	if (policy->policy_digest)
		(void)printf("digest     %s\n", policy->policy_digest);
	print_notes(policy);
}

/* The answer, or NULL after having shown why there is none, with the exit status in RET_STATUS. */
static struct conn_event *ask(struct ctl *ctl, const struct request *request,
			      union method_params *params, int *ret_status)
{
	struct conn_event *event = NULL;
	struct fsbox_error err;
	int r = 0;

	*ret_status = CTL_FAILED;
	if (ctl_open(ctl) < 0)
		return NULL;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	r = convert_spawn(&params->policy.spawn, &request->spawn, false, &err);
	params->policy.spawn.grant_request = ctl->args.grant_request;
	if (r == 0)
		r = conn_request(fsbox_conn(ctl->box), METHOD_POLICY, params, &event, &err);
	if (r < 0) {
		output_error(ctl, NULL, &err);
		*ret_status = ctl->args.dry_run ? fsbox_error_exit_status(err.kind) : CTL_NO;
		return NULL;
	}
	*ret_status = CTL_OK;
	return event;
}

/* For those who ask before they let a command run: whether it would run in a room at all. */
static int room_status(const struct ctl *ctl, enum room_kind room)
{
	bool closed = room == ROOM_EGRESS_DENIED || room == ROOM_EGRESS_ALLOWLIST;

	return closed || !ctl->args.dry_run ? CTL_OK : CTL_NO;
}

int show_policy_of(struct ctl *ctl, const struct request *request)
{
	union method_params params;
	struct conn_event *event = NULL;
	int status = CTL_OK;

	method_params_init(METHOD_POLICY, &params);
	event = ask(ctl, request, &params, &status);
	if (event && ctl->args.grant_request) {
		status = grants_show_request(ctl, &params.policy.spawn, &event->result.policy);
	} else if (event) {
		if (ctl->args.json)
			(void)printf("%s\n", event->json);
		else
			print_policy(ctl, &event->result.policy);
		status = room_status(ctl, event->result.policy.room);
	}
	(void)conn_event_free(event);
	method_params_deinit(METHOD_POLICY, &params);
	return status;
}

int show_policy_check(struct ctl *ctl, const struct request *request)
{
	union method_params params;
	int status = CTL_OK;
	struct conn_event *event = NULL;
	const struct policy_result *policy = NULL;

	method_params_init(METHOD_POLICY, &params);
	event = ask(ctl, request, &params, &status);
	method_params_deinit(METHOD_POLICY, &params);
	if (!event)
		return status;
	policy = &event->result.policy;
	if (ctl->args.json) {
		(void)printf("%s\n", event->json);
	} else {
		(void)printf("ok: %zu rules\n", policy->rules.count);
		print_notes(policy);
	}
	(void)conn_event_free(event);
	return CTL_OK;
}
