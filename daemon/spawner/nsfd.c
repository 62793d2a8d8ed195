/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/nsfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/scope.h"

/* linux/pidfd.h of 6.11 */
static const struct {
	const char *name;
	unsigned long request;
} kinds[] = {
	[NSFD_MOUNT] = { "mnt", _IO(0xFF, 3) }, [NSFD_NET] = { "net", _IO(0xFF, 4) },
	[NSFD_USER] = { "user", _IO(0xFF, 9) }, [NSFD_IPC] = { "ipc", _IO(0xFF, 2) },
	[NSFD_UTS] = { "uts", _IO(0xFF, 10) },  [NSFD_CGROUP] = { "cgroup", _IO(0xFF, 1) },
};

int nsfd_open(int pidfd, pid_t pid, enum nsfd_kind kind)
{
	char path[64];
	int fd = ioctl(pidfd, kinds[kind].request, 0);

	if (fd >= 0 || (errno != ENOTTY && errno != EINVAL))
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[kind].name);
	return open(path, O_RDONLY | O_CLOEXEC);
}
