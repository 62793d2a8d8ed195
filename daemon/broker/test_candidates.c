/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "daemon/broker/resolver.h"
#include "tests/test.h"

static void add(struct msg_paths *paths, enum access access, const char *path)
{
	struct path_entry_list *list = access == ACCESS_READ_WRITE  ? &paths->read_write
				       : access == ACCESS_READ_ONLY ? &paths->read_only
								    : &paths->deny;

	assert_int_equal(path_entry_list_add(list, path, NULL), 0);
}

static void deinit(struct msg_paths *paths)
{
	path_entry_list_deinit(&paths->read_write);
	path_entry_list_deinit(&paths->read_only);
	path_entry_list_deinit(&paths->deny);
}

static void test_add(void **state)
{
	struct msg_paths paths = { 0 };
	struct rule_list list = RULE_LIST_INIT;

	(void)state;
	add(&paths, ACCESS_READ_WRITE, "/a//b/./c/");
	add(&paths, ACCESS_READ_ONLY, "/ro");
	add(&paths, ACCESS_DENY, "/d\n\xff");
	paths.deny.items[0].absent = ABSENT_WATCH;
	paths.read_only.items[0].optional = true;
	assert_int_equal(
		candidates_add_paths(&list, &paths, RULE_USER, "request", "params.paths", NULL), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.rules[0].path, "/a/b/c");
	assert_int_equal(list.rules[0].access, ACCESS_READ_WRITE);
	assert_true(list.rules[1].optional);
	assert_int_equal(list.rules[2].absent, ABSENT_WATCH);
	assert_string_equal(list.rules[2].path, "/d\n\xff");
	assert_string_equal(list.rules[2].origin, "request");
	rule_list_deinit(&list);
	deinit(&paths);
}

/* What can be no rule is an error that names it, never dropped. */
static void test_unusable_paths(void **state)
{
	static const char *const bad[] = { "relative", "/a/../b", "/..", "" };
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct msg_paths paths = { 0 };
		struct rule_list list = RULE_LIST_INIT;
		struct error err = ERROR_INIT;

		add(&paths, ACCESS_DENY, "/fine");
		add(&paths, ACCESS_DENY, bad[i]);
		assert_int_equal(candidates_add_paths(&list, &paths, RULE_USER, "request",
						      "params.paths", &err),
				 -ERR_POLICY_INVALID);
		assert_non_null(strstr(err.message, "params.paths.deny[1]"));
		rule_list_deinit(&list);
		deinit(&paths);
	}
}

/* One found path as the resolver packs it. */
static void pack_found(struct buf *out, const char *real, size_t existing, enum node_type type,
		       int errnum, const char *link)
{
	pack_string(out, real);
	pack_u32(out, (uint32_t)existing);
	pack_u32(out, type);
	pack_u32(out, (uint32_t)errnum);
	pack_u64(out, 0);
	pack_u64(out, 0);
	pack_string(out, link);
	pack_u32(out, 0);
}

static struct rule *rule(struct rule_list *list, const char *path, enum access access,
			 enum rule_source source)
{
	struct rule *added = rule_list_add(list, path, access, source, "test", NULL);

	assert_non_null(added);
	return added;
}

static int fill(struct rule_list *list, const struct buf *found, const char **ret_path,
		struct error *err)
{
	struct unpack in = UNPACK_INIT(found->data, found->size);
	int r = candidates_fill(list, &in, ret_path, err);

	return r < 0 ? r : unpack_end(&in, err);
}

static void test_facts(void **state)
{
	struct rule_list list = RULE_LIST_INIT;
	struct buf asked = BUF_INIT(4096);
	struct buf found = BUF_INIT(4096);
	const char *path = NULL;

	(void)state;
	(void)rule(&list, "/plain", ACCESS_READ_ONLY, RULE_BASELINE);
	rule(&list, "/known", ACCESS_READ_ONLY, RULE_USER)->type = NODE_FILE;
	(void)rule(&list, "/link/", ACCESS_DENY, RULE_USER);
	candidates_ask(&list, &asked);
	{
		struct unpack in = UNPACK_INIT(asked.data, asked.size);

		assert_int_equal(unpack_u32(&in), 2); /* of the known one nothing is asked */
		assert_string_equal(unpack_string(&in), "/plain");
		assert_string_equal(unpack_string(&in), "/link/");
		assert_int_equal(unpack_end(&in, NULL), 0);
	}
	pack_found(&found, "/plain", 6, NODE_DIRECTORY, 0, "");
	pack_found(&found, "/real/target", 5, NODE_ABSENT, ENOENT, "/link");
	assert_int_equal(fill(&list, &found, &path, NULL), 0);
	assert_int_equal(list.rules[0].type, NODE_DIRECTORY);
	assert_null(list.rules[0].real);
	assert_int_equal(list.rules[2].type, NODE_ABSENT);
	assert_string_equal(list.rules[2].real, "/real/target");
	assert_string_equal(list.rules[2].link, "/link");
	rule_list_deinit(&list);
	buf_deinit(&asked);
	buf_deinit(&found);
}

/* A directory that this user cannot enter now may be opened by it later: all of it is denied. */
static void test_deny_behind_a_closed_directory(void **state)
{
	struct rule_list list = RULE_LIST_INIT;
	struct buf found = BUF_INIT(4096);
	const char *path = NULL;

	(void)state;
	(void)rule(&list, "/home/u/closed/key", ACCESS_DENY, RULE_USER);
	pack_found(&found, "/home/u/closed/key", strlen("/home/u/closed"), NODE_UNKNOWN, EACCES,
		   "");
	assert_int_equal(fill(&list, &found, &path, NULL), 0);
	assert_int_equal(list.rules[0].type, NODE_DIRECTORY);
	assert_string_equal(list.rules[0].real, "/home/u/closed");
	rule_list_deinit(&list);
	buf_deinit(&found);
}

static void test_unreachable(void **state)
{
	static const struct {
		enum access access;
		enum rule_source source;
		bool optional;
		int errnum;
		int result;
	} cases[] = {
		{ ACCESS_READ_ONLY, RULE_USER, false, EACCES, -ERR_PATH_NOT_FOUND },
		{ ACCESS_READ_WRITE, RULE_ADAPTER, false, ELOOP, -ERR_PATH_NOT_FOUND },
		{ ACCESS_READ_ONLY, RULE_USER, true, EACCES, 0 },
		{ ACCESS_READ_ONLY, RULE_BASELINE, false, EACCES, 0 },
		{ ACCESS_DENY, RULE_USER, false, ELOOP, -ERR_POLICY_INVALID },
		{ ACCESS_DENY, RULE_BASELINE, false, EIO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rule_list list = RULE_LIST_INIT;
		struct buf found = BUF_INIT(4096);
		struct error err = ERROR_INIT;
		const char *path = NULL;

		rule(&list, "/x/y", cases[i].access, cases[i].source)->optional = cases[i].optional;
		pack_found(&found, "/x/y", 2, NODE_UNKNOWN, cases[i].errnum, "");
		assert_int_equal(fill(&list, &found, &path, &err), cases[i].result);
		if (cases[i].result < 0) {
			assert_string_equal(path, "/x/y");
			assert_int_equal(err.errnum, cases[i].errnum);
		} else {
			assert_int_equal(list.rules[0].type, NODE_ABSENT);
		}
		rule_list_deinit(&list);
		buf_deinit(&found);
	}
}

static void test_short_answer(void **state)
{
	struct rule_list list = RULE_LIST_INIT;
	struct buf found = BUF_INIT(4096);
	const char *path = NULL;

	(void)state;
	(void)rule(&list, "/a", ACCESS_DENY, RULE_USER);
	(void)rule(&list, "/b", ACCESS_DENY, RULE_USER);
	pack_found(&found, "/a", 2, NODE_FILE, 0, "");
	assert_int_equal(fill(&list, &found, &path, NULL), -ERR_BAD_FRAME);
	rule_list_deinit(&list);
	buf_deinit(&found);
}

static struct rule *grant(struct rule_list *list, const char *path, enum access access)
{
	struct rule *rule = rule_list_add(list, path, access, RULE_USER, "test", NULL);

	assert_non_null(rule);
	return rule;
}

/* Which of the guards stay is one letter each. */
static void expect_kept(struct rule_list *list, const char *expected)
{
	static const char *const guards[] = { "/h/.cache/fsbox", "/srv/alias/fsbox", "/" };
	size_t from = list->count;
	char kept[8] = "";

	for (size_t i = 0; i < ARRAY_SIZE(guards); i++)
		assert_int_equal(candidates_add_guard(list, guards[i], ACCESS_DENY, "alias of",
						      "/x", NULL),
				 0);
	candidates_keep_shown(list, from);
	for (size_t i = from; i < list->count; i++) {
		const struct rule *rule = &list->rules[i];

		assert_string_equal(rule->origin, "alias of /x");
		assert_int_equal(rule->source, RULE_MANDATORY);
		assert_true(rule->host);
		kept[i - from] = rule->path[1] != '\0' ? rule->path[1] : '/';
	}
	assert_string_equal(kept, expected);
	rule_list_deinit(list);
	*list = (struct rule_list)RULE_LIST_INIT;
}

static void test_guards(void **state)
{
	struct rule_list list = RULE_LIST_INIT;
	struct rule *rule;

	(void)state;
	expect_kept(&list, "");
	grant(&list, "/", ACCESS_READ_WRITE);
	expect_kept(&list, "hs/");
	grant(&list, "/srv", ACCESS_READ_ONLY);
	grant(&list, "/h/.cach", ACCESS_READ_WRITE);
	expect_kept(&list, "s/");
	/* At and below. */
	grant(&list, "/h/.cache/fsbox", ACCESS_READ_ONLY);
	grant(&list, "/srv/alias/fsbox/x/y", ACCESS_READ_ONLY);
	expect_kept(&list, "hs/");
	/* What only takes away shows nothing. */
	grant(&list, "/srv", ACCESS_DENY);
	grant(&list, "/srv", ACCESS_READ_ONLY)->lowers = true;
	grant(&list, "/srv", ACCESS_READ_ONLY)->host = true;
	expect_kept(&list, "");
	/* Through a link. */
	rule = grant(&list, "/link", ACCESS_READ_WRITE);
	rule->real = strdup("/srv/alias");
	expect_kept(&list, "s/");
	/* A private directory in its place, unless something of the host's is deeper, or as deep. */
	grant(&list, "/h", ACCESS_READ_WRITE);
	grant(&list, "/h/.cache", ACCESS_READ_WRITE)->bind_source = strdup("/p");
	expect_kept(&list, "/");
	grant(&list, "/h/.cache", ACCESS_READ_WRITE)->bind_source = strdup("/p");
	grant(&list, "/h/.cache", ACCESS_READ_WRITE);
	expect_kept(&list, "h/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_unusable_paths),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_deny_behind_a_closed_directory),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_short_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
