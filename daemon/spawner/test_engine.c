/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/builder.h"
#include "tests/test.h"

#define OTHER_UID 1234567

static void write_program(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_int_equal(close(fd), 0);
}

static struct engine_info probe_with(const char *text)
{
	char path[] = "/tmp/fsbox-test-XXXXXX";
	struct engine_probe probe = { .program = path, .init_fd = -1 };
	struct engine_info info;

	write_program(path, text);
	engine_probe(ENGINE_BWRAP, &probe, &info);
	assert_true(info.supported);
	assert_string_equal(info.path, path);
	(void)unlink(path);
	return info;
}

static void bubblewrap_runs_init(void **state)
{
	const struct identity identity = { .uid = OTHER_UID, .gid = OTHER_UID };
	struct engine_probe probe = { .init_fd = -1 };
	struct engine_info info;
	struct error err = ERROR_INIT;

	(void)state;
	if (!engine_find_bwrap())
		skip();
	engine_probe(ENGINE_BWRAP, &probe, &info);
	if (!info.available)
		fail_msg("%s", info.reason);
	if (builder_load_init(getenv("FSBOX_INIT"), &probe.init_fd, &err) < 0)
		fail_msg("%s", err.message);
	engine_probe(ENGINE_BWRAP, &probe, &info);
	if (!info.available)
		fail_msg("with init: %s", info.reason);
	if (geteuid() == 0) {
		probe.identity = &identity;
		engine_probe(ENGINE_BWRAP, &probe, &info);
		if (!info.available)
			fail_msg("as a user: %s", info.reason);
	}
	assert_string_equal(info.reason, "");
	(void)close(probe.init_fd);
}

static void a_program_that_is_not_init(void **state)
{
	struct engine_probe probe = { .init_fd = open("/bin/false", O_RDONLY | O_CLOEXEC) };
	struct engine_info info;

	(void)state;
	if (!engine_find_bwrap())
		skip();
	engine_probe(ENGINE_BWRAP, &probe, &info);
	assert_false(info.available);
	assert_string_not_equal(info.reason, "");
	(void)close(probe.init_fd);
}

static void reasons(void **state)
{
	struct engine_probe probe = { .program = "/no/such/bwrap", .init_fd = -1 };
	struct engine_info info;

	(void)state;
	engine_probe(ENGINE_BWRAP, &probe, &info);
	assert_false(info.available);
	assert_string_equal(info.reason, "'/no/such/bwrap' cannot be executed");

	info = probe_with(
		"#!/bin/sh\necho 'bwrap: \033[1mNo\t\xff permissions' >&2; echo 2 >&2; exit 1\n");
	assert_false(info.available);
	assert_memory_equal(info.reason, "bwrap: ?[1mNo?? permissions", 27);
	info = probe_with("#!/bin/sh\nexit 3\n");
	assert_memory_equal(info.reason, "bubblewrap failed", 17);
	info = probe_with("#!/bin/sh\nkill -9 $$\n");
	assert_string_equal(info.reason, "bubblewrap was killed by signal 9");
	info = probe_with("#!/bin/sh\nexit 0\n");
	assert_true(info.available);

	probe.unavailable = true;
	engine_probe(ENGINE_BWRAP, &probe, &info);
	assert_true(info.supported);
	assert_false(info.available);
	assert_string_equal(info.reason, "FSBOX_FORCE_UNAVAILABLE is set");
	engine_probe(ENGINE_NATIVE, &probe, &info);
	assert_false(info.supported || info.available);
	engine_probe(ENGINE_SEATBELT, &probe, &info);
	assert_false(info.supported || info.available);
	engine_probe(ENGINE_DEFAULT, &probe, &info);
	assert_false(info.supported || info.available);
}

static void a_hanging_program_is_given_up(void **state)
{
	struct timespec begin;
	struct timespec end;
	struct engine_info info;

	(void)state;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	info = probe_with("#!/bin/sh\nexec sleep 60\n");
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	assert_false(info.available);
	assert_non_null(strstr(info.reason, "did not end"));
	assert_true(end.tv_sec - begin.tv_sec <= ENGINE_PROBE_MS / 1000 + 2);
}

static void the_environment_only_forbids(void **state)
{
	(void)state;
	assert_int_equal(unsetenv("FSBOX_FORCE_UNAVAILABLE"), 0);
	assert_false(engine_forced_unavailable());
	assert_int_equal(setenv("FSBOX_FORCE_UNAVAILABLE", "", 1), 0);
	assert_false(engine_forced_unavailable());
	assert_int_equal(setenv("FSBOX_FORCE_UNAVAILABLE", "0", 1), 0);
	assert_false(engine_forced_unavailable());
	assert_int_equal(setenv("FSBOX_FORCE_UNAVAILABLE", "1", 1), 0);
	assert_true(engine_forced_unavailable());
}

static void init_must_be_a_program(void **state)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	(void)state;
	assert_int_equal(builder_load_init("/no/such/file\n", &fd, &err), -ERR_SYSTEM);
	assert_non_null(strstr(err.message, "'/no/such/file\\x0a'"));
	assert_int_equal(builder_load_init("/tmp", &fd, &err), -ERR_SYSTEM);
	assert_int_equal(builder_load_init("/dev/null", &fd, &err), -ERR_SYSTEM);
	assert_int_equal(builder_load_init(getenv("FSBOX_INIT"), &fd, &err), 0);
	/* Nobody can change what jobs will execute. */
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bubblewrap_runs_init),
		cmocka_unit_test(a_program_that_is_not_init),
		cmocka_unit_test(reasons),
		cmocka_unit_test(a_hanging_program_is_given_up),
		cmocka_unit_test(the_environment_only_forbids),
		cmocka_unit_test(init_must_be_a_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
