/* SPDX-License-Identifier: Apache-2.0 */
#include "common/seatbelt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/macpath.h"
#include "common/path.h"
#include "common/pathpattern.h"
#include "common/sbpl.h"
#include "common/scope.h"

static const char plain_head[] = "(version 1)\n"
				 "(deny default)\n"
				 "(import \"/System/Library/Sandbox/Profiles/bsd.sb\")\n";

static const char plain_base[] = "(allow process*)\n"
				 "(allow signal)\n"
				 "(allow mach*)\n"
				 "(allow ipc*)\n"
				 "(allow sysctl*)\n"
				 "(allow file-ioctl)\n"
				 "(allow iokit-open)\n";

/*
 * What `deny default` has been reported not to reach is denied by name. Mach services: only those
 * that libc, logging and certificate checks need. None of them starts programs, serves the keychain
 * or the pasteboard.
 */
static const char hard_base[] =
	"(deny process-info*)\n"
	"(deny nvram*)\n"
	"(deny file-map-executable)\n"
	"(allow process-fork)\n"
	"(allow process-info* (target same-sandbox))\n"
	"(allow signal (target same-sandbox))\n"
	"(allow sysctl-read)\n"
	"(deny sysctl-read (sysctl-name \"kern.procargs\") (sysctl-name \"kern.procargs2\")"
	" (sysctl-name-prefix \"kern.proc.\"))\n"
	"(allow ipc-posix-sem)\n"
	"(allow pseudo-tty)\n"
	"(allow mach-lookup"
	" (global-name \"com.apple.bsd.dirhelper\")"
	" (global-name \"com.apple.logd\")"
	" (global-name \"com.apple.system.logger\")"
	" (global-name \"com.apple.system.notification_center\")"
	" (global-name \"com.apple.system.opendirectoryd.libinfo\")"
	" (global-name \"com.apple.system.opendirectoryd.membership\")"
	" (global-name \"com.apple.trustd\")"
	" (global-name \"com.apple.trustd.agent\"))\n";

static const char plain_net[] = "(allow network*)\n"
				"(allow system-socket)\n";

static const char hard_net[] = "(allow network-outbound (remote ip))\n"
			       "(allow network-bind (local ip))\n"
			       "(allow network-inbound (local ip))\n"
			       "(allow system-socket)\n";

/* Names are looked up through a socket; a rule that only lets read where it is must not cut it off. */
#define RESOLVER_SOCKET "/private/var/run/mDNSResponder"

static const char hard_net_base[] =
	"(allow mach-lookup"
	" (global-name \"com.apple.SystemConfiguration.DNSConfiguration\")"
	" (global-name \"com.apple.SystemConfiguration.configd\")"
	" (global-name \"com.apple.dnssd.service\"))\n";

/* What expressions spell. */
struct pattern_list {
	struct path_pattern *items;
	size_t count;
};

/*
 * @rules      the policy's, or with SEATBELT_HARDEN_PATHS as the kernel spells them; indexed
 * @writes     what write expressions spell, only with SEATBELT_HARDEN_REGEXES
 * @denies     likewise for deny expressions
 * @finals     final read-only paths, spelt as the rules are
 * @ancestors  of the rules
 */
struct compiler {
	const struct policy *policy;
	struct sbpl sbpl;
	struct policy rules;
	struct pattern_list writes;
	struct pattern_list denies;
	struct string_list finals;
	struct string_list ancestors;
};

static void pattern_list_deinit(struct pattern_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		path_pattern_deinit(&list->items[i]);
	free(list->items);
}

static void compiler_deinit(struct compiler *compiler)
{
	policy_deinit(&compiler->rules);
	pattern_list_deinit(&compiler->writes);
	pattern_list_deinit(&compiler->denies);
	string_list_deinit(&compiler->finals);
	string_list_deinit(&compiler->ancestors);
}

static bool hard(const struct compiler *compiler, uint32_t flag)
{
	return sbpl_is_hard(&compiler->sbpl, flag);
}

static void add_expressions(struct compiler *compiler)
{
	const struct string_list *writes = &compiler->policy->write_regexes;
	const struct string_list *denies = &compiler->policy->deny_regexes;

	for (size_t i = 0; i < writes->count; i++)
		sbpl_allow_write_regex(&compiler->sbpl, writes->items[i]);
	for (size_t i = 0; i < denies->count; i++)
		sbpl_deny_regex(&compiler->sbpl, denies->items[i]);
}

static struct sbpl_place rule_place(const struct rule *rule)
{
	return (struct sbpl_place){ PATH_PATTERN_SUBPATH, rule->path };
}

static struct sbpl_place pattern_place(const struct path_pattern *pattern)
{
	return (struct sbpl_place){ pattern->kind, pattern->text };
}

static void add_patterns(struct compiler *compiler)
{
	for (size_t i = 0; i < compiler->writes.count; i++) {
		const struct sbpl_place place = pattern_place(&compiler->writes.items[i]);

		sbpl_allow_write(&compiler->sbpl, &place);
	}
	for (size_t i = 0; i < compiler->denies.count; i++) {
		const struct sbpl_place place = pattern_place(&compiler->denies.items[i]);

		sbpl_deny(&compiler->sbpl, &place);
	}
}

static void add_head(struct compiler *compiler)
{
	bool net = compiler->policy->net == NET_HOST;
	bool sockets = hard(compiler, SEATBELT_HARDEN_SOCKETS);
	bool base = hard(compiler, SEATBELT_HARDEN_BASE);

	sbpl_text(&compiler->sbpl, plain_head);
	sbpl_text(&compiler->sbpl, base ? hard_base : plain_base);
	if (net)
		sbpl_text(&compiler->sbpl, sockets ? hard_net : plain_net);
	if (net && base)
		sbpl_text(&compiler->sbpl, hard_net_base);
}

/* What must follow the rules because it is about single paths that rules cover too. */
static void add_resolver(struct compiler *compiler)
{
	if (compiler->policy->net != NET_HOST || !hard(compiler, SEATBELT_HARDEN_SOCKETS) ||
	    policy_access(&compiler->rules, RESOLVER_SOCKET).access == ACCESS_DENY)
		return;
	sbpl_text(&compiler->sbpl, "(allow network-outbound (literal \"" RESOLVER_SOCKET "\"))\n");
}

static void add_existence_line(struct sbpl *sbpl, const struct sbpl_place *place, bool deny)
{
	sbpl_text(sbpl, deny ? "(deny file-test-existence" : "(allow file-test-existence");
	sbpl_filters(sbpl, place, deny);
	sbpl_text(sbpl, ")\n");
}

/*
 * An operation that older systems lack: naming it there would keep the profile from loading. Its own
 * lines decide it, in the order of the rules.
 */
static void add_existence_lines(struct compiler *compiler)
{
	struct sbpl *sbpl = &compiler->sbpl;
	const struct rule_list *rules = &compiler->rules.rules;

	if (!hard(compiler, SEATBELT_HARDEN_OPERATIONS) || rules->count == 0)
		return;
	sbpl_text(sbpl, "(if (defined? 'file-test-existence) (begin\n");
	for (size_t i = 0; i < rules->count; i++) {
		const struct sbpl_place place = rule_place(&rules->rules[i]);

		add_existence_line(sbpl, &place, rules->rules[i].access == ACCESS_DENY);
	}
	sbpl_literals(sbpl, "(allow file-test-existence", &compiler->ancestors);
	for (size_t i = 0; i < compiler->denies.count; i++) {
		const struct sbpl_place place = pattern_place(&compiler->denies.items[i]);

		add_existence_line(sbpl, &place, true);
	}
	sbpl_text(sbpl, "))\n");
}

/*
 * Likewise. Nothing allows clones; this keeps what the imported profile may allow away from stricter
 * rules.
 */
static void add_clone_line(struct compiler *compiler)
{
	struct sbpl *sbpl = &compiler->sbpl;
	const struct rule_list *rules = &compiler->rules.rules;
	bool begun = false;

	if (!hard(compiler, SEATBELT_HARDEN_LINKS))
		return;
	for (size_t i = 0; i < rules->count; i++) {
		const struct sbpl_place place = rule_place(&rules->rules[i]);

		if (rules->rules[i].access == ACCESS_READ_WRITE)
			continue;
		if (!begun)
			sbpl_text(sbpl, "(if (defined? 'file-clone) (deny file-clone");
		begun = true;
		sbpl_filters(sbpl, &place, rules->rules[i].access == ACCESS_DENY);
	}
	if (begun)
		sbpl_text(sbpl, "))\n");
}

/* Whether PATH may be renamed as far as rules and write expressions go. */
static bool is_writable(const struct compiler *compiler, const char *path)
{
	if (policy_access(&compiler->rules, path).access == ACCESS_READ_WRITE)
		return true;
	for (size_t i = 0; i < compiler->writes.count; i++)
		if (path_pattern_matches(&compiler->writes.items[i], path))
			return true;
	return false;
}

/* The writable strict ancestors of PATH, to PINS. "/" cannot be renamed. */
static int collect_pins(struct string_list *pins, const struct compiler *compiler, const char *path,
			struct error *err)
{
	AUTO(auto_free) char *at = strdup(path);
	size_t size = strlen(path);
	int r = 0;

	if (!at)
		return error_set(err, ERR_NOMEM, 0, "no memory for a path");
	while (r == 0 && (size = path_parent_length(at, size)) > 1) {
		at[size] = '\0';
		if (is_writable(compiler, at))
			r = string_list_add(pins, at, err);
	}
	return r;
}

static int add_pins(struct compiler *compiler, struct error *err)
{
	AUTO(string_list_deinit) struct string_list pins = { .items = NULL };
	const struct rule_list *rules = &compiler->rules.rules;
	int r = 0;

	if (!hard(compiler, SEATBELT_HARDEN_PINS))
		return 0;
	for (size_t i = 0; r == 0 && i < rules->count; i++)
		if (rules->rules[i].access != ACCESS_READ_WRITE)
			r = collect_pins(&pins, compiler, rules->rules[i].path, err);
	for (size_t i = 0; r == 0 && i < compiler->denies.count; i++)
		r = collect_pins(&pins, compiler, compiler->denies.items[i].text, err);
	for (size_t i = 0; r == 0 && i < compiler->finals.count; i++)
		r = collect_pins(&pins, compiler, compiler->finals.items[i], err);
	if (r < 0)
		return r;
	string_list_sort_unique(&pins);
	sbpl_literals(&compiler->sbpl, "(deny file-write-unlink", &pins);
	return 0;
}

static int write_profile(struct compiler *compiler, struct error *err)
{
	const struct rule_list *rules = &compiler->rules.rules;
	int r = 0;

	add_head(compiler);
	for (size_t i = 0; i < rules->count; i++)
		sbpl_rule(&compiler->sbpl, rules->rules[i].path, rules->rules[i].access);
	add_resolver(compiler);
	sbpl_literals(&compiler->sbpl, "(allow file-read-metadata", &compiler->ancestors);
	if (hard(compiler, SEATBELT_HARDEN_PATHS)) /* links that lead to /private */
		sbpl_text(&compiler->sbpl,
			  "(allow file-read-metadata (literal \"/etc\") (literal \"/tmp\")"
			  " (literal \"/var\"))\n");
	if (hard(compiler, SEATBELT_HARDEN_REGEXES))
		add_patterns(compiler);
	else
		add_expressions(compiler);
	for (size_t i = 0; i < compiler->finals.count; i++)
		sbpl_rule(&compiler->sbpl, compiler->finals.items[i], ACCESS_READ_ONLY);
	add_existence_lines(compiler);
	add_clone_line(compiler);
	if (hard(compiler, SEATBELT_HARDEN_BASE))
		sbpl_text(&compiler->sbpl, "(deny file-write-setugid)\n");
	r = add_pins(compiler, err);
	return r < 0 ? r : buf_check(compiler->sbpl.out, "the Seatbelt profile", err);
}

/* ---- what goes in ---- */

/* RULE as the compiler takes it, to RULES. */
static int take_rule(struct rule_list *rules, const struct compiler *compiler,
		     const struct rule *rule, struct error *err)
{
	bool checked = hard(compiler, SEATBELT_HARDEN_PATHS);
	AUTO(auto_free) char *path = NULL;
	int r = checked ? macpath_check(rule->path, err) : 0;

	if (r < 0)
		return r;
	path = checked ? macpath_physical(rule->path) : strdup(rule->path);
	if (!path)
		return error_set(err, ERR_NOMEM, 0, "no memory for a path");
	if (rule->access != ACCESS_DENY && hard(compiler, SEATBELT_HARDEN_DATA_VOLUME) &&
	    macpath_on_data_volume(path))
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "'%s' must be named without " MACPATH_DATA_VOLUME, path);
	return rule_list_append(rules, path, rule->access, rule->source, NULL, err);
}

static int take_rules(struct compiler *compiler, struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list taken = RULE_LIST_INIT;
	const struct rule_list *given = &compiler->policy->rules;
	int r = 0;

	for (size_t i = 0; r == 0 && i < given->count; i++)
		r = take_rule(&taken, compiler, &given->rules[i], err);
	if (r < 0)
		return r;
	if (hard(compiler, SEATBELT_HARDEN_PATHS)) {
		r = rule_list_merge(&compiler->rules.rules, &taken, err);
	} else {
		compiler->rules.rules = taken;
		taken = (struct rule_list)RULE_LIST_INIT;
	}
	return r < 0 ? r : policy_index(&compiler->rules, err);
}

static int take_finals(struct compiler *compiler, struct error *err)
{
	const struct string_list *given = &compiler->policy->final_read_only;
	AUTO(rule_list_deinit) struct rule_list taken = RULE_LIST_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < given->count; i++) {
		const struct rule rule = { .path = given->items[i], .access = ACCESS_READ_ONLY };

		r = take_rule(&taken, compiler, &rule, err);
		if (r == 0)
			r = string_list_add(&compiler->finals, taken.rules[i].path, err);
	}
	return r;
}

static int check_pattern(const struct compiler *compiler, const struct path_pattern *pattern,
			 bool write, struct error *err)
{
	int r = 0;

	if (hard(compiler, SEATBELT_HARDEN_PATHS)) {
		r = pattern->kind == PATH_PATTERN_PREFIX ? macpath_check_prefix(pattern->text, err)
							 : macpath_check(pattern->text, err);
		if (r == 0 && macpath_is_linked(pattern->text))
			r = error_set(err, ERR_POLICY_INVALID, 0,
				      "the kernel shows '%s' below /private", pattern->text);
	}
	if (r == 0 && write && hard(compiler, SEATBELT_HARDEN_DATA_VOLUME) &&
	    (path_pattern_matches(pattern, MACPATH_DATA_VOLUME) ||
	     macpath_on_data_volume(pattern->text)))
		r = error_set(err, ERR_POLICY_INVALID, 0, "'%s' would open " MACPATH_DATA_VOLUME,
			      pattern->text);
	return r;
}

static int take_patterns(struct compiler *compiler, struct pattern_list *patterns,
			 const struct string_list *expressions, bool write, struct error *err)
{
	int r = 0;

	patterns->items = calloc(expressions->count + 1, sizeof(*patterns->items));
	if (!patterns->items)
		return error_set(err, ERR_NOMEM, 0, "no memory for regular expressions");
	for (size_t i = 0; r == 0 && i < expressions->count; i++) {
		struct path_pattern *pattern = &patterns->items[i];

		r = path_pattern_parse(pattern, expressions->items[i], err);
		if (r < 0)
			break;
		patterns->count++;
		r = check_pattern(compiler, pattern, write, err);
	}
	return r;
}

/* file-read-metadata has the most filters: all rules, and the way to them. */
static int check_size(const struct compiler *compiler, const struct string_list *ancestors,
		      struct error *err)
{
	const struct rule_list *rules = &compiler->rules.rules;
	size_t total = 0;

	for (size_t i = 0; i < rules->count; i++)
		total += sbpl_filter_bytes(&compiler->sbpl, rules->rules[i].path,
					   rules->rules[i].access == ACCESS_DENY);
	for (size_t i = 0; i < ancestors->count; i++)
		total += strlen(ancestors->items[i]) + SBPL_FILTER_BYTES;
	for (size_t i = 0; i < compiler->denies.count; i++)
		total += sbpl_filter_bytes(&compiler->sbpl, compiler->denies.items[i].text, true);
	for (size_t i = 0; i < compiler->finals.count; i++)
		total += sbpl_filter_bytes(&compiler->sbpl, compiler->finals.items[i], false);

	if (!hard(compiler, SEATBELT_HARDEN_PATHS) || total <= SEATBELT_PATH_BYTES)
		return 0;
	return error_set(err, ERR_POLICY_INVALID, 0,
			 "%zu bytes of paths, and a Seatbelt profile takes %d", total,
			 SEATBELT_PATH_BYTES);
}

static int take_policy(struct compiler *compiler, struct error *err)
{
	const struct policy *policy = compiler->policy;
	int r = take_rules(compiler, err);

	if (r == 0)
		r = take_finals(compiler, err);
	if (r == 0 && hard(compiler, SEATBELT_HARDEN_REGEXES))
		r = take_patterns(compiler, &compiler->writes, &policy->write_regexes, true, err);
	if (r == 0 && hard(compiler, SEATBELT_HARDEN_REGEXES))
		r = take_patterns(compiler, &compiler->denies, &policy->deny_regexes, false, err);
	if (r == 0)
		r = policy_traverse_ancestors(&compiler->rules.rules, &compiler->ancestors, err);
	return r < 0 ? r : check_size(compiler, &compiler->ancestors, err);
}

int seatbelt_compile(struct buf *out, const struct policy *policy, uint32_t harden,
		     struct error *err)
{
	AUTO(compiler_deinit)
	struct compiler compiler = {
		.policy = policy,
		.sbpl = { .out = out, .harden = harden },
	};
	int r = take_policy(&compiler, err);

	return r < 0 ? r : write_profile(&compiler, err);
}
