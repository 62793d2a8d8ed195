/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/matching.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct room {
	char dir[64];
	struct string_list deny;
	struct string_list write;
	struct string_list trees;
	struct rule_list deny_found;
	struct rule_list write_found;
};

static void put(const char *name)
{
	FILE *file = fopen(name, "we");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	char made[] = "/tmp/fsbox-match.XXXXXX";
	char *real;

	assert_non_null(room);
	assert_non_null(mkdtemp(made));
	real = realpath(made, NULL);
	assert_non_null(real);
	(void)snprintf(room->dir, sizeof(room->dir), "%s", real);
	free(real);
	assert_int_equal(chdir(room->dir), 0);
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(mkdir("d/sub", 0755), 0);
	put("d/a.key");
	put("d/sub/b.key");
	put("d/sub/c.txt");
	assert_int_equal(symlink("a.key", "d/link.key"), 0);
	assert_int_equal(symlink("/usr", "d/usr"), 0);
	*state = room;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct room *room = *state;

	string_list_deinit(&room->deny);
	string_list_deinit(&room->write);
	string_list_deinit(&room->trees);
	rule_list_deinit(&room->deny_found);
	rule_list_deinit(&room->write_found);
	assert_int_equal(chdir("/"), 0);
	(void)nftw(room->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	free(room);
	return 0;
}

static int look(struct room *room, struct error *err)
{
	struct buf asked = BUF_INIT(1 << 20);
	struct buf answer = BUF_INIT(16 << 20);
	struct unpack in;
	int r;

	matching_ask(&asked, &room->deny, &room->write, &room->trees);
	in = (struct unpack)UNPACK_INIT(asked.data, asked.size);
	r = matching_answer(&in, &answer, err);
	if (r == 0)
		r = matching_unpack(&room->deny_found, &room->write_found, answer.data, answer.size,
				    err);
	buf_deinit(&asked);
	buf_deinit(&answer);
	return r;
}

static void add(struct string_list *list, const char *text)
{
	assert_int_equal(string_list_add(list, text, NULL), 0);
}

static void add_here(struct room *room, struct string_list *list, const char *before,
		     const char *after)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s%s%s", before, room->dir, after);
	add(list, text);
}

static bool has(const struct room *room, const struct rule_list *list, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->rules[i].path, path) == 0)
			return true;
	}
	return false;
}

static void test_matches(void **state)
{
	struct room *room = *state;

	add(&room->deny, "\\.key$");
	add_here(room, &room->write, "^", "/d/sub/.*\\.txt$");
	add_here(room, &room->trees, "", "/d");
	assert_int_equal(look(room, NULL), 0);
	assert_int_equal(room->deny_found.count, 3);
	assert_true(has(room, &room->deny_found, "d/a.key"));
	assert_true(has(room, &room->deny_found, "d/sub/b.key"));
	assert_true(has(room, &room->deny_found, "d/link.key")); /* as itself */
	assert_int_equal(room->write_found.count, 1);
	assert_true(has(room, &room->write_found, "d/sub/c.txt"));
	assert_int_equal(room->write_found.rules[0].type, NODE_FILE);
}

/* A tree that is no directory counts itself; one that is not there is nothing. */
static void test_odd_trees(void **state)
{
	struct room *room = *state;

	add(&room->deny, "key");
	add_here(room, &room->trees, "", "/d/a.key");
	add_here(room, &room->trees, "", "/none.key");
	assert_int_equal(look(room, NULL), 0);
	assert_int_equal(room->deny_found.count, 1);
}

static void test_no_expression(void **state)
{
	struct room *room = *state;
	struct error err = ERROR_INIT;

	add(&room->deny, "(");
	assert_int_equal(look(room, &err), -ERR_POLICY_INVALID);
}

static void test_many_expressions_R13(void **state)
{
	struct room *room = *state;

	for (int i = 0; i < MATCHING_EXPRESSIONS_MAX; i++)
		add(&room->deny, "^/none$");
	add_here(room, &room->trees, "", "/d");
	assert_int_equal(look(room, NULL), 0);
	add(&room->write, "^/none$");
	assert_int_equal(look(room, NULL), -ERR_POLICY_INVALID);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_matches),
		T(test_odd_trees),
		T(test_no_expression),
		T(test_many_expressions_R13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
