/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobpid1.h"

#include <signal.h>
#include <stdbool.h>

#include "common/scope.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/procfs.h"

/* Processes below the leader that are looked at; bwrap has one. */
#define CHILDREN_LOOKED_AT 16

/*
 * A descriptor of PID if that is a child of the leader which can only ever be the job's user: a
 * leader in the hands of its user must not make us signal anybody else. *ret_init: it is pid 1 of a
 * pid namespace of its own, and can gain no privileges any more.
 */
static int open_descendant(const struct job *job, pid_t pid, bool *ret_init)
{
	AUTO(auto_close) int pidfd = pidfd_open_pid(pid);
	AUTO(auto_close) int proc_fd = -1;
	struct proc_status status;

	if (pidfd < 0)
		return -1;
	proc_fd = proc_open(pid);
	if (proc_fd < 0 || proc_status_read(proc_fd, &status, NULL) < 0 ||
	    status.parent != job->leader.pid)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(status.uids); i++)
		if (status.uids[i] != job->identity.uid)
			return -1;

	/* Alive now, so it was this process that we read about. */
	if (!pidfd_alive(pidfd))
		return -1;
	*ret_init = status.no_new_privs && status.ns_depth > 1 && status.ns_pid == 1;
	return steal_fd(&pidfd);
}

void jobpid1_kill_children(const struct job *job)
{
	pid_t children[CHILDREN_LOOKED_AT];
	size_t count = proc_children(job->leader.pid, children, CHILDREN_LOOKED_AT);

	for (size_t i = 0; i < count; i++) {
		bool is_init = false;
		AUTO(auto_close) int pidfd = open_descendant(job, children[i], &is_init);

		if (pidfd >= 0)
			(void)pidfd_signal(pidfd, SIGKILL);
	}
}

int jobpid1_find(const struct job *job, pid_t *ret_pid, int *ret_pidfd, struct error *err)
{
	pid_t children[CHILDREN_LOOKED_AT];
	size_t count = proc_children(job->leader.pid, children, CHILDREN_LOOKED_AT);

	for (size_t i = 0; i < count; i++) {
		bool is_init = false;
		AUTO(auto_close) int pidfd = open_descendant(job, children[i], &is_init);

		if (pidfd < 0 || !is_init)
			continue;
		*ret_pid = children[i];
		*ret_pidfd = steal_fd(&pidfd);
		return 0;
	}
	return error_set(err, ERR_SETUP_FAILED, 0, "the job's init is not below its engine");
}
