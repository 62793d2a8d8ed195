/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/placeholderfile.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* A directory to work in, what was announced, and what somebody does at the moment of the intent. */
struct scene {
	char dir[64];
	char path[96];
	int dir_fd;
	enum report_kind said[8];
	size_t said_count;
	struct report_placeholder last;
	bool make_it_meanwhile;
	bool refuse;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	(void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(scene->dir));
	(void)snprintf(scene->path, sizeof(scene->path), "%s/x", scene->dir);
	scene->dir_fd = open(scene->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	(void)unlinkat(scene->dir_fd, "x", 0);
	(void)unlinkat(scene->dir_fd, "y", 0);
	(void)close(scene->dir_fd);
	assert_int_equal(rmdir(scene->dir), 0); /* nothing but these was there */
	free(scene);
	return 0;
}

static void put(const struct scene *scene, const char *name, const char *text)
{
	AUTO(auto_close) int fd = openat(scene->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int announce(enum report_kind kind, const struct report_placeholder *what, void *arg,
		    struct error *err)
{
	struct scene *scene = arg;

	scene->said[scene->said_count++] = kind;
	scene->last = *what;
	if (kind == REPORT_PLACEHOLDER_INTENT && scene->refuse)
		return error_set(err, ERR_UNREACHABLE, 0, "no");
	if (kind == REPORT_PLACEHOLDER_INTENT && scene->make_it_meanwhile)
		put(scene, "x", "theirs");
	return 0;
}

static int make(struct scene *scene)
{
	struct error err = ERROR_INIT;

	return placeholder_file_make(scene->path, announce, scene, &err);
}

/* As fsboxd asks for it. */
static int remove_it(const struct scene *scene)
{
	const struct placeholder placeholder = { .what = scene->last };
	struct error err = ERROR_INIT;

	return placeholder_remove(&placeholder, &err);
}

static off_t size_of(const struct scene *scene, const char *name)
{
	struct stat st;

	return fstatat(scene->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_size;
}

static void R26_it_is_announced_made_and_removed(void **state)
{
	struct scene *scene = *state;
	struct stat st;

	assert_int_equal(make(scene), 1);
	assert_int_equal(scene->said_count, 2);
	assert_int_equal(scene->said[0], REPORT_PLACEHOLDER_INTENT);
	assert_int_equal(scene->said[1], REPORT_PLACEHOLDER_MADE);
	assert_string_equal(scene->last.path, scene->path);
	assert_int_equal(stat(scene->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(remove_it(scene), PLACEHOLDER_REMOVED);
	assert_int_equal(size_of(scene, "x"), -1);
	assert_int_equal(remove_it(scene), PLACEHOLDER_GONE);
}

static void what_is_there_already_is_left_alone(void **state)
{
	struct scene *scene = *state;

	put(scene, "x", "mine");
	assert_int_equal(make(scene), 1);
	/* It may be another job's, who must not be alone in standing on it. */
	assert_int_equal(scene->said_count, 1);
	assert_int_equal(scene->said[0], REPORT_PLACEHOLDER_SKIPPED);
	assert_int_equal(size_of(scene, "x"), 4);
}

static void who_is_faster_wins(void **state)
{
	struct scene *scene = *state;

	scene->make_it_meanwhile = true;
	assert_int_equal(make(scene), 1);
	assert_int_equal(scene->said[1], REPORT_PLACEHOLDER_SKIPPED);
	assert_int_equal(size_of(scene, "x"), 6);
}

static void nothing_is_made_without_permission(void **state)
{
	struct scene *scene = *state;

	scene->refuse = true;
	assert_true(make(scene) < 0);
	assert_int_equal(size_of(scene, "x"), -1);
}

static void without_a_parent_nothing_is_made(void **state)
{
	struct scene *scene = *state;

	(void)snprintf(scene->path, sizeof(scene->path), "%s/no/x", scene->dir);
	assert_int_equal(make(scene), 0);
	assert_int_equal(scene->said_count, 0);
}

static void R26_what_its_user_wrote_into_it_stays(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(make(scene), 1);
	put(scene, "x", "mine");
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(size_of(scene, "x"), 4);
}

static void R26_what_took_its_place_stays(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(make(scene), 1);
	put(scene, "y", "");
	assert_int_equal(renameat(scene->dir_fd, "y", scene->dir_fd, "x"), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(size_of(scene, "x"), 0);
}

static void R26_one_with_a_second_name_stays(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(make(scene), 1);
	assert_int_equal(linkat(scene->dir_fd, "x", scene->dir_fd, "y", 0), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(size_of(scene, "x"), 0);
}

/* What he is about to write would be lost with it. */
static void R26_one_that_somebody_writes_to_is_for_later(void **state)
{
	struct scene *scene = *state;
	int fd = -1;

	assert_int_equal(make(scene), 1);
	fd = open(scene->path, O_WRONLY | O_CLOEXEC);
	assert_true(remove_it(scene) < 0);
	assert_int_equal(size_of(scene, "x"), 0);
	assert_int_equal(close(fd), 0);
	fd = open(scene->path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(remove_it(scene), PLACEHOLDER_REMOVED);
	assert_int_equal(close(fd), 0);
}

/* fsboxd went down before it heard of it. */
static void R26_one_that_nobody_told_of_is_known_by_its_marks(void **state)
{
	struct scene *scene = *state;
	struct placeholder placeholder = { .since_sec = 0 };
	struct statx stx;

	assert_int_equal(make(scene), 1);
	if (statx(AT_FDCWD, scene->path, 0, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME))
		skip();
	placeholder.what = scene->last;
	placeholder.what.node = (struct node_identity){ .ino = 0 };
	placeholder.since_sec = stx.stx_btime.tv_sec + 1;
	assert_int_equal(placeholder_remove(&placeholder, NULL), PLACEHOLDER_LEFT);
	placeholder.since_sec = stx.stx_btime.tv_sec;
	assert_int_equal(chmod(scene->path, 0644), 0);
	assert_int_equal(placeholder_remove(&placeholder, NULL), PLACEHOLDER_LEFT);
	assert_int_equal(chmod(scene->path, 0600), 0);
	assert_int_equal(placeholder_remove(&placeholder, NULL), PLACEHOLDER_REMOVED);
}

/* Empty, but his: its being there may be what counts. */
static void R26_one_that_its_user_touched_stays(void **state)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct scene *scene = *state;
	struct statx stx;

	assert_int_equal(make(scene), 1);
	if (statx(AT_FDCWD, scene->path, 0, STATX_BTIME, &stx) < 0 || !(stx.stx_mask & STATX_BTIME))
		skip();
	(void)usleep(20000); /* a tick of the file system's clock */
	assert_int_equal(utimensat(scene->dir_fd, "x", now, 0), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(unlinkat(scene->dir_fd, "x", 0), 0);

	assert_int_equal(make(scene), 1);
	(void)usleep(20000);
	put(scene, "x", "");
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(unlinkat(scene->dir_fd, "x", 0), 0);

	assert_int_equal(make(scene), 1);
	(void)usleep(20000);
	assert_int_equal(fchmodat(scene->dir_fd, "x", 0644, 0), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_LEFT);
	assert_int_equal(size_of(scene, "x"), 0);
}

/* Who removed it was killed half-way. */
static void R26_one_that_was_set_aside_is_found_again(void **state)
{
	struct scene *scene = *state;
	char aside[PLACEHOLDER_ASIDE_BYTES];
	int fd = -1;

	assert_int_equal(make(scene), 1);
	placeholder_file_aside(&scene->last.node, aside);
	assert_int_equal(renameat(scene->dir_fd, "x", scene->dir_fd, aside), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_REMOVED);
	assert_int_equal(size_of(scene, aside), -1);
	/* Meanwhile its user wrote to it. */
	assert_int_equal(make(scene), 1);
	placeholder_file_aside(&scene->last.node, aside);
	fd = openat(scene->dir_fd, "x", O_WRONLY | O_CLOEXEC);
	assert_int_equal(renameat(scene->dir_fd, "x", scene->dir_fd, aside), 0);
	assert_true(remove_it(scene) < 0);
	assert_int_equal(size_of(scene, aside), -1);
	assert_int_equal(write(fd, "mine", 4), 4);
	assert_int_equal(renameat(scene->dir_fd, "x", scene->dir_fd, aside), 0);
	(void)close(fd);
	(void)remove_it(scene);
	assert_int_equal(size_of(scene, aside), -1);
	assert_int_equal(size_of(scene, "x"), 4);
}

/* A job may guess that name: what it puts there goes nowhere, and keeps nothing. */
static void what_has_that_other_name_is_left_alone(void **state)
{
	struct scene *scene = *state;
	char aside[PLACEHOLDER_ASIDE_BYTES];

	assert_int_equal(make(scene), 1);
	placeholder_file_aside(&scene->last.node, aside);
	put(scene, aside, "evil");
	assert_int_equal(remove_it(scene), PLACEHOLDER_REMOVED);
	assert_int_equal(remove_it(scene), PLACEHOLDER_GONE);
	assert_int_equal(size_of(scene, "x"), -1);
	assert_int_equal(size_of(scene, aside), 4);
	assert_int_equal(unlinkat(scene->dir_fd, aside, 0), 0);
}

struct writer {
	const struct scene *scene;
	pthread_barrier_t barrier;
};

#define RACES 1000

static void *write_at_once(void *arg)
{
	struct writer *writer = arg;

	for (unsigned i = 0; i < RACES; i++) {
		int fd = -1;

		(void)pthread_barrier_wait(&writer->barrier);
		for (volatile unsigned spin = i % 100 * 30; spin > 0; spin--)
			continue;
		fd = openat(writer->scene->dir_fd, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (write(fd, "mine", 4) != 4)
			abort();
		(void)close(fd);
		(void)pthread_barrier_wait(&writer->barrier);
	}
	return NULL;
}

/* Whoever opens it in the moment in which it is removed writes to what will be there. */
static void R26_nothing_is_lost_that_is_written_just_then(void **state)
{
	struct scene *scene = *state;
	struct writer writer = { .scene = scene };
	unsigned lost = 0;
	pthread_t thread;

	assert_int_equal(pthread_barrier_init(&writer.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_at_once, &writer), 0);
	for (unsigned i = 0; i < RACES; i++) {
		scene->said_count = 0;
		assert_int_equal(make(scene), 1);
		(void)pthread_barrier_wait(&writer.barrier);
		(void)remove_it(scene);
		(void)pthread_barrier_wait(&writer.barrier);
		lost += size_of(scene, "x") != 4;
		(void)unlinkat(scene->dir_fd, "x", 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)pthread_barrier_destroy(&writer.barrier);
	assert_int_equal(lost, 0);
}

/* As an immutable directory, or a full disk: it is not forgotten. */
static void what_cannot_be_renamed_is_for_later(void **state)
{
	struct scene *scene = *state;

	/* Root may rename anything. */
	if (geteuid() == 0) {
		assert_int_equal(fchown(scene->dir_fd, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	assert_int_equal(make(scene), 1);
	assert_int_equal(fchmod(scene->dir_fd, 0500), 0);
	assert_true(remove_it(scene) < 0);
	assert_int_equal(fchmod(scene->dir_fd, 0700), 0);
	assert_int_equal(remove_it(scene), PLACEHOLDER_REMOVED);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(R26_it_is_announced_made_and_removed),
		TEST(what_is_there_already_is_left_alone),
		TEST(who_is_faster_wins),
		TEST(nothing_is_made_without_permission),
		TEST(without_a_parent_nothing_is_made),
		TEST(R26_what_its_user_wrote_into_it_stays),
		TEST(R26_what_took_its_place_stays),
		TEST(R26_one_with_a_second_name_stays),
		TEST(R26_one_that_somebody_writes_to_is_for_later),
		TEST(R26_one_that_nobody_told_of_is_known_by_its_marks),
		TEST(R26_one_that_its_user_touched_stays),
		TEST(R26_one_that_was_set_aside_is_found_again),
		TEST(what_has_that_other_name_is_left_alone),
		TEST(R26_nothing_is_lost_that_is_written_just_then),
		TEST(what_cannot_be_renamed_is_for_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
