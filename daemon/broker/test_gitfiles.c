/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/gitfiles.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct room {
	char dir[64];
	char home[80];
	struct walk walk;
	struct gitfiles git;
};

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(name, 0755), 0);
}

static void put(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *name, const char *format, ...)
{
	FILE *file = fopen(name, "we");
	va_list args;

	assert_non_null(file);
	va_start(args, format);
	assert_true(vfprintf(file, format, args) >= 0);
	va_end(args);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	char made[] = "/tmp/fsbox-git.XXXXXX";
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

	gitfiles_deinit(&room->git);
	walk_deinit(&room->walk);
	assert_int_equal(chdir("/"), 0);
	(void)nftw(room->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(room);
	return 0;
}

static bool find(struct room *room, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	gitfiles_deinit(&room->git);
	return gitfiles_find(&room->git, path, room->home, &room->walk);
}

static void assert_at(const struct room *room, const char *path, const char *name)
{
	char expected[128];

	assert_non_null(path);
	(void)snprintf(expected, sizeof(expected), "%s/%s", room->dir, name);
	assert_string_equal(path, expected);
}

static void test_plain(void **state)
{
	struct room *room = *state;

	make_dir("r");
	assert_false(find(room, "r"));
	make_dir("r/.git");
	assert_true(find(room, "r"));
	assert_false(room->git.is_file);
	assert_at(room, room->git.git_dir, "r/.git");
	assert_at(room, room->git.dot_git, "r/.git");
	assert_null(room->git.common_dir);
	assert_null(room->git.hooks_dir);
	assert_false(room->git.points_back);
}

static void make_worktree(struct room *room)
{
	make_dir("r");
	make_dir("r/.git");
	make_dir("r/.git/worktrees");
	make_dir("r/.git/worktrees/w");
	make_dir("w");
	put("w/.git", "gitdir: %s/r/.git/worktrees/w\n", room->dir);
	put("r/.git/worktrees/w/commondir", "../..\n");
	put("r/.git/worktrees/w/gitdir", "%s/w/.git\n", room->dir);
}

static void test_worktree(void **state)
{
	struct room *room = *state;

	make_worktree(room);
	assert_true(find(room, "w"));
	assert_true(room->git.is_file);
	assert_at(room, room->git.git_dir, "r/.git/worktrees/w");
	assert_at(room, room->git.common_dir, "r/.git");
	assert_true(room->git.points_back);
}

/* The word of the `.git` file alone counts for nothing: it is in the job's hands. */
static void test_pointing_elsewhere_R28(void **state)
{
	struct room *room = *state;

	make_worktree(room);
	make_dir("evil");
	put("evil/.git", "gitdir: %s/r/.git/worktrees/w\n", room->dir);
	assert_true(find(room, "evil"));
	assert_false(room->git.points_back);
	put("evil/.git", "gitdir: ../r/.git\n");
	assert_true(find(room, "evil"));
	assert_at(room, room->git.git_dir, "r/.git");
	assert_false(room->git.points_back);
	put("evil/.git", "gitdir: ../none\n");
	assert_false(find(room, "evil"));
	put("evil/.git", "nonsense");
	assert_false(find(room, "evil"));
	put("evil/.git", "gitdir: ");
	assert_false(find(room, "evil"));
}

/* All of it planted in the tree: `commondir` may name anything, the right to write there it is not. */
static void test_common_directory_elsewhere_R28(void **state)
{
	struct room *room = *state;

	make_dir("p");
	make_dir("p/fake");
	make_dir("keys");
	put("p/.git", "gitdir: fake\n");
	put("p/fake/gitdir", "%s/p/.git\n", room->dir);
	assert_true(find(room, "p"));
	assert_true(room->git.points_back);
	put("p/fake/commondir", "%s/keys\n", room->dir);
	assert_true(find(room, "p"));
	assert_at(room, room->git.common_dir, "keys");
	assert_false(room->git.points_back);
	put("p/fake/commondir", "%s\n", room->dir); /* above all of it */
	assert_true(find(room, "p"));
	assert_false(room->git.points_back);
	make_dir("keys/worktrees");
	put("p/fake/commondir", "%s/keys\n", room->dir);
	assert_true(find(room, "p"));
	assert_false(room->git.points_back);
}

static void test_submodule(void **state)
{
	struct room *room = *state;

	make_dir("r");
	make_dir("r/.git");
	make_dir("r/.git/modules");
	make_dir("r/.git/modules/s");
	make_dir("r/s");
	put("r/s/.git", "gitdir: ../.git/modules/s\n");
	put("r/.git/modules/s/config", "[core]\n\tbare = false\n\tworktree = ../../../s\n");
	assert_true(find(room, "r/s"));
	assert_at(room, room->git.git_dir, "r/.git/modules/s");
	assert_null(room->git.common_dir);
	assert_true(room->git.points_back);
}

static void test_hooks_path(void **state)
{
	struct room *room = *state;

	make_dir("r");
	make_dir("r/.git");
	make_dir("r/husky");
	make_dir("home/hooks");
	put("home/.gitconfig", "[core]\n hooksPath = ~/hooks\n");
	assert_true(find(room, "r"));
	assert_at(room, room->git.hooks_dir, "home/hooks");
	put("r/.git/config", "[core]\n\thookspath = husky\n");
	assert_true(find(room, "r"));
	assert_at(room, room->git.hooks_dir, "r/husky");
	put("r/.git/config.worktree", "[core]\n\tHooksPath = %s/home\n", room->dir);
	assert_true(find(room, "r"));
	assert_at(room, room->git.hooks_dir, "home");
	put("r/.git/config.worktree", "[core]\n\tHooksPath = none\n");
	assert_true(find(room, "r"));
	assert_null(room->git.hooks_dir);
}

/* `.git` is a link to a directory. */
static void test_linked(void **state)
{
	struct room *room = *state;

	make_dir("store");
	make_dir("r");
	assert_int_equal(symlink("../store", "r/.git"), 0);
	assert_true(find(room, "r"));
	assert_at(room, room->git.git_dir, "store");
	assert_at(room, room->git.dot_git, "r/.git");
}

static void test_config_values(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} cases[] = {
		{ "[core]\nhooksPath=a", "a" },
		{ "[CORE]\n\tHOOKSPATH =  a b  \n", "a b" },
		{ "[core]\nhookspath = a # comment\n", "a" },
		{ "[core]\nhookspath = \"a # b\" ; c\n", "a # b" },
		{ "[core]\nhookspath = a\\\"b\\\\c\n", "a\"b\\c" },
		{ "[core]\nhookspath = a\\\nb\n", "ab" },
		{ "[core]\nhookspath = a\n[core]\nhookspath = b\n", "b" },
		{ "[core] hookspath = x\n", "x" },
		{ "[core \"sub\"]\nhookspath = x\n", NULL },
		{ "[other]\nhookspath = x\n", NULL },
		{ "[core]\nhookspath\n", NULL },
		{ "# [core]\nhookspath = x\n", NULL },
		{ "[core]\nx = [core]\n; hookspath = y\n", NULL },
		{ "[core]\nhookspath = \"unterminated\nmore", "unterminated\nmore" },
		{ "", NULL },
		{ "[", NULL },
		{ "[core", NULL },
		{ "=", NULL },
		{ "[core]\n=\nhookspath=\\", "\\" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *value = gitfiles_config_value(cases[i].text, "core", "hookspath");

		if (cases[i].expected == NULL)
			assert_null(value);
		else
			assert_string_equal(value != NULL ? value : "(none)", cases[i].expected);
		free(value);
	}
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_plain),
		T(test_worktree),
		T(test_pointing_elsewhere_R28),
		T(test_common_directory_elsewhere_R28),
		T(test_submodule),
		T(test_hooks_path),
		T(test_linked),
		cmocka_unit_test(test_config_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
