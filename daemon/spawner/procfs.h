/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PROCFS_H
#define FSBOX_DAEMON_SPAWNER_PROCFS_H

/*
 * What /proc says about a process, as far as fsboxd asks.
 *
 * A directory descriptor of /proc/PID belongs to one process for ever: once that process is gone,
 * reading below it fails instead of telling of another process with the same number. Callers open
 * the directory, then make sure by the pidfd that the process is still there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/*
 * From /proc/PID/status.
 *
 * @uids         real, effective, saved, for files
 * @ns_depth     in how many nested pid namespaces below ours it lives, ours counted: 1 is ours
 * @ns_pid       its number in the innermost
 */
struct proc_status {
	pid_t parent;
	uid_t uids[4];
	bool no_new_privs;
	uint32_t seccomp; /* 0: none */
	uint32_t ns_depth;
	pid_t ns_pid;
};

/* O_PATH directory of /proc/PID, or -1 with errno. */
int proc_open(pid_t pid);

/*
 * Read the file NAME below PROC_FD into BUFFER, terminated; at most SIZE - 1 bytes. Returns the
 * length or -1 with errno.
 */
ssize_t proc_read(int proc_fd, const char *name, char *buffer, size_t size);

/* The text of a status or stat file to values. False when something that is needed is missing. */
bool proc_status_parse(const char *text, struct proc_status *ret_status);
bool proc_stat_parse(const char *text, pid_t *ret_parent, uint64_t *ret_start_time);

int proc_status_read(int proc_fd, struct proc_status *ret_status, struct error *err);
int proc_start_time(int proc_fd, uint64_t *ret_start_time, struct error *err);

/*
 * The children of PID's first thread; at most CAPACITY of them, returns how many. Where the kernel
 * has no list of children all of /proc is looked through.
 */
size_t proc_children(pid_t pid, pid_t *ret_children, size_t capacity);

#endif
