/* SPDX-License-Identifier: Apache-2.0 */

/* policy check, diff, migrate, show. */

#include <stdlib.h>
#include <string.h>

#include "client/ctl/command.h"
#include "client/ctl/policyfile.h"
#include "client/ctl/request.h"
#include "client/ctl/show.h"
#include "common/buf.h"
#include "common/legacy.h"
#include "common/limits.h"
#include "common/plan.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "proto/json/json.h"

/* ---- show, check --------------------------------------------------------------------- */

int command_policy_show(struct ctl *ctl)
{
	struct request request;
	struct error err = ERROR_INIT;
	int status = CTL_OK;

	if (request_fill(&request, ctl, &err) < 0)
		status = policyfile_refused(ctl, NULL, &err);
	else
		status = show_policy_of(ctl, &request);
	request_deinit(&request);
	return status;
}

/* Everything that a compiler could still find wrong with the policy of a context. */
static int try_compilers(const struct policy_context *context, const struct policy *policy,
			 struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_PLAN_BYTES);
	const struct plan_options options = { .harden = PLAN_HARDEN_ALL,
					      .chdir = context->working_dir };
	struct plan plan = PLAN_INIT;
	int r = 0;

	if (context->platform == PLATFORM_DARWIN)
		return seatbelt_compile(&text, policy, SEATBELT_HARDEN_ALL, err);
	r = plan_build(&plan, policy, &options, err);
	plan_deinit(&plan);
	return r;
}

static int check_context(struct ctl *ctl)
{
	struct policy_context context;
	struct policy policy;
	struct error err = ERROR_INIT;
	int status = CTL_OK;
	int r = policyfile_load(ctl, ctl->args.context, &context, &policy, &err);

	if (r == 0)
		r = try_compilers(&context, &policy, &err);
	if (r < 0)
		status = policyfile_refused(ctl, NULL, &err);
	else if (ctl->args.json)
		(void)printf("{\"ok\":true,\"rules\":%zu}\n", policy.rules.count);
	else
		(void)printf("ok: %zu rules\n", policy.rules.count);
	policy_deinit(&policy);
	policy_context_deinit(&context);
	return status;
}

/* Whether nothing but a context was given, so that no daemon is needed. */
static bool context_alone(const struct ctl_args *args)
{
	return args->context && !args->profile && args->rw.count == 0 && args->ro.count == 0 &&
	       args->deny.count == 0;
}

int command_policy_check(struct ctl *ctl)
{
	struct request request;
	struct error err = ERROR_INIT;
	int status = CTL_OK;

	if (context_alone(&ctl->args))
		return check_context(ctl);
	if (request_fill(&request, ctl, &err) < 0)
		status = policyfile_refused(ctl, NULL, &err);
	else
		status = show_policy_check(ctl, &request);
	request_deinit(&request);
	return status;
}

/* ---- diff ---------------------------------------------------------------------------- */

/* How rules are ordered in a policy: by depth, then by bytes; here it is enough that both agree. */
static int compare_rules(const void *a, const void *b)
{
	const struct rule *const *left = a;
	const struct rule *const *right = b;

	return strcmp((*left)->path, (*right)->path);
}

static const struct rule **by_path(const struct rule_list *list)
{
	const struct rule **sorted = calloc(list->count + 1, sizeof(void *));

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		sorted[i] = &list->rules[i];
	qsort(sorted, list->count, sizeof(void *), compare_rules);
	return sorted;
}

static void diff_line(const struct ctl *ctl, char sign, const struct rule *rule)
{
	output_style(ctl, stdout, sign == '-' ? STYLE_BAD : STYLE_GOOD);
	(void)printf("%c %-9s  %-9s  ", sign, access_name(rule->access),
		     rule_source_name(rule->source));
	output_text(stdout, rule->path);
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputc('\n', stdout);
}

static void diff_json(struct json_writer *writer, const struct rule *old, const struct rule *new)
{
	json_write_object(writer);
	json_write_key(writer, "path");
	json_write_bytes(writer, old ? old->path : new->path);
	json_write_key(writer, "old");
	if (old)
		policyfile_rule_json(writer, old);
	else
		json_write_null(writer);
	json_write_key(writer, "new");
	if (new)
		policyfile_rule_json(writer, new);
	else
		json_write_null(writer);
	json_write_object_end(writer);
}

/* Walk both sorted lists; returns how many paths differ. */
static size_t diff_walk(const struct ctl *ctl, struct json_writer *writer,
			const struct rule *const *old, const struct rule *const *new)
{
	size_t differences = 0;

	while (*old || *new) {
		int order = !*old ? 1 : !*new ? -1 : strcmp((*old)->path, (*new)->path);
		const struct rule *before = order <= 0 ? *old++ : NULL;
		const struct rule *after = order >= 0 ? *new ++ : NULL;

		if (before && after && before->access == after->access &&
		    before->source == after->source)
			continue;
		differences++;
		if (ctl->args.json) {
			diff_json(writer, before, after);
			continue;
		}
		if (before)
			diff_line(ctl, '-', before);
		if (after)
			diff_line(ctl, '+', after);
	}
	return differences;
}

static int diff(struct ctl *ctl, const struct policy *old, const struct policy *new)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PARAMS_BYTES);
	const struct rule **old_rules = by_path(&old->rules);
	const struct rule **new_rules = by_path(&new->rules);
	struct json_writer writer;
	size_t differences = 0;
	int status = CTL_FAILED;

	if (old_rules && new_rules) {
		json_writer_init(&writer, &out);
		json_write_object(&writer);
		json_write_key(&writer, "rules");
		json_write_array(&writer);
		differences = diff_walk(ctl, &writer, old_rules, new_rules);
		json_write_array_end(&writer);
		if (old->net != new->net) {
			differences++;
			json_write_key(&writer, "net");
			json_write_bool(&writer, new->net == NET_HOST);
			if (!ctl->args.json)
				(void)printf("%c net\n", new->net == NET_HOST ? '+' : '-');
		}
		json_write_object_end(&writer);
		status = differences == 0 ? CTL_OK : CTL_NO;
		if (ctl->args.json)
			status = output_json(ctl, stdout, &writer, &out, status);
	}
	free(old_rules);
	free(new_rules);
	return status;
}

int command_policy_diff(struct ctl *ctl)
{
	struct policy_context contexts[2] = { POLICY_CONTEXT_INIT, POLICY_CONTEXT_INIT };
	struct policy policies[2] = { POLICY_INIT, POLICY_INIT };
	struct error err = ERROR_INIT;
	int status = CTL_OK;
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		r = policyfile_load(ctl, ctl->args.words[i], &contexts[i], &policies[i], &err);
		if (r < 0)
			error_prefix(&err, "%s", ctl->args.words[i]);
	}
	status =
		r < 0 ? policyfile_refused(ctl, NULL, &err) : diff(ctl, &policies[0], &policies[1]);
	for (int i = 0; i < 2; i++) {
		policy_deinit(&policies[i]);
		policy_context_deinit(&contexts[i]);
	}
	return status;
}

/* ---- migrate ------------------------------------------------------------------------- */

static int read_bool(bool *ret_value, const struct json_value *entry, const char *key,
		     struct error *err)
{
	const struct json_value *value = json_get(entry, key);

	if (!value)
		return 0;
	if (value->type != JSON_BOOL)
		return error_set(err, ERR_INVALID, 0, "%s: %s, not true or false", key,
				 json_type_name(value->type));
	*ret_value = value->u.boolean;
	return 0;
}

static int read_strings(struct string_list *out, const struct json_value *entry, const char *key,
			struct error *err)
{
	const struct json_value *value = json_get(entry, key);
	int r = 0;

	if (!value)
		return 0;
	if (value->type != JSON_ARRAY)
		return error_set(err, ERR_INVALID, 0, "%s: %s, not an array", key,
				 json_type_name(value->type));
	for (const struct json_value *item = value->u.first; item && r == 0; item = item->next) {
		if (item->type != JSON_STRING)
			return error_set(err, ERR_INVALID, 0, "%s: %s among the strings", key,
					 json_type_name(item->type));
		r = string_list_add(out, item->u.text, err);
	}
	return r;
}

static int read_legacy(struct legacy_fields *out, const struct json_value *entry, struct error *err)
{
	int r = 0;

	if (entry->type != JSON_OBJECT)
		return error_set(err, ERR_INVALID, 0, "a bot's entry is an object, this is %s",
				 json_type_name(entry->type));
	out->has_sandbox_paths = json_get(entry, "sandboxPaths") != NULL;
	r = read_bool(&out->sandbox, entry, "sandbox", err);
	if (r == 0)
		r = read_bool(&out->read_isolation, entry, "readIsolation", err);
	if (r == 0)
		r = read_strings(&out->readonly_paths, entry, "sandboxReadonlyPaths", err);
	if (r == 0)
		r = read_strings(&out->hide_paths, entry, "sandboxHidePaths", err);
	if (r == 0)
		r = read_strings(&out->deny_extra_paths, entry, "readDenyExtraPaths", err);
	return r;
}

static void write_paths(struct json_writer *writer, const char *key, const struct string_list *list)
{
	if (list->count == 0)
		return;
	json_write_key(writer, key);
	json_write_array(writer);
	for (size_t i = 0; i < list->count; i++)
		json_write_bytes(writer, list->items[i]);
	json_write_array_end(writer);
}

static void write_migrated(struct json_writer *writer, const struct migrated_fields *fields)
{
	if (!fields->needed) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_key(writer, "sandbox");
	json_write_bool(writer, fields->sandbox);
	if (fields->read_only.count > 0 || fields->deny.count > 0) {
		json_write_key(writer, "sandboxPaths");
		json_write_object(writer);
		write_paths(writer, "readOnly", &fields->read_only);
		write_paths(writer, "deny", &fields->deny);
		json_write_object_end(writer);
	}
	json_write_object_end(writer);
}

int command_policy_migrate(struct ctl *ctl)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PARAMS_BYTES);
	AUTO(auto_free) char *text = NULL;
	struct legacy_fields fields = { .sandbox = false };
	struct migrated_fields migrated = { .needed = false };
	struct json_doc *doc = NULL;
	struct json_writer writer;
	struct error err = ERROR_INIT;
	size_t size = 0;
	int status = CTL_OK;
	int r = file_read(ctl->args.words[0], &text, &size, &err);

	if (r == 0)
		r = json_parse(&doc, text, size, NULL, &err);
	if (r == 0)
		r = read_legacy(&fields, json_root(doc), &err);
	if (r == 0)
		r = legacy_migrate(&migrated, &fields, &err);
	if (r == 0) {
		json_writer_init(&writer, &out);
		write_migrated(&writer, &migrated);
		status = output_json(ctl, stdout, &writer, &out, CTL_OK);
	} else {
		status = policyfile_refused(ctl, ctl->args.words[0], &err);
	}
	legacy_fields_deinit(&fields);
	migrated_fields_deinit(&migrated);
	(void)json_doc_free(doc);
	return status;
}
