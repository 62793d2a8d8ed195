/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/built.h"

#include <string.h>

#include "daemon/broker/broker.h"
#include "tests/test.h"

static struct buf key_of(const struct spawn_params *params)
{
	struct buf key = BUF_INIT(LIMIT_PARAMS_BYTES);
	struct error err = ERROR_INIT;

	assert_int_equal(built_key(params, &key, &err), 0);
	return key;
}

static bool same_key(const struct spawn_params *left, const struct spawn_params *right)
{
	struct buf a = key_of(left);
	struct buf b = key_of(right);
	bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;

	buf_deinit(&a);
	buf_deinit(&b);
	return same;
}

static void only_what_a_policy_depends_on_is_in_the_key(void **state)
{
	char *argv[] = { (char *)"/bin/true" };
	struct spawn_params base = SPAWN_PARAMS_INIT;
	struct spawn_params other;

	(void)state;
	base.cwd = (char *)"/w";
	other = base;
	other.argv = (struct string_list){ .items = argv, .count = 1 };
	other.label = (char *)"l";
	other.detach = true;
	other.umask = 7;
	other.stdio.in_fd = 1;
	assert_true(same_key(&base, &other));

	other = base;
	other.cwd = (char *)"/v";
	assert_false(same_key(&base, &other));
	other = base;
	other.profile = (char *)"host";
	assert_false(same_key(&base, &other));
	other = base;
	other.allow_home = true;
	assert_false(same_key(&base, &other));
	other = base;
	other.allow_git_config = true;
	assert_false(same_key(&base, &other));
	other = base;
	other.engine = ENGINE_BWRAP;
	assert_false(same_key(&base, &other));
	other = base;
	other.limits.wall_ms = 5;
	assert_false(same_key(&base, &other));
	other = base;
	other.socket_allow = (struct string_list){ .items = argv, .count = 1 };
	assert_false(same_key(&base, &other));
}

static struct built *keep_one(struct broker *broker, char name)
{
	struct buf key = BUF_INIT(64);
	struct built *built;

	assert_int_equal(buf_add(&key, &name, 1), 0);
	built = built_new_take(broker, &key);
	assert_non_null(built);
	buf_init(&built->build.record, 64);
	built_keep(broker, built);
	return built_unref(built);
}

static struct built *find_one(struct broker *broker, char name)
{
	struct buf key = BUF_INIT(64);
	struct built *built;

	assert_int_equal(buf_add(&key, &name, 1), 0);
	built = built_find(broker, &key);
	buf_deinit(&key);
	return built;
}

static void the_least_recently_used_goes(void **state)
{
	struct broker broker = { .kernelmounts = KERNELMOUNTS_INIT };
	struct built *built;

	(void)state;
	broker.base = event_base_new();
	assert_int_equal(built_cache_init(&broker.built, broker.base, NULL), 0);
	assert_int_equal(kernelmounts_refresh(&broker.kernelmounts, NULL), 0);
	for (int i = 0; i < BUILT_KEPT_MAX; i++)
		assert_null(keep_one(&broker, (char)('A' + i)));
	built = find_one(&broker, 'A');
	assert_non_null(built);
	assert_null(keep_one(&broker, 'z'));
	assert_null(find_one(&broker, 'B'));
	assert_int_equal(broker.built.count, BUILT_KEPT_MAX);

	/* Still ours when it is not right any more, but nobody else's. */
	built_forget(&broker, built);
	assert_null(find_one(&broker, 'A'));
	assert_int_equal(built->refs, 1);
	assert_null(built_unref(built));

	/* Other mounts, other policies. */
	broker.kernelmounts.generation++;
	assert_null(find_one(&broker, 'z'));
	built_cache_deinit(&broker.built);
	kernelmounts_deinit(&broker.kernelmounts);
	event_base_free(broker.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_a_policy_depends_on_is_in_the_key),
		cmocka_unit_test(the_least_recently_used_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
