/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/procfs.h"

/* Newer than the libc headers we build with. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define FSBOX_PIDFD_GET_MNT_NAMESPACE _IO(0xFF, 3)
#define FSBOX_PIDFD_GET_PID_NAMESPACE _IO(0xFF, 5)
#define FSBOX_PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)

void peer_deinit(struct peer *peer)
{
	if (!peer)
		return;
	if (peer->pidfd >= 0)
		(void)close(peer->pidfd);
	peer->pidfd = -1;
}

static int read_groups(int fd, struct identity *identity, struct error *err)
{
	socklen_t bytes = sizeof(identity->groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, identity->groups, &bytes) < 0) {
		if (errno == ERANGE)
			return error_set(err, ERR_NOT_AUTHORIZED, 0, "more than %d groups",
					 LIMIT_GROUPS);
		return error_set(err, ERR_SYSTEM, errno, "SO_PEERGROUPS");
	}
	identity->group_count = bytes / sizeof(identity->groups[0]);
	identity_normalise(identity);
	return 0;
}

/*
 * Before Linux 6.5 there is only the number. Whoever has it now is taken for the peer if it has the
 * peer's user; a number reused in between can thus only be the same user's.
 */
static int pidfd_by_number(const struct peer *peer, struct error *err)
{
	AUTO(auto_close) int pidfd = pidfd_open_pid(peer->pid);
	AUTO(auto_close) int proc_fd = -1;
	struct proc_status status;
	int r = 0;

	if (pidfd < 0)
		return error_set(err, ERR_NOT_AUTHORIZED, errno, "the connecting process is gone");
	proc_fd = proc_open(peer->pid);
	if (proc_fd < 0)
		return error_set(err, ERR_NOT_AUTHORIZED, errno, "the connecting process is gone");
	if ((r = proc_status_read(proc_fd, &status, err)) < 0)
		return r;
	if (status.uids[1] != peer->identity.uid || !pidfd_alive(pidfd))
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "the connecting process is gone");
	return steal_fd(&pidfd);
}

static int read_pidfd(int fd, const struct peer *peer, struct error *err)
{
	socklen_t bytes = sizeof(int);
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes) == 0)
		return pidfd;
	if (errno == ENOPROTOOPT || errno == EINVAL)
		return pidfd_by_number(peer, err);
	return error_set(err, ERR_NOT_AUTHORIZED, errno, "the connecting process is gone");
}

static int read_start_time(struct peer *peer, struct error *err)
{
	AUTO(auto_close) int proc_fd = proc_open(peer->pid);
	int r = 0;

	if (proc_fd < 0)
		return error_set(err, ERR_NOT_AUTHORIZED, errno, "the connecting process is gone");
	if ((r = proc_start_time(proc_fd, &peer->start_time, err)) < 0)
		return r;
	if (!pidfd_alive(peer->pidfd))
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "the connecting process is gone");
	return 0;
}

int peer_read(int connection_fd, struct peer *ret_peer, struct error *err)
{
	AUTO(peer_deinit) struct peer peer = PEER_INIT;
	struct ucred cred = { 0 };
	socklen_t bytes = sizeof(cred);
	int r = 0;

	if (getsockopt(connection_fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
		return error_set(err, ERR_SYSTEM, errno, "SO_PEERCRED");
	peer.identity.uid = cred.uid;
	peer.identity.gid = cred.gid;
	peer.pid = cred.pid;

	/* 0: the peer lives in a pid namespace that ours does not contain. */
	if (cred.pid <= 0)
		return error_set(err, ERR_CONFINED_PEER, 0, "a process that is not visible here");
	if ((r = read_groups(connection_fd, &peer.identity, err)) < 0)
		return r;
	r = read_pidfd(connection_fd, &peer, err);
	if (r < 0)
		return r;
	peer.pidfd = r;
	if ((r = read_start_time(&peer, err)) < 0)
		return r;

	*ret_peer = peer;
	peer.pidfd = -1;
	return 0;
}

static const char *const check_names[PEER_CHECK_COUNT] = {
	[PEER_FREE] = "none",
	[PEER_USER_NAMESPACE] = "user-namespace",
	[PEER_MOUNT_NAMESPACE] = "mount-namespace",
	[PEER_PID_NAMESPACE] = "pid-namespace",
	[PEER_ROOT_DIRECTORY] = "root-directory",
	[PEER_NO_NEW_PRIVS] = "no-new-privs",
	[PEER_SECCOMP] = "seccomp",
	[PEER_LABEL] = "security-label",
	[PEER_UNREADABLE] = "unreadable",
	[PEER_GONE] = "gone",
};

const char *peer_check_name(enum peer_check check)
{
	return (unsigned)check < PEER_CHECK_COUNT ? check_names[check] : "unreadable";
}

bool peer_check_admissible(enum peer_check check)
{
	return check == PEER_NO_NEW_PRIVS || check == PEER_SECCOMP || check == PEER_LABEL;
}

static bool ns_of_fd(int fd, struct peer_ns *ret_ns)
{
	struct stat about;

	if (fstat(fd, &about) < 0)
		return false;
	ret_ns->dev = about.st_dev;
	ret_ns->ino = about.st_ino;
	return true;
}

/* By the process's own pidfd where the kernel can (6.11), else by its directory in /proc. */
static bool ns_read(int pidfd, unsigned long request, int proc_fd, const char *name,
		    struct peer_ns *ret_ns)
{
	AUTO(auto_close) int fd = pidfd >= 0 ? ioctl(pidfd, request, 0) : -1;

	if (fd < 0)
		fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && ns_of_fd(fd, ret_ns);
}

static bool ns_equal(const struct peer_ns *a, const struct peer_ns *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/*
 * The root directory behind /proc/PID/root. Its name first, which the kernel knows without asking
 * any file system: only a root that is called what ours is called is looked at, so that nobody can
 * make us wait for a file system of theirs.
 */
static bool root_read(int proc_fd, struct peer_ns *ret_root, bool *ret_named_root)
{
	AUTO(auto_close) int fd = -1;
	char name[8];
	ssize_t length = readlinkat(proc_fd, "root", name, sizeof(name));

	if (length < 0)
		return false;
	*ret_named_root = length == 1 && name[0] == '/';
	if (!*ret_named_root)
		return true;
	fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && ns_of_fd(fd, ret_root);
}

int peer_home_read(struct peer_home *ret_home, struct error *err)
{
	AUTO(auto_close) int proc_fd = proc_open(getpid());
	bool named_root = false;

	if (proc_fd < 0 || !ns_read(-1, 0, proc_fd, "ns/user", &ret_home->user) ||
	    !ns_read(-1, 0, proc_fd, "ns/mnt", &ret_home->mount) ||
	    !ns_read(-1, 0, proc_fd, "ns/pid", &ret_home->pid) ||
	    !root_read(proc_fd, &ret_home->root, &named_root))
		return error_set(err, ERR_SYSTEM, errno,
				 "our own namespaces cannot be read; is /proc mounted?");
	return 0;
}

static enum peer_check check_namespaces(int pidfd, int proc_fd, const struct peer_home *home)
{
	struct peer_ns ns;

	if (!ns_read(pidfd, FSBOX_PIDFD_GET_USER_NAMESPACE, proc_fd, "ns/user", &ns))
		return PEER_UNREADABLE;
	if (!ns_equal(&ns, &home->user))
		return PEER_USER_NAMESPACE;
	if (!ns_read(pidfd, FSBOX_PIDFD_GET_MNT_NAMESPACE, proc_fd, "ns/mnt", &ns))
		return PEER_UNREADABLE;
	if (!ns_equal(&ns, &home->mount))
		return PEER_MOUNT_NAMESPACE;
	if (!ns_read(pidfd, FSBOX_PIDFD_GET_PID_NAMESPACE, proc_fd, "ns/pid", &ns))
		return PEER_UNREADABLE;
	if (!ns_equal(&ns, &home->pid))
		return PEER_PID_NAMESPACE;
	return PEER_FREE;
}

static enum peer_check check_root(int proc_fd, const struct peer_home *home)
{
	struct peer_ns root;
	bool named_root = false;

	if (!root_read(proc_fd, &root, &named_root))
		return PEER_UNREADABLE;
	if (!named_root || !ns_equal(&root, &home->root))
		return PEER_ROOT_DIRECTORY;
	return PEER_FREE;
}

bool peer_label_is_free(const char *label)
{
	static const char mode[] = " (unconfined)";
	size_t length = strlen(label);
	const char *type = NULL;

	/* AppArmor: no profile, or one in unconfined mode. Smack: the floor. */
	if (strcmp(label, "unconfined") == 0 || strcmp(label, "_") == 0)
		return true;
	if (length > sizeof(mode) - 1 && strcmp(label + length - (sizeof(mode) - 1), mode) == 0)
		return true;

	/* SELinux: user:role:TYPE[:level]. */
	type = strchr(label, ':');
	type = type ? strchr(type + 1, ':') : NULL;
	if (!type)
		return false;
	type++;
	return strncmp(type, "unconfined_t", 12) == 0 && (type[12] == '\0' || type[12] == ':');
}

static enum peer_check check_label(int proc_fd)
{
	char label[1024];
	ssize_t length = proc_read(proc_fd, "attr/current", label, sizeof(label));

	/* Neither is confinement: without a module that labels, the file is absent or has no answer. */
	if (length < 0)
		return errno == EINVAL || errno == ENOENT ? PEER_FREE : PEER_UNREADABLE;
	while (length > 0 && (label[length - 1] == '\n' || label[length - 1] == '\0'))
		label[--length] = '\0';
	return length == 0 || peer_label_is_free(label) ? PEER_FREE : PEER_LABEL;
}

static enum peer_check check_process(int proc_fd, bool admitted)
{
	struct proc_status status;

	if (proc_status_read(proc_fd, &status, NULL) < 0)
		return PEER_UNREADABLE;
	if (admitted)
		return PEER_FREE;
	if (status.no_new_privs)
		return PEER_NO_NEW_PRIVS;
	if (status.seccomp != 0)
		return PEER_SECCOMP;
	return check_label(proc_fd);
}

enum peer_check peer_confinement(const struct peer *peer, const struct peer_home *home,
				 bool admitted)
{
	AUTO(auto_close) int proc_fd = proc_open(peer->pid);
	enum peer_check check = PEER_FREE;

	if (proc_fd < 0)
		return PEER_GONE;
	check = check_namespaces(peer->pidfd, proc_fd, home);
	if (check == PEER_FREE)
		check = check_root(proc_fd, home);
	if (check == PEER_FREE)
		check = check_process(proc_fd, admitted);

	/* Alive now means alive all the time, so the directory we read was this process's. */
	return pidfd_alive(peer->pidfd) ? check : PEER_GONE;
}
