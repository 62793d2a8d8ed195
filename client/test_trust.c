/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trust.h"

#include "tests/ordinary.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>

#include "client/test_server.h"

#define STRANGER 54321

static char top[64];

static const char *below(const char *name)
{
	static char path[4][160];
	static int turn;

	turn = (turn + 1) % 4;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, name);
	return path[turn];
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/fsbox-test-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "a/b/c", "a/b", "a/link", "a", "socket", "link" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (rmdir(below(names[i])) < 0)
			(void)unlink(below(names[i]));
	return rmdir(top);
}

static void make(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(below(name), 0700), 0);
	assert_int_equal(chmod(below(name), mode), 0);
}

static void r5_every_directory_on_the_way_counts(void **state)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	(void)state;
	make("a", 0700);
	make("a/b", 0755);
	make("a/b/c", 0700);
	assert_int_equal(trust_directory(below("a/b/c"), getuid(), &fd, &err), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);

	assert_int_equal(chmod(below("a/b"), 0775), 0);
	assert_int_equal(trust_directory(below("a/b/c"), getuid(), NULL, &err), -ERR_UNREACHABLE);
	assert_non_null(strstr(err.message, "'b' can be written by others (mode 775)"));
	assert_int_equal(chmod(below("a/b"), 0777), 0);
	assert_int_equal(trust_directory(below("a/b/c"), getuid(), NULL, &err), -ERR_UNREACHABLE);
	assert_int_equal(chmod(below("a/b"), 01777), 0); /* sticky, like /tmp */
	assert_int_equal(trust_directory(below("a/b/c"), getuid(), NULL, &err), 0);

	assert_int_equal(trust_directory(below("a/x"), getuid(), NULL, &err), -ERR_UNREACHABLE);
	assert_int_equal(err.errnum, ENOENT);
}

static void r5_links_lead_to_what_is_checked(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	make("a", 0700);
	make("a/b", 0777);
	assert_int_equal(symlink("a/b", below("link")), 0);
	assert_int_equal(trust_directory(below("link"), getuid(), NULL, &err), -ERR_UNREACHABLE);
	assert_int_equal(chmod(below("a/b"), 0700), 0);
	assert_int_equal(trust_directory(below("link"), getuid(), NULL, &err), 0);
}

static void r5_a_directory_of_a_stranger_is_refused(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	make("a", 0700);
	if (getuid() != 0) {
		/* Seen from somebody else, ours is the stranger's. */
		assert_int_equal(trust_directory(below("a"), STRANGER, NULL, &err),
				 -ERR_UNREACHABLE);
		return;
	}
	assert_int_equal(chown(below("a"), STRANGER, (gid_t)-1), 0);
	assert_int_equal(trust_directory(below("a"), 0, NULL, &err), -ERR_UNREACHABLE);
	assert_non_null(strstr(err.message, "belongs to uid 54321"));
	assert_int_equal(trust_directory(below("a"), STRANGER, NULL, &err), 0);
}

static void private_directories_are_made(void **state)
{
	struct error err = ERROR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(trust_make_private(below("a/b/c"), getuid(), NULL, &err), 0);
	assert_int_equal(stat(below("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(trust_make_private(below("a/b/c"), getuid(), NULL, &err), 0);
	assert_int_equal(chmod(below("a/b/c"), 0750), 0);
	assert_int_equal(trust_make_private(below("a/b/c"), getuid(), NULL, &err),
			 -ERR_UNREACHABLE);
	assert_non_null(strstr(err.message, "its mode is 750, not 700"));
	if (getuid() == 0) {
		assert_int_equal(trust_make_private(below("a/b"), STRANGER, NULL, &err),
				 -ERR_UNREACHABLE);
		assert_non_null(strstr(err.message, "it belongs to uid 0"));
	}
}

static int open_top(void)
{
	int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void sockets_are_connected_to(void **state)
{
	struct error err = ERROR_INIT;
	uid_t uid = STRANGER;
	int listen_fd = server_listen(below("socket"));
	int dir_fd = open_top();
	int fd = -1;

	(void)state;
	assert_int_equal(trust_connect(dir_fd, "socket", "x", getuid(), &fd, &uid, &err), 0);
	assert_int_equal(uid, getuid());
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	(void)close(fd);
	(void)close(listen_fd);

	assert_int_equal(trust_connect(dir_fd, "socket", "x", getuid(), &fd, NULL, &err),
			 -ERR_UNREACHABLE);
	assert_int_equal(err.errnum, ECONNREFUSED);
	assert_int_equal(trust_connect(dir_fd, "none", "x", getuid(), &fd, NULL, &err),
			 -ERR_UNREACHABLE);
	assert_int_equal(err.errnum, ENOENT);
	(void)close(dir_fd);
}

/* The socket of another user: whoever opened it decides, not whoever serves it now. */
static void r5_nothing_is_sent_to_a_stranger(void **state)
{
	struct error err = ERROR_INIT;
	int dir_fd = open_top();
	int listen_fd = -1;
	int fd = -1;
	int before = 0;
	int accepted = -1;
	char byte = 0;
	pid_t pid = 0;
	int status = 0;

	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(chmod(top, 0777), 0);
	listen_fd = server_listen(below("socket"));
	pid = fork();
	if (pid == 0) {
		/* listen(2) again in the stranger's process: now the socket is his. */
		if (setresuid(STRANGER, STRANGER, STRANGER) < 0 || listen(listen_fd, 8) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	before = count_fds();
	assert_int_equal(trust_connect(dir_fd, "socket", "/x/socket", 0, &fd, NULL, &err),
			 -ERR_UNREACHABLE);
	assert_string_equal(err.message, "'/x/socket' is served by uid 54321, neither root nor "
					 "yourself; nothing was sent");
	assert_int_equal(count_fds(), before);
	accepted = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(read(accepted, &byte, 1), 0); /* closed without a byte */
	(void)close(accepted);
	(void)close(listen_fd);
	(void)close(dir_fd);
}

static void a_refusing_mode_is_told_apart(void **state)
{
	struct error err = ERROR_INIT;
	int listen_fd = server_listen(below("socket"));
	int dir_fd = open_top();
	int fd = -1;
	bool was_root = false;
	int r = 0;

	(void)state;
	assert_int_equal(chmod(below("socket"), 0), 0);
	was_root = ordinary_begin();
	r = trust_connect(dir_fd, "socket", "x", getuid(), &fd, NULL, &err);
	ordinary_end(was_root);
	assert_int_equal(r, -ERR_NOT_AUTHORIZED);
	assert_int_equal(err.errnum, EACCES);
	(void)close(listen_fd);
	(void)close(dir_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(r5_every_directory_on_the_way_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(r5_links_lead_to_what_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(r5_a_directory_of_a_stranger_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(private_directories_are_made, setup, teardown),
		cmocka_unit_test_setup_teardown(sockets_are_connected_to, setup, teardown),
		cmocka_unit_test_setup_teardown(r5_nothing_is_sent_to_a_stranger, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusing_mode_is_told_apart, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
