/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* Run CHECK in a child; it returns 0, or the number of the step that went wrong. */
static void in_child(int (*check)(void), int expected)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), expected);
}

#define STEP(condition)              \
	do {                         \
		step++;              \
		if (!(condition))    \
			return step; \
	} while (0)
#define REFUSED(call) ((call) < 0 && errno == EPERM)

/* All three sets, empty or not. */
static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	(void)syscall(SYS_capget, &header, data);
	return data[0].effective || data[0].permitted || data[0].inheritable || data[1].effective ||
	       data[1].permitted || data[1].inheritable;
}

static int check_common(void)
{
	struct rlimit core = { 1, 1 };
	int step = 0;

	STEP(prctl(PR_GET_DUMPABLE) == 0);
	STEP(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L) == 1);
	STEP(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
	STEP(REFUSED(execl("/bin/true", "true", NULL)));
	STEP(REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
	STEP(getpid() > 0 && fork() >= 0);
	return 0;
}

static int check_recorder(void)
{
	int step = 100;

	if (confine_enter(CONFINE_RECORDER, NULL) < 0)
		return 99;
	STEP(!has_capabilities());
	STEP(REFUSED(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	STEP(REFUSED(socket(AF_INET | 1 << 30, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	STEP(REFUSED(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)));
	STEP(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
	return check_common();
}

static int check_broker(void)
{
	int step = 100;

	if (confine_enter(CONFINE_BROKER, NULL) < 0)
		return 99;
	STEP(has_capabilities() == (geteuid() == 0));
	STEP(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0); /* name services */
	return check_common();
}

static int check_broker_of_a_user(void)
{
	if (geteuid() == 0 &&
	    (setresgid(1234567, 1234567, 1234567) < 0 || setresuid(1234567, 1234567, 1234567) < 0))
		return 98;
	return check_broker();
}

static void R16_roles_give_up(void **state)
{
	(void)state;
	in_child(check_recorder, 0);
	in_child(check_broker, 0);
	in_child(check_broker_of_a_user, 0);
}

static int check_drop(void)
{
	int step = 0;

	if (geteuid() == 0) {
		STEP(prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) == 0);
		STEP(setresuid(1234567, 1234567, 1234567) == 0 && has_capabilities());
	}
	STEP(confine_drop_capabilities(NULL) == 0 && !has_capabilities());
	STEP(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_ADMIN, 0L, 0L) == 0);
	return 0;
}

static int check_bounding(void)
{
	int step = 0;

	STEP(confine_drop_capabilities(NULL) == 0);
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) >= 0; cap++)
		STEP(prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) == 0);
	return 0;
}

static void capabilities_are_dropped(void **state)
{
	(void)state;
	in_child(check_drop, 0);
	if (geteuid() == 0)
		in_child(check_bounding, 0);
}

#ifdef __x86_64__
static int check_x32(void)
{
	if (confine_enter(CONFINE_BROKER, NULL) < 0)
		return 99;
	return (int)syscall(SYS_getpid | 0x40000000) < 0;
}
#endif

static void foreign_calls_kill(void **state)
{
	(void)state;
#ifdef __x86_64__
	in_child(check_x32, -SIGSYS);
#endif
}

static int check_descriptors(void)
{
	struct error err = ERROR_INIT;
	int step = 0;
	int fd = -1;

	for (fd = 0; fd <= 6; fd++)
		STEP(dup2(2, fd) >= 0);
	STEP(dup2(2, 200) == 200);
	STEP(confine_descriptors(4, &err) == 0);
	STEP(fcntl(4, F_GETFD) >= 0 && fcntl(5, F_GETFD) < 0 && fcntl(200, F_GETFD) < 0);
	(void)close(3);
	STEP(confine_descriptors(4, &err) == -ERR_SYSTEM);
	STEP(strstr(err.message, "descriptor 3") != NULL);
	return 0;
}

static void R16_inherited_descriptors(void **state)
{
	(void)state;
	in_child(check_descriptors, 0);
}

/* What is missing is said, each thing once, and nothing where nothing is. */
static void R22_what_landlock_cannot_do_is_told(void **state)
{
	(void)state;
	assert_null(confine_landlock_gap(LANDLOCK_ABI_SCOPES, 0));
	assert_non_null(strstr(confine_landlock_gap(LANDLOCK_ABI_SCOPES - 1, 0), "abstract"));
	assert_null(confine_landlock_gap(LANDLOCK_ABI_SCOPES - 1, 1));
	assert_non_null(strstr(confine_landlock_gap(LANDLOCK_ABI_MIN, 0), "abstract"));
	assert_null(confine_landlock_gap(LANDLOCK_ABI_MIN, 1));
	for (int abi = 0; abi < LANDLOCK_ABI_MIN; abi++) {
		assert_non_null(strstr(confine_landlock_gap(abi, 0), "no Landlock"));
		assert_non_null(strstr(confine_landlock_gap(abi, 1), "abstract"));
		assert_null(confine_landlock_gap(abi, 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R22_what_landlock_cannot_do_is_told),
		cmocka_unit_test(R16_roles_give_up),
		cmocka_unit_test(capabilities_are_dropped),
		cmocka_unit_test(foreign_calls_kill),
		cmocka_unit_test(R16_inherited_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
