/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/options.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

/* Parse words, the last NULL. */
static int parse(struct options *options, struct error *err, const char *const *words)
{
	char *argv[64] = { (char *)(uintptr_t) "fsboxd" };
	int argc = 1;

	while (*words)
		argv[argc++] = (char *)(uintptr_t)*words++;
	return options_parse(options, argc, argv, err);
}

#define PARSE(options, err, ...) parse(options, err, (const char *const[]){ __VA_ARGS__, NULL })

static void all_options(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, NULL, "--mode", "system", "--socket=/s", "--run-dir", "/r",
			       "--state-dir", "/st", "--log-dir", "/l", "--exec-dir", "/e",
			       "--config", "/a", "--config=/b", "--idle-exit", "60", "--ready-fd",
			       "7", "--check-config"),
			 0);
	assert_int_equal(options.mode, MODE_SYSTEM);
	assert_string_equal(options.socket, "/s");
	assert_string_equal(options.run_dir, "/r");
	assert_string_equal(options.state_dir, "/st");
	assert_string_equal(options.log_dir, "/l");
	assert_string_equal(options.exec_dir, "/e");
	assert_int_equal(options.config_file_count, 2);
	assert_string_equal(options.config_files[1], "/b");
	assert_int_equal(options.idle_exit_ms, 60000);
	assert_int_equal(options.ready_fd, 7);
	assert_true(options.check_config);
	assert_false(options.help || options.version);
}

static void defaults(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, NULL, (const char *const[]){ NULL }), 0);
	assert_int_equal(options.mode, 0);
	assert_null(options.socket);
	assert_int_equal(options.idle_exit_ms, 0);
	assert_int_equal(options.ready_fd, -1);
}

static void refuse(const char *first, const char *second, const char *message)
{
	struct options options;
	struct error err = ERROR_INIT;

	assert_int_equal(PARSE(&options, &err, first, second), -ERR_INVALID);
	if (!strstr(err.message, message))
		fail_msg("'%s' is not in '%s'", message, err.message);
}

static void wrong_ones_are_named(void **state)
{
	(void)state;
	refuse("--nonsense", NULL, "unknown option '--nonsense'");
	refuse("serve", NULL, "unknown option 'serve'");
	refuse("--mod", "user", "unknown option '--mod'");
	refuse("--mode", NULL, "--mode needs a value");
	refuse("--mode", "other", "--mode:");
	refuse("--socket", "relative", "--socket: not an absolute path");
	refuse("--config=", NULL, "--config:");
	refuse("--idle-exit", "-1", "--idle-exit:");
	refuse("--idle-exit", "99999999999999999999", "--idle-exit:");
	refuse("--idle-exit", "1h", "--idle-exit:");
	refuse("--ready-fd", "2", "--ready-fd:");
	refuse("--help=1", NULL, "--help takes no value");
}

static void config_files_are_bounded(void **state)
{
	const char *words[2 * OPTIONS_CONFIG_FILES + 3] = { NULL };
	struct options options;

	(void)state;
	for (size_t i = 0; i < OPTIONS_CONFIG_FILES + 1; i++) {
		words[2 * i] = "--config";
		words[2 * i + 1] = "/c";
	}
	assert_int_equal(parse(&options, NULL, words), -ERR_INVALID);
	words[2 * OPTIONS_CONFIG_FILES] = NULL;
	assert_int_equal(parse(&options, NULL, words), 0);
}

static void the_environment_only_makes_stricter(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(setenv("FSBOX_FORCE_UNAVAILABLE", "1", 1), 0);
	assert_int_equal(setenv("FSBOX_SANDBOX_REQUIRED", "yes", 1), 0);
	assert_int_equal(PARSE(&options, NULL, "--mode", "user"), 0);
	assert_true(options.unavailable);
	assert_true(options.required);
	assert_int_equal(setenv("FSBOX_FORCE_UNAVAILABLE", "0", 1), 0);
	assert_int_equal(setenv("FSBOX_SANDBOX_REQUIRED", "", 1), 0);
	assert_int_equal(PARSE(&options, NULL, "--mode", "user"), 0);
	assert_false(options.unavailable);
	assert_false(options.required);
}

static void modes_that_fit(void **state)
{
	struct options options = { .mode = 0 };

	(void)state;
	assert_int_equal(options_mode(&options, 1000, false), MODE_USER);
	assert_int_equal(options_mode(&options, 1000, true), MODE_USER);
	assert_int_equal(options_mode(&options, 0, true), MODE_SYSTEM);
	assert_int_equal(options_mode(&options, 0, false), MODE_ROOT);
	options.mode = MODE_SYSTEM;
	assert_int_equal(options_mode(&options, 0, false), MODE_SYSTEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_options),
		cmocka_unit_test(defaults),
		cmocka_unit_test(wrong_ones_are_named),
		cmocka_unit_test(config_files_are_bounded),
		cmocka_unit_test(the_environment_only_makes_stricter),
		cmocka_unit_test(modes_that_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
