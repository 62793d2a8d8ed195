/* SPDX-License-Identifier: Apache-2.0 */

/* why: which rule decides about a path or a host. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/command.h"
#include "client/ctl/policyfile.h"
#include "client/ctl/request.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "common/sysmount.h"
#include "proto/json/json.h"

#define SHADOWED_MAX 64

/* ---- showing ------------------------------------------------------------------------- */

static int status_of(const char *access)
{
	return strcmp(access, "readWrite") == 0 || strcmp(access, "readOnly") == 0 ||
			       strcmp(access, "allowed") == 0
		       ? CTL_OK
		       : CTL_NO;
}

static void print_verdict(const struct ctl *ctl, const char *access, const char *path)
{
	output_style(ctl, stdout, status_of(access) == CTL_OK ? STYLE_GOOD : STYLE_BAD);
	(void)fputs(access, stdout);
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputs("  ", stdout);
	output_text(stdout, path);
	(void)fputc('\n', stdout);
}

static void print_rule(const char *name, const char *access, const char *source, const char *path,
		       const char *origin)
{
	(void)printf("  %-9s  %s %s ", name, access, source);
	output_text(stdout, path);
	if (origin && strcmp(origin, source) != 0) {
		(void)fputs(" (", stdout);
		output_text(stdout, origin);
		(void)fputc(')', stdout);
	}
	(void)fputc('\n', stdout);
}

static void print_fact(const char *name, const char *value)
{
	if (!value)
		return;
	(void)printf("  %-9s  ", name);
	output_text(stdout, value);
	(void)fputc('\n', stdout);
}

/* ---- from a context ------------------------------------------------------------------ */

static const char *hint_of(const struct sysmount_verdict *verdict)
{
	if (!verdict->rule)
		return verdict->mount ? "fsbox itself puts something there in every job"
				      : "no rule covers it: grant it or a directory above it";
	if (verdict->access != ACCESS_DENY)
		return NULL;
	switch (verdict->rule->source) {
	case RULE_MANDATORY:
		return "a mandatory deny: nothing lifts it";
	case RULE_USER:
		return "one of the user's own denies: remove it from the context";
	case RULE_BASELINE:
	case RULE_ADAPTER:
	case RULE_INTERNAL:
		return "a user grant for this very path, or a deeper one, lifts it";
	}
	return NULL;
}

static void context_json(struct json_writer *writer, const struct policy *policy, const char *path,
			 const struct sysmount_verdict *verdict)
{
	const struct rule *covering[SHADOWED_MAX];
	size_t count = policy_covering(policy, path, covering, SHADOWED_MAX);
	const char *hint = hint_of(verdict);

	json_write_object(writer);
	json_write_key(writer, "access");
	json_write_text(writer, access_name(verdict->access));
	json_write_key(writer, "rule");
	if (verdict->rule) {
		json_write_object(writer);
		json_write_key(writer, "path");
		json_write_bytes(writer, verdict->rule->path);
		json_write_key(writer, "access");
		json_write_text(writer, access_name(verdict->rule->access));
		json_write_key(writer, "source");
		json_write_text(writer, rule_source_name(verdict->rule->source));
		json_write_object_end(writer);
	} else {
		json_write_null(writer);
	}
	json_write_key(writer, "shadowed");
	json_write_array(writer);
	for (size_t i = 0; i < count && i < SHADOWED_MAX; i++)
		if (covering[i] != verdict->rule)
			policyfile_rule_json(writer, covering[i]);
	json_write_array_end(writer);
	if (hint) {
		json_write_key(writer, "hint");
		json_write_text(writer, hint);
	}
	json_write_object_end(writer);
}

static void context_text(const struct ctl *ctl, const struct policy *policy, const char *path,
			 const struct sysmount_verdict *verdict)
{
	const struct rule *covering[SHADOWED_MAX];
	size_t count = policy_covering(policy, path, covering, SHADOWED_MAX);

	print_verdict(ctl, access_name(verdict->access), path);
	for (size_t i = 0; i < count && i < SHADOWED_MAX; i++)
		print_rule(covering[i] == verdict->rule ? "rule" : "overrides",
			   access_name(covering[i]->access), rule_source_name(covering[i]->source),
			   covering[i]->path, covering[i]->origin);
	if (verdict->mount)
		print_fact("place", verdict->mount->path);
	print_fact("hint", hint_of(verdict));
}

static int why_context(struct ctl *ctl, const char *path)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PARAMS_BYTES);
	struct policy_context context;
	struct policy policy;
	struct sysmount_verdict verdict = { .access = ACCESS_NONE };
	struct json_writer writer;
	struct error err = ERROR_INIT;
	int status = CTL_OK;

	if (policyfile_load(ctl, ctl->args.context, &context, &policy, &err) < 0) {
		status = policyfile_refused(ctl, NULL, &err);
	} else {
		/* What macOS has there is not ours to place. */
		if (context.platform == PLATFORM_LINUX) {
			verdict = sysmount_verdict(&policy, path);
		} else {
			struct verdict plain = policy_access(&policy, path);

			verdict.access = plain.access;
			verdict.rule = plain.rule;
		}
		status = status_of(access_name(verdict.access));
		if (ctl->args.json) {
			json_writer_init(&writer, &out);
			context_json(&writer, &policy, path, &verdict);
			status = output_json(ctl, stdout, &writer, &out, status);
		} else {
			context_text(ctl, &policy, path, &verdict);
		}
	}
	policy_deinit(&policy);
	policy_context_deinit(&context);
	return status;
}

/* ---- from the daemon ----------------------------------------------------------------- */

static void daemon_text(const struct ctl *ctl, const struct why_result *why, const char *path)
{
	print_verdict(ctl, why->access, path);
	if (why->rule)
		print_rule("rule", access_name(why->rule->access),
			   rule_source_name(why->rule->source), why->rule->path, why->rule->origin);
	for (size_t i = 0; i < why->shadowed.count; i++) {
		const struct msg_rule *rule = &why->shadowed.items[i];

		print_rule("overrides", access_name(rule->access), rule_source_name(rule->source),
			   rule->path, rule->origin);
	}
	print_fact("really", why->real);
	print_fact("there is", why->type);
	print_fact("held by", why->mask);
	print_fact("entry", why->entry);
	print_fact("of the", why->origin);
	print_fact("hint", why->hint);
}

/* PATH, or the path's place is taken by HOST. */
static int why_daemon(struct ctl *ctl, uint64_t job, const char *path, const char *host)
{
	const char *about = host ? host : path;

	union method_params params = { .why = WHY_PARAMS_INIT };
	struct conn_event *event = NULL;
	struct request request;
	struct error fail = ERROR_INIT;
	struct fsbox_error err;
	int status = CTL_FAILED;
	int r = request_fill(&request, ctl, &fail);

	if (r < 0) {
		status = output_usage(ctl, NULL, &fail);
	} else if (ctl_open(ctl) == 0) {
		fsbox_conn(ctl->box)->want_text = ctl->args.json;
		if (job == 0)
			r = convert_spawn(&params.why.spawn, &request.spawn, false, &err);
		params.why.job = job;
		*(host ? &params.why.host : &params.why.path) = strdup(about);
		if (r == 0 && !params.why.path && !params.why.host)
			r = convert_no_memory(&err);
		if (r == 0)
			r = conn_request(fsbox_conn(ctl->box), METHOD_WHY, &params, &event, &err);
		if (r < 0) {
			output_error(ctl, about, &err);
			status = CTL_NO;
		} else {
			status = status_of(event->result.why.access);
			if (ctl->args.json)
				(void)printf("%s\n", event->json);
			else
				daemon_text(ctl, &event->result.why, about);
			(void)conn_event_free(event);
		}
	}
	method_params_deinit(METHOD_WHY, &params);
	request_deinit(&request);
	return status;
}

/*
 * The host that WORD is about, as the caller's to free, or NULL: it is a path. A path has a slash, begins
 * with a dot or is there; a host has a dot or a colon, or stands in a URL.
 */
static char *host_of(const char *word)
{
	const char *scheme = strstr(word, "://");
	struct stat st;

	if (scheme) {
		const char *host = scheme + 3;
		size_t length = strcspn(host, "/?#");
		const char *user = memrchr(host, '@', length);

		if (user) {
			length -= (size_t)(user + 1 - host);
			host = user + 1;
		}
		return strndup(host, length);
	}
	if (strchr(word, '/') || word[0] == '.' || word[0] == '\0' || lstat(word, &st) == 0)
		return NULL;
	return strpbrk(word, ".:") || strcmp(word, "localhost") == 0 ? strdup(word) : NULL;
}

int command_why(struct ctl *ctl)
{
	struct ctl_args *args = &ctl->args;
	struct error err = ERROR_INIT;
	const char *word = args->words[args->word_count - 1];
	AUTO(auto_free) char *host = host_of(word);
	const char *path = NULL;
	uint64_t job = 0;
	int r = 0;

	if (args->word_count == 2)
		r = job_parse(args->words[0], &job, &err);
	if (r == 0 && !host)
		r = option_path(args, word, &path, &err);
	if (r == 0 && job != 0 && args->context)
		r = error_set(&err, ERR_INVALID, 0, "either a job or --context");
	if (r == 0 && host && args->context)
		r = error_set(&err, ERR_INVALID, 0,
			      "a context says nothing of hosts; is '%s' a path, write './%s'", word,
			      word);
	if (r < 0)
		return output_usage(ctl, NULL, &err);
	return args->context ? why_context(ctl, path) : why_daemon(ctl, job, path, host);
}
