/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fsbox.h"

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int temporary(const char *content)
{
	char name[] = "/tmp/fsbox-test-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	if (content)
		assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* A job: `/bin/sh -c SCRIPT` with the relay's descriptors. */
static pid_t start(struct fsbox_relay *relay, const char *script)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 3; i++)
			if (fsbox_relay_fd(relay, i) >= 0 && dup2(fsbox_relay_fd(relay, i), i) < 0)
				_exit(99);
		(void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(99);
	}
	fsbox_relay_started(relay);
	return pid;
}

/* Relay until the job has ended; its status. */
static int follow(struct fsbox_relay *relay, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd fds[FSBOX_RELAY_POLLFDS];
		size_t count = fsbox_relay_poll(relay, fds);

		(void)poll(fds, count, 10);
		fsbox_relay_process(relay);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_content(int fd, const char *wanted)
{
	char text[256] = "";
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(got >= 0);
	assert_string_equal(text, wanted);
}

static void both_directions_and_end_of_file(void **state)
{
	int fds[3] = { temporary("one\ntwo\n"), temporary(NULL), temporary(NULL) };
	struct fsbox_relay *relay = NULL;

	(void)state;
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(
		follow(relay, start(relay, "while read x; do echo \"<$x>\"; done; echo E >&2")), 0);
	assert_int_equal(fsbox_relay_finish(relay, NULL), 0);
	assert_int_equal(fsbox_relay_poll(relay, (struct pollfd[FSBOX_RELAY_POLLFDS]){ 0 }), 0);
	check_content(fds[1], "<one>\n<two>\n");
	check_content(fds[2], "E\n");
	(void)fsbox_relay_free(relay);
	for (int i = 0; i < 3; i++)
		(void)close(fds[i]);
}

static void much_data_arrives_whole(void **state)
{
	int fds[3] = { -1, temporary(NULL), -1 };
	struct fsbox_relay *relay = NULL;

	(void)state;
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(fsbox_relay_fd(relay, 0), -1);
	assert_int_equal(follow(relay, start(relay, "head -c 5000000 /dev/zero")), 0);
	assert_int_equal(fsbox_relay_finish(relay, NULL), 0);
	assert_int_equal(lseek(fds[1], 0, SEEK_END), 5000000);
	(void)fsbox_relay_free(relay);
	(void)close(fds[1]);
}

static void only_regular_files_are_relayed(void **state)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[3] = { null_fd, temporary(NULL), -1 };
	struct fsbox_relay *relay = NULL;

	(void)state;
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(fsbox_relay_fd(relay, 0), null_fd);
	assert_int_not_equal(fsbox_relay_fd(relay, 1), fds[1]);
	assert_int_equal(fsbox_relay_fd(relay, 2), -1);
	assert_int_equal(fsbox_relay_fd(relay, 3), -1);
	(void)fsbox_relay_free(relay);
	(void)close(null_fd);
	(void)close(fds[1]);
}

static void a_job_that_does_not_read_is_fine(void **state)
{
	int fds[3] = { temporary(NULL), -1, -1 };
	struct fsbox_relay *relay = NULL;

	(void)state;
	assert_int_equal(ftruncate(fds[0], 1 << 20), 0); /* more than a pipe holds */
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(follow(relay, start(relay, "exec <&-; sleep .1; exit 7")), 7);
	assert_int_equal(fsbox_relay_finish(relay, NULL), 0);
	(void)fsbox_relay_free(relay);
	(void)close(fds[0]);
}

static void output_appends_where_the_file_says_so(void **state)
{
	int fds[3] = { -1, temporary("before\n"), -1 };
	struct fsbox_relay *relay = NULL;

	(void)state;
	assert_int_equal(fcntl(fds[1], F_SETFL, O_APPEND), 0);
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(follow(relay, start(relay, "echo after")), 0);
	assert_int_equal(fsbox_relay_finish(relay, NULL), 0);
	check_content(fds[1], "before\nafter\n");
	(void)fsbox_relay_free(relay);
	(void)close(fds[1]);
}

/* A file that takes no more: the job gets SIGPIPE, we get an error and no SIGXFSZ. */
static void a_full_disk_is_an_error(void **state)
{
	const struct rlimit small = { .rlim_cur = 100000, .rlim_max = RLIM_INFINITY };
	const struct rlimit large = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	int fds[3] = { -1, temporary(NULL), -1 };
	struct fsbox_relay *relay = NULL;
	struct fsbox_error err;

	(void)state;
	assert_int_equal(fsbox_relay_new(&relay, fds, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(follow(relay, start(relay, "exec cat /dev/zero")), 128 + SIGPIPE);
	assert_int_equal(fsbox_relay_finish(relay, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &large), 0);
	assert_string_equal(err.kind, "internal");
	assert_int_equal(err.errnum, EFBIG);
	assert_string_equal(err.message, "write standard output: File too large");
	assert_int_equal(lseek(fds[1], 0, SEEK_END), 100000);
	(void)fsbox_relay_free(relay);
	(void)close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_and_end_of_file),
		cmocka_unit_test(much_data_arrives_whole),
		cmocka_unit_test(only_regular_files_are_relayed),
		cmocka_unit_test(a_job_that_does_not_read_is_fine),
		cmocka_unit_test(output_appends_where_the_file_says_so),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
