/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardmounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/mountapi.h"

/* Linux 6.15 */
#define REPORT_MNT 0x00004000u
#define MARK_MNTNS 0x00000110u
#define MNT_DETACH_EVENT 0x02000000u
#define INFO_TYPE_MNT 7

struct info_mnt {
	uint8_t info_type;
	uint8_t pad;
	uint16_t len;
	uint64_t mnt_id;
};

void guardmounts_init(struct guardmounts *mounts)
{
	mounts->fd = (int)syscall(SYS_fanotify_init,
				  REPORT_MNT | FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, 0u);
}

void guardmounts_deinit(struct guardmounts *mounts)
{
	auto_close(&mounts->fd);
	mounts->fd = -1;
}

static int mark(const struct guardmounts *mounts, unsigned int how, int ns_fd)
{
	return (int)syscall(SYS_fanotify_mark, mounts->fd, how | MARK_MNTNS,
			    (uint64_t)MNT_DETACH_EVENT, ns_fd, NULL);
}

void guardmounts_recount(int ns_fd, struct guardmounts_ns *ns)
{
	if (mountapi_list_of(ns_fd, &ns->count, &ns->first, &ns->last) < 0)
		ns->count = 0;
}

int guardmounts_add(struct guardmounts *mounts, int ns_fd, pid_t pid, struct guardmounts_ns *ret_ns,
		    struct error *err)
{
	char path[64];

	*ret_ns = (struct guardmounts_ns)GUARDMOUNTS_NS_INIT;
	if (mounts->fd < 0 || mark(mounts, FAN_MARK_ADD, ns_fd) < 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
		ret_ns->info_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (ret_ns->info_fd < 0)
			return error_set(err, ERR_SYSTEM, errno, "open '%s'", path);
	}
	/* After that: what is gone by now is not counted, what goes later is told. */
	guardmounts_recount(ns_fd, ret_ns);
	return 0;
}

void guardmounts_remove(struct guardmounts *mounts, int ns_fd, struct guardmounts_ns *ns)
{
	/* Before the namespace goes, or each of its mounts would be told of. */
	if (ns->info_fd < 0 && mounts->fd >= 0)
		(void)mark(mounts, FAN_MARK_REMOVE, ns_fd);
	auto_close(&ns->info_fd);
	*ns = (struct guardmounts_ns)GUARDMOUNTS_NS_INIT;
}

bool guardmounts_may_be(const struct guardmounts_ns *ns, uint64_t id)
{
	return id == 0 || ns->count == 0 || (id >= ns->first && id <= ns->last);
}

static void read_event(const char *at, size_t bytes, guardmounts_fn *fn, void *arg)
{
	struct fanotify_event_metadata event;
	struct info_mnt info = { 0 };

	memcpy(&event, at, sizeof(event));
	if (event.fd >= 0)
		(void)close(event.fd);
	if (bytes >= event.metadata_len + sizeof(info))
		memcpy(&info, at + event.metadata_len, sizeof(info));
	if (event.mask & FAN_Q_OVERFLOW || event.vers != FANOTIFY_METADATA_VERSION ||
	    info.info_type != INFO_TYPE_MNT)
		fn(0, arg);
	else
		fn(info.mnt_id, arg);
}

void guardmounts_read(const struct guardmounts *mounts, guardmounts_fn *fn, void *arg)
{
	_Alignas(struct fanotify_event_metadata) char block[4096];
	ssize_t got = 0;

	while ((got = read(mounts->fd, block, sizeof(block))) > 0) {
		const char *at = block;
		size_t left = (size_t)got;

		while (left >= sizeof(struct fanotify_event_metadata)) {
			uint32_t length = 0;

			memcpy(&length, at, sizeof(length));
			if (length < sizeof(struct fanotify_event_metadata) || length > left)
				break;
			read_event(at, length, fn, arg);
			at += length;
			left -= length;
		}
	}
}

void guardmounts_read_info(const struct guardmounts_ns *ns)
{
	char block[4096];

	if (lseek(ns->info_fd, 0, SEEK_SET) < 0)
		return;
	while (read(ns->info_fd, block, sizeof(block)) > 0)
		continue;
}
