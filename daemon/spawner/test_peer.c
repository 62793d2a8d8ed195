/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/peer.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* A listening socket that peers of our making connect to. */
struct room {
	char dir[64];
	struct sockaddr_un address;
	int listen_fd;
	struct peer_home home;
};

static int setup(void **state)
{
	static struct room room;

	(void)snprintf(room.dir, sizeof(room.dir), "/tmp/fsbox-peer.XXXXXX");
	if (!mkdtemp(room.dir) || chmod(room.dir, 0755) < 0)
		return -1;
	room.address.sun_family = AF_UNIX;
	(void)snprintf(room.address.sun_path, sizeof(room.address.sun_path), "%s/s", room.dir);
	room.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(room.listen_fd, (struct sockaddr *)&room.address, sizeof(room.address)) < 0 ||
	    chmod(room.address.sun_path, 0666) < 0 || listen(room.listen_fd, 8) < 0)
		return -1;
	*state = &room;
	return peer_home_read(&room.home, NULL);
}

static int teardown(void **state)
{
	struct room *room = *state;

	(void)close(room->listen_fd);
	(void)unlink(room->address.sun_path);
	return rmdir(room->dir);
}

typedef int prepare_fn(void);

/* A process that does PREPARE, connects and stays. Exit status 9: it could not. */
static pid_t start_peer(const struct room *room, prepare_fn *prepare)
{
	pid_t pid = fork();
	int fd = -1;

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (prepare && prepare() < 0)
		_exit(9);
	if (connect(fd, (const struct sockaddr *)&room->address, sizeof(room->address)) < 0)
		_exit(9);
	(void)pause();
	_exit(0);
}

static void end_peer(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* What R6 says about a peer that did PREPARE; PEER_CHECK_COUNT when it cannot be done here. */
static enum peer_check checked(struct room *room, prepare_fn *prepare, bool admitted)
{
	struct peer peer = PEER_INIT;
	enum peer_check check = PEER_CHECK_COUNT;
	pid_t pid = start_peer(room, prepare);
	struct timeval patience = { .tv_sec = 2 };
	int fd = -1;

	(void)setsockopt(room->listen_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	fd = accept4(room->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0 && peer_read(fd, &peer, NULL) == 0)
		check = peer_confinement(&peer, &room->home, admitted);
	end_peer(pid);
	peer_deinit(&peer);
	if (fd >= 0)
		(void)close(fd);
	return check;
}

static void assert_check(struct room *room, prepare_fn *prepare, bool admitted,
			 enum peer_check expected)
{
	enum peer_check check = checked(room, prepare, admitted);

	if (check == PEER_CHECK_COUNT)
		skip();
	assert_string_equal(peer_check_name(check), peer_check_name(expected));
}

static int become_somebody(void)
{
	gid_t groups[] = { 4242, 77, 4242 };

	return setgroups(3, groups) < 0 || setresgid(1234, 5678, 1234) < 0 ||
			       setresuid(1111, 2222, 1111) < 0
		       ? -1
		       : 0;
}

static void R1_credentials_are_those_at_connect(void **state)
{
	struct room *room = *state;
	struct peer peer = PEER_INIT;
	pid_t pid = 0;
	int fd = -1;

	if (geteuid() != 0)
		skip();
	pid = start_peer(room, become_somebody);
	fd = accept4(room->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(peer_read(fd, &peer, NULL), 0);
	assert_int_equal(peer.pid, pid);
	assert_int_equal(peer.identity.uid, 2222);
	assert_int_equal(peer.identity.gid, 5678);
	assert_int_equal(peer.identity.group_count, 2);
	assert_int_equal(peer.identity.groups[0], 77);
	assert_int_equal(peer.identity.groups[1], 4242);
	assert_true(peer.start_time > 0);
	end_peer(pid);
	assert_int_equal(peer_confinement(&peer, &room->home, true), PEER_GONE);
	peer_deinit(&peer);
	(void)close(fd);
}

static void R1_a_peer_that_died_before_accept_is_nobody(void **state)
{
	struct room *room = *state;
	struct peer peer = PEER_INIT;
	pid_t pid = start_peer(room, NULL);
	struct timespec pause = { .tv_nsec = 100000000 };
	int fd = -1;

	(void)nanosleep(&pause, NULL);
	end_peer(pid);
	fd = accept4(room->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(peer_read(fd, &peer, NULL), -ERR_NOT_AUTHORIZED);
	assert_int_equal(peer.pidfd, -1);
	(void)close(fd);
}

static int no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int seccomp_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	/* With privilege no_new_privs is not needed, so that each shows alone. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int mount_namespace(void)
{
	return unshare(CLONE_NEWNS);
}

static int pid_namespace(void)
{
	pid_t pid = 0;

	if (unshare(CLONE_NEWPID) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

static int other_root(void)
{
	return chroot("/tmp") < 0 || chdir("/") < 0 ? -1 : 0;
}

static void R6_an_ordinary_process_is_free(void **state)
{
	assert_check(*state, NULL, false, PEER_FREE);
}

static void R6_no_new_privs_and_seccomp_are_confinement(void **state)
{
	assert_check(*state, no_new_privs, false, PEER_NO_NEW_PRIVS);
	if (geteuid() == 0)
		assert_check(*state, seccomp_filter, false, PEER_SECCOMP);
}

static void R6_configuration_admits_them(void **state)
{
	assert_check(*state, no_new_privs, true, PEER_FREE);
	assert_true(peer_check_admissible(PEER_NO_NEW_PRIVS));
	assert_true(peer_check_admissible(PEER_SECCOMP));
	assert_true(peer_check_admissible(PEER_LABEL));
}

static void R6_other_namespaces_are_never_admitted(void **state)
{
	static const enum peer_check never[] = { PEER_USER_NAMESPACE, PEER_MOUNT_NAMESPACE,
						 PEER_PID_NAMESPACE,  PEER_ROOT_DIRECTORY,
						 PEER_UNREADABLE,     PEER_GONE };

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		assert_false(peer_check_admissible(never[i]));
	assert_check(*state, user_namespace, true, PEER_USER_NAMESPACE);
	if (geteuid() != 0)
		return;
	assert_check(*state, mount_namespace, true, PEER_MOUNT_NAMESPACE);
	assert_check(*state, pid_namespace, true, PEER_PID_NAMESPACE);
}

static int chroot_with_socket(void)
{
	/* The socket's path must mean the same inside: it lies in /tmp. */
	return chroot("/") < 0 ? -1 : 0;
}

static void R6_another_root_directory_is_confinement(void **state)
{
	struct room *room = *state;
	struct sockaddr_un whole = room->address;

	if (geteuid() != 0)
		skip();
	assert_check(room, chroot_with_socket, false, PEER_FREE);

	/* As seen below the new root. */
	(void)snprintf(room->address.sun_path, sizeof(room->address.sun_path), "%s",
		       whole.sun_path + strlen("/tmp"));
	assert_check(room, other_root, true, PEER_ROOT_DIRECTORY);
	room->address = whole;
}

static void R6_labels(void **state)
{
	static const char *const free_labels[] = {
		"unconfined", "_", "vscode (unconfined)",
		"unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023", "u:r:unconfined_t"
	};
	static const char *const confining[] = {
		"docker-default (enforce)", "x (complain)", "system_u:system_r:container_t:s0",
		"u:r:unconfined_tx:s0",     "unconfined_u", " (unconfined)",
		"a:unconfined_t",           "unconfined_t", "unconfined_u:unconfined_r:passwd_t:s0"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(free_labels); i++)
		assert_true(peer_label_is_free(free_labels[i]));
	for (size_t i = 0; i < ARRAY_SIZE(confining); i++)
		assert_false(peer_label_is_free(confining[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R1_credentials_are_those_at_connect),
		cmocka_unit_test(R1_a_peer_that_died_before_accept_is_nobody),
		cmocka_unit_test(R6_an_ordinary_process_is_free),
		cmocka_unit_test(R6_no_new_privs_and_seccomp_are_confinement),
		cmocka_unit_test(R6_configuration_admits_them),
		cmocka_unit_test(R6_other_namespaces_are_never_admitted),
		cmocka_unit_test(R6_another_root_directory_is_confinement),
		cmocka_unit_test(R6_labels),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
