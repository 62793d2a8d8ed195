/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* A directory shown readWrite, as the host has it: `secret`, and links to it. */
#define WORK_TEMPLATE "/tmp/fsbox-test-XXXXXX"

struct world {
	char work[sizeof(WORK_TEMPLATE)];
	struct plan plan;
};

static const char *in_work(const struct world *world, const char *name)
{
	static char path[2][128];
	static unsigned int turn;

	turn ^= 1;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", world->work, name);
	return path[turn];
}

static void add(struct world *world, enum plan_op_kind kind, uint32_t flags, const char *path)
{
	struct error err = ERROR_INIT;
	const struct plan_op op = {
		.kind = kind,
		.flags = flags,
		.path = (char *)path,
		.source = kind == PLAN_BIND || kind == PLAN_PIN ? (char *)path : NULL,
		.rule = -1,
	};

	assert_int_equal(plan_add(&world->plan, &op, &err), 0);
}

static void world_init(struct world *world)
{
	int fd = -1;

	*world = (struct world){ .work = WORK_TEMPLATE, .plan = PLAN_INIT };
	assert_non_null(mkdtemp(world->work));
	fd = open(in_work(world, "secret"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "words\n", 6), 6);
	assert_int_equal(close(fd), 0);
	assert_int_equal(symlink("secret", in_work(world, "link")), 0);
	add(world, PLAN_ROOT, PLAN_SYSTEM, "/");
	add(world, PLAN_DEV, PLAN_SYSTEM, "/dev");
	add(world, PLAN_BIND, 0, world->work);
}

static void world_deinit(struct world *world)
{
	(void)unlink(in_work(world, "secret"));
	(void)unlink(in_work(world, "link"));
	(void)rmdir(world->work);
	plan_deinit(&world->plan);
}

static void write_map(const char *path, unsigned int id)
{
	char text[64];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int size = snprintf(text, sizeof(text), "%u %u 1", id, id);

	(void)!write(fd, text, (size_t)size);
	(void)close(fd);
}

#define OTHER_ID 61234

/* Mounts of our own: as root, or in a user namespace where that is allowed. */
static bool enter_namespaces(struct mount_options *ret_options)
{
	unsigned int uid = geteuid();
	unsigned int gid = getegid();

	*ret_options = (struct mount_options){ .in_userns = uid != 0, .root_peer = uid == 0 };
	if (unshare(CLONE_NEWNS | (uid != 0 ? CLONE_NEWUSER : 0)) < 0)
		return false;
	if (uid != 0) {
		int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);

		(void)!write(fd, "deny", 4);
		(void)close(fd);
		write_map("/proc/self/gid_map", gid);
		write_map("/proc/self/uid_map", uid);
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

enum { BUILT = 0, CANNOT_UNSHARE = 90, FAILED = 91 };

/* What LOOK says inside, or one of the above. */
static int try_to_look(const struct world *world, int (*look)(const struct world *world))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct mount_options options;
		struct error err = ERROR_INIT;

		if (!enter_namespaces(&options))
			_exit(CANNOT_UNSHARE);
		if (mount_build(&world->plan, &options, &err) < 0 ||
		    mount_finish(&world->plan, &options, MOUNT_AHEAD | MOUNT_INSIDE, &err) < 0) {
			fprintf(stderr, "%s\n", err.message);
			_exit(FAILED);
		}
		_exit(look(world));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return FAILED;
	return WEXITSTATUS(status);
}

static int build_and_look(const struct world *world, int (*look)(const struct world *world))
{
	int status = try_to_look(world, look);

	if (status == CANNOT_UNSHARE)
		skip();
	return status;
}

static bool can_read(const char *path)
{
	char text[8];
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, text, sizeof(text)) > 0;
}

/* Refused as a mountpoint is, for any user. */
static bool keeps_its_name(const char *path, const char *other)
{
	return rename(path, other) < 0 && errno == EBUSY && unlink(path) < 0 && errno == EBUSY;
}

static int look_at_denied_link(const struct world *world)
{
	struct stat st;

	if (can_read(in_work(world, "link")) || !can_read(in_work(world, "secret")))
		return 1;
	if (lstat(in_work(world, "link"), &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 0)
		return 2;
	return keeps_its_name(in_work(world, "link"), in_work(world, "other")) ? BUILT : 3;
}

static void a_denied_link_is_masked_itself(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	add(&world, PLAN_MASK_FILE, PLAN_NODE_LINK, in_work(&world, "link"));
	assert_int_equal(build_and_look(&world, look_at_denied_link), BUILT);
	world_deinit(&world);
}

static int look_at_kept_link(const struct world *world)
{
	char target[32];

	if (!can_read(in_work(world, "link")))
		return 1;
	if (readlink(in_work(world, "link"), target, sizeof(target)) != 6)
		return 2;
	return keeps_its_name(in_work(world, "link"), in_work(world, "other")) ? BUILT : 3;
}

static void a_read_only_link_leads_on_and_stays(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	add(&world, PLAN_BIND, PLAN_READ_ONLY | PLAN_NODE_FILE | PLAN_NODE_LINK,
	    in_work(&world, "link"));
	assert_int_equal(build_and_look(&world, look_at_kept_link), BUILT);
	world_deinit(&world);
}

static int never_reached(const struct world *world)
{
	(void)world;
	return BUILT;
}

/* The plan was made for a link; or for none (R10). */
static void what_is_no_link_any_more_stops_the_work(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	add(&world, PLAN_BIND, PLAN_READ_ONLY | PLAN_NODE_FILE | PLAN_NODE_LINK,
	    in_work(&world, "secret"));
	assert_int_equal(build_and_look(&world, never_reached), FAILED);
	world_deinit(&world);

	world_init(&world);
	add(&world, PLAN_BIND, PLAN_READ_ONLY | PLAN_NODE_FILE, in_work(&world, "link"));
	assert_int_equal(build_and_look(&world, never_reached), FAILED);
	world_deinit(&world);

	world_init(&world);
	add(&world, PLAN_MASK_FILE, 0, in_work(&world, "link"));
	assert_int_equal(build_and_look(&world, never_reached), FAILED);
	world_deinit(&world);
}

static int look_at_sys(const struct world *world)
{
	struct statvfs vfs;

	(void)world;
	if (access("/sys/kernel", R_OK) < 0 || access("/sys/fs/cgroup", R_OK) == 0)
		return 1;
	return statvfs("/sys", &vfs) == 0 && (vfs.f_flag & ST_RDONLY) ? BUILT : 2;
}

/* In a user namespace, where nothing that is mounted below may be left out. */
static void sys_is_shown_to_a_user(void **state)
{
	struct world world;
	pid_t pid = 0;
	int status = 0;

	(void)state;
	world_init(&world);
	assert_int_equal(chown(world.work, OTHER_ID, OTHER_ID), geteuid() == 0 ? 0 : -1);
	add(&world, PLAN_SYS, PLAN_SYSTEM | PLAN_READ_ONLY, "/sys");
	add(&world, PLAN_MASK_DIR, PLAN_SYSTEM, "/sys/fs/cgroup");
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(OTHER_ID, OTHER_ID, OTHER_ID) < 0 ||
				       setresuid(OTHER_ID, OTHER_ID, OTHER_ID) < 0))
			_exit(CANNOT_UNSHARE);
		/* The maps of a user namespace are ours only if we may be looked at. */
		(void)prctl(PR_SET_DUMPABLE, 1);
		_exit(try_to_look(&world, look_at_sys));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	world_deinit(&world);
	if (WEXITSTATUS(status) == CANNOT_UNSHARE)
		skip();
	assert_int_equal(WEXITSTATUS(status), BUILT);
}

static int look_at_pinned_file(const struct world *world)
{
	int fd = open(in_work(world, "secret"), O_RDWR | O_CLOEXEC);

	if (!can_read(in_work(world, "secret")) || fd < 0)
		return 1;
	return keeps_its_name(in_work(world, "secret"), in_work(world, "other")) ? BUILT : 2;
}

/* Where something below a file is denied: nothing is mounted on it, yet it stays. */
static void a_file_can_be_pinned(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	add(&world, PLAN_PIN, PLAN_NODE_FILE, in_work(&world, "secret"));
	assert_int_equal(build_and_look(&world, look_at_pinned_file), BUILT);
	world_deinit(&world);
}

static int look_at_fresh_place(const struct world *world)
{
	struct stat st;

	if (!can_read(in_work(world, "secret")) || access(in_work(world, "secret"), W_OK) == 0)
		return 1;
	if (lstat(in_work(world, "hidden"), &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 0)
		return 2;
	if (lstat(in_work(world, "closed"), &st) < 0 || !S_ISDIR(st.st_mode) ||
	    rmdir(in_work(world, "closed")) == 0)
		return 3;
	return access(world->work, W_OK) == 0 ? BUILT : 4;
}

/* In a fresh directory nothing is there to stand on: mountpoints are made as what they are for. */
static void files_below_fresh_directories(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	world.plan.ops[2].kind = PLAN_TMPFS;
	(void)snprintf(world.plan.ops[2].path, strlen(world.work) + 1, "/tmp");
	add(&world, PLAN_BIND, PLAN_READ_ONLY | PLAN_NODE_FILE, in_work(&world, "secret"));
	add(&world, PLAN_MASK_FILE, 0, in_work(&world, "hidden"));
	add(&world, PLAN_MASK_DIR, 0, in_work(&world, "closed"));
	assert_int_equal(build_and_look(&world, look_at_fresh_place), BUILT);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_denied_link_is_masked_itself),
		cmocka_unit_test(a_read_only_link_leads_on_and_stays),
		cmocka_unit_test(what_is_no_link_any_more_stops_the_work),
		cmocka_unit_test(sys_is_shown_to_a_user),
		cmocka_unit_test(a_file_can_be_pinned),
		cmocka_unit_test(files_below_fresh_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
