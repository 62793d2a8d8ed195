/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/listener.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static char dir[64];
static char path[96];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/fsbox-listener.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir);
}

static void mode_is_exact_and_clients_connect(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat about;
	mode_t mask = umask(0077);
	int fd = listener_open(path, 0660, (gid_t)-1, NULL);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	(void)umask(mask);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 07777, 0660);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(client);
	(void)close(fd);
}

static void a_served_socket_is_not_replaced(void **state)
{
	struct error err = ERROR_INIT;
	int first = listener_open(path, 0600, (gid_t)-1, NULL);

	(void)state;
	assert_true(first >= 0);
	assert_int_equal(listener_open(path, 0600, (gid_t)-1, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "serves"));
	(void)close(first);

	/* Its daemon is dead now. */
	first = listener_open(path, 0600, (gid_t)-1, NULL);
	assert_true(first >= 0);
	(void)close(first);
}

static void what_is_no_socket_stays(void **state)
{
	int fd = -1;

	(void)state;
	(void)unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)close(fd);
	assert_int_equal(listener_open(path, 0600, (gid_t)-1, NULL), -ERR_CONFIG);
	assert_int_equal(access(path, F_OK), 0);
	(void)unlink(path);
	assert_int_equal(symlink("/tmp/x", path), 0);
	assert_int_equal(listener_open(path, 0600, (gid_t)-1, NULL), -ERR_CONFIG);
	(void)unlink(path);
}

static void too_long_a_path_is_a_clear_error(void **state)
{
	struct error err = ERROR_INIT;
	char longest[200];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(listener_open(longest, 0600, (gid_t)-1, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "longer than 107 bytes"));
}

/* In a child: descriptor 3 is what COUNT 1 passes. 0: adopted, else the kind. */
static int adopt(int fd)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int r = 0;

		(void)dup2(fd, 3);
		r = listener_adopt(1, NULL);
		_exit(r >= 0 ? (fcntl(r, F_GETFL) & O_NONBLOCK ? 0 : 99) : -r);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static int listening(int family, int type, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, address, size), 0);
	if (type != SOCK_DGRAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void R1_only_a_listening_path_is_adopted(void **state)
{
	struct sockaddr_un named = { .sun_family = AF_UNIX };
	struct sockaddr_un hidden = { .sun_family = AF_UNIX, .sun_path = "\0fsbox-test-listener" };
	int pair[2];
	int fd = -1;

	(void)state;
	memcpy(named.sun_path, path, strlen(path));
	fd = listening(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&named, sizeof(named));
	assert_int_equal(adopt(fd), 0);
	(void)close(fd);
	(void)unlink(path);

	fd = listening(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&hidden, sizeof(hidden));
	assert_int_equal(adopt(fd), ERR_CONFIG);
	(void)close(fd);
	fd = listening(AF_UNIX, SOCK_SEQPACKET, (struct sockaddr *)&named, sizeof(named));
	assert_int_equal(adopt(fd), ERR_CONFIG);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(adopt(pair[0]), ERR_CONFIG);
	assert_int_equal(adopt(STDIN_FILENO), ERR_CONFIG);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mode_is_exact_and_clients_connect),
		cmocka_unit_test(a_served_socket_is_not_replaced),
		cmocka_unit_test(what_is_no_socket_stays),
		cmocka_unit_test(too_long_a_path_is_a_clear_error),
		cmocka_unit_test(R1_only_a_listening_path_is_adopted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
