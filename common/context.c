/* SPDX-License-Identifier: Apache-2.0 */
#include "common/context.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/authority.h"
#include "common/buf.h"
#include "common/larkstore.h"
#include "common/limits.h"
#include "common/rolelib.h"
#include "common/scope.h"

/* When a row of a table below applies; all bits must hold. */
enum condition {
	ALWAYS = 0,
	SESSION = 1 << 0, /* session_id is given */
	TRANSPORT_ON = 1 << 1,
	TRANSPORT_OFF = 1 << 2,
	LINUX = 1 << 3,
	DARWIN = 1 << 4,
	OUTBOX = 1 << 5,
	INSTALL_ROOT = 1 << 6,
	CLI_DATA = 1 << 7, /* not redirected */
};

/*
 * Single paths. In a pattern %H is home_dir, %B botmux_home, %D session_data_dir, %A current_app_id,
 * %S session_id, %T bot_home, %O outbox, %I botmux_install_root, as they are.
 */
struct injection {
	unsigned int when;
	enum access access;
	enum rule_source source;
	const char *pattern;
};

#define RW ACCESS_READ_WRITE, RULE_INTERNAL
#define RO ACCESS_READ_ONLY, RULE_INTERNAL
#define MASK ACCESS_DENY, RULE_MANDATORY

static const struct injection injections[] = {
	{ ALWAYS, RW, "%T" },
	{ OUTBOX, RW, "%O" },
	{ INSTALL_ROOT, RO, "%I" },

	/* this session's own state */
	{ ALWAYS, RO, "%D/sessions-%A.json" },
	{ ALWAYS, RW, "%D/attachments/%A" },
	{ SESSION, RO, "%D/prompt-ctx/%S" },
	{ SESSION, RW, "%D/turn-sends/%S.jsonl" },

	/* what the tools inside read of the daemon's */
	{ ALWAYS, RO, "%B/.data-dir" },
	{ ALWAYS, RO, "%B/.dashboard-port" },
	{ ALWAYS, RO, "%B/bin" },
	{ ALWAYS, RO, "%B/claude-plugin" },
	{ ALWAYS, RO, "%B/lark-scopes.json" },
	{ ALWAYS, RO, "%D/bots-info.json" },
	{ ALWAYS, RO, "%D/bot-openids-%A.json" },
	{ TRANSPORT_ON, RO, "%D/dashboard-daemons" },

	/* this bot's own identity */
	{ TRANSPORT_ON, RW, "%H/.lark-cli-bots/%A" },
	{ TRANSPORT_ON | DARWIN, RO, "%H/Library/Application Support/lark-cli/master.key.file" },
	{ TRANSPORT_ON | DARWIN, RO, "%H/Library/Application Support/lark-cli/appsecret_%A.enc" },

	/* what stays open inside the closed roots */
	{ TRANSPORT_OFF, MASK, "%T/send-cred.json" },
	{ TRANSPORT_OFF, RO, "%D/bin" },
};

#undef RW
#undef RO
#undef MASK

/* Lists of paths. @filtered: what lies in an authority root is left out. */
struct path_list_row {
	size_t offset;
	unsigned int when;
	bool filtered;
	enum access access;
	enum rule_source source;
	const char *origin;
};

#define LIST(field) offsetof(struct policy_context, field)

static const struct path_list_row path_lists[] = {
	{ LIST(exec_paths), ALWAYS, false, ACCESS_READ_ONLY, RULE_ADAPTER, "execPaths" },
	{ LIST(auth_paths), ALWAYS, false, ACCESS_READ_WRITE, RULE_ADAPTER, "authPaths" },
	{ LIST(cli_data_paths), CLI_DATA, false, ACCESS_READ_WRITE, RULE_ADAPTER, "cliDataPaths" },
	{ LIST(extra_write_paths), ALWAYS, true, ACCESS_READ_WRITE, RULE_INTERNAL,
	  "extraWritePaths" },
	{ LIST(readonly_roots), ALWAYS, true, ACCESS_READ_ONLY, RULE_INTERNAL, "readonlyRoots" },
	{ LIST(user_read_write), ALWAYS, true, ACCESS_READ_WRITE, RULE_USER,
	  "userPaths.readWrite" },
	{ LIST(user_read_only), ALWAYS, true, ACCESS_READ_ONLY, RULE_USER, "userPaths.readOnly" },
	{ LIST(user_deny), ALWAYS, false, ACCESS_DENY, RULE_USER, "userPaths.deny" },
	{ LIST(mandatory_deny_paths), ALWAYS, false, ACCESS_DENY, RULE_MANDATORY,
	  "mandatoryDenyPaths" },
	{ LIST(mandatory_read_only_paths), ALWAYS, false, ACCESS_READ_ONLY, RULE_MANDATORY,
	  "mandatoryReadOnlyPaths" },
};

/* Strings without which there is no context. */
static const struct {
	size_t offset;
	const char *name;
} required[] = {
	{ offsetof(struct policy_context, home_dir), "homeDir" },
	{ offsetof(struct policy_context, botmux_home), "botmuxHome" },
	{ offsetof(struct policy_context, session_data_dir), "sessionDataDir" },
	{ offsetof(struct policy_context, working_dir), "workingDir" },
	{ offsetof(struct policy_context, current_app_id), "currentAppId" },
	{ offsetof(struct policy_context, bot_home), "botHome" },
};

/* A policy on its way. */
struct assembly {
	const struct policy_context *context;
	unsigned int facts; /* enum condition */
	struct string_list roots;
	struct rule_list candidates;
	struct string_list suppressed;
	struct buf path;
};

static void assembly_deinit(struct assembly *assembly)
{
	string_list_deinit(&assembly->roots);
	rule_list_deinit(&assembly->candidates);
	string_list_deinit(&assembly->suppressed);
	buf_deinit(&assembly->path);
}

static struct string_list *field_list(struct policy_context *context, size_t offset)
{
	return (void *)((char *)context + offset);
}

void policy_context_deinit(struct policy_context *context)
{
	if (!context)
		return;
	free(context->home_dir);
	free(context->botmux_home);
	free(context->session_data_dir);
	free(context->working_dir);
	free(context->current_app_id);
	free(context->bot_home);
	free(context->session_id);
	free(context->role_library_subtree);
	free(context->botmux_install_root);
	free(context->outbox);
	free(context->default_botmux_home);
	free(context->loaded_bots_config_path);
	free(context->lark_cli_linux_store);
	for (size_t i = 0; i < ARRAY_SIZE(path_lists); i++)
		string_list_deinit(field_list(context, path_lists[i].offset));
	string_list_deinit(&context->mandatory_deny_regexes);
	string_list_deinit(&context->write_regexes);
	*context = (struct policy_context)POLICY_CONTEXT_INIT;
}

static bool is_given(const char *text)
{
	return text && text[0];
}

static unsigned int facts_of(const struct policy_context *context)
{
	unsigned int facts = context->lark_transport_enabled ? TRANSPORT_ON : TRANSPORT_OFF;

	facts |= context->platform == PLATFORM_LINUX ? LINUX : DARWIN;
	facts |= is_given(context->session_id) ? SESSION : 0;
	facts |= is_given(context->outbox) ? OUTBOX : 0;
	facts |= is_given(context->botmux_install_root) ? INSTALL_ROOT : 0;
	facts |= context->redirected_cli_data ? 0 : CLI_DATA;
	return facts;
}

static bool applies(const struct assembly *assembly, unsigned int when)
{
	return (assembly->facts & when) == when;
}

static const char *pattern_value(const struct policy_context *context, char letter)
{
	switch (letter) {
	case 'H':
		return context->home_dir;
	case 'B':
		return context->botmux_home;
	case 'D':
		return context->session_data_dir;
	case 'A':
		return context->current_app_id;
	case 'S':
		return context->session_id;
	case 'O':
		return context->outbox;
	case 'I':
		return context->botmux_install_root;
	default: /* 'T' */
		return context->bot_home;
	}
}

/* What assembly->path holds, as a rule. */
static int add_built_path(struct assembly *assembly, enum access access, enum rule_source source,
			  const char *origin, struct error *err)
{
	if (assembly->path.failed)
		return buf_check(&assembly->path, "a path of the context", err);
	return rule_list_append(&assembly->candidates, buf_text(&assembly->path), access, source,
				origin, err);
}

static int add_injection(struct assembly *assembly, const struct injection *row, struct error *err)
{
	struct buf *path = &assembly->path;

	buf_clear(path);
	for (const char *at = row->pattern; *at; at++) {
		if (*at == '%')
			(void)buf_add_string(path, pattern_value(assembly->context, *++at));
		else
			(void)buf_add_byte(path, *at);
	}
	return add_built_path(assembly, row->access, row->source, "botmux context", err);
}

static int add_injections(struct assembly *assembly, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(injections); i++)
		if (applies(assembly, injections[i].when))
			r = add_injection(assembly, &injections[i], err);
	return r;
}

static int add_paths(struct assembly *assembly, const struct string_list *paths,
		     const struct path_list_row *row, struct error *err)
{
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };
	int r = 0;

	if (row->filtered) {
		r = authority_filter(&kept, &assembly->suppressed, paths, &assembly->roots,
				     assembly->context->bot_home, err);
		paths = &kept;
	}
	for (size_t i = 0; r == 0 && i < paths->count; i++)
		r = rule_list_append(&assembly->candidates, paths->items[i], row->access,
				     row->source, row->origin, err);
	return r;
}

static int add_path_lists(struct assembly *assembly, struct error *err)
{
	static const struct path_list_row working_dir_row = {
		.filtered = true,
		.access = ACCESS_READ_WRITE,
		.source = RULE_INTERNAL,
		.origin = "workingDir",
	};
	const char *base = (const char *)assembly->context;
	char *working_dir = assembly->context->working_dir;
	const struct string_list alone = { .items = &working_dir, .count = 1 };
	int r = add_paths(assembly, &alone, &working_dir_row, err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(path_lists); i++) {
		const struct path_list_row *row = &path_lists[i];

		if (applies(assembly, row->when))
			r = add_paths(assembly, (const void *)(base + row->offset), row, err);
	}
	return r;
}

static int add_role_library(struct assembly *assembly, struct error *err)
{
	enum access access = ACCESS_NONE;
	int r = 0;

	if (!applies(assembly, TRANSPORT_ON))
		return 0;
	r = role_library_access(&access, assembly->context, err);
	if (r < 0 || access == ACCESS_NONE)
		return r;
	return rule_list_append(&assembly->candidates, assembly->context->role_library_subtree,
				access, RULE_INTERNAL, "roleLibrarySubtree", err);
}

/* The key store is closed; only the shared key and this bot's own secret can be read. */
static int add_lark_store(struct assembly *assembly, const char *override, struct error *err)
{
	static const char origin[] = "lark-cli key store";
	const struct policy_context *context = assembly->context;
	struct buf *path = &assembly->path;
	AUTO(auto_free) char *store = lark_store_path(context->home_dir, override);
	int r = 0;

	if (!store)
		return errno == ENOMEM ? error_set(err, ERR_NOMEM, 0, "no memory for a path") : 0;
	r = rule_list_append(&assembly->candidates, store, ACCESS_DENY, RULE_MANDATORY, origin,
			     err);
	if (r < 0)
		return r;
	buf_clear(path);
	(void)buf_printf(path, "%s/master.key", store);
	r = add_built_path(assembly, ACCESS_READ_ONLY, RULE_INTERNAL, origin, err);
	if (r < 0)
		return r;
	buf_clear(path);
	(void)buf_printf(path, "%s/appsecret_%s.enc", store, context->current_app_id);
	return add_built_path(assembly, ACCESS_READ_ONLY, RULE_INTERNAL, origin, err);
}

/* Both the store in use and the default one: an unusable override must not leave the latter open. */
static int add_lark_stores(struct assembly *assembly, struct error *err)
{
	int r = 0;

	if (!applies(assembly, TRANSPORT_ON | LINUX))
		return 0;
	r = add_lark_store(assembly, assembly->context->lark_cli_linux_store, err);
	return r < 0 ? r : add_lark_store(assembly, NULL, err);
}

static int add_roots(struct assembly *assembly, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < assembly->roots.count; i++)
		r = rule_list_append(&assembly->candidates, assembly->roots.items[i], ACCESS_DENY,
				     RULE_MANDATORY, "authority root", err);
	return r;
}

/* Without lark transport: find the roots, and refuse a layout that they make impossible. */
static int find_roots(struct assembly *assembly, struct error *err)
{
	const struct policy_context *context = assembly->context;
	const struct authority_input input = {
		.platform = context->platform,
		.home_dir = context->home_dir,
		.botmux_home = context->botmux_home,
		.default_botmux_home = context->default_botmux_home,
		.loaded_bots_config = context->loaded_bots_config_path,
		.lark_cli_linux_store = context->lark_cli_linux_store,
	};
	int r = 0;

	if (!applies(assembly, TRANSPORT_OFF))
		return 0;
	r = authority_roots(&assembly->roots, &input, err);
	if (r < 0)
		return r;
	return authority_check_working_dir(&assembly->roots, context->bot_home,
					   context->working_dir, err);
}

static int collect(struct assembly *assembly, struct error *err)
{
	int r = baseline_add_rules(&assembly->candidates, assembly->context->platform,
				   assembly->context->home_dir, err);

	if (r == 0)
		r = add_injections(assembly, err);
	if (r == 0)
		r = add_path_lists(assembly, err);
	if (r == 0)
		r = add_role_library(assembly, err);
	if (r == 0)
		r = add_lark_stores(assembly, err);
	if (r == 0)
		r = add_roots(assembly, err);
	return r;
}

static int copy_list(struct string_list *ret_copy, const struct string_list *list,
		     struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->count; i++)
		r = string_list_add(ret_copy, list->items[i], err);
	return r;
}

/* Everything of the policy but its rules. */
static int copy_rest(struct policy *policy, const struct policy_context *context,
		     const struct string_list *suppressed, struct error *err)
{
	int r = copy_list(&policy->write_regexes, &context->write_regexes, err);

	policy->net = context->net ? NET_HOST : NET_NONE;
	if (r == 0)
		r = copy_list(&policy->deny_regexes, &context->mandatory_deny_regexes, err);
	if (r == 0)
		r = copy_list(&policy->final_read_only, &context->mandatory_read_only_paths, err);
	if (r == 0)
		r = copy_list(&policy->suppressed, suppressed, err);
	for (size_t i = 0; r == 0 && i < suppressed->count; i++)
		r = policy_add_note(policy, suppressed->items[i],
				    "left out: lies in an authority root", err);
	return r;
}

static int check_required(const struct policy_context *context, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
		const char *field = (const char *)context + required[i].offset;

		if (!*(char *const *)(const void *)field)
			return error_set(err, ERR_INVALID, 0, "%s is missing", required[i].name);
	}
	return 0;
}

int policy_context_build(struct policy *ret_policy, const struct policy_context *context,
			 struct error *err)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(assembly_deinit)
	struct assembly assembly = {
		.context = context,
		.path = BUF_INIT(LIMIT_FRAME_BYTES),
	};
	int r = check_required(context, err);

	if (r < 0)
		return r;
	assembly.facts = facts_of(context);
	r = find_roots(&assembly, err);
	if (r == 0)
		r = collect(&assembly, err);
	if (r == 0)
		r = rule_list_merge(&policy.rules, &assembly.candidates, err);
	if (r == 0)
		r = policy_index(&policy, err);
	if (r == 0 && applies(&assembly, TRANSPORT_OFF))
		r = authority_check_config(&policy, context->loaded_bots_config_path, err);
	string_list_sort_unique(&assembly.suppressed);
	if (r == 0)
		r = copy_rest(&policy, context, &assembly.suppressed, err);
	if (r < 0)
		return r;
	*ret_policy = policy;
	policy = (struct policy)POLICY_INIT;
	return 0;
}
