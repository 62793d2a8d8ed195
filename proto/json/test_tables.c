/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/tables.h"

#include "tests/test.h"

#include <string.h>

#include "common/scope.h"

static void methods_by_name(void **state)
{
	(void)state;
	for (int i = METHOD_NONE + 1; i < METHOD_COUNT; i++) {
		enum method method = (enum method)i;

		assert_int_equal(method_from_name(method_name(method)), method);
		assert_true(strlen(method_meaning(method)) > 10);
	}
	assert_int_equal(method_from_name(""), METHOD_NONE);
	assert_int_equal(method_from_name("Spawn"), METHOD_NONE);
	assert_string_equal(method_name(METHOD_COUNT), "");
	assert_string_equal(method_meaning(METHOD_COUNT), "");
	assert_null(method_params_table(METHOD_COUNT));
	assert_null(method_result_table(METHOD_COUNT));
}

/* The names in the tables are those that the rest of the program uses. */
static const char *net_name(uint32_t value)
{
	return net_mode_name((enum net_mode)value);
}
static const char *net_choice_name(uint32_t value)
{
	enum net_mode mode = NET_NONE;

	assert_true(net_choice_mode((enum net_choice)value, &mode));
	assert_int_equal(net_choice_from_mode(mode), value);
	return net_mode_name(mode);
}
static const char *access_text(uint32_t value)
{
	return access_name((enum access)value);
}
static const char *source_text(uint32_t value)
{
	return rule_source_name((enum rule_source)value);
}
static const char *absent_text(uint32_t value)
{
	return absent_mode_name((enum absent_mode)value);
}
static const char *engine_text(uint32_t value)
{
	return engine_name((enum engine_kind)value);
}
static const char *room_text(uint32_t value)
{
	return room_name((enum room_kind)value);
}
static const char *reason_text(uint32_t value)
{
	return exit_reason_name((enum exit_reason)value);
}
static const char *mode_text(uint32_t value)
{
	return daemon_mode_name((enum daemon_mode)value);
}
static const char *state_text(uint32_t value)
{
	return job_state_name((enum job_state)value);
}

static const struct field *field_of(const struct table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->fields[i].name, name) == 0)
			return &table->fields[i];
	fail_msg("%s has no %s", table->name, name);
	return NULL;
}

static const struct table *part_of(const struct table *table, const char *name)
{
	return field_of(table, name)->table;
}

static void names_agree_with_the_rest(void **state)
{
	const struct table *spawn = method_params_table(METHOD_SPAWN);
	const struct table *policy = method_result_table(METHOD_POLICY);
	const struct table *entry = part_of(part_of(spawn, "paths"), "deny");
	const struct table *job = part_of(method_result_table(METHOD_LIST), "jobs");
	const struct {
		const struct field *field;
		const char *(*name)(uint32_t value);
		size_t count;
	} enums[] = {
		{ field_of(policy, "net"), net_name, 3 },
		{ field_of(part_of(spawn, "net"), "mode"), net_choice_name, 3 },
		{ field_of(part_of(policy, "rules"), "access"), access_text, 3 },
		{ field_of(part_of(policy, "rules"), "source"), source_text, 5 },
		{ field_of(entry, "absent"), absent_text, 4 },
		{ field_of(spawn, "engine"), engine_text, 3 },
		{ field_of(policy, "room"), room_text, 6 },
		{ field_of(&exited_table, "reason"), reason_text, 5 },
		{ field_of(method_result_table(METHOD_STATUS), "mode"), mode_text, 3 },
		{ field_of(job, "state"), state_text, 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(enums); i++) {
		const struct enum_names *names = enums[i].field->names;

		assert_int_equal(names->count, enums[i].count);
		for (size_t n = 0; n < names->count; n++)
			assert_string_equal(names->names[n],
					    enums[i].name(names->first + (uint32_t)n));
	}
}

static void every_table_starts_absent(void **state)
{
	(void)state;
	for (int i = METHOD_NONE; i <= METHOD_COUNT; i++) {
		union method_params params;
		union method_result result;

		method_params_init((enum method)i, &params);
		method_params_deinit((enum method)i, &params);
		method_params_deinit((enum method)i, NULL);
		method_result_init((enum method)i, &result);
		method_result_deinit((enum method)i, &result);
	}
}

static void init_macros_are_the_absent_state(void **state)
{
	struct spawn_params spawn = SPAWN_PARAMS_INIT;
	struct spawn_result result = SPAWN_RESULT_INIT;
	struct why_params why = WHY_PARAMS_INIT;
	union method_params params;
	union method_result results;

	(void)state;
	method_params_init(METHOD_SPAWN, &params);
	assert_int_equal(params.spawn.umask, spawn.umask);
	assert_int_equal(params.spawn.lifeline_fd, spawn.lifeline_fd);
	assert_int_equal(params.spawn.stdio.err_fd, spawn.stdio.err_fd);
	assert_int_equal(why.spawn.grant_fd, -1);
	method_result_init(METHOD_SPAWN, &results);
	assert_int_equal(results.spawn.pidfd_fd, result.pidfd_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_by_name),
		cmocka_unit_test(names_agree_with_the_rest),
		cmocka_unit_test(every_table_starts_absent),
		cmocka_unit_test(init_macros_are_the_absent_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
