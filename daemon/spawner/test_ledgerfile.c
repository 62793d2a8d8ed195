/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledgerfile.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

#define HEADER "fsbox ledger 1\n"

static char dir[64];

/* What ledger_file_replace() writes: COUNT lines. */
static size_t contents;

static bool write_lines(struct buf *out, size_t index, void *arg)
{
	assert_ptr_equal(arg, &contents);
	if (index >= contents)
		return false;
	(void)buf_printf(out, "anew %zu\n", index);
	return true;
}

static int open_in_dir(struct ledger_file *file, struct error *why)
{
	*why = (struct error)ERROR_INIT;
	return ledger_file_open(file, dir, write_lines, &contents, why, NULL);
}

static void open_ok(struct ledger_file *file)
{
	struct error why;

	assert_int_equal(open_in_dir(file, &why), 0);
	if (why.kind != ERR_NONE)
		fail_msg("%s", why.message);
}

static char *in_dir(const char *name)
{
	static char paths[4][128];
	static size_t next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static const char *file_text(const char *name)
{
	static char text[4096];
	FILE *file = fopen(in_dir(name), "re");
	size_t size = 0;

	assert_non_null(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	assert_int_equal(fclose(file), 0);
	return text;
}

static void put(const char *text, size_t size)
{
	FILE *file = fopen(in_dir("ledger"), "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void append_line(struct ledger_file *file, const char *line)
{
	struct error err = ERROR_INIT;

	if (ledger_file_append(file, line, strlen(line), true, &err) < 0)
		fail_msg("%s", err.message);
}

static void on_line(const char *text, size_t size, void *arg)
{
	assert_int_equal(buf_printf(arg, "[%.*s]", size > 20 ? 20 : (int)size, text), 0);
}

/* The lines of the file as they were handed on. Static. */
static const char *lines_of(struct ledger_file *file, size_t *ret_bad)
{
	static char text[4096];
	AUTO(buf_deinit) struct buf out = BUF_INIT(sizeof(text) - 1);

	assert_int_equal(ledger_file_read(file, on_line, &out, ret_bad, NULL), 0);
	(void)snprintf(text, sizeof(text), "%s", buf_text(&out));
	return text;
}

static int set_up(void **state)
{
	(void)state;
	contents = 0;
	(void)snprintf(dir, sizeof(dir), "/tmp/fsbox-test-ledger-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "ledger", "ledger.new", "ledger.damaged",
					     "ledger.lock" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)remove(in_dir(names[i]));
	return rmdir(dir);
}

static void appended_lines_come_back(void **state)
{
	struct ledger_file file;
	struct stat about;
	size_t bad = 0;

	(void)state;
	open_ok(&file);
	append_line(&file, "one\n");
	append_line(&file, "two\n");
	ledger_file_close(&file);
	assert_int_equal(stat(in_dir("ledger"), &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_string_equal(file_text("ledger"), HEADER "one\ntwo\n");

	open_ok(&file);
	assert_string_equal(lines_of(&file, &bad), "[one][two]");
	assert_int_equal(bad, 0);
	append_line(&file, "three\n");
	assert_string_equal(lines_of(&file, &bad), "[one][two][three]");
	ledger_file_clear(&file);
	assert_string_equal(file_text("ledger"), HEADER);
	append_line(&file, "four\n");
	assert_string_equal(file_text("ledger"), HEADER "four\n");
	ledger_file_close(&file);
}

static void R26_replaced_as_a_whole(void **state)
{
	struct ledger_file file;

	(void)state;
	open_ok(&file);
	append_line(&file, "old\n");
	contents = 2;
	assert_int_equal(ledger_file_replace(&file, false, NULL), 0);
	assert_string_equal(file_text("ledger"), HEADER "anew 0\nanew 1\n");
	assert_int_equal(access(in_dir("ledger.damaged"), F_OK), -1);
	append_line(&file, "more\n");
	assert_string_equal(file_text("ledger"), HEADER "anew 0\nanew 1\nmore\n");
	contents = 1;
	assert_int_equal(ledger_file_replace(&file, true, NULL), 0);
	assert_string_equal(file_text("ledger"), HEADER "anew 0\n");
	assert_string_equal(file_text("ledger.damaged"), HEADER "anew 0\nanew 1\nmore\n");
	assert_int_equal(access(in_dir("ledger.new"), F_OK), -1);
	ledger_file_close(&file);
}

/* More than is written in one piece. */
static void many_lines(void **state)
{
	struct ledger_file file;
	struct stat about;

	(void)state;
	open_ok(&file);
	contents = 20000;
	assert_int_equal(ledger_file_replace(&file, false, NULL), 0);
	assert_int_equal(stat(in_dir("ledger"), &about), 0);
	assert_int_equal(about.st_size, file.size);
	assert_true(about.st_size > 200000);
	ledger_file_close(&file);
}

static void R26_garbage_is_counted_not_believed(void **state)
{
	struct ledger_file file;
	size_t bad = 0;
	AUTO(auto_free) char *big = malloc((size_t)4 * LIMIT_LEDGER_LINE_BYTES);

	(void)state;
	put("another header\none\n", 19);
	open_ok(&file);
	assert_string_equal(lines_of(&file, &bad), "[one]");
	assert_int_equal(bad, 1);
	ledger_file_close(&file);

	/* Torn: the next line does not hang on to it. */
	put(HEADER "one\ntw", sizeof(HEADER) - 1 + 6);
	open_ok(&file);
	assert_string_equal(lines_of(&file, &bad), "[one][tw]");
	assert_int_equal(bad, 0);
	append_line(&file, "three\n");
	assert_string_equal(file_text("ledger"), HEADER "one\ntw\nthree\n");
	assert_int_equal(file.size, strlen(HEADER "one\ntw\nthree\n"));
	ledger_file_close(&file);

	/* A line longer than any of ours, in the middle and at the end. */
	memset(big, 'x', (size_t)4 * LIMIT_LEDGER_LINE_BYTES);
	memcpy(big, HEADER, sizeof(HEADER) - 1);
	big[2 * LIMIT_LEDGER_LINE_BYTES] = '\n';
	put(big, (size_t)4 * LIMIT_LEDGER_LINE_BYTES);
	open_ok(&file);
	assert_string_equal(lines_of(&file, &bad), "");
	assert_int_equal(bad, 2);
	append_line(&file, "one\n");
	assert_string_equal(lines_of(&file, &bad), "[one]");
	ledger_file_close(&file);

	/* Not a single line. */
	memset(big, 0, LIMIT_LEDGER_LINE_BYTES);
	put(big, LIMIT_LEDGER_LINE_BYTES - 1);
	open_ok(&file);
	assert_string_equal(lines_of(&file, &bad), "");
	assert_int_equal(bad, 1);
	ledger_file_close(&file);
}

/* What is no file is replaced by one; a link is not followed. */
static void a_link_is_not_followed(void **state)
{
	struct ledger_file file;
	struct error why;

	(void)state;
	put("precious\n", 9);
	assert_int_equal(rename(in_dir("ledger"), in_dir("ledger.damaged")), 0);
	assert_int_equal(symlink("ledger.damaged", in_dir("ledger")), 0);
	assert_int_equal(open_in_dir(&file, &why), 0);
	assert_int_equal(why.kind, ERR_LEDGER_FAILED);
	append_line(&file, "one\n");
	assert_string_equal(file_text("ledger"), HEADER "one\n");
	ledger_file_close(&file);
}

static void one_daemon_only(void **state)
{
	struct ledger_file file;
	struct ledger_file other;
	struct error err = ERROR_INIT;
	int status = 0;
	pid_t pid = 0;

	(void)state;
	open_ok(&file);
	pid = fork();
	if (pid == 0) {
		int r = ledger_file_open(&other, dir, write_lines, &contents, &err, &err);

		_exit(r == -(int)ERR_CONFIG && strstr(err.message, "another fsboxd") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ledger_file_close(&file);
}

/* A line that does not fit is taken back, and the file goes on when there is room again. */
static void R26_no_room(void **state)
{
	struct ledger_file file;
	struct error err = ERROR_INIT;
	struct rlimit limit;
	rlim_t before = 0;

	(void)state;
	open_ok(&file);
	append_line(&file, "one\n");
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = sizeof(HEADER) - 1 + 6;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(ledger_file_append(&file, "two, longer\n", 12, true, &err),
			 -ERR_LEDGER_FAILED);
	assert_string_equal(file_text("ledger"), HEADER "one\n");
	contents = 5;
	assert_int_equal(ledger_file_replace(&file, false, NULL), -ERR_LEDGER_FAILED);
	assert_string_equal(file_text("ledger"), HEADER "one\n");
	assert_int_equal(access(in_dir("ledger.new"), F_OK), -1);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	append_line(&file, "two\n");
	assert_string_equal(file_text("ledger"), HEADER "one\ntwo\n");
	ledger_file_close(&file);
}

/* Nobody knows what is on the disk: all is written anew before anything is added. */
static void R26_after_a_failed_sync(void **state)
{
	struct ledger_file file;

	(void)state;
	open_ok(&file);
	append_line(&file, "one\n");
	file.suspect = true;
	contents = 1;
	append_line(&file, "two\n");
	assert_string_equal(file_text("ledger"), HEADER "anew 0\ntwo\n");
	assert_false(file.suspect);
	ledger_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(appended_lines_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(R26_replaced_as_a_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(R26_garbage_is_counted_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_link_is_not_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_daemon_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(R26_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(R26_after_a_failed_sync, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
