/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/signals.h"

#include "tests/test.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void names_and_numbers(void **state)
{
	char out[32];
	int signo = 0;

	(void)state;
	assert_true(signal_parse("TERM", &signo));
	assert_int_equal(signo, SIGTERM);
	assert_true(signal_parse("sigusr1", &signo));
	assert_int_equal(signo, SIGUSR1);
	assert_true(signal_parse("9", &signo));
	assert_int_equal(signo, SIGKILL);
	assert_false(signal_parse("0", &signo));
	assert_false(signal_parse("65", &signo));
	assert_false(signal_parse("-9", &signo));
	assert_false(signal_parse("SIG", &signo));
	assert_false(signal_parse("", &signo));
	assert_string_equal(signal_label(out, SIGSEGV), "SIGSEGV");
	assert_string_equal(signal_label(out, 40), "signal 40");
}

static void caught_signals_come_by_descriptor(void **state)
{
	struct signalfd_siginfo info;
	sigset_t before;
	int fd = signals_catch(&before);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR1);
	assert_int_equal(read(fd, &info, sizeof(info)), -1);
	(void)close(fd);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* Under nohup a hang-up must not reach the job either. */
static void ignored_signals_stay_ignored(void **state)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	struct signalfd_siginfo info;
	sigset_t before;
	int fd = -1;

	(void)state;
	assert_int_equal(sigaction(SIGHUP, &ignore, NULL), 0);
	fd = signals_catch(&before);
	assert_int_equal(raise(SIGHUP), 0);
	assert_int_equal(read(fd, &info, sizeof(info)), -1);
	(void)close(fd);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(sigaction(SIGHUP, &standard, NULL), 0);
}

static void dying_of_a_signal_shows(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		sigset_t before;

		(void)signals_catch(&before);
		signals_die(SIGTERM);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers),
		cmocka_unit_test(caught_signals_come_by_descriptor),
		cmocka_unit_test(ignored_signals_stay_ignored),
		cmocka_unit_test(dying_of_a_signal_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
