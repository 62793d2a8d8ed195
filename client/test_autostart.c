/* SPDX-License-Identifier: Apache-2.0 */
#include "client/autostart.h"

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/clock.h"

static char top[64];
static char program[96];
static struct location location;

static int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/fsbox-test-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(program, sizeof(program), "%s/fsboxd", top);
	location.place = LOCATE_USER;
	(void)snprintf(location.dir, sizeof(location.dir), "%s", top);
	(void)snprintf(location.socket, sizeof(location.socket), "%s/fsbox.sock", top);
	(void)snprintf(location.state_dir, sizeof(location.state_dir), "%s/state/fsbox", top);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "fsboxd",      "seen",  "state/fsbox/fsboxd.log",
					     "state/fsbox", "state", "start.lock" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[160];

		(void)snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		if (unlink(path) < 0)
			(void)rmdir(path);
	}
	return rmdir(top);
}

/* A shell script in place of fsboxd. */
static void script(const char *text)
{
	FILE *file = fopen(program, "we");

	assert_non_null(file);
	assert_true(fprintf(file, "#!/bin/sh\ncd '%s'\n%s\n", top, text) > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0700), 0);
}

static const char *seen(void)
{
	static char text[512];
	char path[96];
	FILE *file = NULL;
	size_t got = 0;

	(void)snprintf(path, sizeof(path), "%s/seen", top);
	file = fopen(path, "re");
	assert_non_null(file);
	got = fread(text, 1, sizeof(text) - 1, file);
	text[got] = '\0';
	(void)fclose(file);
	return text;
}

static void readiness_is_waited_for(void **state)
{
	struct error err = ERROR_INIT;
	char wanted[LIMIT_PATH_BYTES + 128];

	(void)state;
	script("sleep .1; echo \"$@\" >seen; printf 1 >&3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), 0);
	(void)snprintf(wanted, sizeof(wanted),
		       "--mode user --socket %s --idle-exit 60 --ready-fd 3\n", location.socket);
	assert_string_equal(seen(), wanted);
	/* It is nobody's child here. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);

	location.place = LOCATE_ROOT;
	script("echo \"$2\" >seen; printf 1 >&3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), 0);
	assert_string_equal(seen(), "root\n");
}

static void the_surroundings_are_clean(void **state)
{
	struct error err = ERROR_INIT;
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int leak = fcntl(null_fd, F_DUPFD, 77); /* NOLINT: on purpose without close-on-exec */

	(void)state;
	assert_int_equal(leak, 77);
	assert_int_equal(setenv("FSBOX_TEST_SECRET", "x", 1), 0);
	script("in=$(readlink /proc/$$/fd/0); out=$(readlink /proc/$$/fd/1)\n"
	       "test -e /proc/$$/fd/77 && leak=yes\n"
	       "echo $in $out leak=$leak secret=$FSBOX_TEST_SECRET $(umask) >seen; printf 1 >&3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), 0);
	assert_string_equal(seen(), "/dev/null /dev/null leak= secret= 0077\n");
	(void)close(leak);
	(void)close(null_fd);
}

static void failures_are_told(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	script("exit 3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), -ERR_UNREACHABLE);
	assert_string_equal(err.message, "the daemon did not start");
	script("printf 'fsboxd: no \\033 luck\\nmore\\n' >&2; exit 3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), -ERR_UNREACHABLE);
	assert_string_equal(err.message, "the daemon did not start: fsboxd: no ? luck");
	/* Of a log with a past only the new line counts. */
	script("echo again >&2; exit 3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), -ERR_UNREACHABLE);
	assert_string_equal(err.message, "the daemon did not start: again");
	assert_int_equal(autostart_run("/nonexistent/fsboxd", &location, 5000, &err),
			 -ERR_UNREACHABLE);
	assert_string_equal(err.message, "the daemon did not start: fsboxd could not be executed");
}

static void waiting_has_an_end(void **state)
{
	struct error err = ERROR_INIT;
	int64_t before_ms = clock_ms();

	(void)state;
	script("exec sleep 3");
	assert_int_equal(autostart_run(program, &location, 1000, &err), -ERR_UNREACHABLE);
	assert_string_equal(err.message, "the daemon was started but is not ready after 1 s");
	assert_true(clock_ms() - before_ms < 2500);
}

static void a_log_is_not_needed(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	location.state_dir[0] = '\0';
	script("echo lost >&2; printf 1 >&3");
	assert_int_equal(autostart_run(program, &location, 5000, &err), 0);
	/* Nor one that somebody else could have put there. */
	(void)snprintf(location.state_dir, sizeof(location.state_dir), "%s/state", top);
	assert_int_equal(mkdir(location.state_dir, 0777), 0);
	assert_int_equal(chmod(location.state_dir, 0777), 0);
	assert_int_equal(autostart_run(program, &location, 5000, &err), 0);
	assert_int_equal(rmdir(location.state_dir), 0);
}

static void one_starts_at_a_time(void **state)
{
	struct error err = ERROR_INIT;
	int dir_fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int first = -1;
	int second = -1;

	(void)state;
	assert_int_equal(autostart_lock(dir_fd, top, 1000, &first, &err), 0);
	assert_int_equal(autostart_lock(dir_fd, top, 1000, &second, &err), -ERR_UNREACHABLE);
	assert_non_null(strstr(err.message, "start.lock' is locked"));
	(void)close(first);
	assert_int_equal(autostart_lock(dir_fd, top, 1000, &second, &err), 0);
	(void)close(second);
	(void)close(dir_fd);
}

static void daemons_are_found(void **state)
{
	char path[LIMIT_PATH_BYTES + 1];
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(autostart_find_daemon("/some/where", path, &err), 0);
	assert_string_equal(path, "/some/where");
	/* This program lies in a build tree: fsboxd is beside it once it is built. */
	if (autostart_find_daemon(NULL, path, &err) == 0)
		assert_non_null(strstr(path, "/fsboxd"));
	else
		assert_non_null(strstr(err.message, FSBOXD_PATH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(readiness_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_surroundings_are_clean, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(waiting_has_an_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_log_is_not_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(one_starts_at_a_time, setup, teardown),
		cmocka_unit_test(daemons_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
