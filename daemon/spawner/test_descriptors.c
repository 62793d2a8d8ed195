/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/descriptors.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

static char base[64];

/* Takes FD. */
static void allowed(int fd, enum descriptor_use use, bool net_host)
{
	struct error err = ERROR_INIT;

	assert_true(fd >= 0);
	if (descriptor_check(fd, use, NULL, 0, net_host, &err) < 0)
		fail_msg("%s", err.message);
	(void)close(fd);
}

static void refused(int fd, enum descriptor_use use, bool net_host, const char *why)
{
	struct error err = ERROR_INIT;

	assert_true(fd >= 0);
	assert_int_equal(descriptor_check(fd, use, NULL, 0, net_host, &err),
			 -ERR_DESCRIPTOR_REFUSED);
	if (!strstr(err.message, why))
		fail_msg("'%s' does not say '%s'", err.message, why);
	(void)close(fd);
}

#define STDIO DESCRIPTOR_STDIO

static void R7_files(void **state)
{
	char path[128];
	int fds[2];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/file", base);
	allowed(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), STDIO, false);
	allowed(memfd_create("x", MFD_CLOEXEC), STDIO, false);
	refused(open(path, O_PATH | O_CLOEXEC), STDIO, true, "O_PATH");
	refused(open(base, O_RDONLY | O_CLOEXEC), STDIO, true, "directory");
	refused(open(base, O_PATH | O_CLOEXEC), STDIO, true, "O_PATH");
	(void)snprintf(path, sizeof(path), "%s/fifo", base);
	assert_int_equal(mkfifo(path, 0600), 0);
	allowed(open(path, O_RDWR | O_CLOEXEC), STDIO, false);
	allowed(open(path, O_RDWR | O_CLOEXEC), DESCRIPTOR_LIFELINE, false);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	allowed(fds[0], STDIO, false);
	allowed(fds[1], DESCRIPTOR_LIFELINE, false);
	refused(open("/proc/self/status", O_RDONLY | O_CLOEXEC), STDIO, true, "/proc");
	refused(open("/sys/kernel/uevent_seqnum", O_RDONLY | O_CLOEXEC), STDIO, true, "/sys");
	assert_int_equal(descriptor_check(-1, STDIO, NULL, 0, true, NULL), -ERR_DESCRIPTOR_REFUSED);
}

static void R7_kernel_objects(void **state)
{
	static const char *const namespaces[] = { "mnt", "user", "net",   "pid",
						  "uts", "ipc",  "cgroup" };
	sigset_t none;

	(void)state;
	(void)sigemptyset(&none);
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i]);
		refused(open(path, O_RDONLY | O_CLOEXEC), STDIO, true, "namespace");
	}
	refused((int)syscall(SYS_pidfd_open, getpid(), 0), STDIO, true, "may not enter");
	refused(epoll_create1(EPOLL_CLOEXEC), STDIO, true, "kernel object");
	refused(eventfd(0, EFD_CLOEXEC), STDIO, true, "kernel object");
	refused(signalfd(-1, &none, SFD_CLOEXEC), STDIO, true, "kernel object");
	refused(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), STDIO, true, "kernel object");
	refused(inotify_init1(IN_CLOEXEC), STDIO, true, "kernel object");
	refused(epoll_create1(EPOLL_CLOEXEC), DESCRIPTOR_LIFELINE, true, "lifeline");
	if (geteuid() == 0) {
		refused((int)syscall(SYS_fsopen, "tmpfs", 1), STDIO, true, "kernel object");
		refused((int)syscall(SYS_open_tree, AT_FDCWD, "/", 1), STDIO, true, "O_PATH");
	}
}

static void R7_devices(void **state)
{
	static const char *const good[] = { "null", "zero", "full", "random", "urandom" };
	static const char *const bad[] = {
		"kmsg", "mem", "fuse", "net/tun", "kvm", "loop-control"
	};
	char path[128];
	int master = -1;
	int slave = -1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", good[i]);
		allowed(open(path, O_RDONLY | O_CLOEXEC), STDIO, false);
		refused(open(path, O_RDONLY | O_CLOEXEC), DESCRIPTOR_LIFELINE, false, "lifeline");
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int fd = -1;

		(void)snprintf(path, sizeof(path), "/dev/%s", bad[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			refused(fd, STDIO, true, "device");
	}
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	allowed(slave, STDIO, false);
	refused(master, STDIO, true, "master");
	if (geteuid() == 0) {
		(void)snprintf(path, sizeof(path), "%s/block", base);
		assert_int_equal(mknod(path, S_IFBLK | 0600, makedev(7, 0)), 0);
		master = open(path, O_RDONLY | O_CLOEXEC);
		if (master >= 0)
			refused(master, STDIO, true, "block device");
	}
}

static void bind_to(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void R7_unix_sockets(void **state)
{
	static const int kinds[] = { SOCK_STREAM, SOCK_SEQPACKET };
	char path[128];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fds[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(socketpair(AF_UNIX, kinds[i] | SOCK_CLOEXEC, 0, fds), 0);
		allowed(fds[0], STDIO, false);
		allowed(fds[1], DESCRIPTOR_LIFELINE, false); /* its peer is closed by now */
		refused(socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC, 0), STDIO, false,
			"connected stream");
		allowed(socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC, 0), STDIO, true);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
	refused(fds[0], STDIO, false, "connected stream");
	(void)close(fds[1]);

	(void)snprintf(path, sizeof(path), "%s/other.sock", base);
	bind_to(listener, path);
	allowed(connect_to(path), STDIO, false);
	refused(listener, STDIO, true, "listening");

	(void)snprintf(path, sizeof(path), "%s/fsbox.sock", base);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bind_to(listener, path);
	fds[0] = connect_to(path);
	fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	refused(fds[0], STDIO, true, "fsbox");
	refused(fds[1], STDIO, true, "fsbox");
	refused(listener, STDIO, true, "listening");
}

static void R7_other_sockets(void **state)
{
	static const struct {
		int domain;
		int type;
		bool with_host;
	} cases[] = {
		{ AF_INET, SOCK_STREAM, true },  { AF_INET6, SOCK_DGRAM, true },
		{ AF_NETLINK, SOCK_RAW, false }, { AF_VSOCK, SOCK_STREAM, false },
		{ AF_PACKET, SOCK_RAW, false },  { AF_ALG, SOCK_SEQPACKET, false },
		{ AF_INET, SOCK_RAW, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int protocol = cases[i].type == SOCK_RAW && cases[i].domain == AF_INET ? 1 : 0;
		int fd = socket(cases[i].domain, cases[i].type | SOCK_CLOEXEC, protocol);

		if (fd < 0)
			continue; /* not on this machine, or not for this user */
		if (cases[i].with_host)
			allowed(dup(fd), STDIO, true);
		else
			refused(dup(fd), STDIO, true, "socket");
		refused(fd, STDIO, false, "socket");
	}
}

static void R7_our_own(void **state)
{
	struct descriptor_own own[2];
	struct error err;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(descriptor_own_read(fds[0], &own[1], NULL), 0);
	own[0] = (struct descriptor_own){ 0, 0 };
	assert_int_equal(descriptor_check(fds[1], STDIO, own, 2, false, &err),
			 -ERR_DESCRIPTOR_REFUSED);
	assert_int_equal(descriptor_check(fds[1], STDIO, own, 1, false, &err), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(descriptor_own_read(-1, &own[0], NULL), -ERR_SYSTEM);
}

static int set_up(void **state)
{
	(void)state;
	memcpy(base, "/tmp/fsbox-test-XXXXXX", sizeof("/tmp/fsbox-test-XXXXXX"));
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "file", "fifo", "block", "other.sock", "fsbox.sock" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", base, names[i]);
		(void)unlink(path);
	}
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R7_files),         cmocka_unit_test(R7_kernel_objects),
		cmocka_unit_test(R7_devices),       cmocka_unit_test(R7_unix_sockets),
		cmocka_unit_test(R7_other_sockets), cmocka_unit_test(R7_our_own),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
