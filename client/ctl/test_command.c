/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/command.h"

#include "tests/test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tables ---------------------------------------------------------------------- */

static void commands_are_sorted_and_complete(void **state)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct ctl_command *command = &commands[i];
		size_t length = strlen(command->summary);

		if (i > 0)
			assert_true(strcmp(commands[i - 1].name, command->name) < 0);
		assert_non_null(command->run);
		assert_non_null(command->examples[0]);
		for (size_t j = 0; command->examples[j]; j++)
			assert_non_null(command->examples[j | 1]); /* pairs */
		assert_true(islower((unsigned char)command->summary[0]));
		assert_int_not_equal(command->summary[length - 1], '.');
		assert_int_equal(command->text[strlen(command->text) - 1], '\n');
		assert_true(command->min_words <= command->max_words);
	}
}

static void each_command_finds_itself(void **state)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	size_t used = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		char name[64];
		char *words[3] = { name, NULL, NULL };
		char *space = NULL;

		(void)snprintf(name, sizeof(name), "%s", commands[i].name);
		space = strchr(name, ' ');
		if (space) {
			*space = '\0';
			words[1] = space + 1;
		}
		assert_ptr_equal(ctl_command_find(words, &used), &commands[i]);
		assert_int_equal(used, space ? 2 : 1);
	}
	assert_string_equal(ctl_command_find((char *[]){ (char *)"run", NULL }, &used)->name,
			    "spawn");
	assert_null(ctl_command_find((char *[]){ (char *)"policy", NULL }, &used));
	assert_null(ctl_command_find((char *[]){ (char *)"spaw", NULL }, &used));
}

/* No option twice for one command, and one name has one form everywhere. */
static void options_are_unambiguous(void **state)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct option_table tables[] = {
			{ commands[i].options, commands[i].option_count },
			{ commands[i].more, commands[i].more_count },
			ctl_common_options(),
		};
		const struct ctl_option *all[64];
		size_t known = 0;

		for (size_t t = 0; t < 3; t++)
			for (size_t j = 0; j < tables[t].count; j++)
				all[known++] = &tables[t].options[j];
		for (size_t a = 0; a < known; a++)
			for (size_t b = 0; b < a; b++) {
				assert_string_not_equal(all[a]->flag, all[b]->flag);
				assert_true(!all[a]->letter || all[a]->letter != all[b]->letter);
			}
		for (size_t a = 0; a < known; a++) {
			assert_int_equal(strncmp(all[a]->flag, "--", 2), 0);
			assert_true((all[a]->argument == NULL) == (all[a]->form == OPTION_FLAG));
			assert_int_not_equal(all[a]->help[strlen(all[a]->help) - 1], '.');
		}
	}
}

/* ---- the manual ---------------------------------------------------------------------- */

/* fsboxctl(1) without scdoc's marks, runs of white space made one blank. */
static char *read_manual(void)
{
	FILE *file = fopen(TEST_MANUAL, "re");
	char *text = calloc(1, 1 << 17);
	size_t used = 0;
	int byte = 0;

	assert_non_null(file);
	assert_non_null(text);
	while ((byte = fgetc(file)) != EOF && used + 2 < 1 << 17) {
		if (byte == '*' || byte == '_' || byte == '\\')
			continue;
		if (isspace(byte))
			byte = ' ';
		if (byte == ' ' && used > 0 && text[used - 1] == ' ')
			continue;
		text[used++] = (char)byte;
	}
	(void)fclose(file);
	return text;
}

/* As the manual, without marks, would have it. */
static void plain(char *to, size_t size, const char *text)
{
	size_t used = 0;

	for (; *text && used + 1 < size; text++)
		if (*text != '*' && *text != '_' && *text != '\\')
			to[used++] = *text;
	to[used] = '\0';
}

static void manual_has_option(const char *manual, const struct ctl_option *option)
{
	char text[512];
	char wanted[512];

	(void)snprintf(text, sizeof(text), " %s%s%s %s", option->flag, option->argument ? " " : "",
		       option->argument ? option->argument : "", option->help);
	plain(wanted, sizeof(wanted), text);
	if (!strstr(manual, wanted))
		fail_msg("fsboxctl(1) does not have:%s", wanted);
}

static void manual_describes_what_there_is(void **state)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	const struct option_table shared[] = { ctl_global_options(), ctl_common_options() };
	char *manual = read_manual();
	char heading[80];

	(void)state;
	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < shared[t].count; i++)
			manual_has_option(manual, &shared[t].options[i]);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(heading, sizeof(heading), " ## %s ", commands[i].name);
		if (!strstr(manual, heading))
			fail_msg("fsboxctl(1) has no section '%s'", heading);
		for (size_t j = 0; j < commands[i].option_count; j++)
			manual_has_option(manual, &commands[i].options[j]);
		for (size_t j = 0; j < commands[i].more_count; j++)
			manual_has_option(manual, &commands[i].more[j]);
	}
	free(manual);
}

static bool option_exists(const char *flag, size_t length)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	struct option_table tables[130] = { ctl_global_options(), ctl_common_options() };
	size_t used = 2;

	for (size_t i = 0; i < count; i++) {
		tables[used++] =
			(struct option_table){ commands[i].options, commands[i].option_count };
		tables[used++] = (struct option_table){ commands[i].more, commands[i].more_count };
	}
	for (size_t t = 0; t < used; t++)
		for (size_t i = 0; i < tables[t].count; i++)
			if (strlen(tables[t].options[i].flag) == length &&
			    strncmp(tables[t].options[i].flag, flag, length) == 0)
				return true;
	return false;
}

static void manual_describes_nothing_else(void **state)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	char *manual = read_manual();

	(void)state;
	for (const char *at = strstr(manual, "--"); at; at = strstr(at + 2, "--")) {
		size_t length = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");

		if (length > 2 && !option_exists(at, length))
			fail_msg("fsboxctl(1) tells of '%.*s', which does not exist", (int)length,
				 at);
		at += length - 2;
	}
	for (const char *at = strstr(manual, " ## "); at; at = strstr(at + 4, " ## ")) {
		bool known = false;

		for (size_t i = 0; i < count; i++)
			if (strncmp(at + 4, commands[i].name, strlen(commands[i].name)) == 0 &&
			    at[4 + strlen(commands[i].name)] == ' ')
				known = true;
		if (!known)
			fail_msg("fsboxctl(1) has a section '%.20s'", at + 4);
	}
	free(manual);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_sorted_and_complete),
		cmocka_unit_test(each_command_finds_itself),
		cmocka_unit_test(options_are_unambiguous),
		cmocka_unit_test(manual_describes_what_there_is),
		cmocka_unit_test(manual_describes_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
