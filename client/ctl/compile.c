/* SPDX-License-Identifier: Apache-2.0 */

/* policy compile: a context as rules, plan, bwrap arguments or Seatbelt text. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/policyfile.h"
#include "common/buf.h"
#include "common/bwrap.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/plan.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "proto/json/json.h"

/* One context on its way to a compiler. */
struct compilation {
	struct ctl *ctl;
	struct policy_context context;
	struct policy policy;
	struct plan plan;
	struct buf out;
	struct json_writer writer;
};

static void write_strings(struct json_writer *writer, const char *key,
			  const struct string_list *list)
{
	json_write_key(writer, key);
	json_write_array(writer);
	for (size_t i = 0; i < list->count; i++)
		json_write_bytes(writer, list->items[i]);
	json_write_array_end(writer);
}

/* ---- rules --------------------------------------------------------------------------- */

static void rules_json(struct compilation *it)
{
	struct json_writer *writer = &it->writer;
	const struct policy *policy = &it->policy;

	json_write_object(writer);
	json_write_key(writer, "rules");
	json_write_array(writer);
	for (size_t i = 0; i < policy->rules.count; i++)
		policyfile_rule_json(writer, &policy->rules.rules[i]);
	json_write_array_end(writer);
	json_write_key(writer, "net");
	json_write_bool(writer, policy->net == NET_HOST);
	write_strings(writer, "suppressedAuthorityPaths", &policy->suppressed);
	write_strings(writer, "writeRegexes", &policy->write_regexes);
	write_strings(writer, "denyRegexes", &policy->deny_regexes);
	write_strings(writer, "finalReadOnlyPaths", &policy->final_read_only);
	json_write_object_end(writer);
}

static void strings_text(const char *name, const struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		(void)printf("%-9s  ", name);
		output_text(stdout, list->items[i]);
		(void)fputc('\n', stdout);
	}
}

static void rules_text(const struct policy *policy)
{
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct rule *rule = &policy->rules.rules[i];

		(void)printf("%-9s  %-9s  ", access_name(rule->access),
			     rule_source_name(rule->source));
		output_text(stdout, rule->path);
		(void)fputc('\n', stdout);
	}
	(void)printf("net        %s\n", policy->net == NET_HOST ? "yes" : "no");
	strings_text("left out", &policy->suppressed);
	strings_text("write ~", &policy->write_regexes);
	strings_text("deny ~", &policy->deny_regexes);
	strings_text("final ro", &policy->final_read_only);
}

/* ---- plan ---------------------------------------------------------------------------- */

/* Links at the top of this machine, as a merged /usr has them: without them nothing would run. */
static size_t top_links(struct plan_symlink links[static 6], char targets[static 6][256])
{
	static const char *const names[] = {
		"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ssize_t length = readlink(names[i], targets[count], 255);

		if (length <= 0)
			continue;
		targets[count][length] = '\0';
		links[count] = (struct plan_symlink){ names[i], targets[count] };
		count++;
	}
	return count;
}

static int build_plan(struct compilation *it, struct error *err)
{
	struct plan_symlink links[6];
	char targets[6][256];
	const struct plan_options options = {
		.harden = it->ctl->args.plain ? 0 : PLAN_HARDEN_ALL,
		.symlinks = links,
		.symlink_count = top_links(links, targets),
		.chdir = it->context.working_dir,
	};

	return plan_build(&it->plan, &it->policy, &options, err);
}

static const struct {
	uint32_t flag;
	const char *name;
} flag_names[] = {
	{ PLAN_READ_ONLY, "read-only" },   { PLAN_PLACEHOLDER, "placeholder" },
	{ PLAN_WATCH, "watch" },           { PLAN_PRIVATE_SOURCE, "private-source" },
	{ PLAN_NODE_FILE, "file" },        { PLAN_SYSTEM, "system" },
	{ PLAN_QUARANTINE, "quarantine" }, { PLAN_ENTRIES, "entries" },
};

static void plan_json(struct compilation *it)
{
	struct json_writer *writer = &it->writer;

	json_write_object(writer);
	json_write_key(writer, "plan");
	json_write_array(writer);
	for (size_t i = 0; i < it->plan.count; i++) {
		const struct plan_op *op = &it->plan.ops[i];

		json_write_object(writer);
		json_write_key(writer, "op");
		json_write_text(writer, plan_op_kind_name(op->kind));
		json_write_key(writer, "path");
		json_write_bytes(writer, op->path);
		if (op->source) {
			json_write_key(writer, "source");
			json_write_bytes(writer, op->source);
		}
		json_write_key(writer, "flags");
		json_write_array(writer);
		for (size_t j = 0; j < ARRAY_SIZE(flag_names); j++)
			if (op->flags & flag_names[j].flag)
				json_write_text(writer, flag_names[j].name);
		json_write_array_end(writer);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
	json_write_key(writer, "net");
	json_write_bool(writer, it->plan.net == NET_HOST);
	json_write_key(writer, "chdir");
	json_write_bytes(writer, it->plan.chdir ? it->plan.chdir : "/");
	json_write_object_end(writer);
}

static void plan_text(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		(void)printf("%-10s ", plan_op_kind_name(op->kind));
		output_text(stdout, op->path);
		if (op->source && strcmp(op->source, op->path) != 0) {
			(void)fputs(" <- ", stdout);
			output_text(stdout, op->source);
		}
		for (size_t j = 0; j < ARRAY_SIZE(flag_names); j++)
			if (op->flags & flag_names[j].flag)
				(void)printf(" [%s]", flag_names[j].name);
		(void)fputc('\n', stdout);
	}
}

/* ---- bwrap --------------------------------------------------------------------------- */

/* ARGUMENT as a shell would have to be given it. */
static void shell_text(const char *argument)
{
	if (argument[0] && strspn(argument, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789_@%+=:,./-") == strlen(argument)) {
		(void)fputs(argument, stdout);
		return;
	}
	(void)fputc('\'', stdout);
	for (; *argument; argument++) {
		if (*argument == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)fputc(*argument, stdout);
	}
	(void)fputc('\'', stdout);
}

/* One option with its arguments on each line. */
static void args_text(const struct string_list *args)
{
	for (size_t i = 0; i < args->count; i++) {
		if (i > 0)
			(void)fputc(strncmp(args->items[i], "--", 2) == 0 ? '\n' : ' ', stdout);
		shell_text(args->items[i]);
	}
	(void)fputc('\n', stdout);
}

static void bwrap_plain_json(struct compilation *it, const struct bwrap_plain *plain)
{
	struct json_writer *writer = &it->writer;

	json_write_object(writer);
	write_strings(writer, "args", &plain->args);
	json_write_key(writer, "emptyFiles");
	json_write_array(writer);
	for (size_t i = 0; i < plain->empty_files.count; i++) {
		json_write_object(writer);
		json_write_key(writer, "path");
		json_write_bytes(writer, plain->empty_files.items[i]);
		json_write_key(writer, "maskedPath");
		json_write_bytes(writer, plain->empty_file_masks.items[i]);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
	json_write_key(writer, "maskMounts");
	json_write_array(writer);
	for (size_t i = 0; i < plain->mask_mounts.count; i++) {
		json_write_object(writer);
		json_write_key(writer, "path");
		json_write_bytes(writer, plain->mask_mounts.items[i]);
		json_write_key(writer, "kind");
		json_write_text(writer, plain->mask_mount_is_dir[i] ? "dir" : "file");
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
	json_write_object_end(writer);
}

/* Where a session keeps the sources of its masks: beside its other files, as its host side does. */
static char *run_path(const struct policy_context *context, const char *name)
{
	AUTO(auto_free) char *sandboxes = path_join(context->session_data_dir, "sandboxes");
	AUTO(auto_free)
	char *run = sandboxes ? path_join(sandboxes,
					  context->session_id ? context->session_id : "session")
			      : NULL;

	return run ? path_join(run, name) : NULL;
}

static int bwrap_plain(struct compilation *it, struct error *err)
{
	AUTO(auto_free) char *empty = run_path(&it->context, "empty");
	AUTO(auto_free) char *empties = run_path(&it->context, "empties");
	const struct bwrap_plain_options options = { .empty_dir = empty, .empties_dir = empties };
	struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	int r = 0;

	if (!empty || !empties)
		return error_set(err, ERR_NOMEM, 0, "compile for bwrap");
	r = bwrap_compile_plain(&it->plan, &options, &plain, err);
	if (r == 0 && it->ctl->args.json)
		bwrap_plain_json(it, &plain);
	else if (r == 0)
		args_text(&plain.args);
	bwrap_plain_deinit(&plain);
	return r;
}

static int bwrap_hardened(struct compilation *it, struct error *err)
{
	AUTO(buf_deinit) struct buf packed = BUF_INIT(LIMIT_PLAN_BYTES);
	const struct bwrap_options options = {
		.mask_dir = "/run/fsbox/mask/dir",
		.mask_file = "/run/fsbox/mask/file",
		.disable_userns = true,
	};
	struct string_list args = { .items = NULL };
	int r = bwrap_compile(&it->plan, &options, &packed, err);

	for (size_t at = 0; r == 0 && at < packed.size; at += strlen(packed.data + at) + 1)
		r = string_list_add(&args, packed.data + at, err);
	if (r == 0 && it->ctl->args.json) {
		json_write_object(&it->writer);
		write_strings(&it->writer, "args", &args);
		json_write_object_end(&it->writer);
	} else if (r == 0) {
		args_text(&args);
	}
	string_list_deinit(&args);
	return r;
}

/* ---- Seatbelt ------------------------------------------------------------------------ */

static int seatbelt(struct compilation *it, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_PLAN_BYTES);
	int r = seatbelt_compile(&text, &it->policy, it->ctl->args.plain ? 0 : SEATBELT_HARDEN_ALL,
				 err);

	if (r < 0)
		return r;
	if (it->ctl->args.json) {
		json_write_object(&it->writer);
		json_write_key(&it->writer, "seatbelt");
		json_write_bytes(&it->writer, buf_text(&text));
		json_write_object_end(&it->writer);
	} else {
		(void)fwrite(text.data, 1, text.size, stdout);
	}
	return 0;
}

/* ---- all ----------------------------------------------------------------------------- */

static int compile(struct compilation *it, const char *to, struct error *err)
{
	bool json = it->ctl->args.json;
	int r = 0;

	if (strcmp(to, "rules") == 0) {
		if (json)
			rules_json(it);
		else
			rules_text(&it->policy);
		return 0;
	}
	if (strcmp(to, "seatbelt") == 0)
		return seatbelt(it, err);

	r = build_plan(it, err);
	if (r < 0)
		return r;
	if (strcmp(to, "bwrap") == 0)
		return it->ctl->args.plain ? bwrap_plain(it, err) : bwrap_hardened(it, err);
	if (json)
		plan_json(it);
	else
		plan_text(&it->plan);
	return 0;
}

int command_policy_compile(struct ctl *ctl)
{
	struct compilation it = {
		.ctl = ctl,
		.policy = POLICY_INIT,
		.plan = PLAN_INIT,
		.out = BUF_INIT(LIMIT_PARAMS_BYTES),
	};
	struct error err = ERROR_INIT;
	int status = CTL_OK;
	int r = 0;

	if (!ctl->args.context) {
		(void)error_set(&err, ERR_INVALID, 0, "it needs --context FILE");
		return output_usage(ctl, NULL, &err);
	}
	json_writer_init(&it.writer, &it.out);
	r = policyfile_load(ctl, ctl->args.context, &it.context, &it.policy, &err);
	if (r == 0)
		r = compile(&it, ctl->args.to ? ctl->args.to : "rules", &err);

	if (r < 0)
		status = policyfile_refused(ctl, NULL, &err);
	else if (ctl->args.json)
		status = output_json(ctl, stdout, &it.writer, &it.out, CTL_OK);
	buf_deinit(&it.out);
	plan_deinit(&it.plan);
	policy_deinit(&it.policy);
	policy_context_deinit(&it.context);
	return status;
}
