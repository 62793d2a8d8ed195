/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mountapi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

#define OTHER_ID 61234
#define OPENS 20000

/* @dir_fd  of a directory of our own: real/f, link -> real, file-link -> real/f, closed/ (mode 0) */
struct world {
	char path[32];
	int dir_fd;
};

static void world_init(struct world *world)
{
	(void)snprintf(world->path, sizeof(world->path), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	assert_int_equal(chmod(world->path, 0755), 0);
	world->dir_fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(world->dir_fd >= 0);
	assert_int_equal(mkdirat(world->dir_fd, "real", 0755), 0);
	assert_int_equal(mkdirat(world->dir_fd, "closed", 0), 0);
	assert_int_equal(close(openat(world->dir_fd, "real/f", O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(symlinkat("real", world->dir_fd, "link"), 0);
	assert_int_equal(symlinkat("real/f", world->dir_fd, "file-link"), 0);
}

static void world_deinit(struct world *world)
{
	(void)unlinkat(world->dir_fd, "real/f", 0);
	(void)unlinkat(world->dir_fd, "real", AT_REMOVEDIR);
	(void)unlinkat(world->dir_fd, "closed", AT_REMOVEDIR);
	(void)unlinkat(world->dir_fd, "link", 0);
	(void)unlinkat(world->dir_fd, "file-link", 0);
	(void)close(world->dir_fd);
	(void)rmdir(world->path);
}

static int open_error(int dir_fd, const char *path, uint64_t flags)
{
	AUTO(auto_close) int fd = mountapi_open(dir_fd, path, O_PATH | flags, 0);

	return fd >= 0 ? 0 : errno;
}

static void R10_no_link_is_followed(void **state)
{
	AUTO(auto_close) int link_fd = -1;
	struct world world;
	struct stat st;

	(void)state;
	world_init(&world);
	assert_int_equal(open_error(world.dir_fd, "real/f", 0), 0);
	assert_int_equal(open_error(world.dir_fd, "link/f", 0), ELOOP);
	assert_int_equal(open_error(world.dir_fd, "link", 0), ELOOP);
	assert_int_equal(open_error(world.dir_fd, "file-link", 0), ELOOP);
	assert_int_equal(open_error(world.dir_fd, "absent", 0), ENOENT);
	assert_int_equal(open_error(world.dir_fd, "real/f/x", 0), ENOTDIR);
	assert_int_equal(open_error(AT_FDCWD, "/proc/self/root", 0), ELOOP);
	assert_int_equal(open_error(AT_FDCWD, "/proc/self/cwd/etc", 0), ELOOP);
	/* The node itself, for who asks for it. */
	link_fd = mountapi_open(world.dir_fd, "link", O_PATH | O_NOFOLLOW, 0);
	assert_true(link_fd >= 0);
	assert_int_equal(fstat(link_fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(fcntl(link_fd, F_GETFD), FD_CLOEXEC);
	world_deinit(&world);
}

static void R9_nothing_beyond_the_rights_of_the_caller(void **state)
{
	struct world world;
	int status = 0;
	pid_t pid = 0;

	(void)state;
	if (geteuid() != 0)
		skip(); /* takes being somebody else */
	world_init(&world);
	pid = fork();
	if (pid == 0) {
		if (setresgid(OTHER_ID, OTHER_ID, OTHER_ID) < 0 ||
		    setresuid(OTHER_ID, OTHER_ID, OTHER_ID) < 0)
			_exit(1);
		if (open_error(world.dir_fd, "closed/x", 0) != EACCES)
			_exit(2);
		if (open_error(world.dir_fd, "real/f", 0) != 0)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	world_deinit(&world);
}

/* Another process that never stops to make `real` and `link` change places. */
static pid_t start_swapper(const struct world *world)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (;;)
		(void)renameat2(world->dir_fd, "real", world->dir_fd, "link", RENAME_EXCHANGE);
}

static void R10_a_link_that_changes_places_is_never_followed(void **state)
{
	size_t opened = 0;
	struct world world;
	struct stat wanted;
	pid_t swapper = 0;

	(void)state;
	world_init(&world);
	(void)unlinkat(world.dir_fd, "link", 0);
	assert_int_equal(symlinkat("/etc", world.dir_fd, "link"), 0);
	assert_int_equal(fstatat(world.dir_fd, "real", &wanted, 0), 0);
	swapper = start_swapper(&world);
	for (int i = 0; i < OPENS; i++) {
		AUTO(auto_close)
		int fd = mountapi_open(world.dir_fd, "real", O_PATH | O_DIRECTORY, 0);
		struct stat st;

		if (fd < 0)
			continue;
		opened++;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, wanted.st_ino);
	}
	assert_int_equal(kill(swapper, SIGKILL), 0);
	assert_int_equal(waitpid(swapper, NULL, 0), swapper);
	print_message("%zu of %d opened\n", opened, OPENS);
	(void)unlinkat(world.dir_fd, "link", 0); /* whichever it is now */
	(void)unlinkat(world.dir_fd, "real", 0);
	(void)renameat(world.dir_fd, "link", world.dir_fd, "real");
	world_deinit(&world);
}

static size_t lines_of_mountinfo(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t lines = 0;
	int byte = 0;

	while (file && (byte = getc(file)) != EOF)
		lines += byte == '\n';
	if (file)
		(void)fclose(file);
	return lines;
}

/* In a namespace of its own, with so many mounts that they do not fit into one answer. */
static int count_many(void)
{
	AUTO(auto_close) int begun = -1;
	AUTO(auto_close) int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t before = 0;
	size_t after = 0;
	size_t by_file = 0;

	if (mountapi_count_begin(&begun, NULL) < 0 || mountapi_count(begun, &before, NULL) < 0)
		return 1;
	if (before != lines_of_mountinfo())
		return 2;
	for (int i = 0; i < 600; i++)
		if (mount("fsbox", "/mnt", "tmpfs", 0, NULL) < 0)
			return 3;
	if (mountapi_count(begun, &after, NULL) < 0 || after != before + 600)
		return 4;
	/* The way of kernels before 6.8. */
	if (mountapi_count(proc, &by_file, NULL) < 0 || by_file != after)
		return 5;
	return 0;
}

static void mounts_are_counted(void **state)
{
	int status = 0;
	pid_t pid = 0;

	(void)state;
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS | (geteuid() != 0 ? CLONE_NEWUSER : 0)) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(90);
		_exit(count_many());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 90)
		skip(); /* neither root nor user namespaces */
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R10_no_link_is_followed),
		cmocka_unit_test(R9_nothing_beyond_the_rights_of_the_caller),
		cmocka_unit_test(R10_a_link_that_changes_places_is_never_followed),
		cmocka_unit_test(mounts_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
