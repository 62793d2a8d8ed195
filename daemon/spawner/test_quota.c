/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/quota.h"

#include <string.h>

#include "tests/test.h"

static const struct quota_limits limits = {
	.kinds = {
		[QUOTA_JOBS] = { 3, 5 },
		[QUOTA_CONNECTIONS] = { 100, 100 },
		[QUOTA_BROKERS] = { 2, 4 },
		[QUOTA_STUCK] = { 4, UINT32_MAX },
		[QUOTA_CLOSERS] = { 4, UINT32_MAX },
	},
	.spawns_per_second = 10,
};

static void R13_limits_hold_at_the_bound_and_one_past(void **state)
{
	struct quota quota;
	struct error err = ERROR_INIT;

	(void)state;
	quota_init(&quota, &limits);
	for (int i = 0; i < 3; i++)
		assert_int_equal(quota_take(&quota, 1000, QUOTA_JOBS, &err), 0);
	assert_int_equal(quota_take(&quota, 1000, QUOTA_JOBS, &err), -ERR_QUOTA_EXCEEDED);
	assert_non_null(strstr(err.message, "3 jobs of user 1000"));

	/* Of another user: up to what there is for all. */
	assert_int_equal(quota_take(&quota, 1001, QUOTA_JOBS, &err), 0);
	assert_int_equal(quota_take(&quota, 1001, QUOTA_JOBS, &err), 0);
	assert_int_equal(quota_take(&quota, 1001, QUOTA_JOBS, &err), -ERR_QUOTA_EXCEEDED);
	assert_non_null(strstr(err.message, "5 jobs of all users"));

	quota_give(&quota, 1000, QUOTA_JOBS);
	assert_int_equal(quota_take(&quota, 1001, QUOTA_JOBS, &err), 0);
	assert_int_equal(quota_held(&quota, 1001, QUOTA_JOBS), 3);
	assert_int_equal(quota_held(&quota, 1000, QUOTA_JOBS), 2);
	quota_deinit(&quota);
}

static void kinds_do_not_mix(void **state)
{
	struct quota quota;

	(void)state;
	quota_init(&quota, &limits);
	for (int i = 0; i < 3; i++)
		assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), 0);
	assert_int_equal(quota_take(&quota, 7, QUOTA_CONNECTIONS, NULL), 0);
	assert_int_equal(quota_held(&quota, 7, QUOTA_STUCK), 0);
	quota_deinit(&quota);
}

static void giving_too_often_gives_nothing(void **state)
{
	struct quota quota;

	(void)state;
	quota_init(&quota, &limits);
	quota_give(&quota, 7, QUOTA_JOBS);
	assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), 0);
	quota_give(&quota, 7, QUOTA_JOBS);
	quota_give(&quota, 7, QUOTA_JOBS);
	assert_int_equal(quota.totals[QUOTA_JOBS], 0);
	quota_deinit(&quota);
}

static void users_that_hold_nothing_are_forgotten(void **state)
{
	struct quota quota;

	(void)state;
	quota_init(&quota, &limits);
	for (uid_t uid = 0; uid < 1000; uid++) {
		assert_int_equal(quota_take(&quota, uid, QUOTA_CONNECTIONS, NULL), 0);
		quota_give(&quota, uid, QUOTA_CONNECTIONS);
	}
	assert_null(quota.users);
	quota_deinit(&quota);
}

static void notes_count_beyond_the_limit(void **state)
{
	struct quota quota;

	(void)state;
	quota_init(&quota, &limits);
	for (int i = 0; i < 6; i++)
		assert_int_equal(quota_note(&quota, 7, QUOTA_STUCK, NULL), 0);
	assert_int_equal(quota_held(&quota, 7, QUOTA_STUCK), 6);
	assert_int_equal(quota_take(&quota, 7, QUOTA_STUCK, NULL), -ERR_QUOTA_EXCEEDED);
	quota_deinit(&quota);
}

static unsigned spawns_at(struct quota *quota, uint64_t now_ms, unsigned wanted)
{
	unsigned allowed = 0;

	for (unsigned i = 0; i < wanted; i++)
		allowed += quota_spawn(quota, 7, now_ms, NULL) == 0;
	return allowed;
}

static void R13_rate_is_a_burst_and_then_so_many_a_second(void **state)
{
	struct quota quota;

	(void)state;
	quota_init(&quota, &limits);
	assert_int_equal(quota_take(&quota, 7, QUOTA_CONNECTIONS, NULL), 0);
	assert_int_equal(spawns_at(&quota, 5000, 20), 10);
	assert_int_equal(spawns_at(&quota, 5099, 20), 0);
	assert_int_equal(spawns_at(&quota, 5100, 20), 1);
	assert_int_equal(spawns_at(&quota, 5600, 20), 5);
	assert_int_equal(spawns_at(&quota, UINT64_MAX, 20), 10);

	/* A clock that went back gives nothing and breaks nothing. */
	assert_int_equal(spawns_at(&quota, 0, 20), 0);
	assert_int_equal(spawns_at(&quota, 1000, 20), 10);
	quota_deinit(&quota);
}

static void new_limits_count_from_now(void **state)
{
	struct quota_limits fewer = limits;
	struct quota quota;

	(void)state;
	fewer.kinds[QUOTA_JOBS].uid = 1;
	quota_init(&quota, &limits);
	assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), 0);
	assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), 0);
	quota_set_limits(&quota, &fewer);
	quota_give(&quota, 7, QUOTA_JOBS);
	assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), -ERR_QUOTA_EXCEEDED);
	quota_give(&quota, 7, QUOTA_JOBS);
	assert_int_equal(quota_take(&quota, 7, QUOTA_JOBS, NULL), 0);
	quota_deinit(&quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R13_limits_hold_at_the_bound_and_one_past),
		cmocka_unit_test(kinds_do_not_mix),
		cmocka_unit_test(giving_too_often_gives_nothing),
		cmocka_unit_test(users_that_hold_nothing_are_forgotten),
		cmocka_unit_test(notes_count_beyond_the_limit),
		cmocka_unit_test(R13_rate_is_a_burst_and_then_so_many_a_second),
		cmocka_unit_test(new_limits_count_from_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
