/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel without what came after Linux 5.12, as far as fsboxd asks for it: preloaded into
 * fsboxd, it makes the fallbacks run that a new kernel never takes.
 *
 *	listmount, statmount	6.8	ENOSYS; mountinfo is read instead
 *	STATX_MNT_ID_UNIQUE	6.8	not answered; STATX_MNT_ID is
 *	PIDFD_GET_*_NAMESPACE	6.11	ENOTTY; /proc/PID/ns is opened instead
 *	FAN_REPORT_MNT		6.15	EINVAL; mountinfo is waited for instead
 *
 * With FSBOX_SHIM_OVERFLOW it is the running kernel, but each time that fanotify or inotify has something to
 * tell, that is lost: only that something was is told.
 *
 * FSBOX_SHIM_LOG names a file that gets a line for the first time that each is asked for, so that a test
 * sees that the shim was in the way. The static fsbox-init is not reached.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATMOUNT 457
#define LISTMOUNT 458
#define REPORT_MNT 0x00004000L
#define MNT_ID_UNIQUE 0x00004000U
#define PIDFD_IOCTL_TYPE 0xFFUL

static void note(const char *what)
{
	static const char *noted[8];
	const char *path = getenv("FSBOX_SHIM_LOG");
	size_t at = 0;
	int fd = -1;

	while (at < 8 && noted[at] && noted[at] != what)
		at++;
	if (!path || at == 8 || noted[at])
		return;
	noted[at] = what;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	(void)!write(fd, what, strlen(what));
	(void)close(fd);
}

/* POSIX gives functions of libraries as object pointers. */
#define NEXT(type, name)        \
	union {                 \
		void *object;   \
		type *function; \
	} next = { .object = dlsym(RTLD_NEXT, name) }

typedef long syscall_fn(long number, ...);
typedef int ioctl_fn(int fd, unsigned long request, ...);
typedef ssize_t read_fn(int fd, void *block, size_t size);
typedef int statx_fn(int fd, const char *path, int flags, unsigned int mask, struct statx *st);

static bool loses_events(void)
{
	return getenv("FSBOX_SHIM_OVERFLOW") != NULL;
}

/* What FD is, by its link in /proc: "anon_inode:inotify" ... */
static bool is_kind(int fd, const char *kind)
{
	char path[64] = "/proc/self/fd/";
	char found[64] = "";
	char digits[16];
	size_t at = sizeof(digits) - 1;
	ssize_t length = 0;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + fd % 10);
	while ((fd /= 10) > 0);
	(void)strncat(path, digits + at, sizeof(path) - strlen(path) - 1);
	length = readlink(path, found, sizeof(found) - 1);
	return length > 0 && strcmp(found, kind) == 0;
}

ssize_t read(int fd, void *block, size_t size)
{
	static const struct inotify_event inotify_lost = { .wd = -1, .mask = IN_Q_OVERFLOW };
	static const struct fanotify_event_metadata fanotify_lost = {
		.event_len = sizeof(fanotify_lost),
		.vers = FANOTIFY_METADATA_VERSION,
		.metadata_len = sizeof(fanotify_lost),
		.mask = FAN_Q_OVERFLOW,
		.fd = FAN_NOFD,
	};
	NEXT(read_fn, "read");
	ssize_t got = next.function(fd, block, size);

	if (got <= 0 || size < 4096 || !loses_events())
		return got;
	if (is_kind(fd, "anon_inode:inotify")) {
		memcpy(block, &inotify_lost, sizeof(inotify_lost));
		return sizeof(inotify_lost);
	}
	if (is_kind(fd, "anon_inode:[fanotify]")) {
		memcpy(block, &fanotify_lost, sizeof(fanotify_lost));
		return sizeof(fanotify_lost);
	}
	return got;
}

long syscall(long number, ...)
{
	NEXT(syscall_fn, "syscall");
	long arguments[6];
	va_list list;

	if ((number == STATMOUNT || number == LISTMOUNT) && !loses_events()) {
		note("listmount\n");
		errno = ENOSYS;
		return -1;
	}
	va_start(list, number);
	for (size_t i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_fanotify_init && arguments[0] & REPORT_MNT && !loses_events()) {
		note("fanotify\n");
		errno = EINVAL;
		return -1;
	}
	return next.function(number, arguments[0], arguments[1], arguments[2], arguments[3],
			     arguments[4], arguments[5]);
}

int ioctl(int fd, unsigned long request, ...)
{
	NEXT(ioctl_fn, "ioctl");
	void *argument = NULL;
	va_list list;

	if (((request >> 8) & 0xFF) == PIDFD_IOCTL_TYPE && !loses_events()) {
		note("pidfd ioctl\n");
		errno = ENOTTY;
		return -1;
	}
	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	return next.function(fd, request, argument);
}

int statx(int fd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	NEXT(statx_fn, "statx");

	if (loses_events())
		return next.function(fd, path, flags, mask, st);
	if (mask & MNT_ID_UNIQUE)
		note("statx\n");
	return next.function(fd, path, flags, mask & ~MNT_ID_UNIQUE, st);
}
