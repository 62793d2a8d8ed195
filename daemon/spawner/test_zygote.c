/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"
#include "tests/test.h"

/*
 * The pool with processes that only wait in the places of zygotes; that real ones are made is for the
 * integration tests.
 */
struct world {
	struct spawner spawner;
	struct template templates[2];
	struct inherit inherit;
};

static void world_init(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->spawner = (struct spawner)SPAWNER_INIT;
	assert_int_equal(loop_init(&world->spawner.loop, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(world->templates); i++) {
		struct template *template = &world->templates[i];

		template->spawner = &world->spawner;
		template->state = TEMPLATE_READY;
		template->identity.uid = (uid_t)(1000 + i);
		template->copies = (struct templatecopies)TEMPLATECOPIES_INIT;
		template->next = world->spawner.templates.first;
		world->spawner.templates.first = template;
	}
	world->inherit = (struct inherit){ .io_priority = 4, .cpu_bytes = 8, .cpus = { 3 } };
	for (int which = 0; which < RLIM_NLIMITS; which++)
		world->inherit.limits[which] = (struct rlimit){ 100, 200 };
}

static void world_deinit(struct world *world)
{
	for (size_t i = 0; i < ARRAY_SIZE(world->templates); i++)
		zygotes_deinit(&world->templates[i]);
	assert_int_equal(world->spawner.zygotes.count, 0);
	assert_int_equal(world->spawner.zygotes.ready, 0);
	/* Whoever was let go of ends. */
	while (world->spawner.children.count > 0) {
		(void)usleep(1000);
		children_reap(&world->spawner.children);
	}
	loop_deinit(&world->spawner.loop);
}

static int wait_for_ever(void *arg)
{
	(void)arg;
	while (pause() < 0)
		continue;
	return 0;
}

/* One at the end of TEMPLATE's list; its process. */
static pid_t add(struct template *template, bool ready)
{
	struct spawner *spawner = template->spawner;
	struct zygote *zygote = calloc(1, sizeof(*zygote));
	struct zygote **last = &template->zygotes.first;

	assert_non_null(zygote);
	*zygote = (struct zygote){ .template = template,
				   .child = CHILD_INIT,
				   .socket_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
				   .go_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
				   .set = NATIVE_SET_INIT,
				   .report = REPORTIN_INIT,
				   .report_source = LOOP_SOURCE_INIT,
				   .ready = ready };
	assert_int_equal(child_start(&spawner->children, &zygote->child, wait_for_ever, NULL, NULL,
				     NULL, NULL),
			 0);
	while (*last)
		last = &(*last)->next;
	*last = zygote;
	template->zygotes.count++;
	spawner->zygotes.count++;
	spawner->zygotes.ready += ready;
	return zygote->child.pid;
}

static void a_template_is_hot_when_used_twice_in_a_while(void **state)
{
	struct world world;
	struct zygotes_of *of = &world.templates[0].zygotes;

	(void)state;
	world_init(&world);
	zygotes_note(&world.templates[0], &world.inherit);
	assert_false(of->hot);
	zygotes_note(&world.templates[0], &world.inherit);
	assert_true(of->hot);
	of->used_ms -= 10000;
	zygotes_note(&world.templates[0], &world.inherit);
	assert_false(of->hot);
	zygotes_note(&world.templates[0], &world.inherit);
	assert_true(of->hot);
	assert_false(world.templates[1].zygotes.hot);
	/* Then it is looked for room when it is quiet, and not before. */
	zygotes_refill(&world.templates[1]);
	assert_false(world.spawner.zygotes.refill.armed);
	zygotes_refill(&world.templates[0]);
	assert_true(world.spawner.zygotes.refill.armed);
	loop_disarm(&world.spawner.loop, &world.spawner.zygotes.refill);
	world_deinit(&world);
}

static void R20_other_limits_end_what_waits(void **state)
{
	struct world world;
	struct inherit other;

	(void)state;
	world_init(&world);
	zygotes_note(&world.templates[0], &world.inherit);
	(void)add(&world.templates[0], true);
	(void)add(&world.templates[0], false);
	(void)add(&world.templates[1], true);
	zygotes_note(&world.templates[0], &world.inherit);
	assert_int_equal(world.templates[0].zygotes.count, 2);
	other = world.inherit;
	other.limits[RLIMIT_NOFILE].rlim_cur--;
	zygotes_note(&world.templates[0], &other);
	assert_int_equal(world.templates[0].zygotes.count, 0);
	assert_int_equal(world.templates[1].zygotes.count, 1);
	assert_int_equal(world.spawner.zygotes.refused, 2);
	assert_true(inherit_equal(world.templates[0].zygotes.inherit, &other));
	world_deinit(&world);
}

#define DIFFERS(change)                                    \
	do {                                               \
		struct inherit other = one;                \
                                                           \
		assert_true(inherit_equal(&one, &other));  \
		change;                                    \
		assert_false(inherit_equal(&one, &other)); \
		assert_false(inherit_equal(&other, &one)); \
	} while (0)

static void R20_every_limit_counts(void **state)
{
	struct world world;
	struct inherit one;

	(void)state;
	world_init(&world);
	one = world.inherit;
	for (int which = 0; which < RLIM_NLIMITS; which++) {
		DIFFERS(other.limits[which].rlim_cur = 1);
		DIFFERS(other.limits[which].rlim_max = RLIM_INFINITY);
	}
	DIFFERS(other.scheduling.policy = SCHED_BATCH);
	DIFFERS(other.scheduling.flags = 1);
	DIFFERS(other.scheduling.nice = 1);
	DIFFERS(other.scheduling.priority = 1);
	DIFFERS(other.scheduling.runtime_ns = 1);
	DIFFERS(other.scheduling.deadline_ns = 1);
	DIFFERS(other.scheduling.period_ns = 1);
	DIFFERS(other.io_priority = 1);
	DIFFERS(other.oom_score_adj = 1);
	DIFFERS(other.cpu_bytes = 7);
	DIFFERS(other.cpus[7] = 1);
	world_deinit(&world);
}

/* As far as waitid(2) tells. */
static void wait_until(pid_t pid, int what)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, what | WNOWAIT), 0);
}

static void R14_only_what_is_ready_and_runs_is_taken(void **state)
{
	struct world world;
	struct template *template = &world.templates[0];
	struct zygote *taken = NULL;
	pid_t born = 0;
	pid_t killed = 0;
	pid_t stopped = 0;
	pid_t first = 0;
	pid_t second = 0;

	(void)state;
	world_init(&world);
	assert_null(zygotes_take(template));
	born = add(template, false);
	assert_null(zygotes_take(template));
	killed = add(template, true);
	stopped = add(template, true);
	first = add(template, true);
	second = add(template, true);
	assert_int_equal(kill(killed, SIGKILL), 0);
	assert_int_equal(kill(stopped, SIGSTOP), 0);
	wait_until(killed, WEXITED);
	wait_until(stopped, WSTOPPED);
	/* The oldest that is any good; those that are not go. */
	taken = zygotes_take(template);
	assert_non_null(taken);
	assert_int_equal(taken->child.pid, first);
	assert_int_equal(world.spawner.zygotes.refused, 2);
	assert_int_equal(template->zygotes.count, 2);
	assert_int_equal(world.spawner.zygotes.ready, 1);
	assert_int_equal(template->zygotes.first->child.pid, born);
	zygote_free(taken);
	taken = zygotes_take(template);
	assert_int_equal(taken->child.pid, second);
	zygote_free(taken);
	assert_null(zygotes_take(template));
	assert_int_equal(template->zygotes.count, 1);
	world_deinit(&world);
}

static void those_of_one_user_go_alone(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	(void)add(&world.templates[0], true);
	(void)add(&world.templates[0], false);
	(void)add(&world.templates[1], true);
	zygotes_drop_user(&world.spawner, 1000);
	assert_int_equal(world.templates[0].zygotes.count, 0);
	assert_int_equal(world.templates[1].zygotes.count, 1);
	assert_int_equal(world.spawner.zygotes.ready, 1);
	world_deinit(&world);
}

static void mounts_of_zygotes_are_the_templates(void **state)
{
	struct world world;
	struct template *template = &world.templates[0];

	(void)state;
	world_init(&world);
	template->copies.base = 40;
	(void)add(template, true);
	(void)add(template, true);
	templatecopy_count(template);
	assert_int_equal(template->mounts, 120);
	template->copies.each = 50;
	templatecopy_count(template);
	assert_int_equal(template->mounts, 140);
	assert_int_equal(world.spawner.templates.mounts, 140);
	zygotes_drop(template);
	assert_int_equal(template->mounts, 40);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_template_is_hot_when_used_twice_in_a_while),
		cmocka_unit_test(R20_other_limits_end_what_waits),
		cmocka_unit_test(R20_every_limit_counts),
		cmocka_unit_test(R14_only_what_is_ready_and_runs_is_taken),
		cmocka_unit_test(those_of_one_user_go_alone),
		cmocka_unit_test(mounts_of_zygotes_are_the_templates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
