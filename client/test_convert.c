/* SPDX-License-Identifier: Apache-2.0 */
#include "client/convert.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/context.h"

/* A request in which nothing is left out. */
static void fill_everything(struct fsbox_spawn *spawn)
{
	static const char *const argv[] = { "make", "\xff", NULL };
	static const char *const env[] = { "A=1", "B=", "C=x=y", NULL };
	static const char *const set[] = { "PWD=/p", NULL };
	static const char *const pass[] = { "TOKEN", NULL };
	static const char *const hosts[] = { "*.example.org", NULL };
	static const char *const sockets[] = { "/run/docker.sock", NULL };
	static const uint32_t ports[] = { 80, 5432 };
	static const struct fsbox_rule rules[] = {
		{ "/rw", FSBOX_READ_WRITE, NULL, true },
		{ "/ro", FSBOX_READ_ONLY, NULL, false },
		{ "/d", FSBOX_DENY, "watch", false },
	};

	spawn->argv = argv;
	spawn->cwd = "/p";
	spawn->env = env;
	spawn->env_set = set;
	spawn->env_pass = pass;
	spawn->profile = "generic";
	spawn->rules = rules;
	spawn->rule_count = 3;
	spawn->socket_allow = sockets;
	spawn->net = "proxy";
	spawn->net_allow = hosts;
	spawn->net_deny = hosts;
	spawn->forward = ports;
	spawn->forward_count = 2;
	spawn->memory_bytes = 1;
	spawn->wall_ms = 2;
	spawn->pids = 3;
	spawn->cpus_milli = 4;
	spawn->engine = "bwrap";
	spawn->label = "label";
	spawn->session = "s";
	spawn->allow_home = true;
	spawn->allow_git_config = true;
	spawn->detach = true;
}

static void everything_arrives(void **state)
{
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;
	struct fsbox_error err;

	(void)state;
	fill_everything(&spawn);
	assert_int_equal(convert_spawn(&out, &spawn, true, &err), 0);

	assert_int_equal(out.argv.count, 2);
	assert_string_equal(out.argv.items[1], "\xff");
	assert_string_equal(out.cwd, "/p");
	assert_int_equal(out.env.count, 3);
	assert_string_equal(env_list_get(&out.env, "C"), "x=y");
	assert_string_equal(env_list_get(&out.env, "B"), "");
	assert_string_equal(env_list_get(&out.env_set, "PWD"), "/p");
	assert_string_equal(out.env_pass.items[0], "TOKEN");
	assert_string_equal(out.profile, "generic");
	assert_true(out.paths.read_write.items[0].optional);
	assert_string_equal(out.paths.read_only.items[0].path, "/ro");
	assert_int_equal(out.paths.deny.items[0].absent, ABSENT_WATCH);
	assert_string_equal(out.socket_allow.items[0], "/run/docker.sock");
	assert_int_equal(out.net.mode, NET_CHOICE_PROXY);
	assert_string_equal(out.net.allow.items[0], "*.example.org");
	assert_string_equal(out.net.deny.items[0], "*.example.org");
	assert_int_equal(out.net.forward.items[1], 5432);
	assert_int_equal(out.limits.memory_bytes, 1);
	assert_int_equal(out.limits.wall_ms, 2);
	assert_int_equal(out.limits.pids, 3);
	assert_int_equal(out.limits.cpus_milli, 4);
	assert_int_equal(out.engine, ENGINE_BWRAP);
	assert_string_equal(out.label, "label");
	assert_string_equal(out.session, "s");
	assert_true(out.allow_home && out.allow_git_config && out.detach);
	assert_false(out.dry_run);
	assert_int_equal(out.stdio.in_fd, -1);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
}

static void defaults_are_the_process(void **state)
{
	const char *const argv[] = { "true", NULL };
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;
	char *cwd = getcwd(NULL, 0);
	mode_t before = umask(027);

	(void)state;
	spawn.argv = argv;
	assert_int_equal(setenv("FSBOX_TEST_VARIABLE", "here", 1), 0);
	assert_int_equal(convert_spawn(&out, &spawn, true, NULL), 0);
	assert_string_equal(out.cwd, cwd);
	assert_string_equal(env_list_get(&out.env, "FSBOX_TEST_VARIABLE"), "here");
	assert_int_equal(out.umask, 027);
	assert_int_equal(umask(before), 027); /* and it was not touched */
	assert_int_equal(out.net.mode, NET_CHOICE_UNSET);
	assert_int_equal(out.engine, ENGINE_DEFAULT);
	assert_null(out.profile);
	assert_null(out.context);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
	free(cwd);
}

/* An odd line in the caller's own environment is nobody's fault; one that was asked for is. */
static void odd_environments(void **state)
{
	char *odd[] = { (char *)"GOOD=1", (char *)"nothing", (char *)"=x", NULL };
	char **before = environ;
	const char *const argv[] = { "true", NULL };
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;
	struct fsbox_error err;

	(void)state;
	spawn.argv = argv;
	environ = odd;
	assert_int_equal(convert_spawn(&out, &spawn, true, &err), 0);
	environ = before;
	assert_int_equal(out.env.count, 1);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });

	spawn.env = (const char *const *)odd;
	assert_int_equal(convert_spawn(&out, &spawn, true, &err), -1);
	assert_string_equal(err.message, "'nothing' is not NAME=VALUE");
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
}

static void descriptors_are_duplicates(void **state)
{
	const char *const argv[] = { "true", NULL };
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	char token[64];
	char copy[65];
	int ends[2];

	(void)state;
	memset(token, 'a', sizeof(token));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], token, sizeof(token)), 64);
	spawn.argv = argv;
	spawn.stdin_fd = fd;
	spawn.stdout_fd = fd;
	spawn.grant_fd = ends[0];
	assert_int_equal(convert_spawn(&out, &spawn, true, NULL), 0);
	assert_int_not_equal(out.stdio.in_fd, fd);
	assert_int_not_equal(out.stdio.in_fd, out.stdio.out_fd);
	assert_int_equal(fcntl(out.stdio.in_fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(out.stdio.err_fd, -1);
	/* Of a token the daemon gets a copy that nobody can change or hold back. */
	assert_true((fcntl(out.grant_fd, F_GET_SEALS) & F_SEAL_WRITE) != 0);
	assert_int_equal(pread(out.grant_fd, copy, sizeof(copy), 0), 64);
	assert_memory_equal(copy, token, 64);
	(void)close(ends[1]);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	/* There is no more in it: no token. */
	assert_int_equal(convert_spawn(&out, &spawn, true, NULL), -1);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
	(void)close(ends[0]);
	(void)close(fd);
}

static void contexts_are_read(void **state)
{
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;
	struct fsbox_error err;

	(void)state;
	spawn.context = "{\"workingDir\":\"/w\",\"currentAppId\":\"a\",\"redirectedCliData\":true}";
	assert_int_equal(convert_spawn(&out, &spawn, false, &err), 0);
	assert_string_equal(out.context->working_dir, "/w");
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
	spawn.context = "{";
	assert_int_equal(convert_spawn(&out, &spawn, false, &err), -1);
	assert_string_equal(err.kind, "bad-json");
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
}

/* A program that was built with an earlier, shorter struct. */
static void shorter_structs_are_understood(void **state)
{
	const char *const argv[] = { "true", NULL };
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct spawn_params out;

	(void)state;
	spawn.argv = argv;
	spawn.label = "beyond its end";
	spawn.stdin_fd = 12345;
	spawn.size = offsetof(struct fsbox_spawn, stdin_fd);
	assert_int_equal(convert_spawn(&out, &spawn, true, NULL), 0);
	assert_null(out.label);
	assert_int_equal(out.stdio.in_fd, -1);
	method_params_deinit(METHOD_SPAWN, &(union method_params){ .spawn = out });
}

static void statuses_are_a_shells(void **state)
{
	struct fsbox_exit end = { .reason = FSBOX_EXITED, .code = 7 };

	(void)state;
	assert_int_equal(fsbox_exit_status(&end), 7);
	end = (struct fsbox_exit){ .reason = FSBOX_SIGNALED, .signal = 15 };
	assert_int_equal(fsbox_exit_status(&end), 143);
	end.reason = FSBOX_TIMEOUT;
	assert_int_equal(fsbox_exit_status(&end), 124);
	end.reason = FSBOX_OOM;
	assert_int_equal(fsbox_exit_status(&end), 137);
	end.reason = FSBOX_LOST;
	assert_int_equal(fsbox_exit_status(&end), 123);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives),
		cmocka_unit_test(defaults_are_the_process),
		cmocka_unit_test(odd_environments),
		cmocka_unit_test(descriptors_are_duplicates),
		cmocka_unit_test(contexts_are_read),
		cmocka_unit_test(shorter_structs_are_understood),
		cmocka_unit_test(statuses_are_a_shells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
