/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/wire/egressop.h"
#include "tests/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* What is tried within the jail: 0 when it worked, else errno. */
typedef int attempt(void);

/* TRY in a child that has entered ROLE's jail: its result, or -signal. */
static int in_jail(enum jail_role role, attempt *try)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(jail_enter(role, NULL) < 0 ? 255 : try());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int result(long r)
{
	return r < 0 ? errno : 0;
}

static int try_open_passwd(void)
{
	return result(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int try_open_proc(void)
{
	return result(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
}

static int try_create(void)
{
	return result(open("/tmp/fsbox-test-jail", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int try_exec(void)
{
	char *argv[] = { NULL };

	return result(execve("/bin/true", argv, argv));
}

static int try_unix(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_packet(void)
{
	return result(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

static int try_vsock(void)
{
	return result(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_inet(void)
{
	return result(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int try_executable_memory(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 254;
	return result(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int try_signal_parent(void)
{
	return result(kill(getppid(), 0));
}

static int put_file(int fd)
{
	int file_fd = open("/tmp", O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

	if (file_fd < 0)
		return -1;
	return dup2(file_fd, fd);
}

/* What was written down cannot be written over: the flag stays, and there is no copy. */
static int try_unflag_file(void)
{
	return result(fcntl(EGRESS_FD_FILE, F_SETFL, O_WRONLY));
}

static int try_copy_file(void)
{
	return result(fcntl(EGRESS_FD_FILE, F_DUPFD_CLOEXEC, 20));
}

static int try_append(void)
{
	return result(write(EGRESS_FD_FILE, "x", 1));
}

static int try_unflag_other(void)
{
	return result(fcntl(EGRESS_FD_FILE + 1, F_SETFL, O_WRONLY | O_NONBLOCK));
}

static int try_nothing(void)
{
	return 0;
}

static void R33_the_proxy_can_do_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(in_jail(JAIL_PROXY, try_nothing), 0);
	assert_int_equal(in_jail(JAIL_PROXY, try_inet), 0);
	assert_int_not_equal(in_jail(JAIL_PROXY, try_open_passwd), 0);
	assert_int_not_equal(in_jail(JAIL_PROXY, try_open_proc), 0);
	assert_int_not_equal(in_jail(JAIL_PROXY, try_create), 0);
	assert_int_equal(in_jail(JAIL_PROXY, try_exec), -SIGSYS);
	assert_int_equal(in_jail(JAIL_PROXY, try_unix), EPERM);
	assert_int_equal(in_jail(JAIL_PROXY, try_packet), EPERM);
	assert_int_equal(in_jail(JAIL_PROXY, try_vsock), EPERM);
	assert_int_equal(in_jail(JAIL_PROXY, try_executable_memory), EPERM);
	assert_int_not_equal(in_jail(JAIL_PROXY, try_signal_parent), 0);
#ifndef SANITIZED
	assert_int_equal(in_jail(JAIL_PROXY, try_fork), EPERM);
#endif
}

static void R33_what_is_written_down_stays(void **state)
{
	(void)state;
	assert_int_equal(put_file(EGRESS_FD_FILE), EGRESS_FD_FILE);
	assert_int_equal(put_file(EGRESS_FD_FILE + 1), EGRESS_FD_FILE + 1);
	assert_int_equal(in_jail(JAIL_PROXY, try_append), 0);
	assert_int_equal(in_jail(JAIL_PROXY, try_unflag_other), 0);
	assert_int_equal(in_jail(JAIL_PROXY, try_unflag_file), EPERM);
	assert_int_equal(in_jail(JAIL_PROXY, try_copy_file), EPERM);
	(void)close(EGRESS_FD_FILE);
	(void)close(EGRESS_FD_FILE + 1);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0L, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

static void R33_the_resolver_reads_and_asks(void **state)
{
	(void)state;
	assert_int_equal(in_jail(JAIL_RESOLVER, try_open_passwd), 0);
	assert_int_equal(in_jail(JAIL_RESOLVER, try_unix), 0);
	assert_int_equal(in_jail(JAIL_RESOLVER, try_inet), 0);
	assert_int_equal(in_jail(JAIL_RESOLVER, try_fork), 0);
	if (has_landlock()) {
		assert_int_not_equal(in_jail(JAIL_RESOLVER, try_open_proc), 0);
		assert_int_not_equal(in_jail(JAIL_RESOLVER, try_create), 0);
	}
	assert_int_equal(in_jail(JAIL_RESOLVER, try_exec), -SIGSYS);
	assert_int_equal(in_jail(JAIL_RESOLVER, try_packet), EPERM);
	assert_int_equal(in_jail(JAIL_RESOLVER, try_vsock), EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R33_the_proxy_can_do_nothing_else),
		cmocka_unit_test(R33_what_is_written_down_stays),
		cmocka_unit_test(R33_the_resolver_reads_and_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
