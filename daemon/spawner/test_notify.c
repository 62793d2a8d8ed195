/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/notify.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/test.h"

/* A service manager's socket at ADDRESS, "@name" or a path. */
static int manager(const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(text);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, text, length);
	if (text[0] == '@')
		address.sun_path[0] = '\0';
	else
		(void)unlink(text);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
			 0);
	return fd;
}

static void assert_told(const char *address)
{
	int fd = manager(address);
	char said[128] = "";

	assert_int_equal(setenv("NOTIFY_SOCKET", address, 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), 0);
	assert_int_equal(recv(fd, said, sizeof(said) - 1, 0), 7);
	assert_string_equal(said, "READY=1");
	(void)close(fd);
}

static void readiness_goes_to_paths_and_abstract_names(void **state)
{
	char name[64];

	(void)state;
	(void)snprintf(name, sizeof(name), "/tmp/fsbox-notify.%d", (int)getpid());
	assert_told(name);
	(void)unlink(name);
	(void)snprintf(name, sizeof(name), "@fsbox-notify.%d", (int)getpid());
	assert_told(name);
}

static void nobody_who_asks_is_fine(void **state)
{
	(void)state;
	(void)unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_send("READY=1", NULL), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", "", 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), 0);
}

static void odd_addresses_are_errors(void **state)
{
	char longest[200];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(setenv("NOTIFY_SOCKET", longest, 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), -ERR_INVALID);
	assert_int_equal(setenv("NOTIFY_SOCKET", "relative", 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), -ERR_INVALID);
	assert_int_equal(setenv("NOTIFY_SOCKET", "@", 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), -ERR_INVALID);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/tmp/fsbox-nobody-listens-here", 1), 0);
	assert_int_equal(notify_send("READY=1", NULL), -ERR_SYSTEM);
}

static void set_listen(const char *pid, const char *fds)
{
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	if (pid)
		assert_int_equal(setenv("LISTEN_PID", pid, 1), 0);
	if (fds)
		assert_int_equal(setenv("LISTEN_FDS", fds, 1), 0);
}

static void passed_descriptors_are_counted(void **state)
{
	char pid[32];
	int pair[2];

	(void)state;
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	set_listen(NULL, NULL);
	assert_int_equal(notify_listen_fds(NULL), 0);
	set_listen(pid, NULL);
	assert_int_equal(notify_listen_fds(NULL), 0);
	set_listen("1", "1");
	assert_int_equal(notify_listen_fds(NULL), 0);
	set_listen(pid, "0");
	assert_int_equal(notify_listen_fds(NULL), 0);

	/* 3 and 4 made sure to be open. */
	assert_int_equal(pipe(pair), 0);
	assert_true(dup2(pair[0], 3) == 3 && dup2(pair[0], 4) == 4);
	set_listen(pid, "2");
	assert_int_equal(notify_listen_fds(NULL), 2);
	assert_int_equal(fcntl(3, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(4, F_GETFD), FD_CLOEXEC);
}

static void nonsense_is_refused(void **state)
{
	static const char *const counts[] = { "", "x", "-1", "8193", "1x", "99999999999999999999" };
	char pid[32];

	(void)state;
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		set_listen(pid, counts[i]);
		assert_int_equal(notify_listen_fds(NULL), -ERR_INVALID);
	}
	set_listen("me", "1");
	assert_int_equal(notify_listen_fds(NULL), -ERR_INVALID);
	notify_unset();
	assert_null(getenv("LISTEN_FDS"));
	assert_null(getenv("NOTIFY_SOCKET"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readiness_goes_to_paths_and_abstract_names),
		cmocka_unit_test(nobody_who_asks_is_fine),
		cmocka_unit_test(odd_addresses_are_errors),
		cmocka_unit_test(passed_descriptors_are_counted),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
