/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"

/* Room for the descriptors of a child while they are put in order. */
#define KEEP_MAX 16

int pidfd_open_pid(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int pidfd_signal(int pidfd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

bool pidfd_alive(int pidfd)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) == 0;
}

void child_reset_signals(void)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int signo = 1; signo < NSIG; signo++)
		(void)sigaction(signo, &standard, NULL); /* KILL, STOP and libc's own refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What fsboxd handles is the standard again by CLONE_CLEAR_SIGHAND; it ignores nothing but SIGPIPE. */
static void reset_signals(void)
{
	sigset_t none;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

#define STACK_NEAR 16384
#define STACK_FAR (1 << 20)

__attribute__((noinline)) static void wipe_stack_near(void)
{
	char below[STACK_NEAR];

	explicit_bzero(below, sizeof(below));
}

/*
 * What lies below on the stack are calls that are over: messages, paths, of whatever users. A child must
 * not have it (R15). Near us it is overwritten; what is farther is given back, and reads as zeroes.
 */
__attribute__((noinline)) static void forget_stack(void)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t end = (here - STACK_NEAR / 2) & ~(page - 1);

	wipe_stack_near();
	(void)madvise((void *)(end - STACK_FAR), STACK_FAR, MADV_DONTNEED);
}

/* Like fork(2), with a pidfd for the parent. */
static pid_t fork_with_pidfd(uint64_t flags, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | flags,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int child_start(struct children *children, struct child *child, child_main_fn *main, void *main_arg,
		child_exit_fn *on_exit, void *arg, struct error *err)
{
	return child_clone(children, child, 0, main, main_arg, on_exit, arg, err);
}

int child_clone(struct children *children, struct child *child, uint64_t flags, child_main_fn *main,
		void *main_arg, child_exit_fn *on_exit, void *arg, struct error *err)
{
	int pidfd = -1;
	pid_t pid = fork_with_pidfd(flags, &pidfd);

	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "clone3");
	if (pid == 0) {
		forget_stack();
		reset_signals();
		_exit(main(main_arg));
	}
	*child = (struct child){
		.pid = pid,
		.pidfd = pidfd,
		.on_exit = on_exit,
		.arg = arg,
		.next = children->first,
	};
	children->first = child;
	children->count++;
	return 0;
}

void child_signal(const struct child *child, int signo)
{
	if (child->pid > 0)
		(void)pidfd_signal(child->pidfd, signo);
}

static void child_unlink(struct children *children, struct child *child)
{
	struct child **link = &children->first;

	while (*link && *link != child)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = child->next;
	children->count--;
	(void)close(child->pidfd);
	child->pidfd = -1;
	child->pid = 0;
	child->next = NULL;
}

void child_forget(struct children *children, struct child *child)
{
	if (child->pid > 0)
		child_unlink(children, child);
}

void child_move(struct children *children, struct child *from, struct child *to,
		child_exit_fn *on_exit, void *arg)
{
	struct child **link = &children->first;

	while (*link && *link != from)
		link = &(*link)->next;
	*to = *from;
	to->on_exit = on_exit;
	to->arg = arg;
	if (*link)
		*link = to;
	*from = (struct child)CHILD_INIT;
}

static struct child *child_of_pid(const struct children *children, pid_t pid)
{
	for (struct child *child = children->first; child; child = child->next)
		if (child->pid == pid)
			return child;
	return NULL;
}

void children_reap(struct children *children)
{
	int status = 0;
	pid_t pid = 0;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct child *child = child_of_pid(children, pid);

		if (!child)
			continue;
		child_unlink(children, child);
		if (child->on_exit)
			child->on_exit(status, child->arg);
	}
}

int child_pipe(int *ret_read, int *ret_write, enum child_pipe ours, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	*ret_read = ends[0];
	*ret_write = ends[1];
	if (fcntl(ours == CHILD_PIPE_READ_OURS ? ends[0] : ends[1], F_SETFL, O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");
	return 0;
}

/* Copies above the numbers that will be given out, so that none overwrites another. */
static int lift_fds(const int *keep, size_t count, int *lifted, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		lifted[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, CHILD_FIRST_FD + KEEP_MAX);
		if (lifted[i] < 0)
			return error_set(err, ERR_SYSTEM, errno, "dup");
	}
	return 0;
}

static int arrange_standard(bool keep_stderr, struct error *err)
{
	AUTO(auto_close) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int end = keep_stderr ? STDERR_FILENO : CHILD_FIRST_FD;

	if (null_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /dev/null");
	for (int fd = 0; fd < end; fd++)
		if (dup2(null_fd, fd) < 0)
			return error_set(err, ERR_SYSTEM, errno, "dup2");
	if (null_fd < CHILD_FIRST_FD)
		(void)steal_fd(&null_fd);
	return 0;
}

int child_arrange_fds(const int *keep, size_t count, bool keep_stderr, struct error *err)
{
	int lifted[KEEP_MAX];
	int r = 0;

	if (count > KEEP_MAX)
		return error_set(err, ERR_SYSTEM, 0, "too many descriptors to keep");
	if ((r = lift_fds(keep, count, lifted, err)) < 0)
		return r;
	if ((r = arrange_standard(keep_stderr, err)) < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (dup2(lifted[i], CHILD_FIRST_FD + (int)i) < 0)
			return error_set(err, ERR_SYSTEM, errno, "dup2");
	if (syscall(SYS_close_range, CHILD_FIRST_FD + (unsigned)count, ~0u, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "close_range");
	return 0;
}
