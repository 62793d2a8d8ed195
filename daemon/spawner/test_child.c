/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fdcount.h"
#include "tests/test.h"

static int ended_status;
static int ended_count;

static void on_exit_of_child(int status, void *arg)
{
	ended_status = status;
	ended_count++;
	assert_ptr_equal(arg, &ended_count);
}

/* Reap until COUNT ended, for at most five seconds. */
static void reap(struct children *children, int count)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < 1000 && ended_count < count; i++) {
		children_reap(children);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(ended_count, count);
}

static int return_42(void *arg)
{
	(void)arg;
	return 42;
}

static int wait_for_signal(void *arg)
{
	(void)arg;
	while (pause() < 0)
		continue;
	return 0;
}

static void exit_status_arrives(void **state)
{
	struct children children = { 0 };
	struct child child = CHILD_INIT;
	size_t fds = fd_count();

	(void)state;
	ended_count = 0;
	assert_int_equal(child_start(&children, &child, return_42, NULL, on_exit_of_child,
				     &ended_count, NULL),
			 0);
	assert_true(child.pid > 0 && child.pidfd >= 0);
	assert_int_equal(children.count, 1);
	reap(&children, 1);
	assert_int_equal(WEXITSTATUS(ended_status), 42);
	assert_int_equal(child.pid, 0);
	assert_int_equal(children.count, 0);
	assert_int_equal(fd_count(), fds);
}

static void on_term(int signo)
{
	(void)signo;
}

static void nothing_is_ignored_or_blocked_from_the_start(void **state)
{
	sigset_t all;
	sigset_t now;

	(void)state;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	child_reset_signals();
	assert_true(signal(SIGHUP, SIG_DFL) == SIG_DFL);
	assert_true(signal(SIGTERM, SIG_DFL) == SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, NULL, &now);
	for (int signo = 1; signo < NSIG; signo++)
		assert_int_not_equal(sigismember(&now, signo), 1);
}

static void signals_are_as_at_birth(void **state)
{
	struct children children = { 0 };
	struct child child = CHILD_INIT;
	sigset_t all;
	sigset_t before;

	(void)state;
	ended_count = 0;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	(void)signal(SIGTERM, on_term);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(child_start(&children, &child, wait_for_signal, NULL, on_exit_of_child,
				     &ended_count, NULL),
			 0);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	assert_true(signal(SIGTERM, SIG_DFL) == on_term);
	assert_true(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
	for (int i = 0; i < 50 && ended_count == 0; i++) {
		(void)usleep(20000);
		child_signal(&child, SIGTERM);
		children_reap(&children);
	}
	reap(&children, 1);
	assert_true(WIFSIGNALED(ended_status));
	assert_int_equal(WTERMSIG(ended_status), SIGTERM);
	child_signal(&child, SIGTERM); /* harmless: there is none */
}

static void moved_and_forgotten(void **state)
{
	struct children children = { 0 };
	struct child first = CHILD_INIT;
	struct child second = CHILD_INIT;
	pid_t pid = 0;
	size_t fds = fd_count();

	(void)state;
	ended_count = 0;
	assert_int_equal(child_start(&children, &first, wait_for_signal, NULL, NULL, NULL, NULL),
			 0);
	pid = first.pid;
	child_move(&children, &first, &second, on_exit_of_child, &ended_count);
	assert_int_equal(first.pid, 0);
	assert_int_equal(second.pid, pid);
	child_signal(&second, SIGKILL);
	reap(&children, 1);

	assert_int_equal(child_start(&children, &first, return_42, NULL, on_exit_of_child,
				     &ended_count, NULL),
			 0);
	pid = first.pid;
	child_forget(&children, &first);
	assert_int_equal(children.count, 0);
	for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++) {
		children_reap(&children);
		(void)usleep(5000);
	}
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(ended_count, 1);
	assert_int_equal(fd_count(), fds);
}

/* @arg  two descriptors in awkward places, to arrive as 3 and 4 in this order */
static int look_at_fds(void *arg)
{
	const int *keep = arg;
	char byte = 0;

	if (child_arrange_fds(keep, 2, false, NULL) < 0)
		return 1;
	if (read(3, &byte, 1) != 1 || byte != 'a' || read(4, &byte, 1) != 1 || byte != 'b')
		return 2;
	if (fcntl(3, F_GETFD) != 0 || fcntl(4, F_GETFD) != 0)
		return 3;
	if (fd_count() != 5)
		return 4;
	for (int fd = 0; fd < 3; fd++)
		if (write(fd, "x", 1) != 1 || read(fd, &byte, 1) != 0)
			return 5;
	return 0;
}

static void R14_descriptors_are_arranged_and_the_rest_is_gone(void **state)
{
	struct children children = { 0 };
	struct child child = CHILD_INIT;
	int a[2];
	int b[2];
	int keep[2];

	(void)state;
	ended_count = 0;
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_int_equal(write(a[1], "a", 1), 1);
	assert_int_equal(write(b[1], "b", 1), 1);

	/* Each sits where the other belongs. */
	keep[0] = dup2(a[0], 4);
	keep[1] = dup2(b[0], 3);
	assert_int_equal(child_start(&children, &child, look_at_fds, keep, on_exit_of_child,
				     &ended_count, NULL),
			 0);
	reap(&children, 1);
	assert_int_equal(WEXITSTATUS(ended_status), 0);
}

static void pidfds_say_whether_a_process_lives(void **state)
{
	struct children children = { 0 };
	struct child child = CHILD_INIT;
	struct pollfd ended = { .events = POLLIN };
	int pidfd = -1;

	(void)state;
	ended_count = 0;
	assert_int_equal(child_start(&children, &child, wait_for_signal, NULL, on_exit_of_child,
				     &ended_count, NULL),
			 0);
	pidfd = pidfd_open_pid(child.pid);
	assert_true(pidfd_alive(pidfd));
	assert_int_equal(pidfd_signal(pidfd, SIGKILL), 0);
	ended.fd = pidfd;
	assert_int_equal(poll(&ended, 1, 5000), 1);
	assert_false(pidfd_alive(pidfd));
	reap(&children, 1);
	assert_false(pidfd_alive(pidfd));
	assert_int_equal(pidfd_signal(pidfd, SIGKILL), -1);
	assert_int_equal(errno, ESRCH);
	(void)close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_status_arrives),
		cmocka_unit_test(nothing_is_ignored_or_blocked_from_the_start),
		cmocka_unit_test(signals_are_as_at_birth),
		cmocka_unit_test(moved_and_forgotten),
		cmocka_unit_test(pidfds_say_whether_a_process_lives),
		cmocka_unit_test(R14_descriptors_are_arranged_and_the_rest_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
