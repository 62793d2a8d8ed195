/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/loop.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

/* What was called, in order, one letter each. */
static char called[64];

static void note(char what)
{
	size_t used = strlen(called);

	called[used] = what;
	called[used + 1] = '\0';
}

struct pair {
	struct loop *loop;
	struct loop_source source;
	struct loop_timer timer;
	int ends[2];
	char name;
	struct pair *removes;
};

static void open_pair(struct pair *pair, struct loop *loop, char name)
{
	*pair = (struct pair){ .loop = loop, .name = name };
	pair->source = (struct loop_source)LOOP_SOURCE_INIT;
	assert_int_equal(pipe2(pair->ends, O_CLOEXEC | O_NONBLOCK), 0);
}

static void close_pair(struct pair *pair)
{
	loop_remove(pair->loop, &pair->source);
	(void)close(pair->ends[0]);
	(void)close(pair->ends[1]);
}

static void on_source(uint32_t events, void *arg)
{
	struct pair *pair = arg;
	char byte = 0;

	(void)events;
	note(pair->name);
	(void)!read(pair->ends[0], &byte, 1);
	if (pair->removes)
		loop_remove(pair->loop, &pair->removes->source);
}

static void on_timer(void *arg)
{
	struct pair *pair = arg;

	note(pair->name);
	if (pair->name == 'Z')
		loop_stop(pair->loop);
	if (pair->removes)
		loop_disarm(pair->loop, &pair->removes->timer);
}

static void timers_come_in_order_and_can_be_moved(void **state)
{
	struct pair pairs[5] = {
		{ .name = 'A' }, { .name = 'B' }, { .name = 'C' }, { .name = 'D' }, { .name = 'Z' }
	};
	struct loop loop;

	(void)state;
	called[0] = '\0';
	assert_int_equal(loop_init(&loop, NULL), 0);
	for (size_t i = 0; i < 5; i++)
		pairs[i].loop = &loop;
	loop_arm(&loop, &pairs[4].timer, 60, on_timer, &pairs[4]);
	loop_arm(&loop, &pairs[0].timer, 10, on_timer, &pairs[0]);
	loop_arm(&loop, &pairs[1].timer, 5, on_timer, &pairs[1]);
	loop_arm(&loop, &pairs[2].timer, 1, on_timer, &pairs[2]);
	loop_arm(&loop, &pairs[3].timer, UINT64_MAX, on_timer, &pairs[3]);
	loop_arm(&loop, &pairs[2].timer, 30, on_timer, &pairs[2]); /* moved behind the others */
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_string_equal(called, "BACZ");
	assert_true(pairs[3].timer.armed);
	loop_disarm(&loop, &pairs[3].timer);
	loop_disarm(&loop, &pairs[3].timer);
	assert_null(loop.timers);
	assert_null(loop.last_timer);
	loop_deinit(&loop);
}

static void a_timer_may_disarm_another_that_is_due(void **state)
{
	struct pair a = { .name = 'A' };
	struct pair b = { .name = 'B' };
	struct pair z = { .name = 'Z' };
	struct loop loop;

	(void)state;
	called[0] = '\0';
	assert_int_equal(loop_init(&loop, NULL), 0);
	a.loop = b.loop = z.loop = &loop;
	a.removes = &b;
	loop_arm(&loop, &a.timer, 0, on_timer, &a);
	loop_arm(&loop, &b.timer, 0, on_timer, &b);
	loop_arm(&loop, &z.timer, 5, on_timer, &z);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_string_equal(called, "AZ");
	loop_deinit(&loop);
}

/* Both are readable in the same round; whichever comes first removes the other. */
static void what_was_removed_is_not_called_any_more(void **state)
{
	struct pair a;
	struct pair b;
	struct pair z = { .name = 'Z' };
	struct loop loop;

	(void)state;
	called[0] = '\0';
	assert_int_equal(loop_init(&loop, NULL), 0);
	open_pair(&a, &loop, 'a');
	open_pair(&b, &loop, 'b');
	z.loop = &loop;
	a.removes = &b;
	b.removes = &a;
	assert_int_equal(loop_add(&loop, &a.source, a.ends[0], EPOLLIN, on_source, &a, NULL), 0);
	assert_int_equal(loop_add(&loop, &b.source, b.ends[0], EPOLLIN, on_source, &b, NULL), 0);
	assert_int_equal(write(a.ends[1], "xx", 2), 2);
	assert_int_equal(write(b.ends[1], "xx", 2), 2);
	loop_arm(&loop, &z.timer, 20, on_timer, &z);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_true(strcmp(called, "aaZ") == 0 || strcmp(called, "bbZ") == 0);
	close_pair(&a);
	close_pair(&b);
	loop_deinit(&loop);
}

static void interest_can_be_paused(void **state)
{
	struct pair a;
	struct pair z = { .name = 'Z' };
	struct loop loop;

	(void)state;
	called[0] = '\0';
	assert_int_equal(loop_init(&loop, NULL), 0);
	open_pair(&a, &loop, 'a');
	z.loop = &loop;
	assert_int_equal(loop_add(&loop, &a.source, a.ends[0], EPOLLIN, on_source, &a, NULL), 0);
	assert_int_equal(loop_change(&loop, &a.source, 0, NULL), 0);
	assert_int_equal(write(a.ends[1], "x", 1), 1);
	loop_arm(&loop, &z.timer, 10, on_timer, &z);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_string_equal(called, "Z");
	loop.stop = false;
	assert_int_equal(loop_change(&loop, &a.source, EPOLLIN, NULL), 0);
	loop_arm(&loop, &z.timer, 10, on_timer, &z);
	assert_int_equal(loop_run(&loop, NULL), 0);
	assert_string_equal(called, "ZaZ");
	close_pair(&a);
	loop_deinit(&loop);
	loop_deinit(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_come_in_order_and_can_be_moved),
		cmocka_unit_test(a_timer_may_disarm_another_that_is_due),
		cmocka_unit_test(what_was_removed_is_not_called_any_more),
		cmocka_unit_test(interest_can_be_paused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
