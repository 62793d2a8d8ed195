/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/command.h"
#include "daemon/spawner/descriptors.h"
#include "daemon/spawner/grantcheck.h"
#include "daemon/spawner/initconfine.h"
#include "daemon/spawner/listeners.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/sealed.h"

#define ARGS_FILE_BYTES (sizeof(struct args_header) + LIMIT_PATH_BYTES + 1 + LIMIT_ARGS_BYTES)
#define START_FD_COUNT 5

/* How often to look again while killing, should a SIGCHLD be missed. */
#define KILL_POLL_MS 50

/*
 * @signal_fd     everything that is blocked, that is all but faults
 * @lifeline_fd   -1: none
 * @args          mapping of the args file, until exec succeeded; then NULL
 * @started_ms    when exec succeeded
 * @kill_at_ms    when everything is killed; 0: no such time
 */
struct init {
	int report_fd;
	int go_fd;
	int channel_fd;
	int guard_fd;
	int signal_fd;
	int null_fd;
	int lifeline_fd;
	struct result_to result;
	const void *args;
	size_t args_bytes;
	struct command command;
	char **argv;
	char **envp;
	pid_t pid;
	int64_t started_ms;
	int64_t kill_at_ms;
	const char *stage;
};

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/*
 * End, after the last report. What the broker sent and nobody read would reset the connection, and
 * the broker would see that before it sees the report.
 */
static _Noreturn void init_exit(const struct init *init, int status)
{
	char byte = 0;

	while (recv(init->channel_fd, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
	_exit(status);
}

/* Nothing was run and nothing is left: say so to both sides and end. */
static _Noreturn void init_fail(const struct init *init, const struct error *err)
{
	struct report_message message;

	report_begin(&message, REPORT_FAILED);
	failure_set(&message.u.failure, err, init->stage);
	result_failed(&init->result, err->kind);
	report_send(init->channel_fd, &message, -1);
	(void)report_write(init->report_fd, &message, NULL);
	init_exit(init, 125);
}

/* ---- before the first byte of the client's ------------------------------------------- */

/*
 * Every signal that can be blocked is, but those that a fault of our own raises, and read from a
 * descriptor. Unblocked ones would be discarded: pid 1 has no default actions.
 */
static int init_open_signals(struct init *init, struct error *err)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	sigset_t blocked;

	(void)sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		(void)sigdelset(&blocked, faults[i]);
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
	    sigprocmask(SIG_SETMASK, &blocked, NULL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "block signals");
	init->signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init->signal_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "signalfd");
	return 0;
}

/* The standard descriptors of pid 1 itself: nothing of the host's. */
static int init_open_null(struct init *init, struct error *err)
{
	init->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (init->null_fd < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "open /dev/null");
	for (int fd = 0; fd < 3; fd++) {
		if (dup2(init->null_fd, fd) < 0)
			return error_set(err, ERR_SETUP_FAILED, errno, "dup2");
	}
	return 0;
}

/* What pid 1 is, whatever its job. */
static int init_settle(struct init *init, struct error *err)
{
	int r = 0;

	init->stage = "init";
	/* kill(-1) means "everything of this user" in any other process. */
	if (getpid() != 1)
		return error_set(err, ERR_SETUP_FAILED, 0, "not pid 1 of a new namespace");
	/* Jobs outlive the engine's outer process and fsboxd. */
	(void)prctl(PR_SET_PDEATHSIG, 0L, 0L, 0L, 0L);
	(void)prctl(PR_SET_NAME, "fsbox-init", 0L, 0L, 0L);
	(void)setsid(); /* also gives us the process group 1, which the filter names */
	r = init_open_signals(init, err);
	return r < 0 ? r : init_open_null(init, err);
}

static int init_listen(struct init *init, const struct init_input *input, struct error *err)
{
	struct setup_header setup;

	memcpy(&setup, input->setup, sizeof(setup));
	init->stage = "network";
	return listeners_hand_over(input->egress_fd, &setup, err);
}

static int init_prepare(struct init *init, const struct init_input *input, struct error *err)
{
	AUTO(auto_close) int dev_fd = input->dev_fd;
	AUTO(auto_close) int ruleset_fd = input->ruleset_fd;
	int r = init_settle(init, err);

	if (r < 0 || (r = init_listen(init, input, err)) < 0)
		return r;
	return init_confine_setup(input->setup, dev_fd, ruleset_fd, &init->stage, err);
}

static int init_announce(struct init *init, struct error *err)
{
	struct report_message message;
	int r = 0;

	init->stage = "go";
	report_begin(&message, REPORT_PID1_UP);
	r = report_write(init->report_fd, &message, err);
	if (r < 0)
		return r;
	r = report_wait_go(init->go_fd, err);
	close_fd(&init->go_fd);
	return r;
}

/* ---- what the client sent ------------------------------------------------------------ */

struct received {
	struct start_message start;
	int fds[START_FD_COUNT];
	size_t fd_count;
};

/* One message and its descriptors; on failure the process ends, and they with it. */
static int receive_start(int channel_fd, struct received *ret, struct error *err)
{
	struct pollfd readable = { .fd = channel_fd, .events = POLLIN };
	struct iovec iov = { .iov_base = &ret->start, .iov_len = sizeof(ret->start) };
	union {
		char bytes[CMSG_SPACE(START_FD_COUNT * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      /* Not CMSG_SPACE: the kernel would use the padding for a sixth. */
			      .msg_controllen = CMSG_LEN(START_FD_COUNT * sizeof(int)) };
	ssize_t n = 0;
	int r = 0;

	if (poll(&readable, 1, LIMIT_SETUP_MS) == 0)
		return error_set(err, ERR_TIMEOUT, 0, "the broker sent no start message");
	n = recvmsg(channel_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return error_set(err, ERR_SYSTEM, errno, "receive the start message");
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		ret->fd_count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret->fds, CMSG_DATA(cmsg), ret->fd_count * sizeof(int));
	}
	if (n == 0)
		return error_set(err, ERR_SYSTEM, 0, "the broker is gone");
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return error_set(err, ERR_BAD_FRAME, 0, "the start message is too long");
	r = start_message_check(&ret->start, (size_t)n, ret->fd_count, err);
	if (r < 0)
		error_prefix(err, "from the broker");
	return r;
}

static int init_take_args(struct init *init, int args_fd, struct error *err)
{
	int r = 0;

	init->stage = "args";
	r = sealed_map(args_fd, ARGS_FILE_BYTES, &init->args, &init->args_bytes, err);
	if (r < 0)
		return r;
	r = args_check(init->args, init->args_bytes, err);
	if (r < 0)
		return r;
	r = args_split(init->args, &init->command.cwd, &init->argv, &init->envp, err);
	if (r < 0)
		return r;
	init->command.argv = init->argv;
	init->command.envp = init->envp;
	return 0;
}

/* Sort the received descriptors into their places, each after its check (R7). */
static int init_take_descriptors(struct init *init, const struct received *received, bool net_host,
				 struct error *err)
{
	static const char *const names[] = { "stdin", "stdout", "stderr", "lifeline" };
	const int ours[] = { init->channel_fd, init->report_fd,
			     received->fds[received->fd_count - 1] /* args, the highest bit */ };
	struct descriptor_own own[ARRAY_SIZE(ours)];
	size_t next = 0;
	int r = 0;

	init->stage = "descriptors";
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		r = descriptor_own_read(ours[i], &own[i], err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool lifeline = i == ARRAY_SIZE(names) - 1;
		int fd = 0;

		if (!(received->start.fds & (1u << i)))
			continue;
		fd = received->fds[next++];
		r = descriptor_check(fd, lifeline ? DESCRIPTOR_LIFELINE : DESCRIPTOR_STDIO, own,
				     ARRAY_SIZE(own), net_host, err);
		if (r < 0) {
			error_prefix(err, "%s", names[i]);
			return r;
		}
		if (lifeline)
			init->lifeline_fd = fd;
		else
			init->command.stdio[i] = fd;
	}
	return 0;
}

static int init_receive(struct init *init, const struct init_input *input, struct error *err)
{
	struct received received = { .fd_count = 0 };
	struct setup_header setup;
	int r = 0;

	memcpy(&setup, input->setup, sizeof(setup));
	init->stage = "start";
	for (int i = 0; i < 3; i++)
		init->command.stdio[i] = init->null_fd;
	r = receive_start(init->channel_fd, &received, err);
	if (r < 0)
		return r;
	init->command.umask = received.start.umask;
	r = init_take_descriptors(init, &received, setup.flags & SETUP_NET_HOST, err);
	if (r < 0)
		return r;
	if (setup.flags & SETUP_DETACHED)
		close_fd(&init->lifeline_fd);
	r = init_take_args(init, received.fds[received.fd_count - 1], err);
	(void)close(received.fds[received.fd_count - 1]);
	if (r < 0 || !(setup.flags & SETUP_GRANTED))
		return r;
	init->stage = "grant";
	return grantcheck(&setup.grant, init->args, &init->command, init->null_fd,
			  &init->command.program, err);
}

static void init_tell_started(const struct init *init)
{
	struct report_message message;
	AUTO(auto_close) int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	report_begin(&message, REPORT_STARTED);
	(void)report_write(init->report_fd, &message, NULL); /* fsboxd may be gone */
	report_send(init->channel_fd, &message, pidfd);
	/* Last: the first touch of a page takes longer than all of this. */
	result_started(&init->result, (uint64_t)init->started_ms);
}

static int init_start(struct init *init, struct error *err)
{
	int r = command_start(&init->command, &init->pid, &init->stage, err);

	if (r < 0)
		return r;
	init->started_ms = now_ms();
	init_tell_started(init);
	/* Ours would keep the client's pipes open for ever. */
	for (int i = 0; i < 3; i++) {
		if (init->command.stdio[i] != init->null_fd)
			close_fd(&init->command.stdio[i]);
	}
	/* The client's arguments and environment are the command's alone from now on. */
	(void)munmap((void *)(uintptr_t)init->args, init->args_bytes);
	init->args = NULL;
	free(init->argv);
	free(init->envp);
	return 0;
}

/* ---- while it runs ------------------------------------------------------------------- */

static void forward(const struct init *init, int signo)
{
	(void)kill(-init->pid, signo == SIGTSTP ? SIGSTOP : signo);
}

static void discard_signals(const struct init *init)
{
	struct signalfd_siginfo info;

	while (read(init->signal_fd, &info, sizeof(info)) > 0)
		;
}

/* Until nobody is left, or what is left cannot be killed (R24). */
static void kill_everything(const struct init *init)
{
	const int64_t give_up_at = now_ms() + LIMIT_TEARDOWN_MS;
	struct pollfd readable = { .fd = init->signal_fd, .events = POLLIN };
	pid_t pid = 0;

	for (;;) {
		do
			pid = waitpid(-1, NULL, WNOHANG | __WALL);
		while (pid > 0);
		/* All that is left in here are our children, or children of those. */
		if ((pid < 0 && errno == ECHILD) || now_ms() >= give_up_at)
			return;
		/* Looks at every process of the host: not when there is nobody. */
		(void)kill(-1, SIGKILL);
		(void)poll(&readable, 1, KILL_POLL_MS);
		discard_signals(init);
	}
}

static uint64_t timeval_ms(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

/* The command ended with STATUS: nothing else may be left when that is told. */
static _Noreturn void init_end(const struct init *init, int status)
{
	struct report_message message;
	struct exit_record *record = &message.u.exited;
	struct rusage usage = { 0 };
	int64_t ended_ms = now_ms();

	kill_everything(init);
	/* Whatever it planted is there by now. */
	if (init->guard_fd >= 0)
		(void)close(init->guard_fd);
	(void)getrusage(RUSAGE_CHILDREN, &usage);

	report_begin(&message, REPORT_EXITED);
	record->wall_ms = (uint64_t)(ended_ms - init->started_ms);
	record->user_ms = timeval_ms(usage.ru_utime);
	record->sys_ms = timeval_ms(usage.ru_stime);
	record->max_rss_kib = (uint64_t)usage.ru_maxrss;
	if (WIFSIGNALED(status)) {
		record->reason = EXIT_SIGNALED;
		record->signal = WTERMSIG(status);
		record->core_dumped = WCOREDUMP(status) ? 1 : 0;
	} else {
		record->reason = EXIT_EXITED;
		record->code = WEXITSTATUS(status);
	}
	/* First where it stays: the others may be gone, or go with it. */
	result_exited(&init->result, record);
	(void)report_write(init->report_fd, &message, NULL);
	/* How this process and its namespaces go is long work inside the kernel: fsboxd first, if it waits here. */
	(void)sched_yield();
	report_send(init->channel_fd, &message, -1);
	init_exit(init, 0);
}

static void init_reap(struct init *init)
{
	int status = 0;
	pid_t pid = 0;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (pid != init->pid)
			continue; /* an orphan, somebody's helper */
		init_end(init, status);
	}
}

static void init_on_signals(struct init *init)
{
	struct signalfd_siginfo info;
	bool reap = false;

	while (read(init->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap = true;
			continue;
		}
		/* By a process, not by the kernel; of no number here, so from outside. */
		if (info.ssi_code > 0 || info.ssi_pid != 0)
			continue;
		forward(init, (int)info.ssi_signo);
	}
	if (reap)
		init_reap(init);
}

/* The client vanished: everybody may clean up for a moment, then all is over. */
static void init_on_lifeline(struct init *init)
{
	close_fd(&init->lifeline_fd);
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	init->kill_at_ms = now_ms() + LIMIT_LIFELINE_MS;
}

static int init_timeout(const struct init *init)
{
	int64_t left = 0;

	if (init->kill_at_ms == 0)
		return -1;
	left = init->kill_at_ms - now_ms();
	return left > 0 ? (int)left : 0;
}

static _Noreturn void init_serve(struct init *init)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = init->signal_fd, .events = POLLIN },
			/* Nobody reads it: data there is not asked for, only its end. */
			{ .fd = init->lifeline_fd, .events = POLLRDHUP },
		};

		if (poll(fds, ARRAY_SIZE(fds), init_timeout(init)) < 0)
			continue; /* EINTR: nothing is handled, so only being stopped does that */
		if (fds[0].revents)
			init_on_signals(init);
		if (fds[1].revents)
			init_on_lifeline(init);
		if (init->kill_at_ms != 0 && now_ms() >= init->kill_at_ms) {
			init->kill_at_ms = 0;
			(void)kill(-1, SIGKILL); /* the rest follows from SIGCHLD */
		}
	}
}

static struct init init_for(const struct init_input *input)
{
	return (struct init){
		.report_fd = input->report_fd,
		.go_fd = input->go_fd,
		.channel_fd = input->channel_fd,
		.guard_fd = input->guard_fd,
		.signal_fd = -1,
		.null_fd = -1,
		.lifeline_fd = -1,
		.result = input->result,
		.command = { .program = -1 },
	};
}

/* What the job is told by, and the job itself. */
static _Noreturn void init_go_on(struct init *init, const struct init_input *input, int r,
				 struct error *err)
{
	if (r == 0 && (r = init_announce(init, err)) == 0 &&
	    (r = init_receive(init, input, err)) == 0)
		r = init_start(init, err);
	if (r < 0)
		init_fail(init, err);
	init_serve(init);
}

_Noreturn void init_run(const struct init_input *input)
{
	struct init init = init_for(input);
	struct error err = ERROR_INIT;
	int r = init_prepare(&init, input, &err);

	init_go_on(&init, input, r, &err);
}

int init_bear(const void *setup, int dev_fd, int ruleset_fd, struct init_born *ret_born,
	      const char **ret_stage, struct error *err)
{
	static const struct init_input nothing = {
		-1, -1, -1, -1, -1, -1, -1, { NULL, -1 }, NULL, 0
	};
	struct init init = init_for(&nothing);
	int r = init_settle(&init, err);

	if (r == 0)
		r = init_confine_setup(setup, dev_fd, ruleset_fd, &init.stage, err);
	*ret_stage = init.stage;
	*ret_born = (struct init_born){ init.signal_fd, init.null_fd };
	return r;
}

_Noreturn void init_run_born(const struct init_born *born, const struct init_input *input)
{
	struct init init = init_for(input);
	struct error err = ERROR_INIT;
	int r = 0;

	init.signal_fd = born->signal_fd;
	init.null_fd = born->null_fd;
	/* Meant for what waited here, whoever sent it: no job has been signalled yet. */
	discard_signals(&init);
	r = init_listen(&init, input, &err);
	init_go_on(&init, input, r, &err);
}
