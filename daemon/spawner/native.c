/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/native.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mount.h"
#include "daemon/spawner/mountapi.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U /* Linux 6.8 */
#endif

/* ---- identity ------------------------------------------------------------------------- */

static int keep_mount_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	data[0].permitted = 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SETPCAP;
	data[0].effective = data[0].permitted;
	if (syscall(SYS_capset, &header, data) < 0)
		return error_set(err, ERR_SYSTEM, errno, "capset");
	return 0;
}

int native_become(const struct identity *identity, struct error *err)
{
	int r = 0;

	if (prctl(PR_SET_KEEPCAPS, 1L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_KEEPCAPS");
	r = identity_become(identity, err);
	if (r < 0)
		return r;
	/* From here on every path is opened with the peer's rights alone: no DAC capability is left. */
	return keep_mount_capabilities(err);
}

/* ---- the template --------------------------------------------------------------------- */

static int write_file(const char *path, const char *text, struct error *err)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return error_set(err, ERR_SETUP_FAILED, errno, "write %s", path);
	return 0;
}

int native_new_user_namespace(const struct identity *identity, struct error *err)
{
	char map[64];
	int r = 0;

	if (unshare(CLONE_NEWUSER) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new user namespace");
	if ((r = write_file("/proc/self/setgroups", "deny", err)) < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1", identity->gid, identity->gid);
	if ((r = write_file("/proc/self/gid_map", map, err)) < 0)
		return r;
	(void)snprintf(map, sizeof(map), "%u %u 1", identity->uid, identity->uid);
	return write_file("/proc/self/uid_map", map, err);
}

size_t native_shared_bytes(const struct plan *plan)
{
	return sizeof(struct native_shared) + plan->count * sizeof(struct native_witness);
}

static struct mount_options mount_options_of(const struct native_input *input)
{
	return (struct mount_options){
		.in_userns = !input->switch_ids,
		.root_peer = input->identity->uid == 0,
		.proc_masks = &input->shared->proc_masks,
	};
}

/*
 * The directory looked at last: paths come sorted, so that most lie in the same one as the path before.
 *
 * @root_fd     where paths begin, borrowed; -1: at the root of this process
 * @path_bytes  how much of @path is the directory's name, without a slash at its end
 */
struct directory {
	int root_fd;
	int fd;
	size_t path_bytes;
	const char *path;
};

#define DIRECTORY_INIT(root)                \
	{                                   \
		.root_fd = (root), .fd = -1 \
	}

static void directory_deinit(struct directory *directory)
{
	auto_close(&directory->fd);
}

/* The parent of PATH, reached through no link; -1 when it cannot be. Borrows PATH. */
static int parent_of(struct directory *directory, const char *path)
{
	size_t bytes = (size_t)(path_leaf(path) - path) - 1;
	char name[LIMIT_PATH_BYTES + 1];

	if (directory->path && directory->path_bytes == bytes &&
	    memcmp(directory->path, path, bytes) == 0)
		return directory->fd;
	auto_close(&directory->fd);
	directory->path = path;
	directory->path_bytes = bytes;
	(void)snprintf(name, sizeof(name), "%.*s", (int)bytes, path);
	if (directory->root_fd < 0)
		directory->fd =
			mountapi_open(AT_FDCWD, bytes > 0 ? name : "/", O_PATH | O_DIRECTORY, 0);
	else
		directory->fd = mountapi_open(directory->root_fd, bytes > 0 ? name + 1 : ".",
					      O_PATH | O_DIRECTORY, 0);
	return directory->fd;
}

/* Of the link itself, where it is one. */
static void witness(struct directory *directory, const char *path,
		    struct native_witness *ret_witness)
{
	struct statx st;
	int fd = parent_of(directory, path);

	memset(ret_witness, 0, sizeof(*ret_witness));
	if (fd < 0 ||
	    statx(fd, path[1] ? path_leaf(path) : ".",
		  AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_INO | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE,
		  &st) < 0)
		return;
	ret_witness->ino = st.stx_ino;
	ret_witness->mnt_id = st.stx_mnt_id;
	ret_witness->btime_sec = st.stx_btime.tv_sec;
	ret_witness->btime_nsec = st.stx_btime.tv_nsec;
	ret_witness->dev_major = st.stx_dev_major;
	ret_witness->dev_minor = st.stx_dev_minor;
	ret_witness->type = st.stx_mode & S_IFMT;
}

/* The path of the host that an operation depends on, or NULL. */
static const char *host_path(const struct plan_op *op)
{
	switch (op->kind) {
	case PLAN_BIND:
		return op->source;
	case PLAN_MASK_DIR:
	case PLAN_MASK_FILE:
	case PLAN_MASK_TREE:
		return op->path;
	case PLAN_ROOT:
	case PLAN_PROC:
	case PLAN_DEV:
	case PLAN_TMPFS:
	case PLAN_SYMLINK:
	case PLAN_SEAL:
	case PLAN_SYS:
	case PLAN_PIN:
	case PLAN_NOTICE:
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return NULL;
}

int native_build(const struct native_input *input, struct error *err)
{
	struct mount_options options = mount_options_of(input);
	AUTO(directory_deinit) struct directory directory = DIRECTORY_INIT(-1);
	const struct plan *plan = input->plan;
	AUTO(auto_close) int count_fd = -1;
	int r = mountapi_count_begin(&count_fd, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->count; i++) {
		const char *path = host_path(&plan->ops[i]);

		if (path)
			witness(&directory, path, &input->shared->witnesses[i]);
	}
	if (input->user_ns_fd >= 0 && setns(input->user_ns_fd, CLONE_NEWUSER) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "enter the user namespace");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new mount namespace");
	r = mount_build(plan, &options, err);
	if (r < 0)
		return r;
	return mountapi_count(count_fd, &input->shared->mounts, err);
}

int native_copy(const struct native_input *input, int template_fd, int count_fd, struct error *err)
{
	struct mount_options options = mount_options_of(input);
	int r = 0;

	if (setns(template_fd, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "copy the template");
	r = mount_finish(input->plan, &options, MOUNT_AHEAD, err);
	return r < 0 ? r : mountapi_count(count_fd, &input->shared->copied, err);
}

bool native_changed_meanwhile(const struct native_input *input, struct error *err)
{
	AUTO(directory_deinit) struct directory directory = DIRECTORY_INIT(-1);

	for (size_t i = 0; i < input->plan->count; i++) {
		const struct plan_op *op = &input->plan->ops[i];
		const char *path = host_path(op);
		struct native_witness now;

		if (!path || op->flags & PLAN_WATCH)
			continue;
		witness(&directory, path, &now);
		/* In this namespace mounts have other numbers. */
		now.mnt_id = input->shared->witnesses[i].mnt_id;
		if (memcmp(&now, &input->shared->witnesses[i], sizeof(now)) == 0 &&
		    (now.type != 0 || !(op->flags & PLAN_PLACEHOLDER)))
			continue;
		(void)error_set(err, ERR_PATH_NOT_FOUND, 0, "'%s' changed", path);
		return true;
	}
	return false;
}

int native_still_valid(const struct native_input *input, int root_fd, struct error *err)
{
	AUTO(directory_deinit) struct directory directory = DIRECTORY_INIT(root_fd);

	for (size_t i = 0; i < input->plan->count; i++) {
		const char *path = host_path(&input->plan->ops[i]);
		struct native_witness now;

		if (!path)
			continue;
		witness(&directory, path, &now);
		if (memcmp(&now, &input->shared->witnesses[i], sizeof(now)) != 0) {
			(void)error_set(err, ERR_PATH_NOT_FOUND, 0, "'%s' changed", path);
			return 0;
		}
	}
	return 1;
}

/* ---- a job ----------------------------------------------------------------------------- */

/*
 * An address besides 127.0.0.1: where only that is there, getaddrinfo() with AI_ADDRCONFIG finds no
 * family in use, and does not know "localhost" any more. Nobody else has one of this range.
 */
static int add_alias(int fd, struct error *err)
{
	struct ifreq request = { .ifr_name = "lo:1" };
	struct sockaddr_in address = { .sin_family = AF_INET };

	address.sin_addr.s_addr = htonl(NATIVE_ALIAS_ADDRESS);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "give the loopback an address");
	/* Alone: without it the whole class C would be this machine. */
	address.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	memcpy(&request.ifr_netmask, &address, sizeof(address));
	if (ioctl(fd, SIOCSIFNETMASK, &request) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "give the loopback an address");
	return 0;
}

static int bring_loopback_up(struct error *err)
{
	struct ifreq request = { .ifr_flags = IFF_UP };
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(request.ifr_name, "lo", sizeof("lo"));
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "bring the loopback up");
	/* Every port of this network is the job's; where that cannot be said, those from 1024 on are. */
	(void)write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", NULL);
	return add_alias(fd, err);
}

int native_new_network(struct error *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new network namespace");
	return bring_loopback_up(err);
}

void native_set_deinit(struct native_set *set)
{
	auto_close(&set->net_fd);
	auto_close(&set->ipc_fd);
	auto_close(&set->uts_fd);
	auto_close(&set->cgroup_fd);
	*set = (struct native_set)NATIVE_SET_INIT;
}

int native_enter_set(const struct native_set *set, bool net_host, struct error *err)
{
	const int others = CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

	if (set->net_fd >= 0) {
		if (setns(set->net_fd, CLONE_NEWNET) < 0 || setns(set->ipc_fd, CLONE_NEWIPC) < 0 ||
		    setns(set->uts_fd, CLONE_NEWUTS) < 0 ||
		    setns(set->cgroup_fd, CLONE_NEWCGROUP) < 0)
			return error_set(err, ERR_SETUP_FAILED, errno, "enter new namespaces");
		return 0;
	}
	if (unshare(net_host ? others : others | CLONE_NEWNET) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new namespaces");
	return net_host ? 0 : bring_loopback_up(err);
}

/* In user mode: pid 1 is a child, and this process is only there to be its parent. */
static int fork_pid1(struct error *err)
{
	pid_t pid = 0;

	if (unshare(CLONE_NEWPID) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new pid namespace");
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "fork");
	if (pid == 0)
		return 0;
	/* Nothing of the job's may be held open here; its mounts can be found by this process (guardlink.c). */
	(void)prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
	(void)syscall(SYS_close_range, 0u, ~0u, 0);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	_exit(0);
}

int native_enter(const struct native_input *input, const struct native_namespaces *namespaces,
		 struct error *err)
{
	struct mount_options options = mount_options_of(input);
	AUTO(auto_close) int count_fd = -1;
	size_t expected = namespaces->is_copy ? input->shared->copied : input->shared->mounts;
	size_t mounts = 0;
	int r = mountapi_count_begin(&count_fd, err);

	if (r < 0)
		return r;
	if (input->user_ns_fd >= 0) {
		if (setns(input->user_ns_fd, CLONE_NEWUSER) < 0)
			return error_set(err, ERR_SETUP_FAILED, errno, "enter the user namespace");
		r = native_enter_set(&namespaces->set, namespaces->net_host, err);
		if (r < 0)
			return r;
	}
	if (setns(namespaces->mount_ns_fd, CLONE_NEWNS) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "enter the template");
	r = mountapi_count(count_fd, &mounts, err);
	if (r < 0)
		return r;
	if (mounts != expected)
		return error_set(err, ERR_PATH_NOT_FOUND, 0, "the template has %zu mounts, not %zu",
				 mounts, expected);
	if (!namespaces->is_copy && unshare(CLONE_NEWNS) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "copy the template");
	if (input->user_ns_fd >= 0 && (r = fork_pid1(err)) < 0)
		return r;
	return mount_finish(input->plan, &options,
			    namespaces->is_copy ? MOUNT_INSIDE : MOUNT_AHEAD | MOUNT_INSIDE, err);
}
