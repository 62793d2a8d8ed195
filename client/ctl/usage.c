/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/command.h"

#include <stdio.h>
#include <string.h>

#include "common/scope.h"

#define COLUMNS 88
#define HELP_COLUMN 26

static void heading(const struct ctl *ctl, const char *text)
{
	(void)fputc('\n', stdout);
	output_style(ctl, stdout, STYLE_BOLD);
	(void)fputs(text, stdout);
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputc('\n', stdout);
}

static void spaces(size_t count)
{
	for (; count > 0; count--)
		(void)fputc(' ', stdout);
}

/* TEXT broken at blanks; lines begin at column INDENT, the first where the cursor is (AT). */
static void wrapped(const char *text, size_t at, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n");

		if (!first && at + 1 + length > COLUMNS) {
			(void)fputc('\n', stdout);
			spaces(indent);
			at = indent;
		} else if (!first) {
			(void)fputc(' ', stdout);
			at++;
		}
		(void)fwrite(text, 1, length, stdout);
		at += length;
		text += length;
		first = false;
		if (*text == '\n') {
			(void)fputs(text[1] ? "\n\n" : "\n", stdout); /* a paragraph ends */
			text++;
			spaces(*text ? indent : 0);
			at = indent;
			first = true;
		} else if (*text == ' ') {
			text++;
		}
	}
}

/* "  LEFT   right, wrapped". */
static void entry(const char *left, const char *right)
{
	size_t used = (size_t)printf("  %s", left);

	if (used + 2 > HELP_COLUMN) {
		(void)fputc('\n', stdout);
		used = 0;
	}
	spaces(HELP_COLUMN - used);
	wrapped(right, HELP_COLUMN, HELP_COLUMN);
	(void)fputc('\n', stdout);
}

static void options(const struct ctl_option *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char left[80];
		const struct ctl_option *option = &table[i];

		(void)snprintf(left, sizeof(left), "%s%c%s%s%s%s", option->letter ? "-" : "",
			       option->letter ? option->letter : ' ', option->letter ? ", " : "",
			       option->flag, option->argument ? " " : "",
			       option->argument ? option->argument : "");
		entry(option->letter ? left : left + 1, option->help);
	}
}

static void command_list(const char *group)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	for (size_t i = 0; i < count; i++) {
		char left[64];
		const struct ctl_command *command = &commands[i];

		if (group && (strncmp(command->name, group, strlen(group)) != 0 ||
			      command->name[strlen(group)] != ' '))
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s", command->name,
			       command->alias ? ", " : "", command->alias ? command->alias : "");
		entry(left, command->summary);
	}
}

void usage_program(const struct ctl *ctl)
{
	(void)fputs("Usage: fsboxctl [OPTION]... COMMAND ...\n\n"
		    "Run commands in a sandbox, and see what the sandbox lets through.\n",
		    stdout);
	heading(ctl, "Commands");
	command_list(NULL);
	heading(ctl, "Options before the command");
	options(ctl_global_options().options, ctl_global_options().count);
	options(ctl_common_options().options, ctl_common_options().count);
	heading(ctl, "Begin with");
	(void)fputs("  fsboxctl doctor                  is everything there?\n"
		    "  fsboxctl spawn -- make test      run something\n"
		    "  fsboxctl spawn --help            every option, with examples\n"
		    "\nManual: fsboxctl(1)\n",
		    stdout);
}

void usage_group(const struct ctl *ctl, const char *group)
{
	(void)printf("Usage: fsboxctl %s COMMAND ...\n", group);
	heading(ctl, "Commands");
	command_list(group);
	(void)printf("\n'fsboxctl %s COMMAND --help' explains each.\n", group);
}

void usage_command(const struct ctl *ctl, const struct ctl_command *command)
{
	struct option_table common = ctl_common_options();

	(void)printf("Usage: fsboxctl %s [OPTION]...%s%s\n", command->name,
		     command->arguments[0] ? " " : "", command->arguments);
	if (command->alias)
		(void)printf("       also called: fsboxctl %s\n", command->alias);
	(void)fputc('\n', stdout);
	wrapped(command->text, 0, 0);

	heading(ctl, "Options");
	options(command->options, command->option_count);
	options(command->more, command->more_count);
	options(common.options, common.count);

	heading(ctl, command->examples[2] ? "Examples" : "Example");
	for (const char *const *example = command->examples; *example; example += 2) {
		output_style(ctl, stdout, STYLE_DIM);
		(void)printf("  # %s\n", example[0]);
		output_style(ctl, stdout, STYLE_PLAIN);
		(void)printf("  %s\n", example[1]);
	}
}
