/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/builderwork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/ordinary.h"
#include "tests/test.h"
#include "tests/unit/run_init.h"

static const char *below(const char *dir, const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_file(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static void make_dir(const char *path, mode_t mode)
{
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* ---- builder_may_be_placeholder() ------------------------------------------------------ */

static void what_is_absent_may_be_one_soon(void **state)
{
	char *work = run_make_dir(geteuid());

	(void)state;
	assert_true(builder_may_be_placeholder(below(work, "absent")));
	assert_true(builder_may_be_placeholder(below(work, "absent/too")));
	/* Nobody can make one there. */
	make_file(below(work, "file"), "", 0600);
	assert_false(builder_may_be_placeholder(below(work, "file/below")));
	run_remove_dir(work);
}

static void files(void **state)
{
	static const struct {
		const char *content;
		mode_t mode;
		bool may_be;
	} cases[] = {
		{ "", 0600, true },   { "x", 0600, false }, { "", 0644, false },
		{ "", 0400, false },  { "", 0700, false },  { "", 04600, false },
		{ "", 02600, false }, { "", 0000, false },
	};
	char *work = run_make_dir(geteuid());

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make_file(below(work, "f"), cases[i].content, cases[i].mode);
		if (builder_may_be_placeholder(below(work, "f")) != cases[i].may_be)
			fail_msg("'%s' of mode %04o is taken for the other", cases[i].content,
				 cases[i].mode);
		assert_int_equal(unlink(below(work, "f")), 0);
	}
	run_remove_dir(work);
}

static void directories(void **state)
{
	static const struct {
		mode_t mode;
		bool may_be;
	} cases[] = {
		{ 0700, true },  { 02700, true }, { 0755, false }, { 0750, false },
		{ 0701, false }, { 0500, false }, { 0000, false },
	};
	char *work = run_make_dir(geteuid());

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make_dir(below(work, "d"), cases[i].mode);
		if (builder_may_be_placeholder(below(work, "d")) != cases[i].may_be)
			fail_msg("mode %04o is taken for the other", cases[i].mode);
		assert_int_equal(rmdir(below(work, "d")), 0);
	}
	run_remove_dir(work);
}

/* Of any kind, also one that does not show at first sight. */
static void what_has_content_is_somebodys(void **state)
{
	char *work = run_make_dir(geteuid());

	(void)state;
	make_dir(below(work, "d"), 0700);
	make_file(below(work, "d/.hidden"), "", 0600);
	assert_false(builder_may_be_placeholder(below(work, "d")));
	assert_int_equal(unlink(below(work, "d/.hidden")), 0);
	assert_true(builder_may_be_placeholder(below(work, "d")));
	make_dir(below(work, "d/deeper"), 0700);
	assert_false(builder_may_be_placeholder(below(work, "d")));
	run_remove_dir(work);
}

static void neither_file_nor_directory(void **state)
{
	char *work = run_make_dir(geteuid());

	(void)state;
	make_file(below(work, "f"), "", 0600);
	make_dir(below(work, "d"), 0700);
	assert_int_equal(symlink("f", below(work, "to-file")), 0);
	assert_int_equal(symlink("d", below(work, "to-dir")), 0);
	assert_int_equal(symlink("nowhere", below(work, "to-nowhere")), 0);
	assert_int_equal(mkfifo(below(work, "fifo"), 0600), 0);
	assert_false(builder_may_be_placeholder(below(work, "to-file")));
	assert_false(builder_may_be_placeholder(below(work, "to-dir")));
	assert_false(builder_may_be_placeholder(below(work, "to-nowhere")));
	assert_false(builder_may_be_placeholder(below(work, "fifo")));
	run_remove_dir(work);
}

/* An empty file tells everybody what it is; a directory that is another's only root. */
static void what_is_anothers(void **state)
{
	char *work = NULL;
	bool was_root = false;

	(void)state;
	if (geteuid() != 0)
		skip();
	work = run_make_dir(0);
	make_file(below(work, "f"), "", 0600);
	make_dir(below(work, "d"), 0700);
	make_dir(below(work, "closed"), 0700);
	make_file(below(work, "closed/f"), "", 0600);
	was_root = ordinary_begin();
	assert_true(builder_may_be_placeholder(below(work, "f")));
	assert_false(builder_may_be_placeholder(below(work, "d")));
	assert_false(builder_may_be_placeholder(below(work, "closed/f")));
	assert_false(builder_may_be_placeholder(below(work, "closed/absent")));
	ordinary_end(was_root);
	assert_int_equal(chown(below(work, "f"), ORDINARY_UID, ORDINARY_UID), 0);
	assert_int_equal(chown(below(work, "d"), ORDINARY_UID, ORDINARY_UID), 0);
	assert_true(builder_may_be_placeholder(below(work, "f")));
	assert_true(builder_may_be_placeholder(below(work, "d")));
	run_remove_dir(work);
}

/* ---- a builder that finds one ---------------------------------------------------------- */

/* How a mask that the plan has no placeholder for is told of when NAME is there. */
static void expect_told(uid_t uid, const char *name, size_t skipped)
{
	struct script *script = script_new(uid, "echo ran");
	struct plan plan;

	run_plan(&plan, script->work);
	make_dir(below(script->work, "looks-ours"), 0700);
	make_dir(below(script->work, "theirs"), 0755);
	if (geteuid() == 0)
		assert_int_equal(chown(below(script->work, "looks-ours"), uid, (gid_t)uid), 0);
	run_plan_add(&plan, PLAN_MASK_DIR, 0, below(script->work, name), NULL);
	script->options.plan = &plan;
	script_begin(script);
	script_end(script);
	assert_string_equal(script->output, "ran\n");
	assert_int_equal(script->run.skipped_count, skipped);
	assert_int_equal(script->run.intent_count, 0);
	assert_int_equal(script->run.placeholder_count, 0);
	plan_deinit(&plan);
	script_free(script);
}

static void R26_what_may_be_a_placeholder_is_told(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		expect_told(uid, "looks-ours", 1);
		expect_told(uid, "theirs", 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_absent_may_be_one_soon),
		cmocka_unit_test(files),
		cmocka_unit_test(directories),
		cmocka_unit_test(what_has_content_is_somebodys),
		cmocka_unit_test(neither_file_nor_directory),
		cmocka_unit_test(what_is_anothers),
		cmocka_unit_test(R26_what_may_be_a_placeholder_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
