/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

/* stderr of this process replaced by a pipe for one test. */
struct captured {
	int saved;
	int read_end;
};

static void capture(struct captured *captured)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	captured->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	(void)close(ends[1]);
	captured->read_end = ends[0];
}

static void release(struct captured *captured)
{
	assert_int_equal(dup2(captured->saved, STDERR_FILENO), STDERR_FILENO);
	(void)close(captured->saved);
	(void)close(captured->read_end);
}

static void take(struct captured *captured, char *text, size_t size)
{
	ssize_t got = read(captured->read_end, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
}

static void foreign_bytes_cannot_forge_a_line(void **state)
{
	struct captured captured;
	char text[4096];

	(void)state;
	capture(&captured);
	log_open("fsboxd", LOG_INFO, false);
	log_write(LOG_INFO, "path '%s'", "a\nfsboxd: all is well\x1b[2J\xff");
	take(&captured, text, sizeof(text));
	release(&captured);
	assert_string_equal(text, "fsboxd: path 'a\\x0afsboxd: all is well\\x1b[2J\\xff'\n");
}

static void levels_and_priorities(void **state)
{
	struct captured captured;
	struct error err = ERROR_INIT;
	char text[4096];

	(void)state;
	(void)error_set(&err, ERR_CONFIG, 0, "bad line");
	capture(&captured);
	log_open("fsboxd", LOG_WARNING, true);
	log_write(LOG_INFO, "not shown");
	log_write(LOG_WARNING, "shown");
	errno = EPIPE;
	log_failure(&err, "file %d", 7);
	assert_int_equal(errno, EPIPE);
	take(&captured, text, sizeof(text));
	release(&captured);
	assert_string_equal(text, "<4>shown\n<3>file 7: bad line (config-invalid)\n");
}

static void long_lines_are_cut(void **state)
{
	struct captured captured;
	char text[8192];
	char raw[LOG_LINE_BYTES];

	(void)state;
	memset(raw, '\n', sizeof(raw) - 1);
	raw[sizeof(raw) - 1] = '\0';
	capture(&captured);
	log_open("fsboxd", LOG_INFO, false);
	log_write(LOG_INFO, "%s", raw);
	take(&captured, text, sizeof(text));
	release(&captured);
	assert_true(strlen(text) < LOG_LINE_BYTES);
	assert_true(strlen(text) > LOG_LINE_BYTES - 8);
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void a_full_stderr_drops_and_counts(void **state)
{
	struct captured captured;
	char text[8192];
	char fill[4096] = { 0 };

	(void)state;
	capture(&captured);
	log_open("fsboxd", LOG_INFO, false);
	while (write(STDERR_FILENO, fill, sizeof(fill)) > 0)
		continue;
	log_write(LOG_INFO, "lost");
	log_write(LOG_INFO, "lost too");
	while (read(captured.read_end, text, sizeof(text)) > 0)
		continue;
	log_write(LOG_INFO, "again");
	log_write(LOG_INFO, "and again");
	take(&captured, text, sizeof(text));
	release(&captured);
	assert_string_equal(text, "fsboxd: (2 lines were dropped) again\nfsboxd: and again\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign_bytes_cannot_forge_a_line),
		cmocka_unit_test(levels_and_priorities),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(a_full_stderr_drops_and_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
