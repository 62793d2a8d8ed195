/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/sender.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* A child that enters other namespaces when told to, and says when it is done. */
struct child {
	pid_t pid;
	int tell;
	int hear;
};

static struct child start_child(int flags, const char *root)
{
	struct child child;
	int tell[2];
	int hear[2];

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hear, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		char byte = 'x';

		(void)close(tell[1]);
		if (write(hear[1], &byte, 1) != 1 || read(tell[0], &byte, 1) != 1)
			_exit(1);
		if (flags != 0 && unshare(flags) < 0)
			byte = 'f';
		if (root != NULL && chroot(root) < 0)
			byte = 'f';
		if (write(hear[1], &byte, 1) != 1)
			_exit(1);
		(void)read(tell[0], &byte, 1);
		_exit(0);
	}
	(void)close(tell[0]);
	(void)close(hear[1]);
	child.tell = tell[1];
	child.hear = hear[0];
	return child;
}

static char next_word(const struct child *child)
{
	char byte = 0;

	assert_int_equal(read(child->hear, &byte, 1), 1);
	return byte;
}

static void stop_child(struct child *child)
{
	(void)close(child->tell);
	(void)close(child->hear);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int check(const struct sender *sender, pid_t pid, uid_t uid, struct error *err)
{
	const struct channel_sender who = { .pid = pid, .uid = uid };
	struct sender_places ours;

	assert_int_equal(sender_own_places(&ours, err), 0);
	error_clear(err);
	return sender_check(sender, &who, &ours, err);
}

static void test_itself_R2(void **state)
{
	struct child child = start_child(0, NULL);
	struct sender sender;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(next_word(&child), 'x');
	assert_int_equal(
		sender_init_take(&sender, child.pid, getuid(), open_pidfd(child.pid), &err), 0);
	assert_int_equal(check(&sender, child.pid, getuid(), &err), 0);
	assert_int_equal(check(&sender, getpid(), getuid(), &err), -ERR_CONFINED_PEER);
	assert_int_equal(check(&sender, 0, getuid(), &err), -ERR_CONFINED_PEER);
	assert_int_equal(check(&sender, child.pid, getuid() + 1, &err), -ERR_CONFINED_PEER);
	stop_child(&child);

	/* Gone: not even a process with the same number may speak. */
	assert_int_equal(check(&sender, child.pid, getuid(), &err), -ERR_CONFINED_PEER);
	sender_deinit(&sender);
}

static void test_gone_before_we_looked_R2(void **state)
{
	struct child child = start_child(0, NULL);
	int pidfd = open_pidfd(child.pid);
	struct sender sender;
	struct error err = ERROR_INIT;

	(void)state;
	stop_child(&child);
	assert_int_equal(sender_init_take(&sender, child.pid, getuid(), pidfd, &err),
			 -ERR_CONFINED_PEER);
	sender_deinit(&sender);
}

static void moves_away(int flags, const char *root, const char *word)
{
	struct child child = start_child(flags, root);
	struct sender sender;
	struct error err = ERROR_INIT;

	assert_int_equal(next_word(&child), 'x');
	assert_int_equal(
		sender_init_take(&sender, child.pid, getuid(), open_pidfd(child.pid), &err), 0);
	assert_int_equal(check(&sender, child.pid, getuid(), &err), 0);
	assert_int_equal(write(child.tell, "g", 1), 1);
	if (next_word(&child) == 'f') {
		stop_child(&child);
		sender_deinit(&sender);
		skip();
	}
	assert_int_equal(check(&sender, child.pid, getuid(), &err), -ERR_CONFINED_PEER);
	assert_non_null(strstr(err.message, word));
	stop_child(&child);
	sender_deinit(&sender);
}

static void test_user_namespace_R2(void **state)
{
	(void)state;
	moves_away(CLONE_NEWUSER, NULL, "user namespace");
}

static void test_mount_namespace_R2(void **state)
{
	(void)state;
	moves_away(CLONE_NEWNS, NULL, "mount namespace");
}

static void test_root_directory_R2(void **state)
{
	(void)state;
	moves_away(0, "/tmp", "root directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_itself_R2),
		cmocka_unit_test(test_gone_before_we_looked_R2),
		cmocka_unit_test(test_user_namespace_R2),
		cmocka_unit_test(test_mount_namespace_R2),
		cmocka_unit_test(test_root_directory_R2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
