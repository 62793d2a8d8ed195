/* SPDX-License-Identifier: Apache-2.0 */
#include "common/seatbelt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/test.h"

/*
 * Here: the parts that are not about single rules (test_sbpl.c), and the refusals. The plain text is
 * held to tests/vectors/compileToSeatbelt.json, the hardened text's meaning to a model in tests/macos.
 */

static void add(struct policy *policy, const char *path, enum access access)
{
	assert_int_equal(rule_list_append(&policy->rules, path, access, RULE_USER, NULL, NULL), 0);
}

static void add_string(struct string_list *list, const char *text)
{
	assert_int_equal(string_list_add(list, text, NULL), 0);
}

static char *compile(const struct policy *policy, uint32_t harden)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	struct error err = ERROR_INIT;

	if (seatbelt_compile(&out, policy, harden, &err) != 0)
		fail_msg("%s", err.message);
	return buf_steal(&out);
}

static void expect_lines(const struct policy *policy, uint32_t harden, const char *const *present,
			 const char *const *absent)
{
	AUTO(auto_free) char *text = compile(policy, harden);

	for (; *present; present++)
		if (!strstr(text, *present))
			fail_msg("no '%s' in:\n%s", *present, text);
	for (; *absent; absent++)
		if (strstr(text, *absent))
			fail_msg("'%s' in:\n%s", *absent, text);
}

static void expect_refusal(const struct policy *policy, uint32_t harden, const char *message)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	struct error err = ERROR_INIT;

	assert_int_equal(seatbelt_compile(&out, policy, harden, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, message);
}

static void base_is_narrow(void **state)
{
	AUTO(policy_deinit) struct policy policy = { .net = NET_HOST };

	(void)state;
	expect_lines(&policy, SEATBELT_HARDEN_ALL,
		     (const char *[]){ "(deny default)\n", "(allow signal (target same-sandbox))\n",
				       "(sysctl-name \"kern.procargs2\")", "(deny nvram*)\n",
				       "(deny file-write-setugid)\n", "(allow system-socket)\n",
				       "(allow network-outbound (remote ip))\n",
				       "(literal \"/private/var/run/mDNSResponder\")",
				       "com.apple.dnssd.service", NULL },
		     (const char *[]){ "(allow process*)", "(allow mach*)", "(allow mach-lookup)",
				       "(allow file-ioctl)", "(allow iokit-open)",
				       "(allow network*)", "(allow network-outbound)",
				       "launchservicesd", "securityd", "pasteboard", "regex",
				       NULL });
	policy.net = NET_PROXY; /* not the host's network: none */
	expect_lines(&policy, SEATBELT_HARDEN_ALL, (const char *[]){ NULL },
		     (const char *[]){ "network-outbound (remote", "system-socket", "mDNSResponder",
				       "com.apple.dnssd.service", NULL });
	expect_lines(&policy, 0, (const char *[]){ "(allow mach*)\n", NULL },
		     (const char *[]){ "network", NULL });
}

/* The resolver stays reachable when a rule only lets read there, not when it is denied. */
static void resolver(void **state)
{
	AUTO(policy_deinit) struct policy policy = { .net = NET_HOST };
	const char *line =
		"(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n";

	(void)state;
	add(&policy, "/private/var/run", ACCESS_READ_ONLY);
	expect_lines(&policy, SEATBELT_HARDEN_ALL, (const char *[]){ line, NULL },
		     (const char *[]){ NULL });
	policy.rules.rules[0].access = ACCESS_DENY;
	expect_lines(&policy, SEATBELT_HARDEN_ALL, (const char *[]){ NULL },
		     (const char *[]){ line, NULL });
}

static void writable_ancestors_are_pinned(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/r", ACCESS_READ_ONLY);
	add(&policy, "/r/w", ACCESS_READ_WRITE);
	add(&policy, "/r/w/a/b/deny", ACCESS_DENY);
	add(&policy, "/r/w/a/b/deny/w2/x/read", ACCESS_READ_ONLY);
	add(&policy, "/r/w/a/b/deny/w2", ACCESS_READ_WRITE);
	expect_lines(&policy, SEATBELT_HARDEN_PINS,
		     (const char *[]){
			     "(deny file-write-unlink (literal \"/r/w\"))\n",
			     "(deny file-write-unlink (literal \"/r/w/a\"))\n",
			     "(deny file-write-unlink (literal \"/r/w/a/b\"))\n",
			     "(deny file-write-unlink (literal \"/r/w/a/b/deny/w2\"))\n",
			     "(deny file-write-unlink (literal \"/r/w/a/b/deny/w2/x\"))\n", NULL },
		     (const char *[]){ "unlink (literal \"/\")", "unlink (literal \"/r\")",
				       "unlink (literal \"/r/w/a/b/deny\")", NULL });
	expect_lines(&policy, 0, (const char *[]){ NULL }, (const char *[]){ "unlink", NULL });
}

static void newer_operations_are_asked_for(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/w", ACCESS_READ_WRITE);
	expect_lines(&policy, SEATBELT_HARDEN_ALL,
		     (const char *[]){
			     "(if (defined? 'file-test-existence) (begin\n"
			     "(allow file-test-existence (literal \"/w\") (subpath \"/w\"))\n"
			     "(allow file-test-existence (literal \"/\"))\n))\n",
			     NULL },
		     (const char *[]){ "file-clone", NULL });
	add(&policy, "/w/d", ACCESS_DENY);
	add(&policy, "/w/r", ACCESS_READ_ONLY);
	expect_lines(&policy, SEATBELT_HARDEN_LINKS,
		     (const char *[]){ "(if (defined? 'file-clone) (deny file-clone"
				       " (subpath \"/w/d\") (subpath \"/w/r\")))\n",
				       NULL },
		     (const char *[]){ NULL });
}

static void links_are_spelt_out(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	/* As written the second one is deeper and would come last; it is the shallower one. */
	add(&policy, "/tmp/a/b", ACCESS_DENY);
	add(&policy, "/private/tmp/a", ACCESS_READ_WRITE);
	expect_lines(&policy, SEATBELT_HARDEN_PATHS,
		     (const char *[]){ "(allow file-write* (subpath \"/private/tmp/a\"))\n"
				       "(deny file-read* (subpath \"/private/tmp/a/b\"))\n",
				       "(allow file-read-metadata (literal \"/etc\")", NULL },
		     (const char *[]){ "\"/tmp/", NULL });
}

static void dead_and_dangerous_paths_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "/a\n(allow default)", "'/a?(allow default)' has a control character" },
		{ "/a//b", "'/a//b' has an empty segment" },
		{ "/a/./b", "'/a/./b' has a '.' segment" },
		{ "rel", "'rel' is relative" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(policy_deinit) struct policy rule = POLICY_INIT;
		AUTO(policy_deinit) struct policy final = POLICY_INIT;

		add(&rule, bad[i][0], ACCESS_DENY);
		expect_refusal(&rule, SEATBELT_HARDEN_PATHS, bad[i][1]);
		add_string(&final.final_read_only, bad[i][0]);
		expect_refusal(&final, SEATBELT_HARDEN_ALL, bad[i][1]);
	}
}

static void data_volume_is_not_for_allows(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(policy_deinit) struct policy denied = POLICY_INIT;

	(void)state;
	add(&policy, "/System/Volumes/Data/x", ACCESS_READ_ONLY);
	expect_refusal(&policy, SEATBELT_HARDEN_DATA_VOLUME,
		       "'/System/Volumes/Data/x' must be named without /System/Volumes/Data");
	add(&denied, "/System/Volumes/Data/x", ACCESS_DENY);
	expect_lines(&denied, SEATBELT_HARDEN_ALL, (const char *[]){ NULL },
		     (const char *[]){ "Data/System", NULL });
}

static void expressions_become_filters(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/w", ACCESS_READ_WRITE);
	add(&policy, "/r", ACCESS_READ_ONLY);
	add_string(&policy.write_regexes, "^/r/d/\\.state\\.");
	add_string(&policy.deny_regexes, "^/w/k/secret$");
	add_string(&policy.deny_regexes, "^/r/d/\\.state\\.d(/|$)");
	add_string(&policy.final_read_only, "/w/f/fin/");
	expect_lines(&policy,
		     SEATBELT_HARDEN_REGEXES | SEATBELT_HARDEN_PATHS | SEATBELT_HARDEN_PINS,
		     (const char *[]){ "(allow file-write* (prefix \"/r/d/.state.\"))\n",
				       "(deny file-read* (literal \"/w/k/secret\"))\n",
				       "(deny file-write* (subpath \"/r/d/.state.d\"))\n",
				       "(deny file-write* (subpath \"/w/f/fin\"))\n",
				       "(deny file-write-unlink (literal \"/w/k\"))\n",
				       "(deny file-write-unlink (literal \"/w/f\"))\n", NULL },
		     (const char *[]){ "regex", NULL });
	expect_lines(&policy, SEATBELT_HARDEN_ALL,
		     (const char *[]){ "(deny file-test-existence (literal \"/w/k/secret\") "
				       "(literal \"/System/Volumes/Data/w/k/secret\"))\n",
				       NULL },
		     (const char *[]){ "network-bind network-outbound (prefix", NULL });
	expect_lines(&policy, 0,
		     (const char *[]){ "(allow file-write* (regex #\"^/r/d/\\.state\\.\"))\n",
				       "(deny file-read* (regex #\"^/w/k/secret$\"))\n", NULL },
		     (const char *[]){ NULL });
}

/* A directory that only a write expression opens is pinned like one that a rule opens. */
static void written_by_expression_is_pinned(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/r", ACCESS_READ_ONLY);
	add(&policy, "/r/.tmp.d/x/deny", ACCESS_DENY);
	add_string(&policy.write_regexes, "^/r/\\.tmp\\.");
	expect_lines(&policy, SEATBELT_HARDEN_ALL,
		     (const char *[]){ "(deny file-write-unlink (literal \"/r/.tmp.d\"))\n",
				       "(deny file-write-unlink (literal \"/r/.tmp.d/x\"))\n",
				       NULL },
		     (const char *[]){ "unlink (literal \"/r\")", NULL });
}

static void other_expressions_are_refused(void **state)
{
	static const struct {
		bool write;
		const char *expression;
		const char *message;
	} rows[] = {
		{ true, "\\.env$", "the expression '\\.env$' is more than an anchored path" },
		{ false, "^/a/[0-9]+$",
		  "the expression '^/a/[0-9]+$' is more than an anchored path" },
		{ false, "^/a//b$", "'/a//b' has an empty segment" },
		{ false, "^/a//x/b", "'/a//x/b' has an empty segment" },
		{ false, "^/tmp/x", "the kernel shows '/tmp/x' below /private" },
		{ true, "^/Sys", "'/Sys' would open /System/Volumes/Data" },
		{ true, "^/System(/|$)", "'/System' would open /System/Volumes/Data" },
		{ true, "^/System/Volumes/Data/a$",
		  "'/System/Volumes/Data/a' would open /System/Volumes/Data" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;

		add_string(rows[i].write ? &policy.write_regexes : &policy.deny_regexes,
			   rows[i].expression);
		expect_refusal(&policy, SEATBELT_HARDEN_ALL, rows[i].message);
	}
}

/* Rules until the limit is met exactly, then one byte more. */
static void size_has_a_limit(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	struct error err = ERROR_INIT;
	size_t each = 64;
	size_t count = (SEATBELT_PATH_BYTES - 9) / each; /* 9 for the ancestor "/" */
	size_t rest = (SEATBELT_PATH_BYTES - 9) % each;
	char path[512];
	char digits[32];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		size_t size = each - 8 + (i == 0 ? rest : 0);

		/* A slash, zeros, the number: SIZE bytes. */
		int length = snprintf(digits, sizeof(digits), "%zu", i);

		assert_in_range(size, (size_t)length + 1, sizeof(path) - 1);
		memset(path, '0', size);
		path[0] = '/';
		memcpy(path + size - (size_t)length, digits, (size_t)length + 1);
		add(&policy, path, ACCESS_READ_ONLY);
	}
	assert_int_equal(seatbelt_compile(&out, &policy, SEATBELT_HARDEN_PATHS, &err), 0);
	policy.rules.rules[1].access = ACCESS_READ_WRITE;
	add(&policy, "/x", ACCESS_DENY);
	assert_int_equal(seatbelt_compile(&out, &policy, SEATBELT_HARDEN_PATHS, &err),
			 -ERR_POLICY_INVALID);
	assert_string_equal(err.message,
			    "49162 bytes of paths, and a Seatbelt profile takes 49152");
	assert_int_equal(seatbelt_compile(&out, &policy, 0, &err), 0);
}

static void a_full_buffer_is_an_error(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf out = BUF_INIT(100);
	struct error err = ERROR_INIT;

	(void)state;
	add(&policy, "/a", ACCESS_READ_ONLY);
	assert_int_equal(seatbelt_compile(&out, &policy, 0, &err), -ERR_NOMEM);
	assert_string_equal(err.message, "the Seatbelt profile does not fit into 100 bytes");
}

/* Each flag shows by itself: nothing in the list of flags is without effect. */
static void each_flag_does_something(void **state)
{
	AUTO(policy_deinit) struct policy policy = { .net = NET_HOST };
	AUTO(auto_free) char *plain = NULL;

	(void)state;
	add(&policy, "/tmp", ACCESS_READ_WRITE);
	add(&policy, "/tmp/a/d", ACCESS_DENY);
	add_string(&policy.deny_regexes, "^/x$");
	plain = compile(&policy, 0);
	for (uint32_t flag = 1; flag < SEATBELT_HARDEN_ALL; flag <<= 1) {
		AUTO(auto_free) char *text = compile(&policy, flag);

		assert_string_not_equal(text, plain);
	}
}

/* Whatever a rule's path holds: compiled text has no control character, or nothing is compiled. */
static void no_control_characters(void **state)
{
	const struct gen_options options = {
		.max_rules = 12, .max_depth = 4, .odd = true, .bytes = true
	};
	struct gen gen = gen_start(4);
	int compiled = 0;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);

		gen_candidates(&gen, &policy.rules, &options);
		if (seatbelt_compile(&out, &policy, SEATBELT_HARDEN_ALL, NULL) < 0)
			continue;
		compiled++;
		for (size_t i = 0; i < out.size; i++)
			assert_true((unsigned char)out.data[i] >= 0x20 || out.data[i] == '\n');
	}
	assert_true(compiled > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_is_narrow),
		cmocka_unit_test(resolver),
		cmocka_unit_test(writable_ancestors_are_pinned),
		cmocka_unit_test(newer_operations_are_asked_for),
		cmocka_unit_test(links_are_spelt_out),
		cmocka_unit_test(dead_and_dangerous_paths_are_refused),
		cmocka_unit_test(data_volume_is_not_for_allows),
		cmocka_unit_test(expressions_become_filters),
		cmocka_unit_test(written_by_expression_is_pinned),
		cmocka_unit_test(other_expressions_are_refused),
		cmocka_unit_test(size_has_a_limit),
		cmocka_unit_test(a_full_buffer_is_an_error),
		cmocka_unit_test(each_flag_does_something),
		cmocka_unit_test(no_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
