/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/option.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/command.h"

static struct ctl_args args;
static struct error err;
static char *words[32];
static size_t used;

/* Parse the command line LINE, whose words are separated by one blank, for the command NAME. */
static int parse(const char *name, const char *line)
{
	static char text[1024];
	const char *space = strchr(name, ' ');
	char *const wanted[] = { space ? (char *)"policy" : (char *)name,
				 space ? (char *)space + 1 : NULL, NULL };
	const struct ctl_command *command = ctl_command_find(wanted, &used);
	const struct option_table tables[] = {
		{ command->options, command->option_count },
		{ command->more, command->more_count },
		ctl_common_options(),
	};
	size_t count = 0;
	char *rest = NULL;

	ctl_args_deinit(&args);
	args = (struct ctl_args)CTL_ARGS_INIT;
	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	words[count] = NULL;
	return option_parse(&args, tables, 3, command->stop_at_word, words, &used, &err);
}

static int teardown(void **state)
{
	(void)state;
	ctl_args_deinit(&args);
	return 0;
}

static void values_are_typed(void **state)
{
	(void)state;
	assert_int_equal(parse("spawn",
			       "--timeout 2m --memory=512K --pids 7 --cpus 1.5 --net none "
			       "--env A=b --env C=d=e --env-pass X --allow-home make -j --rw"),
			 0);
	assert_int_equal(args.timeout_ms, 120000);
	assert_int_equal(args.memory_bytes, 524288);
	assert_int_equal(args.pids, 7);
	assert_int_equal(args.cpus_milli, 1500);
	assert_string_equal(args.net, "none");
	assert_int_equal(args.env.count, 2);
	assert_string_equal(args.env.items[1], "C=d=e");
	assert_null(args.env.items[2]);
	assert_true(args.allow_home);
	assert_false(args.detach);
	assert_int_equal(args.status_fd, -1);
	/* The command's own options are not ours. */
	assert_int_equal(args.word_count, 3);
	assert_string_equal(args.words[0], "make");
	assert_string_equal(args.words[2], "--rw");
}

static void dashes_end_options(void **state)
{
	(void)state;
	assert_int_equal(parse("spawn", "--json -- --rw -- x"), 0);
	assert_true(args.json);
	assert_int_equal(args.word_count, 3);
	assert_string_equal(args.words[0], "--rw");
	assert_string_equal(args.words[1], "--");
	assert_int_equal(parse("signal", "7 --json -- -9"), 0);
	assert_int_equal(args.word_count, 2);
	assert_string_equal(args.words[1], "-9");
}

static void words_and_options_mix_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(parse("wait", "7 --timeout 1s --json"), 0);
	assert_int_equal(args.word_count, 1);
	assert_string_equal(args.words[0], "7");
	assert_null(args.words[1]);
	assert_int_equal(args.timeout_ms, 1000);
	assert_int_equal(parse("ps", "-ah"), 0);
	assert_true(args.all);
	assert_true(args.help);
	assert_int_equal(parse("policy migrate", "-"), 0);
	assert_string_equal(args.words[0], "-");
}

static void mistakes_are_named(void **state)
{
	static const char *const rows[][2] = {
		{ "--rww /x", "unknown option '--rww', did you mean '--rw'?" },
		{ "--timeuot 5s", "unknown option '--timeuot', did you mean '--timeout'?" },
		{ "--mem 5", "unknown option '--mem', did you mean '--memory'?" },
		{ "--xyzzy=1", "unknown option '--xyzzy'" },
		{ "-x", "unknown option '-x'" },
		{ "--rw", "--rw needs an argument: PATH" },
		{ "--detach=1", "--detach takes no argument" },
		{ "--timeout 5", "--timeout: '5' is not a duration like 500ms, 20s, 5m or 1h" },
		{ "--timeout 0s", "--timeout: '0s' is not a duration like 500ms, 20s, 5m or 1h" },
		{ "--memory much", "--memory: 'much' is not a size like 512K, 64M or 2G" },
		{ "--pids 0", "--pids: '0' is not a number from 1 on" },
		{ "--pids 4294967296", "--pids: '4294967296' is not a number from 1 on" },
		{ "--cpus -1", "--cpus: '-1' is not a number of processors like 2 or 1.5" },
		{ "--net all", "--net: 'all' is none of none|proxy|host" },
		{ "--net non", "--net: 'non' is none of none|proxy|host" },
		{ "--env NOVALUE", "--env: 'NOVALUE' is not NAME=VALUE" },
		{ "--env =x", "--env: '=x' is not NAME=VALUE" },
		{ "--rw=", "--rw: the path is empty" },
		{ "--status-fd x", "--status-fd: 'x' is not a descriptor's number" },
		{ "--status-fd 250", "--status-fd: descriptor 250: Bad file descriptor" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(parse("spawn", rows[i][0]) < 0);
		assert_string_equal(err.message, rows[i][1]);
	}
}

static void descriptors_must_be_open(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char line[64];

	(void)state;
	(void)snprintf(line, sizeof(line), "--status-fd %d true", fd);
	assert_int_equal(parse("spawn", line), 0);
	assert_int_equal(args.status_fd, fd);
	(void)close(fd);
}

static void closest_names(void **state)
{
	static const char *const names[] = { "spawn", "status", "signal", "ps" };

	(void)state;
	assert_string_equal(option_closest("spwan", names, 4), "spawn");
	assert_string_equal(option_closest("sp", names, 4), "ps");
	assert_string_equal(option_closest("stat", names, 4), "status");
	assert_string_equal(option_closest("singal", names, 4), "signal");
	assert_null(option_closest("banana", names, 4));
	assert_null(option_closest("", names, 4));
	assert_null(option_closest("x", names, 4));
}

/* ---- paths --------------------------------------------------------------------------- */

static const char *absolute(const char *path)
{
	const char *made = NULL;

	error_clear(&err);
	return option_path(&args, path, &made, &err) == 0 ? made : err.message;
}

static void paths_are_made_absolute(void **state)
{
	char top[] = "/tmp/fsbox-test-XXXXXX";
	char path[128];
	char wanted[128];
	char *before = getcwd(NULL, 0);

	(void)state;
	assert_non_null(mkdtemp(top));
	(void)snprintf(path, sizeof(path), "%s/real", top);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(symlink("real", path), 0);

	/* $PWD is believed where it is true, so that the link keeps its name. */
	assert_int_equal(chdir(path), 0);
	assert_int_equal(setenv("PWD", path, 1), 0);
	(void)snprintf(wanted, sizeof(wanted), "%s/link/x", top);
	assert_string_equal(absolute("x"), wanted);
	assert_string_equal(absolute("./x"), wanted);
	assert_string_equal(absolute(".//./x"), wanted);
	assert_string_equal(absolute("."), path);
	/* A lie is not. */
	(void)snprintf(wanted, sizeof(wanted), "%s/real/x", top);
	assert_int_equal(setenv("PWD", "/usr", 1), 0);
	assert_string_equal(absolute("x"), wanted);
	assert_int_equal(setenv("PWD", "../real", 1), 0);
	assert_string_equal(absolute("x"), wanted);
	assert_int_equal(unsetenv("PWD"), 0);
	assert_string_equal(absolute("x"), wanted);

	/* `..` leads where the kernel says, not where the text does. */
	(void)snprintf(wanted, sizeof(wanted), "%s/y", top);
	assert_string_equal(absolute("../y"), wanted);
	assert_string_equal(absolute("../link/../y"), wanted);
	assert_string_equal(absolute("none/../y"), "'none/../y': No such file or directory");
	assert_string_equal(absolute("/a//b/./c/"), "/a/b/c");
	assert_string_equal(absolute("/..a/b..c"), "/..a/b..c");
	assert_string_equal(absolute("/"), "/");
	assert_string_equal(absolute(""), "the path is empty");

	assert_int_equal(chdir(before), 0);
	free(before);
	(void)snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/real", top);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(top), 0);
}

static void a_vanished_directory_is_an_error(void **state)
{
	char top[] = "/tmp/fsbox-test-XXXXXX";
	char *before = getcwd(NULL, 0);

	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	assert_int_equal(rmdir(top), 0);
	assert_int_equal(unsetenv("PWD"), 0);
	assert_string_equal(absolute("x"), "'x': No such file or directory");
	assert_string_equal(absolute("/x"), "/x");
	assert_int_equal(chdir(before), 0);
	free(before);
}

static void profiles_are_names_or_files(void **state)
{
	(void)state;
	assert_int_equal(parse("spawn", "--profile generic true"), 0);
	assert_string_equal(args.profile, "generic");
	assert_int_equal(parse("spawn", "--profile ./generic true"), 0);
	assert_int_equal(args.profile[0], '/');
	assert_int_equal(parse("policy compile", "--context -"), 0);
	assert_string_equal(args.context, "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_typed),
		cmocka_unit_test(dashes_end_options),
		cmocka_unit_test(words_and_options_mix_elsewhere),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(descriptors_must_be_open),
		cmocka_unit_test(closest_names),
		cmocka_unit_test(paths_are_made_absolute),
		cmocka_unit_test(a_vanished_directory_is_an_error),
		cmocka_unit_test(profiles_are_names_or_files),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
