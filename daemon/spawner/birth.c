/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/birth.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/procfs.h"

#define PIDFS_MAGIC 0x50494446 /* linux/magic.h of 6.9 */

static bool has_own_inode(int pidfd)
{
	struct statfs about;

	return fstatfs(pidfd, &about) == 0 && about.f_type == PIDFS_MAGIC;
}

int birth_read(pid_t pid, int pidfd, struct birth *ret_birth, struct error *err)
{
	struct birth birth = { 0 };
	AUTO(auto_close) int proc_fd = -1;
	struct stat st;
	int r = 0;

	/* The inode of another process, but never twice the same. */
	if (has_own_inode(pidfd) && fstat(pidfd, &st) == 0 && st.st_ino != 0) {
		ret_birth->pidfs_ino = st.st_ino;
		ret_birth->start_time = 0;
		return 0;
	}
	proc_fd = proc_open(pid);
	if (proc_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "look at process %d", (int)pid);
	r = proc_start_time(proc_fd, &birth.start_time, err);
	if (r < 0)
		return r;
	*ret_birth = birth;
	return 0;
}

int birth_open(pid_t pid, const struct birth *birth)
{
	AUTO(auto_close) int pidfd = pid > 1 ? pidfd_open_pid(pid) : -1;
	struct birth found;

	if (pidfd < 0 || birth_read(pid, pidfd, &found, NULL) < 0 || !pidfd_alive(pidfd) ||
	    found.pidfs_ino != birth->pidfs_ino || found.start_time != birth->start_time) {
		errno = ESRCH;
		return -1;
	}
	return steal_fd(&pidfd);
}
