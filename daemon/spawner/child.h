/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_CHILD_H
#define FSBOX_DAEMON_SPAWNER_CHILD_H

/*
 * Processes of fsboxd: started by clone3 with a pidfd, signalled through it, reaped when SIGCHLD
 * says so. fsboxd never waits for one.
 *
 * fsboxd is a subreaper: what its children leave behind comes to it and is reaped here as well,
 * without further notice.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* @status  as waitpid(2) gives it */
typedef void child_exit_fn(int status, void *arg);

/* Runs in the child; its result is the exit status. */
typedef int child_main_fn(void *arg);

/*
 * @pid    valid until reaped; 0: none
 * @pidfd  owned
 */
struct child {
	pid_t pid;
	int pidfd;
	child_exit_fn *on_exit;
	void *arg;
	struct child *next; /* children.first */
};

#define CHILD_INIT           \
	{                    \
		.pidfd = -1, \
	}

struct children {
	struct child *first;
	size_t count;
};

/* At the start of fsboxd: no signal is ignored, whatever whoever started it does, nor blocked. */
void child_reset_signals(void);

/*
 * Start a process that runs MAIN(MAIN_ARG). In it: no signal is blocked or handled, SIGPIPE has its
 * default action; every descriptor is still there (close-on-exec).
 *
 * @child    the caller's, stays linked until ON_EXIT was called or child_forget()
 * @on_exit  called from children_reap() after the process is gone; the pidfd is closed by then
 *
 * Fails with ERR_SYSTEM.
 */
int child_start(struct children *children, struct child *child, child_main_fn *main, void *main_arg,
		child_exit_fn *on_exit, void *arg, struct error *err);

/* The same, with namespaces of clone3(2) for the child: CLONE_NEWPID or 0. */
int child_clone(struct children *children, struct child *child, uint64_t flags, child_main_fn *main,
		void *main_arg, child_exit_fn *on_exit, void *arg, struct error *err);

/* Send a signal; harmless when there is no process any more. */
void child_signal(const struct child *child, int signo);

/* No longer interested: the process is reaped silently when it ends. */
void child_forget(struct children *children, struct child *child);

/* FROM's process becomes TO's, with another reaction to its end. FROM is empty afterwards. */
void child_move(struct children *children, struct child *from, struct child *to,
		child_exit_fn *on_exit, void *arg);

/* Reap whatever has ended. */
void children_reap(struct children *children);

/*
 * For use in a child before exec or work on behalf of somebody: descriptors KEEP[0], KEEP[1] ...
 * become FIRST, FIRST + 1 ... without close-on-exec, everything above is closed, and what lies below
 * FIRST (the standard three) becomes /dev/null but for stderr when KEEP_STDERR.
 *
 * Fails with ERR_SYSTEM; the child should then exit.
 */
#define CHILD_FIRST_FD 3
int child_arrange_fds(const int *keep, size_t count, bool keep_stderr, struct error *err);

/*
 * A pipe to or from a child, whose end that is ours is non-blocking. Fails with ERR_SYSTEM; what was made
 * is in RET_*.
 */
enum child_pipe { CHILD_PIPE_READ_OURS, CHILD_PIPE_WRITE_OURS };
int child_pipe(int *ret_read, int *ret_write, enum child_pipe ours, struct error *err);

/* pidfd_open(2), pidfd_send_signal(2): -1 with errno on failure. */
int pidfd_open_pid(pid_t pid);
int pidfd_signal(int pidfd, int signo);

/* Whether the process still runs (a zombie does not). */
bool pidfd_alive(int pidfd);

#endif
