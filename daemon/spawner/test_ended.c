/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ended.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/jobfile.h"
#include "daemon/spawner/spawner.h"
#include "tests/test.h"

#define UID 1234

/* A daemon with one identity, and the folder in which files of jobs lie. */
struct scene {
	char dir[64];
	struct spawner spawner;
	struct brokerlink link;
	uint64_t now_ms;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	(void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(scene->dir));
	scene->spawner = (struct spawner)SPAWNER_INIT;
	assert_int_equal(loop_init(&scene->spawner.loop, NULL), 0);
	assert_int_equal(jobfiles_open(&scene->spawner.jobfiles, scene->dir, NULL), 0);
	scene->link = (struct brokerlink){ .spawner = &scene->spawner, .identity = { .uid = UID } };
	scene->spawner.brokers = &scene->link;
	scene->now_ms = loop_now_ms();
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	ended_deinit(&scene->link);
	unshared_pool_deinit(&scene->spawner.ended_pool);
	(void)unlinkat(scene->spawner.jobfiles.dir_fd, "last", 0);
	jobfiles_close(&scene->spawner.jobfiles);
	loop_deinit(&scene->spawner.loop);
	(void)chdir(scene->dir);
	assert_int_equal(rmdir("jobs"), 0);
	(void)chdir("/");
	assert_int_equal(rmdir(scene->dir), 0);
	free(scene);
	return 0;
}

static void name_of(uint64_t job, char ret_name[24])
{
	(void)snprintf(ret_name, 24, "%llu", (unsigned long long)job);
}

/* JOB, which has a file and whose code is its number, ended BEFORE_MS before the test began. */
static void add(struct scene *scene, uint64_t job, uint64_t before_ms)
{
	const struct ended ended = {
		.job = job,
		.record = { .reason = EXIT_EXITED, .code = (int32_t)(job % 256) },
		.ended_ms = scene->now_ms - before_ms,
	};
	AUTO(auto_close) int fd = -1;
	char name[24];

	name_of(job, name);
	fd = openat(scene->spawner.jobfiles.dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	ended_add(&scene->link, &ended);
}

static bool is_kept(const struct scene *scene, uint64_t job)
{
	const struct ended *found = ended_find(&scene->spawner, UID, job);
	char name[24];

	name_of(job, name);
	/* The one never without the other. */
	assert_int_equal(found != NULL,
			 faccessat(scene->spawner.jobfiles.dir_fd, name, F_OK, 0) == 0);
	assert_true(!found || found->record.code == (int32_t)(job % 256));
	return found != NULL;
}

static void a_result_is_its_users(void **state)
{
	struct scene *scene = *state;

	add(scene, 7, 0);
	assert_true(is_kept(scene, 7));
	assert_null(ended_find(&scene->spawner, UID, 8));
	assert_null(ended_find(&scene->spawner, UID + 1, 7));
}

/* A fsboxd that starts finds files in the order of a directory. */
static void R24_the_newest_are_kept_in_whatever_order_they_come(void **state)
{
	struct scene *scene = *state;

	/* Job N ended N ms ago. */
	for (uint64_t i = 0; i < LIMIT_RESULTS_PER_BROKER; i++)
		add(scene, 1 + i * 769 % LIMIT_RESULTS_PER_BROKER,
		    i * 769 % LIMIT_RESULTS_PER_BROKER);
	for (uint64_t job = 1; job <= LIMIT_RESULTS_PER_BROKER; job++)
		assert_true(is_kept(scene, job));

	/* One past the bound: the oldest goes, whoever comes last. */
	add(scene, 5000, 500);
	assert_false(is_kept(scene, LIMIT_RESULTS_PER_BROKER));
	assert_true(is_kept(scene, 5000));
	add(scene, 6000, LIMIT_RESULTS_PER_BROKER * 2);
	assert_false(is_kept(scene, 6000));
	assert_int_equal(scene->link.ended.count, LIMIT_RESULTS_PER_BROKER);
	add(scene, 7000, 0);
	assert_true(is_kept(scene, 7000));
	assert_false(is_kept(scene, LIMIT_RESULTS_PER_BROKER - 1));
	assert_true(is_kept(scene, LIMIT_RESULTS_PER_BROKER - 2));
	assert_int_equal(scene->link.ended.last->job, 7000);
}

static void restarts_do_not_keep_a_result_for_ever(void **state)
{
	struct scene *scene = *state;

	add(scene, 1, LIMIT_RESULT_LONGEST_MS);
	assert_false(is_kept(scene, 1));
	add(scene, 2, LIMIT_RESULT_LONGEST_MS - LIMIT_RESULT_KEPT_MS / 2);
	assert_true(is_kept(scene, 2));
	assert_true(scene->link.ended.first->until_ms <= loop_now_ms() + LIMIT_RESULT_KEPT_MS / 2);
	/* Not over for long: as if it had just ended. */
	add(scene, 3, LIMIT_RESULT_KEPT_MS * 2);
	assert_true(is_kept(scene, 3));
	assert_true(scene->link.ended.last->until_ms > loop_now_ms() + LIMIT_RESULT_KEPT_MS - 1000);
}

static void a_time_that_is_to_come_is_now(void **state)
{
	struct scene *scene = *state;
	const struct ended ended = { .job = 9, .ended_ms = UINT64_MAX - 5 };

	ended_add(&scene->link, &ended);
	assert_true(scene->link.ended.first->ended_ms <= loop_now_ms());
	assert_true(scene->link.ended.first->until_ms <= loop_now_ms() + LIMIT_RESULT_KEPT_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_result_is_its_users),
		TEST(R24_the_newest_are_kept_in_whatever_order_they_come),
		TEST(restarts_do_not_keep_a_result_for_ever),
		TEST(a_time_that_is_to_come_is_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
