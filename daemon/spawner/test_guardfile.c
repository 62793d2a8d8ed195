/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardfile.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/plan.h"
#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/sealed.h"
#include "tests/test.h"

#define UID 1234

struct place {
	char dir[64];
	struct jobfiles files;
	struct buf plan;
};

static void write_plan(struct buf *out)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	const struct plan_op op = {
		.kind = PLAN_ROOT, .flags = PLAN_SYSTEM, .path = (char *)"/", .rule = -1
	};

	plan.chdir = strdup("/");
	assert_int_equal(plan_add(&plan, &op, NULL), 0);
	*out = (struct buf)BUF_INIT(4096);
	assert_int_equal(plan_encode(&plan, out, NULL), 0);
}

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	(void)snprintf(place->dir, sizeof(place->dir), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	place->files = (struct jobfiles)JOBFILES_INIT;
	assert_int_equal(jobfiles_open(&place->files, place->dir, NULL), 0);
	write_plan(&place->plan);
	assert_int_equal(guardfile_keep_plan(&place->files, 7, UID, place->plan.data,
					     place->plan.size, NULL),
			 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	pid_t pid;

	jobfiles_close(&place->files);
	pid = fork();
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", place->dir, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	buf_deinit(&place->plan);
	free(place);
	return 0;
}

static bool is_there(const struct place *place, const char *name)
{
	return faccessat(place->files.dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int look(const struct place *place, uint64_t id, uid_t uid)
{
	AUTO(auto_close) int fd = -1;
	size_t bytes = 0;

	return guardfile_read_plan(&place->files, id, uid, &fd, &bytes, NULL);
}

static void a_plan_is_read_as_it_was_kept(void **state)
{
	struct place *place = *state;
	AUTO(auto_close) int fd = -1;
	const void *data = NULL;
	size_t bytes = 0;
	size_t size = 0;

	assert_int_equal(guardfile_read_plan(&place->files, 7, UID, &fd, &bytes, NULL), 0);
	assert_int_equal(bytes, place->plan.size);
	assert_int_equal(sealed_map(fd, 4096, &data, &size, NULL), 0);
	assert_int_equal(size, bytes);
	assert_memory_equal(data, place->plan.data, size);
	(void)munmap((void *)(uintptr_t)data, size);

	assert_int_equal(look(place, 7, UID + 1), -(int)ERR_BAD_FRAME);
	assert_int_equal(look(place, 8, UID), -(int)ERR_PATH_NOT_FOUND);
	guardfile_remove_plan(&place->files, 7);
	assert_int_equal(look(place, 7, UID), -(int)ERR_PATH_NOT_FOUND);
}

/* No byte of it can be another one, or it is no plan any more; nor is it longer or shorter. */
static void R24_a_tampered_plan_is_none(void **state)
{
	struct place *place = *state;
	AUTO(auto_close) int fd = openat(place->files.dir_fd, "p7", O_RDWR);
	const uint32_t much = UINT32_MAX;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 0; at < 64; at += 4) {
		uint32_t before = 0;

		assert_int_equal(pread(fd, &before, sizeof(before), at), sizeof(before));
		assert_int_equal(pwrite(fd, &much, sizeof(much), at), sizeof(much));
		assert_int_equal(look(place, 7, UID), -(int)ERR_BAD_FRAME);
		assert_int_equal(pwrite(fd, &before, sizeof(before), at), sizeof(before));
	}
	assert_int_equal(look(place, 7, UID), 0);
	assert_int_equal(ftruncate(fd, st.st_size + 1), 0);
	assert_int_equal(look(place, 7, UID), -(int)ERR_BAD_FRAME);
	for (off_t size = 0; size < st.st_size; size++) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(look(place, 7, UID), -(int)ERR_BAD_FRAME);
	}
}

static void R24_what_is_no_file_of_ours_is_not_read(void **state)
{
	struct place *place = *state;
	int dir_fd = place->files.dir_fd;

	assert_int_equal(linkat(dir_fd, "p7", dir_fd, "other", 0), 0);
	assert_int_equal(look(place, 7, UID), -(int)ERR_PATH_NOT_FOUND);
	assert_int_equal(unlinkat(dir_fd, "p7", 0), 0);
	assert_int_equal(symlinkat("other", dir_fd, "p7"), 0);
	assert_int_equal(look(place, 7, UID), -(int)ERR_PATH_NOT_FOUND);
	assert_int_equal(unlinkat(dir_fd, "p7", 0), 0);
	assert_int_equal(mkfifoat(dir_fd, "p7", 0600), 0);
	assert_int_equal(look(place, 7, UID), -(int)ERR_PATH_NOT_FOUND);
}

struct seen {
	size_t guards;
	pid_t pid;
	uid_t uid;
};

static bool is_seven(uint64_t id, void *arg)
{
	(void)arg;
	return id == 7;
}

static void on_guard(pid_t pid, int *pidfd, const struct identity *identity, void *arg)
{
	struct seen *seen = arg;

	assert_true(*pidfd >= 0);
	seen->guards++;
	seen->pid = pid;
	seen->uid = identity->uid;
}

static void plans_that_nobody_names_are_removed(void **state)
{
	static const char *const others[] = { "p8", "p", "p07", "p7x", "p-7" };
	const struct guardfile_found found = { .plan = is_seven };
	struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		(void)close(openat(place->files.dir_fd, others[i], O_CREAT | O_WRONLY, 0600));
	assert_int_equal(guardfiles_scan(&place->files, &found, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(is_there(place, others[i]));
	assert_true(is_there(place, "p7"));
	assert_true(is_there(place, "last"));
}

static void R24_a_guard_is_known_by_its_birth(void **state)
{
	const struct identity identity = { .uid = UID, .gid = UID };
	struct place *place = *state;
	struct seen seen = { 0 };
	const struct guardfile_found found = { .guard = on_guard, .arg = &seen };
	char name[32];
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	{
		AUTO(auto_close) int pidfd = pidfd_open_pid(pid);

		guardfile_note(&place->files, pid, pidfd, &identity);
	}
	assert_int_equal(guardfiles_scan(&place->files, &found, NULL), 0);
	assert_int_equal(seen.guards, 1);
	assert_int_equal(seen.pid, pid);
	assert_int_equal(seen.uid, UID);

	/* Under another name it means another number. */
	(void)snprintf(name, sizeof(name), "g%d", (int)pid);
	assert_int_equal(renameat(place->files.dir_fd, name, place->files.dir_fd, "g99999999"), 0);
	assert_int_equal(guardfiles_scan(&place->files, &found, NULL), 0);
	assert_int_equal(seen.guards, 1);
	assert_false(is_there(place, "g99999999"));

	{
		AUTO(auto_close) int pidfd = pidfd_open_pid(pid);

		guardfile_note(&place->files, pid, pidfd, &identity);
	}
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(guardfiles_scan(&place->files, &found, NULL), 0);
	assert_int_equal(seen.guards, 1);
	assert_false(is_there(place, name));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plan_is_read_as_it_was_kept),
		TEST(R24_a_tampered_plan_is_none),
		TEST(R24_what_is_no_file_of_ours_is_not_read),
		TEST(plans_that_nobody_names_are_removed),
		TEST(R24_a_guard_is_known_by_its_birth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
