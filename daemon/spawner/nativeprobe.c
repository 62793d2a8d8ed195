/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/nativeprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/plan.h"
#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/initconfine.h"
#include "daemon/spawner/mount.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/nsfd.h"

#define PROBE_MS 5000

/* ---- in the child: what it says is one line on the pipe ------------------------------- */

static _Noreturn void say(int fd, const char *step, const struct error *err)
{
	char line[ERROR_MESSAGE_BYTES + 64];
	int length = snprintf(line, sizeof(line), "%s: %s", step, err->message);

	(void)!write(fd, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
	_exit(1);
}

/* A directory that is a mountpoint elsewhere in this namespace must keep its name. */
static int prove_pin(struct error *err)
{
	AUTO(auto_close) int root = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int dir = -1;
	AUTO(auto_close) int place = -1;
	AUTO(auto_close) int tree = -1;
	AUTO(auto_close) int mask = mountapi_new_tmpfs("0000", MOUNT_ATTR_RDONLY);

	if (root < 0 || mask < 0 || mkdirat(root, "pinned", 0700) < 0 ||
	    mkdirat(root, "place", 0700) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "directories for the pin");
	dir = mountapi_open(root, "pinned", O_PATH | O_DIRECTORY, 0);
	place = mountapi_open(root, "place", O_PATH | O_DIRECTORY, 0);
	tree = open_tree(root, "pinned", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (dir < 0 || place < 0 || tree < 0 || mountapi_attach(tree, place) < 0 ||
	    mountapi_attach(mask, tree) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount the pin");
	if (renameat(root, "pinned", root, "moved") == 0)
		return error_set(err, ERR_SETUP_FAILED, 0, "a pinned directory was renamed");
	if (errno != EBUSY)
		return error_set(err, ERR_SETUP_FAILED, errno, "a pinned directory");
	return 0;
}

static int trivial_plan(struct plan *plan, struct error *err)
{
	static const struct plan_op ops[] = {
		{ .kind = PLAN_ROOT, .flags = PLAN_SYSTEM, .path = (char *)"/", .rule = -1 },
		{ .kind = PLAN_DEV, .flags = PLAN_SYSTEM, .path = (char *)"/dev", .rule = -1 },
		{ .kind = PLAN_PROC, .flags = PLAN_SYSTEM, .path = (char *)"/proc", .rule = -1 },
		{ .kind = PLAN_TMPFS, .flags = PLAN_SYSTEM, .path = (char *)"/tmp", .rule = -1 },
		{ .kind = PLAN_SEAL, .flags = PLAN_SYSTEM, .path = (char *)"/dev", .rule = -1 },
		{ .kind = PLAN_SEAL, .flags = PLAN_SYSTEM, .path = (char *)"/", .rule = -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (plan_add(plan, &ops[i], err) < 0)
			return -(int)err->kind;
	return 0;
}

/* Pid 1 of a namespace, in the template: what is left is what every job does. */
static _Noreturn void probe_inside(const struct plan *plan, const struct identity *identity,
				   bool in_userns, int say_fd)
{
	const struct mount_options options = { .in_userns = in_userns,
					       .root_peer = identity->uid == 0 };
	const char *stage = "mounts";
	struct error err = ERROR_INIT;

	if (mount_finish(plan, &options, MOUNT_AHEAD | MOUNT_INSIDE, &err) < 0)
		say(say_fd, stage, &err);
	if (prove_pin(&err) < 0)
		say(say_fd, "pin", &err);
	if (init_confine(NULL, 0, -1, &stage, &err) < 0)
		say(say_fd, stage, &err);
	_exit(0);
}

static _Noreturn void probe_child(const struct identity *identity, int user_ns_fd, int say_fd)
{
	static const struct native_set none = NATIVE_SET_INIT;
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;
	struct native_input input = {
		.plan = &plan,
		.identity = identity,
		.switch_ids = user_ns_fd < 0,
		.user_ns_fd = user_ns_fd,
	};
	int status = 0;
	pid_t pid = 0;

	(void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
	if (trivial_plan(&plan, &err) < 0)
		say(say_fd, "plan", &err);
	input.shared = calloc(1, native_shared_bytes(&plan));
	if (!input.shared)
		_exit(1);
	if (input.switch_ids && native_enter_set(&none, false, &err) < 0)
		say(say_fd, "network", &err);
	if (input.switch_ids && native_become(identity, &err) < 0)
		say(say_fd, "identity", &err);
	if (native_build(&input, &err) < 0)
		say(say_fd, "template", &err);
	if (unshare(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNS) <
	    0) {
		(void)error_set(&err, ERR_SETUP_FAILED, errno, "unshare");
		say(say_fd, "namespaces", &err);
	}
	pid = fork();
	if (pid == 0)
		probe_inside(&plan, identity, !input.switch_ids, say_fd);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		_exit(1);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* ---- in fsboxd ------------------------------------------------------------------------ */

/* What the child said before it ended or the time was up; its end is reaped. */
static bool ended_well(pid_t pid, int said_fd, char *ret_said, size_t size)
{
	struct pollfd readable = { .fd = said_fd, .events = POLLIN };
	size_t used = 0;
	int status = 0;

	while (used + 1 < size && poll(&readable, 1, PROBE_MS) > 0) {
		ssize_t got = read(said_fd, ret_said + used, size - 1 - used);

		if (got <= 0)
			break;
		used += (size_t)got;
	}
	ret_said[used] = '\0';
	(void)kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int nativeprobe_run(const struct identity *identity, int user_ns_fd, struct error *err)
{
	char said[ERROR_MESSAGE_BYTES] = "";
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int ends[2];
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, errno, "pipe");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid == 0)
		probe_child(identity, user_ns_fd, theirs);
	if (pid < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, errno, "fork");
	auto_close(&theirs);
	theirs = -1;
	if (!ended_well(pid, ours, said, sizeof(said)))
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "%s",
				 said[0] ? said : "a trivial job did not end well");
	return 0;
}

static _Noreturn void user_namespace_child(const struct identity *identity, int say_fd)
{
	struct error err = ERROR_INIT;
	char byte = 0;

	if (native_new_user_namespace(identity, &err) < 0)
		say(say_fd, "user namespace", &err);
	(void)!write(say_fd, &byte, 1);
	for (;;)
		(void)pause();
}

int nativeprobe_user_namespace(const struct identity *identity, struct error *err)
{
	char said[ERROR_MESSAGE_BYTES] = "";
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	AUTO(auto_close) int pidfd = -1;
	struct pollfd readable = { .events = POLLIN };
	int ends[2];
	pid_t pid = 0;
	int fd = -1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, errno, "pipe");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid == 0)
		user_namespace_child(identity, theirs);
	if (pid < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, errno, "fork");
	auto_close(&theirs);
	theirs = -1;
	readable.fd = ours;
	pidfd = pidfd_open_pid(pid);
	if (poll(&readable, 1, PROBE_MS) > 0 && read(ours, said, sizeof(said) - 1) > 0 &&
	    said[0] == '\0')
		fd = nsfd_open(pidfd, pid, NSFD_USER);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	if (fd < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "%s",
				 said[0] ? said : "no user namespace can be made");
	return fd;
}
