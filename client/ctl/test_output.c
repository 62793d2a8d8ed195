/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/output.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"

/* What FN(ARG) writes to standard error. */
static const char *said(void (*fn)(const struct ctl *), const struct ctl *ctl, int target)
{
	static char text[4096];
	FILE *file = tmpfile();
	int kept = fcntl(target, F_DUPFD_CLOEXEC, 10);
	ssize_t got = 0;

	assert_non_null(file);
	(void)fflush(stdout);
	assert_int_equal(dup2(fileno(file), target), target);
	fn(ctl);
	(void)fflush(stdout);
	(void)fflush(stderr);
	assert_int_equal(dup2(kept, target), target);
	(void)close(kept);
	got = pread(fileno(file), text, sizeof(text) - 1, 0);
	assert_true(got >= 0);
	text[got] = '\0';
	(void)fclose(file);
	return text;
}

static const struct fsbox_error example = {
	.kind = "job-unknown",
	.message = "job 7\033[31m",
	.hint = "look at the list",
	.errnum = 2,
};

static void show_example(const struct ctl *ctl)
{
	output_error(ctl, "wait", &example);
}

static void errors_have_one_form(void **state)
{
	struct ctl ctl = { .args = CTL_ARGS_INIT };

	(void)state;
	assert_string_equal(said(show_example, &ctl, STDERR_FILENO),
			    "fsboxctl: wait: job 7\\x1b[31m (job-unknown); look at the list\n");
	ctl.colour_err = true;
	assert_string_equal(said(show_example, &ctl, STDERR_FILENO),
			    "\033[31mfsboxctl:\033[0m wait: job 7\\x1b[31m (job-unknown); look at "
			    "the list\n");
	ctl.args.json = true;
	assert_string_equal(said(show_example, &ctl, STDOUT_FILENO),
			    "{\"error\":{\"kind\":\"job-unknown\",\"message\":\"job 7\\u001b[31m\","
			    "\"hint\":\"look at the list\",\"errno\":2}}\n");
}

static void show_usage(const struct ctl *ctl)
{
	struct error err = ERROR_INIT;
	char *const words[] = { (char *)"spawn", NULL };
	struct ctl spawn = *ctl;
	size_t used = 0;

	(void)error_set(&err, ERR_INVALID, 0, "unknown option '--x'");
	assert_int_equal(output_usage(ctl, NULL, &err), CTL_USAGE);
	assert_int_equal(output_usage(ctl, "policy", &err), CTL_USAGE);
	spawn.command = ctl_command_find(words, &used);
	assert_int_equal(output_usage(&spawn, NULL, &err), CTL_FAILED);
}

static void usage_says_where_to_learn_more(void **state)
{
	const struct ctl ctl = { .args = CTL_ARGS_INIT };

	(void)state;
	assert_string_equal(
		said(show_usage, &ctl, STDERR_FILENO),
		"fsboxctl: unknown option '--x' (usage); 'fsboxctl --help' shows what there is\n"
		"fsboxctl: unknown option '--x' (usage); 'fsboxctl policy --help' shows what there "
		"is\n"
		"fsboxctl: spawn: unknown option '--x' (usage); 'fsboxctl spawn --help' shows what "
		"there is\n");
}

static void show_note(const struct ctl *ctl)
{
	output_note(ctl, "variable %s is withheld", "X");
}

static void notes_are_for_terminals(void **state)
{
	struct ctl ctl = { .args = CTL_ARGS_INIT };

	(void)state;
	assert_string_equal(said(show_note, &ctl, STDERR_FILENO), "");
	ctl.args.verbose = true;
	assert_string_equal(said(show_note, &ctl, STDERR_FILENO),
			    "fsboxctl: variable X is withheld\n");
	ctl.args.verbose = false;
	ctl.terminal_err = true;
	assert_string_equal(said(show_note, &ctl, STDERR_FILENO),
			    "fsboxctl: variable X is withheld\n");
	ctl.args.quiet = true;
	assert_string_equal(said(show_note, &ctl, STDERR_FILENO), "");
}

static void show_foreign(const struct ctl *ctl)
{
	(void)ctl;
	output_text(stdout, "a\tb\n\x7f \xff\xc3\x28 \xc3\xa9 \xc2\x9b \xe2\x80\xae \xe6\x97\xa5");
	(void)output_padded(stdout, "|\xc3\xa9", 4);
	(void)output_padded(stdout, NULL, 3);
	(void)fputs("|", stdout);
}

static void foreign_text_cannot_drive_a_terminal(void **state)
{
	const struct ctl ctl = { .args = CTL_ARGS_INIT };

	(void)state;
	assert_string_equal(said(show_foreign, &ctl, STDOUT_FILENO),
			    "a\\x09b\\x0a\\x7f \\xff\\xc3( \xc3\xa9 \\xc2\\x9b \\xe2\\x80\\xae "
			    "\xe6\x97\xa5|\xc3\xa9  -  |");
}

static void numbers_for_people(void **state)
{
	char out[32];

	(void)state;
	assert_string_equal(output_age(out, 999), "0 s");
	assert_string_equal(output_age(out, 119999), "119 s");
	assert_string_equal(output_age(out, 120000), "2 min");
	assert_string_equal(output_age(out, 7200000), "2 h");
	assert_string_equal(output_age(out, 172800000), "2 d");
	assert_string_equal(output_bytes(out, 1023), "1023 B");
	assert_string_equal(output_bytes(out, 1536), "1.5 KiB");
	assert_string_equal(output_bytes(out, 200u << 20), "200 MiB");
	assert_string_equal(output_bytes(out, UINT64_MAX), "16777216 TiB");
}

static void colours_are_a_choice(void **state)
{
	struct ctl ctl = { .args = CTL_ARGS_INIT };

	(void)state;
	assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
	output_init(&ctl);
	assert_false(ctl.colour_out);
	assert_false(ctl.colour_err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_one_form),
		cmocka_unit_test(usage_says_where_to_learn_more),
		cmocka_unit_test(notes_are_for_terminals),
		cmocka_unit_test(foreign_text_cannot_drive_a_terminal),
		cmocka_unit_test(numbers_for_people),
		cmocka_unit_test(colours_are_a_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
