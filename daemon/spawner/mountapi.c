/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mountapi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"

int mountapi_open(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

int mountapi_new(const char *type, const char *const settings[], uint64_t attributes)
{
	AUTO(auto_close) int fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (size_t i = 0; settings[i]; i += 2)
		if (fsconfig(fs, FSCONFIG_SET_STRING, settings[i], settings[i + 1], 0) < 0)
			return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, (unsigned int)attributes);
}

int mountapi_new_tmpfs(const char *mode, uint64_t attributes)
{
	const char *const settings[] = { "mode", mode, "source", "fsbox", NULL };

	return mountapi_new("tmpfs", settings, attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int mountapi_attach(int tree_fd, int target_fd)
{
	return move_mount(tree_fd, "", target_fd, "",
			  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

int mountapi_restrict(int fd, const char *path, uint64_t attributes, unsigned int flags)
{
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };

	return mount_setattr(fd, path, AT_EMPTY_PATH | flags, &attr, sizeof(attr));
}

#ifndef SYS_listmount
#define SYS_listmount 458 /* Linux 6.8; the same on every architecture */
#endif

struct listmount_request {
	uint32_t size;
	uint32_t spare;
	uint64_t mnt_id;
	uint64_t param;
	uint64_t mnt_ns_id; /* Linux 6.11; 0: ours */
};

/* Without the namespace, which a kernel from before that would refuse. */
#define LISTMOUNT_REQUEST_OURS offsetof(struct listmount_request, mnt_ns_id)

#define GET_MNTNS_ID _IOR(0xb7, 0x5, uint64_t) /* NS_GET_MNTNS_ID */

static long list_mounts(struct listmount_request *request, uint64_t *ret_ids, size_t count)
{
	return syscall(SYS_listmount, request, ret_ids, count, 0);
}

/* Some filters answer EPERM to what they do not know. */
static bool have_listmount(void)
{
	struct listmount_request nothing = { .size = 0 };

	return list_mounts(&nothing, NULL, 0) >= 0 || (errno != ENOSYS && errno != EPERM);
}

int mountapi_count_begin(int *ret_fd, struct error *err)
{
	int fd = -1;

	if (!have_listmount()) {
		/* The directory is this process's, whatever its mounts; the file would stay with them. */
		fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return error_set(err, ERR_SYSTEM, errno, "open /proc/self");
	}
	*ret_fd = fd;
	return 0;
}

static int count_by_mountinfo(int proc_fd, size_t *ret_count, struct error *err)
{
	AUTO(auto_close) int fd = openat(proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
	char block[4096];
	size_t lines = 0;
	ssize_t got = 0;

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open mountinfo");
	while ((got = read(fd, block, sizeof(block))) > 0)
		for (ssize_t i = 0; i < got; i++)
			lines += block[i] == '\n';
	if (got < 0)
		return error_set(err, ERR_SYSTEM, errno, "read mountinfo");
	*ret_count = lines;
	return 0;
}

int mountapi_count(int begun_fd, size_t *ret_count, struct error *err)
{
	struct listmount_request request = { .size = LISTMOUNT_REQUEST_OURS, .mnt_id = UINT64_MAX };
	uint64_t ids[512];
	size_t total = 0;

	if (begun_fd >= 0)
		return count_by_mountinfo(begun_fd, ret_count, err);
	for (;;) {
		long got = list_mounts(&request, ids, ARRAY_SIZE(ids));

		if (got < 0)
			return error_set(err, ERR_SYSTEM, errno, "listmount");
		total += (size_t)got;
		if ((size_t)got < ARRAY_SIZE(ids))
			break;
		request.param = ids[got - 1];
	}
	*ret_count = total;
	return 0;
}

int mountapi_list_of(int ns_fd, size_t *ret_count, uint64_t *ret_first, uint64_t *ret_last)
{
	struct listmount_request request = { .size = sizeof(request), .mnt_id = UINT64_MAX };
	uint64_t ids[512];
	size_t total = 0;

	if (ioctl(ns_fd, GET_MNTNS_ID, &request.mnt_ns_id) < 0)
		return -1;
	for (;;) {
		long got = list_mounts(&request, ids, ARRAY_SIZE(ids));

		if (got < 0)
			return -1;
		for (long i = 0; i < got; i++) {
			if (total == 0 && i == 0)
				*ret_first = *ret_last = ids[0];
			*ret_first = ids[i] < *ret_first ? ids[i] : *ret_first;
			*ret_last = ids[i] > *ret_last ? ids[i] : *ret_last;
		}
		total += (size_t)got;
		if ((size_t)got < ARRAY_SIZE(ids))
			break;
		request.param = ids[got - 1];
	}
	*ret_count = total;
	return 0;
}
