/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

static char top[64];
static char file_path[128];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/fsbox-config.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(file_path, sizeof(file_path), "%s/fsboxd.conf", top);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(file_path);
	return rmdir(top);
}

static void write_config(const char *text)
{
	FILE *file = fopen(file_path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(file_path, 0644), 0);
}

static int load(struct config *config, struct error *err)
{
	struct options options = { .config_files = { file_path }, .config_file_count = 1 };
	struct paths paths = { .config_dir = "/nonexistent" };

	return config_load(config, &options, &paths, MODE_SYSTEM, err);
}

static void limits_come_from_the_file(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	struct quota_limits limits;

	(void)state;
	write_config("max-jobs-per-uid = 7\nmax-jobs = 9\nmax-spawns-per-second = 11\n");
	assert_int_equal(load(&config, NULL), 0);
	limits = config_quota_limits(&config);
	assert_int_equal(limits.kinds[QUOTA_JOBS].uid, 7);
	assert_int_equal(limits.kinds[QUOTA_JOBS].total, 9);
	assert_int_equal(limits.spawns_per_second, 11);
}

static void a_bad_file_leaves_the_old_configuration(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	write_config("max-jobs = 9\n");
	assert_int_equal(load(&config, NULL), 0);
	write_config("max-jobs = 8\nno-such-key = 1\n");
	assert_int_equal(load(&config, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "fsboxd.conf:2"));
	assert_int_equal(config.host.max_jobs, 9);
	(void)unlink(file_path);
	assert_int_equal(load(&config, &err), -ERR_CONFIG);
}

static void files_that_others_can_change_are_refused(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	write_config("max-jobs = 9\n");
	assert_int_equal(chmod(file_path, 0664), 0);
	assert_int_equal(load(&config, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "may be written by others"));
	assert_int_equal(chmod(file_path, 0644), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(file_path, 1234, 0), 0);
	assert_int_equal(load(&config, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "belongs to user 1234"));
	assert_int_equal(chown(file_path, 0, 0), 0);
}

static void R6_admitted_uids(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };

	(void)state;
	write_config("admit-confined-uid = 1000\nadmit-confined-uid = 1002\n");
	assert_int_equal(load(&config, NULL), 0);
	assert_true(config_admits(&config, 1000));
	assert_false(config_admits(&config, 1001));
	assert_true(config_admits(&config, 1002));
}

static void R20_jobs_lose_groups(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	struct identity identity = {
		.uid = 3999999, .gid = 500, .group_count = 3, .groups = { 500, 600, 700 }
	};
	struct identity job;

	(void)state;
	write_config("drop-group = \"600\"\n");
	assert_int_equal(load(&config, NULL), 0);
	assert_int_equal(config_job_identity(&config, &identity, &job, NULL), 0);
	assert_int_equal(job.group_count, 2);
	assert_int_equal(job.groups[1], 700);
	assert_int_equal(job.gid, 500);

	/* The primary group is one to lose, and /etc/passwd knows no other. */
	identity.gid = 600;
	assert_int_equal(config_job_identity(&config, &identity, &job, NULL), -ERR_NOT_AUTHORIZED);

	/* root's own is 0 everywhere. */
	identity.uid = 0;
	identity.groups[0] = 0;
	assert_int_equal(config_job_identity(&config, &identity, &job, NULL), 0);
	assert_int_equal(job.gid, 0);
}

static void administrators(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	struct identity identity = { .uid = 1, .gid = 2, .group_count = 1, .groups = { 4711 } };

	(void)state;
	write_config("admin-group = \"4711\"\n");
	assert_int_equal(load(&config, NULL), 0);
	if (config.admin_gid != 4711)
		fail_msg("admin-group by number is %u", config.admin_gid);
	assert_true(config_is_admin(&config, &identity));
	identity.groups[0] = 4712;
	assert_false(config_is_admin(&config, &identity));
	identity.gid = 4711;
	assert_true(config_is_admin(&config, &identity));
	identity.gid = 1;
	identity.uid = 0;
	assert_true(config_is_admin(&config, &identity));
}

static void facts_are_for_whom_they_are_for(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	char text[64];

	(void)state;
	write_config("host-env = A=1\nhost-env@root = B=2\n");
	assert_int_equal(load(&config, NULL), 0);
	assert_int_equal(config_host_facts(&config, MODE_SYSTEM, 0, text, sizeof(text), NULL), 0);
	assert_memory_equal(text, "A=1\0B=2\0", 9);
	assert_int_equal(config_host_facts(&config, MODE_SYSTEM, 3999998, text, sizeof(text), NULL),
			 0);
	assert_memory_equal(text, "A=1\0", 5);
	assert_int_equal(config_host_facts(&config, MODE_SYSTEM, 0, text, 8, NULL), -ERR_CONFIG);
	assert_int_equal(config_host_facts(&config, MODE_SYSTEM, 0, text, 9, NULL), 0);
}

static void a_persons_own_daemon_has_a_persons_directories(void **state)
{
	AUTO(config_deinit) struct config config = { 0 };
	char text[128];

	(void)state;
	write_config("host-env = XDG_CACHE_HOME=/forced\n");
	assert_int_equal(load(&config, NULL), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
	assert_int_equal(setenv("XDG_CACHE_HOME", "/c", 1), 0);
	(void)unsetenv("XDG_DATA_HOME");
	(void)unsetenv("XDG_STATE_HOME");
	assert_int_equal(config_host_facts(&config, MODE_USER, 1, text, sizeof(text), NULL), 0);
	assert_memory_equal(text, "XDG_CACHE_HOME=/c\0XDG_CACHE_HOME=/forced\0", 42);
	assert_int_equal(config_host_facts(&config, MODE_SYSTEM, 1, text, sizeof(text), NULL), 0);
	assert_memory_equal(text, "XDG_CACHE_HOME=/forced\0", 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_come_from_the_file),
		cmocka_unit_test(a_bad_file_leaves_the_old_configuration),
		cmocka_unit_test(files_that_others_can_change_are_refused),
		cmocka_unit_test(R6_admitted_uids),
		cmocka_unit_test(R20_jobs_lose_groups),
		cmocka_unit_test(administrators),
		cmocka_unit_test(facts_are_for_whom_they_are_for),
		cmocka_unit_test(a_persons_own_daemon_has_a_persons_directories),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
