/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/birth.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/spawner/child.h"
#include "tests/test.h"

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct birth birth_of(pid_t pid)
{
	struct birth birth;
	struct error err = ERROR_INIT;
	int pidfd = pidfd_open_pid(pid);

	assert_true(pidfd >= 0);
	assert_int_equal(birth_read(pid, pidfd, &birth, &err), 0);
	(void)close(pidfd);
	return birth;
}

static void finds_the_process_again(void **state)
{
	pid_t pid = start_sleeper();
	struct birth birth = birth_of(pid);
	int pidfd = birth_open(pid, &birth);

	(void)state;
	assert_true(pidfd >= 0);
	assert_true(birth.pidfs_ino != 0 || birth.start_time != 0);
	end(pid);
	(void)close(pidfd);
}

static void another_process_with_that_number_is_not_it(void **state)
{
	pid_t one = start_sleeper();
	pid_t two = start_sleeper();
	struct birth birth = birth_of(one);

	(void)state;
	assert_int_equal(birth_open(two, &birth), -1);
	assert_int_equal(errno, ESRCH);
	end(one);
	end(two);
}

static void the_dead_are_not_found(void **state)
{
	pid_t pid = start_sleeper();
	struct birth birth = birth_of(pid);

	(void)state;
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* A zombie still has the number. */
	while (birth_open(pid, &birth) >= 0)
		(void)usleep(1000);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(birth_open(pid, &birth), -1);
}

static void numbers_that_mean_nobody(void **state)
{
	struct birth birth = birth_of(getpid());

	(void)state;
	assert_int_equal(birth_open(0, &birth), -1);
	assert_int_equal(birth_open(-1, &birth), -1);
	assert_int_equal(birth_open(1, &birth), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_process_again),
		cmocka_unit_test(another_process_with_that_number_is_not_it),
		cmocka_unit_test(the_dead_are_not_found),
		cmocka_unit_test(numbers_that_mean_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
