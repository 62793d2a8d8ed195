/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/nativeprobe.h"
#include "tests/test.h"

#define OTHER_ID 61234

enum { CANNOT = 90 };

/*
 * @work    a directory that is shown for writing, with `denied` and `dir`
 * @input   for our own user, or for another one when we are root
 */
struct world {
	char work[32];
	char path[4][64];
	struct plan plan;
	struct identity identity;
	struct native_input input;
};

static void add(struct world *world, enum plan_op_kind kind, uint32_t flags, const char *path)
{
	const struct plan_op op = { .kind = kind,
				    .flags = flags,
				    .path = (char *)(uintptr_t)path,
				    .source = kind == PLAN_BIND ? (char *)(uintptr_t)path : NULL,
				    .rule = -1 };

	assert_int_equal(plan_add(&world->plan, &op, NULL), 0);
}

static const char *at(struct world *world, int number, const char *name)
{
	(void)snprintf(world->path[number], sizeof(world->path[number]), "%s/%s", world->work,
		       name);
	return world->path[number];
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void world_init(struct world *world)
{
	uid_t uid = geteuid() == 0 ? OTHER_ID : geteuid();

	*world = (struct world){ .plan = PLAN_INIT };
	(void)snprintf(world->work, sizeof(world->work), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(world->work));
	make_file(at(world, 0, "denied"));
	assert_int_equal(mkdir(at(world, 1, "dir"), 0755), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(world->work, uid, uid), 0);
		assert_int_equal(chown(world->path[0], uid, uid), 0);
	}
	add(world, PLAN_ROOT, PLAN_SYSTEM, "/");
	add(world, PLAN_DEV, PLAN_SYSTEM, "/dev");
	add(world, PLAN_PROC, PLAN_SYSTEM, "/proc");
	add(world, PLAN_TMPFS, PLAN_SYSTEM, "/tmp");
	add(world, PLAN_BIND, 0, world->work);
	add(world, PLAN_MASK_FILE, 0, world->path[0]);
	add(world, PLAN_BIND, PLAN_READ_ONLY, world->path[1]);
	add(world, PLAN_MASK_DIR, PLAN_WATCH, at(world, 2, "absent"));
	add(world, PLAN_SEAL, PLAN_SYSTEM, "/dev");
	add(world, PLAN_SEAL, PLAN_SYSTEM, "/");
	world->identity.uid = uid;
	world->identity.gid = geteuid() == 0 ? uid : getegid();
	world->input = (struct native_input){
		.plan = &world->plan,
		.identity = &world->identity,
		.switch_ids = geteuid() == 0,
		.user_ns_fd = -1,
	};
	world->input.shared = mmap(NULL, native_shared_bytes(&world->plan), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(world->input.shared != MAP_FAILED);
	if (geteuid() != 0)
		world->input.user_ns_fd = nativeprobe_user_namespace(&world->identity, NULL);
	if (geteuid() != 0 && world->input.user_ns_fd < 0)
		skip(); /* neither root nor user namespaces */
}

static void world_deinit(struct world *world)
{
	char command[64];

	(void)munmap(world->input.shared, native_shared_bytes(&world->plan));
	if (world->input.user_ns_fd >= 0)
		(void)close(world->input.user_ns_fd);
	plan_deinit(&world->plan);
	(void)snprintf(command, sizeof(command), "%s", world->work);
	if (fork() == 0) {
		(void)execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	(void)wait(NULL);
}

/* MAIN's result, called in a process of its own that has become the user. */
static int in_child(struct world *world, int (*main)(struct world *world))
{
	struct error err = ERROR_INIT;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (world->input.switch_ids && native_become(&world->identity, &err) < 0)
			_exit(CANNOT);
		_exit(main(world));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static int build(struct world *world)
{
	struct error err = ERROR_INIT;

	if (native_build(&world->input, &err) == 0)
		return 0;
	fprintf(stderr, "%s\n", err.message);
	return native_changed_meanwhile(&world->input, NULL) ? 2 : 1;
}

static int is_valid(struct world *world)
{
	struct error err = ERROR_INIT;
	int valid = native_still_valid(&world->input, -1, &err);

	/* A reason exactly when it is not. */
	return valid == (err.kind == 0) ? valid : 100;
}

static void R10_every_change_of_a_path_is_seen(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_int_equal(in_child(&world, build), 0);
	assert_int_equal(in_child(&world, is_valid), 1);

	/* What is written into is the same object. */
	make_file(at(&world, 3, "dir/new"));
	assert_int_equal(in_child(&world, is_valid), 1);

	/* Replaced. */
	make_file(at(&world, 3, "other"));
	assert_int_equal(rename(world.path[3], world.path[0]), 0);
	assert_int_equal(in_child(&world, is_valid), 0);
	assert_int_equal(in_child(&world, build), 0);
	assert_int_equal(in_child(&world, is_valid), 1);

	/* Appeared, and gone again. */
	make_file(world.path[2]);
	assert_int_equal(in_child(&world, is_valid), 0);
	assert_int_equal(unlink(world.path[2]), 0);
	assert_int_equal(in_child(&world, is_valid), 1);

	/* A link to the very same. */
	assert_int_equal(rename(world.path[1], at(&world, 3, "moved")), 0);
	assert_int_equal(in_child(&world, is_valid), 0);
	assert_int_equal(symlink("moved", world.path[1]), 0);
	assert_int_equal(in_child(&world, is_valid), 0);
	assert_int_equal(unlink(world.path[1]), 0);
	assert_int_equal(rename(world.path[3], world.path[1]), 0);
	assert_int_equal(in_child(&world, is_valid), 1);

	/* Removed and made anew, most likely with the same inode number. */
	assert_int_equal(unlink(world.path[0]), 0);
	make_file(world.path[0]);
	assert_int_equal(in_child(&world, is_valid), 0);
	world_deinit(&world);
}

/* A process that has left the host's mounts, and has nothing of them but their root directory. */
static int is_valid_from_far(struct world *world)
{
	AUTO(auto_close) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct error err = ERROR_INIT;
	AUTO(auto_close) int far = -1;
	int valid = 0;

	if (world->input.user_ns_fd >= 0 && setns(world->input.user_ns_fd, CLONE_NEWUSER) < 0)
		return 101;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/", "tmpfs", 0, NULL) < 0)
		return 102;
	far = openat(proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
	/* Going there once more is what puts us on the new root. */
	if (far < 0 || setns(far, CLONE_NEWNS) < 0 || access("/tmp", F_OK) == 0)
		return 103;
	if (native_still_valid(&world->input, -1, &err) != 0)
		return 104;
	err = (struct error)ERROR_INIT;
	valid = native_still_valid(&world->input, root, &err);
	return valid == (err.kind == 0) ? valid : 100;
}

static void R10_every_change_is_seen_from_far_as_well(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_int_equal(in_child(&world, build), 0);
	assert_int_equal(in_child(&world, is_valid_from_far), 1);
	make_file(at(&world, 3, "other"));
	assert_int_equal(rename(world.path[3], world.path[0]), 0);
	assert_int_equal(in_child(&world, is_valid_from_far), 0);
	assert_int_equal(in_child(&world, build), 0);
	assert_int_equal(in_child(&world, is_valid_from_far), 1);
	make_file(world.path[2]);
	assert_int_equal(in_child(&world, is_valid_from_far), 0);
	assert_int_equal(unlink(world.path[2]), 0);
	assert_int_equal(rename(world.path[1], at(&world, 3, "moved")), 0);
	assert_int_equal(symlink("moved", world.path[1]), 0);
	assert_int_equal(in_child(&world, is_valid_from_far), 0);
	world_deinit(&world);
}

static void a_build_that_fails_says_whether_the_host_changed(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	/* Not there from the beginning: another try is no use. */
	assert_int_equal(unlink(world.path[0]), 0);
	assert_int_equal(in_child(&world, build), 1);
	/* But a placeholder was there a moment ago. */
	world.plan.ops[5].flags |= PLAN_PLACEHOLDER;
	assert_int_equal(in_child(&world, build), 2);
	world_deinit(&world);
}

static int look_at_capabilities(struct world *world)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const uint32_t wanted = 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_CHROOT | 1u << CAP_SETPCAP;
	uid_t uids[3];

	if (syscall(SYS_capget, &header, data) < 0)
		return 1;
	if (data[0].permitted != wanted || data[0].effective != wanted || data[1].permitted ||
	    data[0].inheritable || data[1].effective)
		return 2;
	if (getresuid(&uids[0], &uids[1], &uids[2]) < 0)
		return 3;
	for (int i = 0; i < 3; i++)
		if (uids[i] != world->identity.uid)
			return 4;
	/* Nobody's files but the user's: what root alone may read stays so. */
	if (open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 5;
	return getgroups(0, NULL) == 0 ? 0 : 6;
}

static void R9_what_is_left_is_mounting(void **state)
{
	struct world world;

	(void)state;
	if (geteuid() != 0)
		skip(); /* takes being somebody else */
	world_init(&world);
	assert_int_equal(in_child(&world, look_at_capabilities), 0);
	world_deinit(&world);
}

/* Builds, then loses a mount of it as it would from outside, then enters. */
static int enter_what_lost_a_mount(struct world *world)
{
	struct error err = ERROR_INIT;
	AUTO(auto_close) int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int mount_ns = -1;
	bool lose = world->input.shared->mounts == 1;

	if (native_build(&world->input, &err) < 0)
		return 1;
	if (lose && umount2("/dev/null", MNT_DETACH) < 0)
		return 2;
	mount_ns = openat(proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
	if (mount_ns < 0)
		return 3;
	if (world->input.user_ns_fd >= 0) {
		/* We stand in it already, and cannot enter it twice. */
		(void)close(world->input.user_ns_fd);
		world->input.user_ns_fd = -1;
	}
	if (unshare(CLONE_NEWPID) < 0)
		return 4;
	if (fork() == 0) {
		const struct native_namespaces namespaces = { .mount_ns_fd = mount_ns,
							      .set = NATIVE_SET_INIT,
							      .net_host = true };
		int r = native_enter(&world->input, &namespaces, &err);

		if (r < 0)
			fprintf(stderr, "%s\n", err.message);
		if (lose)
			_exit(err.kind == ERR_PATH_NOT_FOUND ? 7 : 8);
		_exit(r == 0 && access("/proc/self/status", R_OK) == 0 ? 7 : 9);
	}
	{
		int status = 0;

		(void)wait(&status);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 10;
	}
}

static void R10_a_template_that_lost_a_mount_is_not_entered(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	world.input.shared->mounts = 0;
	assert_int_equal(in_child(&world, enter_what_lost_a_mount), 7);
	world.input.shared->mounts = 1;
	assert_int_equal(in_child(&world, enter_what_lost_a_mount), 7);
	world_deinit(&world);
}

static void the_probe_finds_it_working(void **state)
{
	struct error err = ERROR_INIT;
	struct world world;

	(void)state;
	world_init(&world);
	if (nativeprobe_run(&world.identity, world.input.user_ns_fd, &err) < 0)
		fail_msg("%s", err.message);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R10_every_change_of_a_path_is_seen),
		cmocka_unit_test(R10_every_change_is_seen_from_far_as_well),
		cmocka_unit_test(a_build_that_fails_says_whether_the_host_changed),
		cmocka_unit_test(R9_what_is_left_is_mounting),
		cmocka_unit_test(R10_a_template_that_lost_a_mount_is_not_entered),
		cmocka_unit_test(the_probe_finds_it_working),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
