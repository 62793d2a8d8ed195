/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mountapi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
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

#ifndef __NR_listmount
#define __NR_listmount 458 /* Linux 6.8; the same on every architecture */
#endif

struct listmount_request {
	uint32_t size;
	uint32_t spare;
	uint64_t mnt_id;
	uint64_t param;
};

static int count_by_mountinfo(size_t *ret_count, struct error *err)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t lines = 0;
	int byte = 0;

	if (!file)
		return error_set(err, ERR_SYSTEM, errno, "open mountinfo");
	while ((byte = getc(file)) != EOF)
		lines += byte == '\n';
	(void)fclose(file);
	*ret_count = lines;
	return 0;
}

int mountapi_count(size_t *ret_count, struct error *err)
{
	struct listmount_request request = { .size = sizeof(request), .mnt_id = UINT64_MAX };
	uint64_t ids[512];
	size_t total = 0;

	for (;;) {
		long got = syscall(__NR_listmount, &request, ids, ARRAY_SIZE(ids), 0);

		if (got < 0 && errno == ENOSYS)
			return count_by_mountinfo(ret_count, err);
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
