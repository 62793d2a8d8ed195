/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/scope.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446 /* Linux 6.9: pidfds */
#endif
#ifndef SECRETMEM_MAGIC
#define SECRETMEM_MAGIC 0x5345434d
#endif
#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif
#define BPF_FS_MAGIC_ 0xcafe4a11
#define MQUEUE_MAGIC_ 0x19800202
#define CONFIGFS_MAGIC_ 0x62656570

/* File systems whose files are handles on the kernel rather than data. */
static const struct {
	unsigned long magic;
	const char *what;
} kernel_files[] = {
	{ ANON_INODE_FS_MAGIC, "a kernel object without a file" },
	{ PID_FS_MAGIC, "a pidfd" },
	{ NSFS_MAGIC, "a namespace" },
	{ PROC_SUPER_MAGIC, "a file of /proc" },
	{ SYSFS_MAGIC, "a file of /sys" },
	{ CGROUP_SUPER_MAGIC, "a control group file" },
	{ CGROUP2_SUPER_MAGIC, "a control group file" },
	{ DEBUGFS_MAGIC, "a file of debugfs" },
	{ TRACEFS_MAGIC, "a file of tracefs" },
	{ SECURITYFS_MAGIC, "a file of securityfs" },
	{ SELINUX_MAGIC, "a file of selinuxfs" },
	{ SMACK_MAGIC, "a file of smackfs" },
	{ EFIVARFS_MAGIC, "a firmware variable" },
	{ PSTOREFS_MAGIC, "a file of pstore" },
	{ BPF_FS_MAGIC_, "a BPF object" },
	{ MQUEUE_MAGIC_, "a message queue" },
	{ CONFIGFS_MAGIC_, "a file of configfs" },
	{ BINDERFS_SUPER_MAGIC, "a binder device" },
	{ SECRETMEM_MAGIC, "secret memory" },
	{ DMA_BUF_MAGIC, "a device buffer" },
};

/* proc(5), devices.txt: majors of terminals; of major 5 not ptmx, the master side. */
#define MAJOR_MEMORY 1
#define MAJOR_VT 4
#define MAJOR_TTY_AUX 5
#define MINOR_PTMX 2
#define MAJOR_PTY_SLAVE_FIRST 136
#define MAJOR_PTY_SLAVE_LAST 143
#define MAJOR_USB_ACM 166
#define MAJOR_USB_SERIAL 188
#define MAJOR_HVC 229
#define MAJOR_LOW_DENSITY 204 /* ttyAMA and other small UARTs */

static int refuse(struct error *err, const char *what)
{
	return error_set(err, ERR_DESCRIPTOR_REFUSED, 0, "%s may not enter a job", what);
}

int descriptor_own_read(int fd, struct descriptor_own *ret_own, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fstat");
	*ret_own = (struct descriptor_own){ .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

static int check_file_system(int fd, struct error *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return refuse(err, "a file without a file system");
	for (size_t i = 0; i < ARRAY_SIZE(kernel_files); i++) {
		if ((unsigned long)fs.f_type == kernel_files[i].magic)
			return refuse(err, kernel_files[i].what);
	}
	return 0;
}

static int check_device(dev_t device, struct error *err)
{
	const unsigned minor_number = minor(device);

	switch (major(device)) {
	case MAJOR_MEMORY:
		/* null, zero, full, random, urandom; not mem, port, kmsg */
		if (minor_number == 3 || minor_number == 5 ||
		    (minor_number >= 7 && minor_number <= 9))
			return 0;
		break;
	case MAJOR_TTY_AUX:
		if (minor_number == MINOR_PTMX)
			return refuse(err, "the master side of a terminal");
		return 0;
	case MAJOR_VT:
	case MAJOR_USB_ACM:
	case MAJOR_USB_SERIAL:
	case MAJOR_HVC:
	case MAJOR_LOW_DENSITY:
		return 0;
	default:
		if (major(device) >= MAJOR_PTY_SLAVE_FIRST && major(device) <= MAJOR_PTY_SLAVE_LAST)
			return 0;
		break;
	}
	return refuse(err, "this kind of device");
}

/* Whether a Unix address is fsbox's own listening socket, by the name that all its modes use. */
static bool is_fsbox_address(const struct sockaddr_un *address, socklen_t size)
{
	static const char name[] = "/fsbox.sock";
	size_t length = 0;

	if (size <= offsetof(struct sockaddr_un, sun_path) || address->sun_path[0] == '\0')
		return false;
	length = strnlen(address->sun_path, size - offsetof(struct sockaddr_un, sun_path));
	return length >= sizeof(name) - 1 &&
	       memcmp(address->sun_path + length - (sizeof(name) - 1), name, sizeof(name) - 1) == 0;
}

static int check_unix_socket(int fd, int type, bool net_host, struct error *err)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0 ||
	    is_fsbox_address(&address, size))
		return refuse(err, "a socket of fsbox");
	size = sizeof(address);
	if (getpeername(fd, (struct sockaddr *)&address, &size) == 0) {
		if (is_fsbox_address(&address, size))
			return refuse(err, "a connection to fsbox");
		/* A datagram socket can be connected anew, also to abstract names of its network. */
		if (type == SOCK_STREAM || type == SOCK_SEQPACKET)
			return 0;
	}
	if (net_host)
		return 0;
	return refuse(err, "a Unix socket that is not a connected stream");
}

static int check_socket(int fd, bool net_host, struct error *err)
{
	int domain = 0;
	int type = 0;
	int listening = 0;
	socklen_t size = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return refuse(err, "a socket that does not say what it is");
	/* Vsock and others do not answer; what does not listen for sure is not let in. */
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || listening)
		return refuse(err, "a listening socket");
	if (domain == AF_UNIX)
		return check_unix_socket(fd, type, net_host, err);
	if ((domain != AF_INET && domain != AF_INET6) ||
	    (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET))
		return refuse(err, "a socket of this family");
	/* It belongs to the network that it was made in: connect() would lead around the job's. */
	if (!net_host)
		return refuse(err, "an internet socket, with a network of the job's own,");
	return 0;
}

int descriptor_check(int fd, enum descriptor_use use, const struct descriptor_own *own,
		     size_t own_count, bool net_host, struct error *err)
{
	const int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return refuse(err, "a closed descriptor");
	if (flags & O_PATH)
		return refuse(err, "an O_PATH descriptor");
	for (size_t i = 0; i < own_count; i++) {
		if (own[i].dev == st.st_dev && own[i].ino == st.st_ino)
			return refuse(err, "a file of fsbox");
	}
	if (use == DESCRIPTOR_LIFELINE && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return error_set(err, ERR_DESCRIPTOR_REFUSED, 0,
				 "a lifeline must be a pipe or a socket");
	if (S_ISSOCK(st.st_mode))
		/* A lifeline stays with pid 1, which only waits for its end. */
		return check_socket(fd, net_host || use == DESCRIPTOR_LIFELINE, err);
	if (S_ISFIFO(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return refuse(err, "a directory");
	if (S_ISBLK(st.st_mode))
		return refuse(err, "a block device");
	if (S_ISCHR(st.st_mode))
		return check_device(st.st_rdev, err);
	if (S_ISREG(st.st_mode))
		return check_file_system(fd, err);
	return refuse(err,
		      "a kernel object without a file"); /* epoll, eventfd, io_uring, pidfd ... */
}
