/* SPDX-License-Identifier: Apache-2.0 */
#include "common/expression.h"

#include <regex.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/plan_text.h"
#include "tests/test.h"

static void shapes(void **state)
{
	static const struct {
		const char *regex;
		const char *prefix;
		bool exact;
	} rows[] = {
		{ "^/a/b$", "/a/b", true },
		{ "^/a/b", "/a/b", false },
		{ "/a/b$", "", false },
		{ "^/a/\\.env$", "/a/.env", true },
		{ "^/a/[.]env$", "/a/.env", true },
		{ "^/a/[.e]nv$", "/a/", false },
		{ "^/a/[^.]env$", "/a/", false },
		{ "^/a/.*\\.key$", "/a/", false },
		{ "^/a/b*$", "/a/", false },
		{ "^/a/b?$", "/a/", false },
		{ "^/a/b+$", "/a/b", false },
		{ "^/a/b{2}$", "/a/", false },
		{ "^/a/(b|c)$", "/a/", false },
		{ "^/a/b|^/c$", "", false },
		{ "^/a/[|]b$", "/a/|b", true },
		{ "^/a/\\|b$", "/a/|b", true },
		{ "^/a/\\w+$", "/a/", false },
		{ "^/a/b\\b$", "/a/b", false },
		{ "^/a/b$c", "/a/b", false },
		{ "^a$", "a", false }, /* no path is like that */
		{ "^/a/../b$", "/a/", false },
		{ "^/a/\\.\\./b$", "/a/../b", false },
		{ "^", "", false },
		{ "", "", false },
		{ "^/a/[[:alpha:]]|/b", "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct expression_shape shape;

		assert_int_equal(expression_shape(rows[i].regex, &shape, NULL), 0);
		assert_string_equal(shape.prefix, rows[i].prefix);
		assert_int_equal(shape.exact, rows[i].exact);
	}
}

static void what_does_not_compile(void **state)
{
	struct expression_shape shape;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(expression_shape("^/a/(b$", &shape, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, "'^/a/(b$' is not an extended regular expression");
}

static void reach(void **state)
{
	static const struct {
		const char *regex;
		const char *tree;
		bool reaches;
	} rows[] = {
		{ "^/a/b", "/a", true },     { "^/a/b", "/a/b", true },
		{ "^/a/b", "/a/bc", true },  { "^/a/b", "/a/b/c", true },
		{ "^/a/b", "/a/c", false },  { "^/a/b", "/", true },
		{ "\\.key$", "/x", true },   { "^/a/b$", "/a", true },
		{ "^/a/b$", "/a/b", false }, { "^/ab$", "/a", false },
		{ "^/a/b$", "/", true },     { "^/a/b$", "/a/b/c", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct expression_shape shape;

		assert_int_equal(expression_shape(rows[i].regex, &shape, NULL), 0);
		assert_int_equal(expression_reaches(&shape, rows[i].tree), rows[i].reaches);
	}
}

/* Whatever matches an expression begins with its prefix, and is it when that is exact. */
static void shapes_hold_for_every_match(void **state)
{
	static const char *const pieces[] = { "/", "a", "b",    "\\.", "[.]",  ".",
					      "*", "+", "?",    "$",   "(ab)", "|",
					      "^", "c", "[ab]", "{2}", "a-b",  "\\/" };
	size_t matches = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20000; seed++) {
		struct gen gen = gen_start(seed);
		const struct gen_options options = { .max_rules = 1, .max_depth = 4 };
		struct buf text = BUF_INIT(256);
		struct expression_shape shape;
		regex_t compiled;

		(void)buf_add_string(&text, "^/");
		for (uint32_t i = gen_below(&gen, 7); i > 0; i--)
			(void)buf_add_string(&text, pieces[gen_below(&gen, ARRAY_SIZE(pieces))]);
		if (regcomp(&compiled, buf_text(&text), REG_EXTENDED | REG_NOSUB) == 0) {
			assert_int_equal(expression_shape(buf_text(&text), &shape, NULL), 0);
			for (int i = 0; i < 20; i++) {
				AUTO(auto_free) char *path = gen_path(&gen, &options);

				if (regexec(&compiled, path, 0, NULL, 0) != 0)
					continue;
				matches++;
				assert_int_equal(strncmp(path, shape.prefix, strlen(shape.prefix)),
						 0);
				if (shape.exact)
					assert_string_equal(path, shape.prefix);
			}
			regfree(&compiled);
		}
		buf_deinit(&text);
	}
	assert_true(matches > 5000);
}

/* A policy with expressions of one kind each, and what was found. */
struct request {
	const char *rules;
	const char *writes;
	const char *write_found;
	const char *denies;
	const char *deny_found;
	const char *finals;
	const char *finals_found;
	bool watched;
};

static int run(const struct request *request, struct policy *ret_policy, struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list writes = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list denies = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list finals = RULE_LIST_INIT;
	const struct expression_facts facts = {
		.write_matches = &writes,
		.deny_matches = &denies,
		.final_read_only = &finals,
		.watched = request->watched,
	};

	*ret_policy = policy_of(request->rules);
	if (request->writes)
		assert_int_equal(string_list_add(&ret_policy->write_regexes, request->writes, NULL),
				 0);
	if (request->denies)
		assert_int_equal(string_list_add(&ret_policy->deny_regexes, request->denies, NULL),
				 0);
	if (request->finals)
		assert_int_equal(
			string_list_add(&ret_policy->final_read_only, request->finals, NULL), 0);
	rules_of(request->write_found ? request->write_found : "", &writes);
	rules_of(request->deny_found ? request->deny_found : "", &denies);
	rules_of(request->finals_found ? request->finals_found : "", &finals);
	return policy_hold_expressions(ret_policy, &facts, err);
}

static void expect(struct request request, const char *path, enum access access)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	if (run(&request, &policy, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(access_name(policy_access(&policy, path).access), access_name(access));
}

static void refuse(struct request request, const char *message)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	assert_int_equal(run(&request, &policy, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, message);
}

#define REQUEST(...) ((struct request){ __VA_ARGS__ })

static void deny_expressions(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct request absent = { .rules = "rw:/p", .denies = "^/p/\\.env$" };

	(void)state;
	/* What exists is masked, whatever deeper rules said. */
	expect(REQUEST(.rules = "ro:/p", .denies = "\\.key$", .deny_found = "ro:/p/a.key=file"),
	       "/p/a.key", ACCESS_DENY);
	expect(REQUEST(.rules = "ro:/p ro:/p/a.key=file", .denies = "\\.key$",
		       .deny_found = "ro:/p/a.key=file"),
	       "/p/a.key", ACCESS_DENY);
	/* One possible match is a deny like any other, absent or not. */
	expect(absent, "/p/.env", ACCESS_DENY);
	assert_int_equal(run(&absent, &policy, NULL), 0);
	assert_int_equal(policy_access(&policy, "/p/.env").rule->type, NODE_ABSENT);
	assert_int_equal(policy_access(&policy, "/p/.env").rule->absent, ABSENT_PLACEHOLDER);
	/* What a job could make needs somebody to watch. */
	refuse(REQUEST(.rules = "rw:/p", .denies = "\\.key$"),
	       "the expression '\\.key$' cannot be held here: nothing watches what may be made in "
	       "the readWrite tree '/p'");
	expect(REQUEST(.rules = "rw:/p", .denies = "\\.key$", .watched = true), "/p/a",
	       ACCESS_READ_WRITE);
	expect(REQUEST(.rules = "rw:/p ro:/q", .denies = "^/q/.*\\.key$"), "/p/a",
	       ACCESS_READ_WRITE);
	refuse(REQUEST(.rules = "ro:/p", .denies = "("),
	       "'(' is not an extended regular expression");
}

static void write_expressions(void **state)
{
	(void)state;
	expect(REQUEST(.rules = "ro:/p", .writes = "^/p/f$", .write_found = "ro:/p/f=file"), "/p/f",
	       ACCESS_READ_WRITE);
	expect(REQUEST(.rules = "rw:/p", .writes = "^/p/.*\\.log$",
		       .write_found = "ro:/p/a.log=file"),
	       "/p/a.log", ACCESS_READ_WRITE);
	expect(REQUEST(.rules = "rw:/p", .writes = "^/p/.*\\.log$"), "/p/x", ACCESS_READ_WRITE);
	refuse(REQUEST(.rules = "ro:/p", .writes = "^/p/f$"),
	       "the expression '^/p/f$' cannot be held here: it can match what does not exist "
	       "outside of a readWrite tree, below '/p/f'");
	refuse(REQUEST(.rules = "rw:/p ro:/p/q", .writes = "^/p/.*\\.log$"),
	       "the expression '^/p/.*\\.log$' cannot be held here: it can match what does not exist "
	       "outside of a readWrite tree, below '/p/'");
	expect(REQUEST(.rules = "rw:/p ro:/p/q rw:/p/q/r", .writes = "^/p/q/r/x"), "/p/q/r/x",
	       ACCESS_READ_WRITE);
	refuse(REQUEST(.rules = "ro:/p", .writes = "x"),
	       "the expression 'x' cannot be held here: it can match what does not exist outside of "
	       "a readWrite tree, below '/'");
	refuse(REQUEST(.rules = "rw:/p deny:/p/d", .writes = "^/p/d/f$",
		       .write_found = "ro:/p/d/f=file"),
	       "a write expression matches '/p/d/f', which may not be read, and write access alone "
	       "is not possible");
	refuse(REQUEST(.rules = "mandatory/ro:/p* ro:/p/q", .writes = "^/p/q/f$",
		       .write_found = "ro:/p/q/f=file"),
	       "a write expression matches '/p/q/f', which is read-only on this host");
	refuse(REQUEST(.rules = "ro:/p", .writes = "["),
	       "'[' is not an extended regular expression");
}

/* The order of the Seatbelt profile: writes, denies, final read-only paths. */
static void the_last_word(void **state)
{
	(void)state;
	expect(REQUEST(.rules = "ro:/p", .writes = "^/p/f$", .write_found = "ro:/p/f=file",
		       .denies = "^/p/f$", .deny_found = "ro:/p/f=file"),
	       "/p/f", ACCESS_DENY);
	expect(REQUEST(.rules = "ro:/p", .writes = "^/p/f$", .write_found = "ro:/p/f=file",
		       .finals = "/p", .finals_found = "ro:/p"),
	       "/p/f", ACCESS_READ_ONLY);
	expect(REQUEST(.rules = "rw:/p rw:/p/a/b", .finals = "/p/a", .finals_found = "ro:/p/a"),
	       "/p/a/b/c", ACCESS_READ_ONLY);
	expect(REQUEST(.rules = "rw:/p", .finals = "/p/a", .finals_found = "ro:/p/a"), "/p/b",
	       ACCESS_READ_WRITE);
	expect(REQUEST(.rules = "rw:/p deny:/p/a/s", .finals = "/p/a", .finals_found = "ro:/p/a"),
	       "/p/a/s", ACCESS_DENY);
	expect(REQUEST(.rules = "rw:/p", .finals = "/p/a", .finals_found = "ro:/p/a=absent"),
	       "/p/a", ACCESS_DENY);
	expect(REQUEST(.rules = "rw:/p", .finals = "/q", .finals_found = "ro:/q"), "/q",
	       ACCESS_NONE);
	refuse(REQUEST(.rules = "rw:/p", .finals = "q"),
	       "the final read-only path 'q' is relative");
}

static void bounds(void **state)
{
	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		AUTO(policy_deinit) struct policy policy = policy_of("ro:/p");
		const struct expression_facts facts = { .watched = true };
		struct error err = ERROR_INIT;

		for (size_t i = 0; i < LIMIT_EXPRESSIONS + extra; i++)
			assert_int_equal(string_list_add(&policy.deny_regexes, "^/x/y.", NULL), 0);
		assert_int_equal(policy_hold_expressions(&policy, &facts, &err),
				 extra ? -ERR_POLICY_INVALID : 0);
	}
}

static void deep_nesting_counts_as_the_hosts(void **state)
{
	struct buf rules = BUF_INIT(1 << 16);
	struct buf path = BUF_INIT(4096);
	struct buf found = BUF_INIT(4096);

	(void)state;
	for (int i = 0; i < 70; i++) {
		(void)buf_add_string(&path, "/a");
		(void)buf_printf(&rules, "ro:%s ", buf_text(&path));
	}
	(void)buf_printf(&found, "ro:%s/f=file", buf_text(&path));
	{
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(auto_free) char *regex = NULL;
		struct buf text = BUF_INIT(4096);
		struct error err = ERROR_INIT;

		(void)buf_printf(&text, "^%s/f$", buf_text(&path));
		regex = buf_steal(&text);
		assert_int_equal(run(&REQUEST(.rules = buf_text(&rules), .writes = regex,
					      .write_found = buf_text(&found)),
				     &policy, &err),
				 -ERR_POLICY_INVALID);
		assert_non_null(strstr(err.message, "read-only on this host"));
	}
	buf_deinit(&rules);
	buf_deinit(&path);
	buf_deinit(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(what_does_not_compile),
		cmocka_unit_test(reach),
		cmocka_unit_test(shapes_hold_for_every_match),
		cmocka_unit_test(deny_expressions),
		cmocka_unit_test(write_expressions),
		cmocka_unit_test(the_last_word),
		cmocka_unit_test(bounds),
		cmocka_unit_test(deep_nesting_counts_as_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
