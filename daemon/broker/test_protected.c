/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/protected.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct room {
	char dir[64];
	char home[80];
	struct buf answer;
	struct protected_facts facts;
};

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(name, 0755), 0);
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(name, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	char made[] = "/tmp/fsbox-protect.XXXXXX";
	char *real;

	assert_non_null(room);
	assert_non_null(mkdtemp(made));
	real = realpath(made, NULL);
	assert_non_null(real);
	(void)snprintf(room->dir, sizeof(room->dir), "%s", real);
	free(real);
	assert_int_equal(chdir(room->dir), 0);
	(void)snprintf(room->home, sizeof(room->home), "%s/home", room->dir);
	make_dir("home");
	make_dir("p");
	buf_init(&room->answer, 64u << 20);
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

	protected_deinit(&room->facts);
	buf_deinit(&room->answer);
	assert_int_equal(chdir("/"), 0);
	(void)nftw(room->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
	free(room);
	return 0;
}

/* Look into NAME (below the room), and into MORE unless that is NULL. */
static void look(struct room *room, const char *name, const char *more)
{
	struct buf asked = BUF_INIT(65536);
	char path[2][128];
	const char *trees[2] = { path[0], path[1] };
	struct unpack in;
	struct error err = ERROR_INIT;

	(void)snprintf(path[0], sizeof(path[0]), "%s/%s", room->dir, name);
	(void)snprintf(path[1], sizeof(path[1]), "%s/%s", room->dir, more != NULL ? more : "");
	protected_ask(&asked, room->home, trees, more != NULL ? 2 : 1);
	protected_deinit(&room->facts);
	buf_clear(&room->answer);
	in = (struct unpack)UNPACK_INIT(asked.data, asked.size);
	assert_int_equal(protected_answer(&in, &room->answer, &err), 0);
	assert_int_equal(unpack_end(&in, &err), 0);
	assert_int_equal(protected_unpack(&room->facts, room->answer.data, room->answer.size, &err),
			 0);
	buf_deinit(&asked);
}

/* What was found at NAME; NULL when nothing was said about it. */
static const struct protect_found *found(const struct room *room, const char *name)
{
	char path[256];
	const struct protect_found *hit = NULL;

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	for (size_t i = 0; i < room->facts.facts.found_count; i++) {
		if (strcmp(room->facts.facts.found[i].path, path) != 0)
			continue;
		assert_null(hit);
		hit = &room->facts.facts.found[i];
	}
	return hit;
}

static void test_names_in_a_root(void **state)
{
	struct room *room = *state;

	put("p/.envrc", "x");
	make_dir("p/.vscode");
	make_dir("p/.claude");
	put("p/.claude/settings.json", "{}");
	look(room, "p", NULL);
	assert_int_equal(found(room, "p/.envrc")->type, NODE_FILE);
	assert_int_equal(found(room, "p/.vscode")->type, NODE_DIRECTORY);
	assert_int_equal(found(room, "p/.claude/settings.json")->type, NODE_FILE);
	/* Absent ones are told too: they must not appear. */
	assert_int_equal(found(room, "p/.mcp.json")->type, NODE_ABSENT);
	assert_int_equal(found(room, "p/.claude/hooks")->type, NODE_ABSENT);
	assert_null(found(room, "p/.gitconfig")); /* means something in a home only */
	assert_false(room->facts.incomplete);
	assert_int_equal(room->facts.facts.repository_count, 0);
}

static void test_below(void **state)
{
	struct room *room = *state;

	make_dir("p/a");
	make_dir("p/a/b");
	put("p/a/b/.envrc", "x");
	make_dir("p/node_modules");
	put("p/node_modules/.envrc", "x");
	make_dir("p/.hidden");
	put("p/.hidden/.envrc", "x");
	look(room, "p", NULL);
	assert_int_equal(found(room, "p/a/b/.envrc")->type, NODE_FILE);
	assert_null(found(room, "p/a/b/.mcp.json")); /* absent counts in roots only */
	assert_null(found(room, "p/node_modules/.envrc"));
	assert_null(found(room, "p/.hidden/.envrc"));
}

static void test_links(void **state)
{
	struct room *room = *state;
	char expected[128];

	make_dir("elsewhere");
	put("elsewhere/rc", "x");
	assert_int_equal(symlink("../elsewhere/rc", "p/.envrc"), 0);
	assert_int_equal(symlink("../elsewhere", "p/sub"), 0);
	put("elsewhere/.exrc", "x");
	look(room, "p", NULL);
	(void)snprintf(expected, sizeof(expected), "%s/elsewhere/rc", room->dir);
	assert_string_equal(found(room, "p/.envrc")->real, expected);
	assert_int_equal(found(room, "p/.envrc")->type, NODE_FILE);
	assert_null(found(room, "elsewhere/.exrc")); /* linked directories are not entered */

	/* A tree that is itself given by a link is looked at where it is. */
	assert_int_equal(symlink("p", "lp"), 0);
	look(room, "lp", NULL);
	assert_non_null(found(room, "p/.envrc"));
}

static void test_repository_R28(void **state)
{
	struct room *room = *state;

	make_dir("p/.git");
	make_dir("p/.git/hooks");
	put("p/.git/config", "[core]\n");
	look(room, "p", NULL);
	assert_int_equal(room->facts.facts.repository_count, 1);
	assert_int_equal(found(room, "p/.git/hooks")->type, NODE_DIRECTORY);
	assert_int_equal(found(room, "p/.git/config")->type, NODE_FILE);
	/* What alone gives execution when it appears. */
	assert_int_equal(found(room, "p/.git/commondir")->type, NODE_ABSENT);
	assert_int_equal(found(room, "p/.git/config.worktree")->type, NODE_ABSENT);
}

static void test_nested_repository(void **state)
{
	struct room *room = *state;

	make_dir("p/vendor");
	make_dir("p/vendor/x");
	make_dir("p/vendor/x/.git");
	make_dir("p/vendor/x/.git/hooks");
	look(room, "p", NULL);
	assert_int_equal(room->facts.facts.repository_count, 1);
	assert_int_equal(found(room, "p/vendor/x/.git/hooks")->type, NODE_DIRECTORY);
}

/* Git outside obeys these wherever their trees are. */
static void test_inner_repositories_R28(void **state)
{
	struct room *room = *state;

	make_dir("p/.git");
	make_dir("p/.git/worktrees");
	make_dir("p/.git/worktrees/w");
	put("p/.git/worktrees/w/commondir", "../..\n");
	put("p/.git/worktrees/w/gitdir", "/elsewhere/w/.git\n");
	make_dir("p/.git/modules");
	make_dir("p/.git/modules/a");
	make_dir("p/.git/modules/a/b"); /* a submodule may be called a/b */
	make_dir("p/.git/modules/a/b/hooks");
	put("p/.git/modules/a/b/HEAD", "ref: refs/heads/main\n");
	put("p/.git/modules/a/b/config", "[core]\n\tworktree = ../../../../.deps/s\n");
	make_dir("p/.deps");
	make_dir("p/.deps/s");
	put("p/.deps/s/.git", "gitdir: ../../.git/modules/a/b\n");
	/* The one inside it leads back to the outer one: seen once, not for ever. */
	make_dir("p/.git/modules/a/b/modules");
	make_dir("p/.git/modules/a/b/modules/c");
	put("p/.git/modules/a/b/modules/c/HEAD", "x");
	put("p/.git/modules/a/b/modules/c/config", "[core]\nworktree = ../../../../../../\n");
	look(room, "p", NULL);
	assert_int_equal(found(room, "p/.git/worktrees/w/commondir")->type, NODE_FILE);
	assert_int_equal(found(room, "p/.git/worktrees/w/gitdir")->type, NODE_FILE);
	assert_false(room->facts.incomplete);
	for (size_t i = 0; i < room->facts.facts.repository_count; i++) {
		const struct protect_repository *repository = &room->facts.facts.repositories[i];

		if (repository->is_file) {
			assert_true(repository->points_back);
			return;
		}
	}
	fail_msg("the submodule's .git was not found");
}

/* A job can fill a directory to hide in it what the next job must not write. */
static void test_hidden_among_many_R28(void **state)
{
	struct room *room = *state;

	make_dir("p/.git");
	make_dir("p/.git/hooks");
	put("p/.envrc", "x");
	for (int i = 0; i <= PROTECTED_ENTRIES_MAX; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "p/%d", i);
		assert_int_equal(link("p/.envrc", name), 0);
	}
	look(room, "p", NULL);
	assert_true(room->facts.incomplete);
	assert_int_equal(found(room, "p/.git/hooks")->type, NODE_DIRECTORY);
	assert_int_equal(found(room, "p/.envrc")->type, NODE_FILE);
}

static void test_home(void **state)
{
	struct room *room = *state;

	put("home/.gitconfig", "x");
	put("home/.bashrc", "x");
	look(room, "home", NULL);
	assert_int_equal(found(room, "home/.gitconfig")->type, NODE_FILE);
	assert_int_equal(found(room, "home/.bashrc")->type, NODE_FILE);
	assert_int_equal(found(room, "home/.config/fish")->type, NODE_ABSENT);

	/* A project below the home is no home. */
	make_dir("home/p");
	put("home/p/.gitconfig", "x");
	look(room, "home/p", NULL);
	assert_null(found(room, "home/p/.gitconfig"));
}

static void test_overlapping_trees(void **state)
{
	struct room *room = *state;

	make_dir("p/a");
	put("p/a/.envrc", "x");
	look(room, "p", "p/a");
	assert_non_null(found(room, "p/a/.envrc")); /* found() accepts one only */
	look(room, "p", "p");
	assert_non_null(found(room, "p/a/.envrc"));
}

static void test_no_directory(void **state)
{
	struct room *room = *state;

	put("p/file", "x");
	look(room, "p/file", "p/none");
	assert_int_equal(room->facts.facts.found_count, 0);
}

/* At the bound of directories and past it: said, never silently cut. */
static void test_many_directories_R13(void **state)
{
	struct room *room = *state;

	for (int i = 0; i < PROTECTED_DIRS_MAX - 1; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "p/d%04d", i);
		make_dir(name);
	}
	look(room, "p", NULL);
	assert_false(room->facts.incomplete);
	make_dir("p/one_more");
	look(room, "p", NULL);
	assert_true(room->facts.incomplete);
}

static void test_malformed_answers(void **state)
{
	struct room *room = *state;

	put("p/.envrc", "x");
	look(room, "p", NULL);
	for (size_t size = 0; size < room->answer.size; size++) {
		struct protected_facts facts;

		assert_int_equal(protected_unpack(&facts, room->answer.data, size, NULL),
				 -ERR_BAD_FRAME);
		protected_deinit(&facts);
	}
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_names_in_a_root),
		T(test_below),
		T(test_links),
		T(test_repository_R28),
		T(test_nested_repository),
		T(test_inner_repositories_R28),
		T(test_hidden_among_many_R28),
		T(test_home),
		T(test_overlapping_trees),
		T(test_no_directory),
		T(test_many_directories_R13),
		T(test_malformed_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
