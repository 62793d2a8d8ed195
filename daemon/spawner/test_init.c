/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs as fsboxd and a broker see them: builder, bubblewrap and init together, as an ordinary user and as
 * root. See tests/unit/run_init.h.
 */

#include "daemon/spawner/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"
#include "tests/unit/run_init.h"

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- results ------------------------------------------------------------------------- */

static void B31_statuses_are_exact(void **state)
{
	static const struct {
		const char *text;
		int code;
		int signo;
	} cases[] = {
		{ "true", 0, 0 },
		{ "exit 1", 1, 0 },
		{ "exit 125", 125, 0 },
		{ "exit 137", 137, 0 },
		{ "kill -9 $$", 0, SIGKILL },
		{ "exit 255", 255, 0 },
		{ "kill -TERM $$", 0, SIGTERM },
		{ "kill -SEGV $$", 0, SIGSEGV },
	};

	(void)state;
	FOR_EACH_USER(uid)
	{
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct script *script = script_run(uid, cases[i].text);

			if (cases[i].signo)
				assert_signaled(&script->run, cases[i].signo);
			else
				assert_exited(&script->run, cases[i].code);
			assert_true(script->run.channel.started);
			script_free(script);
		}
	}
}

static void usage_and_wall_time_are_told(void **state)
{
	struct script *script = NULL;

	(void)state;
	script = script_run(geteuid(),
			    "sleep 0.3; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
	assert_exited(&script->run, 0);
	assert_in_range(script->run.pipe.record.wall_ms, 300, RUN_TIMEOUT_MS);
	assert_in_range(script->run.pipe.record.user_ms + script->run.pipe.record.sys_ms, 1, 10000);
	assert_in_range(script->run.pipe.record.max_rss_kib, 100, 1000000);
	script_free(script);
}

static void run_argv(uid_t uid, const char *work, const char *const *argv, const char *const *envp,
		     struct run *run)
{
	struct run_options options = RUN_OPTIONS_INIT;

	options.uid = uid;
	options.work = work;
	options.argv = argv;
	options.envp = envp;
	run_job(run, &options);
}

static void write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[256];
	int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static void B31_missing_and_not_executable(void **state)
{
	static const struct {
		const char *name;
		enum error_kind kind;
	} cases[] = {
		{ "no-such-command", ERR_COMMAND_NOT_FOUND },
		{ "/no/such/command", ERR_COMMAND_NOT_FOUND },
		{ "/etc/passwd/x", ERR_COMMAND_NOT_FOUND },
		{ "./plain", ERR_COMMAND_NOT_EXECUTABLE },
		{ "plain", ERR_COMMAND_NOT_EXECUTABLE },
		{ "/usr", ERR_COMMAND_NOT_EXECUTABLE },
		{ "./bad-interpreter", ERR_COMMAND_NOT_EXECUTABLE },
		{ "bad-interpreter", ERR_COMMAND_NOT_EXECUTABLE },
		{ "./binary", ERR_COMMAND_NOT_EXECUTABLE },
		{ "./closed/x", ERR_COMMAND_NOT_EXECUTABLE },
	};
	char path_env[512];
	const char *const envp[] = { path_env, NULL };

	(void)state;
	FOR_EACH_USER(uid)
	{
		char *work = run_make_dir(uid);
		char closed[256];

		write_file(work, "plain", "#!/bin/sh\n", 0644);
		write_file(work, "bad-interpreter", "#!/no/such/sh\n", 0755);
		write_file(work, "binary", "\177ELF\1\1\1", 0755);
		(void)snprintf(closed, sizeof(closed), "%s/closed", work);
		assert_int_equal(mkdir(closed, 0), 0);
		(void)snprintf(path_env, sizeof(path_env), "PATH=%s:/no/such/dir:%s:/usr/bin",
			       closed, work);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			const char *const argv[] = { cases[i].name, NULL };
			struct run run;

			run_argv(uid, work, argv, envp, &run);
			assert_failed(&run, cases[i].kind, "exec");
			assert_non_null(strstr(run.pipe.failure.message, cases[i].name));
			assert_true(run.channel.failed);
		}
		run_remove_dir(work);
	}
}

static void commands_are_found_as_execvp_does(void **state)
{
	char path_env[512];
	const char *const envp[] = { path_env, NULL };
	const char *const argv[] = { "no-shebang", NULL };
	struct run run;

	(void)state;
	FOR_EACH_USER(uid)
	{
		char *work = run_make_dir(uid);

		write_file(work, "no-shebang", "exit 9\n", 0755);
		(void)snprintf(path_env, sizeof(path_env), "PATH=/no/such:%s", work);
		run_argv(uid, work, argv, envp, &run);
		assert_exited(&run, 9);
		/* An empty element is the working directory. */
		(void)snprintf(path_env, sizeof(path_env), "PATH=/no/such:");
		run_argv(uid, work, argv, envp, &run);
		assert_exited(&run, 9);
		run_remove_dir(work);
	}
}

static void vanished_working_directory(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, "true");

		script->options.cwd = "/tmp/vanished\n";
		script_fail(script);
		assert_failed(&script->run, ERR_SETUP_FAILED, "chdir");
		assert_int_equal(script->run.pipe.failure.errnum, ENOENT);
		assert_non_null(strstr(script->run.pipe.failure.message, "'/tmp/vanished\\x0a'"));
		script_free(script);
	}
}

/* ---- what a command starts with ------------------------------------------------------ */

static void R16_everything_is_given_up(void **state)
{
	static const char *const expected[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
		"SigBlk:\t0000000000000000",
		"SigIgn:\t0000000000000000",
	};

	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_run(uid, "grep . /proc/self/status");

		for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
			if (!strstr(script->output, expected[i]))
				fail_msg("no '%s' in %s", expected[i], script->output);
		}
		script_free(script);
		/* The same for pid 1, which anybody may read this much of. */
		script = script_run(uid, "grep . /proc/1/status");
		for (size_t i = 0; i < 7; i++)
			assert_non_null(strstr(script->output, expected[i]));
		script_free(script);
	}
}

static void R16_pid_1_is_out_of_reach(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_run(
			uid, "for f in environ maps mem auxv; do cat /proc/1/$f && exit 1; done\n"
			     "ls -l /proc/1/exe /proc/1/fd/ && exit 2\n"
			     "kill -KILL 1; kill -STOP 1; kill -TERM 1; kill -INT 1\n"
			     "renice -n 5 -p 1 && exit 3\n"
			     "sleep 0.2; exit 0");

		assert_exited(&script->run, 0);
		script_free(script);
	}
}

static void nothing_leaks_into_the_command(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		/* 0, 1, 2, and what ls itself opens. */
		struct script *script =
			script_run(uid, "ls /proc/self/fd | tr '\\n' ' '; env | sort");

		assert_non_null(strstr(script->output, "0 1 2 3 "));
		assert_null(strstr(script->output, "4 "));
		assert_non_null(strstr(script->output, "PATH=/usr/bin:/bin"));
		assert_null(strstr(script->output, "FSBOX"));
		script_free(script);
	}
}

static void session_umask_and_missing_stdio(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, "cut -d' ' -f1,5,6,7 /proc/$$/stat; umask;"
							"readlink /proc/self/fd/0");
		int pid = 0;
		int group = 0;
		int session = 0;
		int tty = -1;

		script->options.umask = 0137;
		script_begin(script);
		script_end(script);
		assert_int_equal(
			sscanf(script->output, "%d %d %d %d", &pid, &group, &session, &tty), 4);
		assert_int_equal(pid, group);
		assert_int_equal(pid, session);
		assert_int_equal(tty, 0);
		assert_non_null(strstr(script->output, "0137\n/dev/null\n"));
		script_free(script);
	}
}

/* ---- how it ends --------------------------------------------------------------------- */

static void B28_nothing_survives_the_command(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(
			uid,
			"for i in 1 2 3 4 5 6 7 8; do setsid sleep 60 & done\n"
			"(trap '' TERM HUP INT; setsid sh -c 'while :; do sleep 0.01; done') &\n"
			"sleep 0.1; echo ready; exit 3");
		int64_t begin = 0;
		struct pollfd closed = { .fd = script->output_fd, .events = POLLIN };

		script_begin(script);
		script_wait_for(script, "ready");
		begin = now_ms();
		run_end(&script->run);
		/* All of them held the pipe: that it is closed shows that they were gone before. */
		assert_int_equal(poll(&closed, 1, 0), 1);
		assert_true(closed.revents & POLLHUP);
		assert_true(now_ms() - begin < 3000);
		assert_exited(&script->run, 3);
		script_free(script);
	}
}

static void orphans_are_reaped(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script =
			script_run(uid, "for i in 1 2 3 4 5; do (true &) ; done; sleep 0.3\n"
					"grep -l '^State:.Z' /proc/[0-9]*/status | wc -l");

		assert_string_equal(script->output, "0\n");
		script_free(script);
	}
}

static void B29_signals_reach_the_command(void **state)
{
	const int signals[] = { SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
				SIGUSR2, SIGALRM, SIGWINCH, SIGABRT, SIGRTMIN };

	(void)state;
	FOR_EACH_USER(uid)
	{
		for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
			char text[256];
			struct script *script = NULL;

			(void)snprintf(
				text, sizeof(text),
				"trap 'echo cleaned; exit 5' %d; echo ready; i=0;"
				"while [ $i -lt 100 ]; do sleep .05; i=$((i+1)); done; echo on",
				signals[i]);
			script = script_new(uid, text);
			script_begin(script);
			script_wait_for(script, "ready");
			assert_int_equal(syscall(SYS_pidfd_send_signal, script->run.pid1_fd,
						 signals[i], NULL, 0),
					 0);
			script_end(script);
			assert_exited(&script->run, 5);
			assert_non_null(strstr(script->output, "cleaned"));
			script_free(script);
		}
	}
}

static void stop_and_continue(void **state)
{
	struct script *script = script_new(geteuid(), "while :; do echo x; sleep 0.05; done");
	struct pollfd readable = { .fd = script->output_fd, .events = POLLIN };
	char drain[4096];

	(void)state;
	script_begin(script);
	script_wait_for(script, "x");
	assert_int_equal(syscall(SYS_pidfd_send_signal, script->run.pid1_fd, SIGTSTP, NULL, 0), 0);
	(void)usleep(300000);
	assert_true(poll(&readable, 1, 0) == 0 || read(script->output_fd, drain, 4096) > 0);
	assert_int_equal(poll(&readable, 1, 300), 0);
	assert_int_equal(syscall(SYS_pidfd_send_signal, script->run.pid1_fd, SIGCONT, NULL, 0), 0);
	assert_int_equal(poll(&readable, 1, 3000), 1);
	assert_int_equal(syscall(SYS_pidfd_send_signal, script->run.pid1_fd, SIGKILL, NULL, 0), 0);
	run_end(&script->run);
	/* Pid 1 killed: nobody can say how the command ended (R24). */
	assert_false(script->run.pipe.exited);
	assert_false(script->run.pipe.failed);
	script_free(script);
}

static void lifeline_ends_the_job(bool socket, const char *text, int expected_code)
{
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, text);
		int64_t begin = 0;
		int fds[2];

		if (socket)
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
					 0);
		else
			assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		script->options.lifeline = fds[0];
		script_begin(script);
		(void)close(fds[0]);
		script_wait_for(script, "ready");
		assert_int_equal(write(fds[1], "ignored", 7), 7);
		begin = now_ms();
		(void)close(fds[1]);
		script_end(script);
		assert_true(now_ms() - begin < 2000);
		if (expected_code >= 0)
			assert_exited(&script->run, expected_code);
		else
			assert_signaled(&script->run, SIGKILL);
		script_free(script);
	}
}

static void lifeline_hang_up(void **state)
{
	(void)state;
	lifeline_ends_the_job(false, "trap 'exit 6' TERM; echo ready; while :; do sleep 0.02; done",
			      6);
	lifeline_ends_the_job(false, "trap '' TERM; echo ready; while :; do sleep 0.02; done", -1);
	lifeline_ends_the_job(true, "trap '' TERM; echo ready; kill -STOP $$; sleep 9", -1);
}

static void detached_jobs_have_no_lifeline(void **state)
{
	struct script *script = script_new(geteuid(), "echo ready; sleep 0.5; exit 4");
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	script->options.lifeline = fds[0];
	script->options.detached = true;
	script_begin(script);
	script_wait_for(script, "ready");
	(void)close(fds[0]);
	(void)close(fds[1]);
	script_end(script);
	assert_exited(&script->run, 4);
	script_free(script);
}

static void broker_death_does_not_end_the_job(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, "echo ready; sleep 0.3; exit 7");

		script_begin(script);
		script_wait_for(script, "ready");
		(void)close(script->run.channel_fd);
		script->run.channel_fd = -1;
		script_end(script);
		assert_true(script->run.pipe.exited);
		assert_int_equal(script->run.pipe.record.code, 7);
		script_free(script);
	}
}

static void fsboxd_death_does_not_end_the_job(void **state)
{
	struct script *script = script_new(geteuid(), "echo ready; sleep 0.3; exit 8");

	(void)state;
	script_begin(script);
	script_wait_for(script, "ready");
	(void)close(script->run.report_fd);
	script->run.report_fd = -1;
	/* The engine's outer process dies with fsboxd in some configurations. */
	assert_int_equal(kill(script->run.leader, SIGKILL), 0);
	script_end(script);
	assert_true(script->run.channel.exited);
	assert_int_equal(script->run.channel.record.code, 8);
	script_free(script);
}

/* ---- what cannot be killed ----------------------------------------------------------- */

#define FUSE_BUFFER_BYTES 65536

/* A file system that takes requests and never answers: whoever asked cannot even be killed. */
static _Noreturn void serve_nothing(int fd)
{
	static union {
		struct fuse_in_header header;
		char bytes[FUSE_BUFFER_BYTES * 2];
	} request;
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} answer = { .init = { .major = FUSE_KERNEL_VERSION,
			       .minor = FUSE_KERNEL_MINOR_VERSION,
			       .max_write = 4096 } };

	for (;;) {
		if (read(fd, &request, sizeof(request)) < 0)
			_exit(1);
		if (request.header.opcode != FUSE_INIT)
			continue;
		answer.header.len = sizeof(answer);
		answer.header.unique = request.header.unique;
		if (write(fd, &answer, sizeof(answer)) < 0)
			_exit(1);
	}
}

static void R24_leftovers_are_not_waited_for(void **state)
{
	struct script *script = NULL;
	int64_t begin = 0;
	char options[128];
	char hang[256];
	pid_t server = 0;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	(void)state;
	if (geteuid() != 0 || fd < 0)
		skip();
	script = script_new(1234567, "stat hang/x >/dev/null & sleep 0.5; exit 3");
	(void)snprintf(hang, sizeof(hang), "%s/hang", script->work);
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	assert_int_equal(mkdir(hang, 0755), 0);
	assert_int_equal(mount("fsbox-test", hang, "fuse", MS_NOSUID | MS_NODEV, options), 0);
	server = fork();
	if (server == 0) {
		(void)close(script->options.stdio[1]);
		serve_nothing(fd);
	}
	(void)close(fd); /* when the server goes, everything it kept waiting fails */
	begin = now_ms();
	script_begin(script);
	run_until_over(&script->run);
	assert_in_range(now_ms() - begin, LIMIT_TEARDOWN_MS, LIMIT_TEARDOWN_MS + 4000);
	assert_exited(&script->run, 3);
	assert_int_equal(kill(server, SIGKILL), 0);
	assert_int_equal(waitpid(server, NULL, 0), server);
	script_end(script);
	assert_int_equal(umount2(hang, MNT_DETACH), 0);
	script_free(script);
}

static void nothing_runs_when_one_side_is_gone_before(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, "echo ran");

		script->options.broker_gone = true;
		script_fail(script);
		assert_failed(&script->run, ERR_SYSTEM, "start");
		assert_string_equal(script->output, "");
		script_free(script);

		script = script_new(uid, "echo ran");
		script->options.fsboxd_gone = true;
		script_fail(script);
		assert_true(script->run.channel.failed);
		assert_string_equal(script->run.channel.failure.stage, "go");
		assert_string_equal(script->output, "");
		script_free(script);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B31_statuses_are_exact),
		cmocka_unit_test(usage_and_wall_time_are_told),
		cmocka_unit_test(B31_missing_and_not_executable),
		cmocka_unit_test(commands_are_found_as_execvp_does),
		cmocka_unit_test(vanished_working_directory),
		cmocka_unit_test(R16_everything_is_given_up),
		cmocka_unit_test(R16_pid_1_is_out_of_reach),
		cmocka_unit_test(nothing_leaks_into_the_command),
		cmocka_unit_test(session_umask_and_missing_stdio),
		cmocka_unit_test(B28_nothing_survives_the_command),
		cmocka_unit_test(orphans_are_reaped),
		cmocka_unit_test(B29_signals_reach_the_command),
		cmocka_unit_test(stop_and_continue),
		cmocka_unit_test(lifeline_hang_up),
		cmocka_unit_test(detached_jobs_have_no_lifeline),
		cmocka_unit_test(broker_death_does_not_end_the_job),
		cmocka_unit_test(fsboxd_death_does_not_end_the_job),
		cmocka_unit_test(R24_leftovers_are_not_waited_for),
		cmocka_unit_test(nothing_runs_when_one_side_is_gone_before),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
