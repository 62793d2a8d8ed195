/* SPDX-License-Identifier: Apache-2.0 */

/*
 * completion: the tables of commands and options as scripts for three shells. The copies in
 * packaging/completion are this command's output; a test compares them.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/command.h"
#include "common/scope.h"

typedef void option_fn(const struct ctl_command *command, const struct ctl_option *option);

/* Call FN for each option that COMMAND takes; NULL: the options before a command. */
static void each_option(const struct ctl_command *command, option_fn *fn)
{
	const struct option_table tables[] = {
		command ? (struct option_table){ command->options, command->option_count }
			: ctl_global_options(),
		command ? (struct option_table){ command->more, command->more_count }
			: (struct option_table){ NULL, 0 },
		ctl_common_options(),
	};

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t].count; i++)
			fn(command, &tables[t].options[i]);
}

/* TEXT with a backslash before each of CHARS. */
static void escaped(const char *text, const char *chars)
{
	for (; *text; text++) {
		if (strchr(chars, *text))
			(void)putchar('\\');
		(void)putchar(*text);
	}
}

/* TEXT inside single quotes of a shell, without the outer ones. */
static void single_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)putchar(*text);
	}
}

static bool takes_path(const struct ctl_option *option)
{
	return option->form == OPTION_PATH || option->form == OPTION_FILE ||
	       option->form == OPTION_PATH_LIST;
}

/* "none|proxy|host" as "none proxy host". */
static void choices(const char *bars)
{
	for (; *bars; bars++)
		(void)putchar(*bars == '|' ? ' ' : *bars);
}

/* ---- bash ---------------------------------------------------------------------------- */

static void bash_flag(const struct ctl_command *command, const struct ctl_option *option)
{
	(void)command;
	(void)printf(" %s", option->flag);
}

/* What may follow an option; the same for all commands, since names mean the same everywhere. */
static void bash_argument(const struct ctl_option *option)
{
	if (option->form == OPTION_FLAG)
		return;
	(void)printf("\t%s) ", option->flag);
	if (takes_path(option)) {
		(void)fputs("_fsboxctl_files \"$2\"", stdout);
	} else if (option->form == OPTION_CHOICE) {
		(void)fputs("_fsboxctl_words '", stdout);
		choices(option->argument);
		(void)fputs("' \"$2\"", stdout);
	} else if (option->form == OPTION_TEXT_LIST) {
		(void)fputs("_fsboxctl_words \"$(compgen -e)\" \"$2\"", stdout);
	} else {
		(void)fputs("COMPREPLY=()", stdout);
	}
	(void)fputs(" ;;\n", stdout);
}

static bool seen_before(const struct option_table *tables, size_t table, size_t index)
{
	for (size_t t = 0; t <= table; t++)
		for (size_t i = 0; i < (t == table ? index : tables[t].count); i++)
			if (strcmp(tables[t].options[i].flag, tables[table].options[index].flag) ==
			    0)
				return true;
	return false;
}

static void bash_arguments(void)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	struct option_table tables[2 * 64 + 1];
	size_t used = 0;

	tables[used++] = ctl_global_options();
	for (size_t i = 0; i < count && used + 2 <= ARRAY_SIZE(tables); i++) {
		tables[used++] =
			(struct option_table){ commands[i].options, commands[i].option_count };
		tables[used++] = (struct option_table){ commands[i].more, commands[i].more_count };
	}
	for (size_t t = 0; t < used; t++)
		for (size_t i = 0; i < tables[t].count; i++)
			if (!seen_before(tables, t, i))
				bash_argument(&tables[t].options[i]);
}

static const char bash_head[] =
	"# SPDX-License-Identifier: Apache-2.0\n"
	"# Completion of fsboxctl for bash: made by 'fsboxctl completion bash'.\n"
	"_fsboxctl_words()\n{\n\tCOMPREPLY=($(compgen -W \"$1\" -- \"$2\"))\n}\n\n"
	"_fsboxctl_files()\n{\n\tcompopt -o filenames 2>/dev/null\n"
	"\tmapfile -t COMPREPLY < <(compgen -f -- \"$1\")\n}\n\n"
	"_fsboxctl_jobs()\n{\n\t_fsboxctl_words \"$(fsboxctl --no-autostart ps 2>/dev/null |\n"
	"\t\twhile read -r job _; do [ \"$job\" = JOB ] || echo \"$job\"; done)\" \"$1\"\n}\n\n"
	"# What may follow option $1; false when it takes nothing.\n"
	"_fsboxctl_argument()\n{\n\tcase $1 in\n";

static const char bash_walk[] =
	"\t*) return 1 ;;\n\tesac\n}\n\n"
	"_fsboxctl()\n{\n"
	"\tlocal current=$2 before=$3 command= index=1 word\n\n"
	"\t# The command is the first word that is neither an option nor the argument of --socket.\n"
	"\twhile [ \"$index\" -lt \"$COMP_CWORD\" ]; do\n"
	"\t\tword=${COMP_WORDS[index]}\n"
	"\t\tcase $word in\n"
	"\t\t--socket) index=$((index + 1)) ;;\n"
	"\t\t-*) ;;\n"
	"\t\tgrant | policy) command=$word ;;\n"
	"\t\t*) command=${command:+$command }$word; index=$((index + 1)); break ;;\n"
	"\t\tesac\n"
	"\t\tindex=$((index + 1))\n"
	"\tdone\n\n"
	"\tif _fsboxctl_argument \"$before\" \"$current\"; then\n\t\treturn\n\tfi\n"
	"\tcase $command in\n";

static void bash_words(const struct ctl_command *command)
{
	switch (command->word_kind) {
	case WORD_NONE:
		(void)fputs("COMPREPLY=()", stdout);
		break;
	case WORD_COMMAND:
		(void)fputs("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -c -f -- "
			    "\"$current\")",
			    stdout);
		break;
	case WORD_JOB:
		(void)fputs("_fsboxctl_jobs \"$current\"", stdout);
		break;
	case WORD_SIGNAL:
		(void)fputs("_fsboxctl_words 'TERM INT HUP KILL' \"$current\"", stdout);
		break;
	case WORD_PATH:
	case WORD_FILE:
		(void)fputs("_fsboxctl_files \"$current\"", stdout);
		break;
	case WORD_SHELL:
		(void)fputs("_fsboxctl_words 'bash zsh fish' \"$current\"", stdout);
		break;
	}
}

/* First words of commands that have two. */
static const struct {
	const char *name;
	const char *summary;
} groups[] = {
	{ "grant", "make, list and take back grants" },
	{ "policy", "show, check, compile, compare and translate policies" },
};

/* Names of commands in GROUP (NULL: of all), one after the other. */
static void names(const char *group)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);
	const char *last = "";

	for (size_t i = 0; i < count; i++) {
		const char *name = commands[i].name;
		size_t length = strcspn(name, " ");
		bool inside = group && strncmp(name, group, strlen(group)) == 0 &&
			      name[strlen(group)] == ' ';

		if (group ? !inside : strncmp(last, name, length) == 0 && last[length] == ' ')
			continue;
		if (group)
			(void)printf(" %s", name + strlen(group) + 1);
		else
			(void)printf(" %.*s", (int)length, name);
		if (!group && commands[i].alias)
			(void)printf(" %s", commands[i].alias);
		last = name;
	}
}

static void print_bash(void)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	(void)fputs(bash_head, stdout);
	bash_arguments();
	(void)fputs(bash_walk, stdout);
	(void)fputs("\t'')\n\t\t_fsboxctl_words '", stdout);
	names(NULL);
	each_option(NULL, bash_flag);
	(void)fputs("' \"$current\"\n\t\t;;\n", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		(void)printf("\t%s)\n\t\t_fsboxctl_words '", groups[i].name);
		names(groups[i].name);
		(void)fputs("' \"$current\"\n\t\t;;\n", stdout);
	}
	for (size_t i = 0; i < count; i++) {
		const struct ctl_command *command = &commands[i];

		(void)printf("\t'%s'", command->name);
		if (command->alias)
			(void)printf(" | %s", command->alias);
		(void)fputs(")\n\t\tcase $current in\n\t\t-*) _fsboxctl_words '", stdout);
		each_option(command, bash_flag);
		(void)fputs("' \"$current\" ;;\n\t\t*) ", stdout);
		bash_words(command);
		(void)fputs(" ;;\n\t\tesac\n\t\t;;\n", stdout);
	}
	(void)fputs("\tesac\n}\n\ncomplete -F _fsboxctl fsboxctl\n", stdout);
}

/* ---- zsh ----------------------------------------------------------------------------- */

static void zsh_option(const struct ctl_command *command, const struct ctl_option *option)
{
	bool repeats = option->form == OPTION_TEXT_LIST || option->form == OPTION_PATH_LIST ||
		       option->form == OPTION_ENV_LIST;

	(void)command;
	(void)printf(" \\\n\t\t\t'%s%s[", repeats ? "*" : "", option->flag);
	for (const char *at = option->help; *at; at++) {
		if (strchr("[]:\\", *at))
			(void)putchar('\\');
		if (*at == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)putchar(*at);
	}
	(void)putchar(']');
	if (option->form != OPTION_FLAG) {
		(void)putchar(':');
		escaped(option->argument, "[]:\\");
		(void)putchar(':');
		if (takes_path(option)) {
			(void)fputs("_files", stdout);
		} else if (option->form == OPTION_CHOICE) {
			(void)putchar('(');
			choices(option->argument);
			(void)putchar(')');
		}
	}
	(void)putchar('\'');
}

static const char *zsh_words(const struct ctl_command *command)
{
	switch (command->word_kind) {
	case WORD_NONE:
		return "";
	case WORD_COMMAND:
		return " \\\n\t\t\t'(-)1:command:_command_names -e' '*::argument:_normal'";
	case WORD_JOB:
		return " \\\n\t\t\t'1:job:_fsboxctl_jobs' '*:signal:(TERM INT HUP KILL)'";
	case WORD_SIGNAL:
		return " \\\n\t\t\t'*:signal:(TERM INT HUP KILL)'";
	case WORD_PATH:
	case WORD_FILE:
		return " \\\n\t\t\t'*:path:_files'";
	case WORD_SHELL:
		return " \\\n\t\t\t'1:shell:(bash zsh fish)'";
	}
	return "";
}

static void zsh_commands(const char *group)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	for (size_t i = 0; i < count; i++) {
		const char *space = strchr(commands[i].name, ' ');

		if (group ? !space || strncmp(commands[i].name, group, strlen(group)) != 0
			  : space != NULL)
			continue;
		(void)printf("\t\t'%s:", space ? space + 1 : commands[i].name);
		single_quoted(commands[i].summary);
		(void)fputs("'\n", stdout);
	}
	for (size_t i = 0; !group && i < ARRAY_SIZE(groups); i++)
		(void)printf("\t\t'%s:%s'\n", groups[i].name, groups[i].summary);
}

static void print_zsh(void)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	(void)fputs("#compdef fsboxctl\n"
		    "# SPDX-License-Identifier: Apache-2.0\n"
		    "# Completion of fsboxctl for zsh: made by 'fsboxctl completion zsh'.\n\n"
		    "_fsboxctl_jobs()\n{\n\tlocal -a jobs\n"
		    "\tjobs=(${${(f)\"$(fsboxctl --no-autostart ps 2>/dev/null)\"}[2,-1]%% *})\n"
		    "\tcompadd -a jobs\n}\n\n"
		    "_fsboxctl()\n{\n\tlocal curcontext=$curcontext state line\n"
		    "\tlocal -a commands grant policy\n\tcommands=(\n",
		    stdout);
	zsh_commands(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		(void)printf("\t)\n\t%s=(\n", groups[i].name);
		zsh_commands(groups[i].name);
	}
	(void)fputs("\t)\n\n\t_arguments -C", stdout);
	each_option(NULL, zsh_option);
	(void)fputs(" \\\n\t\t'1: :->command' '*:: :->arguments'\n\n"
		    "\tcase $state in\n\tcommand)\n\t\t_describe command commands\n\t\t;;\n"
		    "\targuments)\n\t\tlocal name=$words[1]\n"
		    "\t\tif [[ $name = (grant|policy) ]]; then\n"
		    "\t\t\tif (( CURRENT == 2 )); then\n"
		    "\t\t\t\t_describe command $name\n\t\t\t\treturn\n\t\t\tfi\n"
		    "\t\t\tname=\"$name $words[2]\"\n\t\t\tshift words\n\t\t\t(( CURRENT-- ))\n"
		    "\t\tfi\n\t\tcase $name in\n",
		    stdout);
	for (size_t i = 0; i < count; i++) {
		(void)fputs("\t\t", stdout);
		escaped(commands[i].name, " ");
		if (commands[i].alias)
			(void)printf("|%s", commands[i].alias);
		(void)fputs(")\n\t\t\t_arguments", stdout);
		each_option(&commands[i], zsh_option);
		(void)printf("%s\n\t\t\t;;\n", zsh_words(&commands[i]));
	}
	(void)fputs("\t\tesac\n\t\t;;\n\tesac\n}\n\n_fsboxctl \"$@\"\n", stdout);
}

/* ---- fish ---------------------------------------------------------------------------- */

/* Under which condition something of COMMAND (NULL: no command yet) is offered. */
static void fish_condition(const struct ctl_command *command)
{
	if (!command)
		(void)fputs("complete -c fsboxctl -n '__fsboxctl_at \"\"'", stdout);
	else if (command->alias)
		(void)printf("complete -c fsboxctl -n '__fsboxctl_at \"%s\" %s'", command->name,
			     command->alias);
	else
		(void)printf("complete -c fsboxctl -n '__fsboxctl_at \"%s\"'", command->name);
}

static void fish_option(const struct ctl_command *command, const struct ctl_option *option)
{
	fish_condition(command);
	if (option->letter)
		(void)printf(" -s %c", option->letter);
	(void)printf(" -l %s", option->flag + 2);
	if (takes_path(option))
		(void)fputs(" -rF", stdout);
	else if (option->form != OPTION_FLAG)
		(void)fputs(" -x", stdout);
	if (option->form == OPTION_CHOICE) {
		(void)fputs(" -a '", stdout);
		choices(option->argument);
		(void)putchar('\'');
	}
	(void)fputs(" -d '", stdout);
	escaped(option->help, "'\\");
	(void)fputs("'\n", stdout);
}

static void fish_words(const struct ctl_command *command)
{
	const char *offer = "";

	switch (command->word_kind) {
	case WORD_NONE:
		return;
	case WORD_COMMAND:
		offer = " -a '(__fish_complete_subcommand)'";
		break;
	case WORD_JOB:
		offer = " -a '(__fsboxctl_jobs)'";
		break;
	case WORD_SIGNAL:
		offer = " -a 'TERM INT HUP KILL'";
		break;
	case WORD_PATH:
	case WORD_FILE:
		offer = " -F";
		break;
	case WORD_SHELL:
		offer = " -a 'bash zsh fish'";
		break;
	}
	fish_condition(command);
	(void)printf("%s\n", offer);
}

static void print_fish(void)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	(void)fputs("# SPDX-License-Identifier: Apache-2.0\n"
		    "# Completion of fsboxctl for fish: made by 'fsboxctl completion fish'.\n"
		    "function __fsboxctl_at\n"
		    "    set -l words\n"
		    "    set -l tokens (commandline -opc)\n"
		    "    set -e tokens[1]\n"
		    "    while set -q tokens[1]\n"
		    "        switch $tokens[1]\n"
		    "            case --socket\n"
		    "                set -e tokens[1]\n"
		    "            case '-*'\n"
		    "            case '*'\n"
		    "                set -a words $tokens[1]\n"
		    "                contains $tokens[1] grant policy; or break\n"
		    "        end\n"
		    "        set -e tokens[1]\n"
		    "    end\n"
		    "    contains -- \"$words[1..2]\" $argv\n"
		    "end\n\n"
		    "function __fsboxctl_jobs\n"
		    "    fsboxctl --no-autostart ps 2>/dev/null | "
		    "string match -r '^[0-9]+'\n"
		    "end\n\n"
		    "complete -c fsboxctl -f\n",
		    stdout);
	each_option(NULL, fish_option);
	for (size_t i = 0; i < count; i++) {
		const struct ctl_command *command = &commands[i];
		const char *space = strchr(command->name, ' ');

		(void)printf("complete -c fsboxctl -n '__fsboxctl_at \"%.*s\"' -a %s -d '",
			     space ? (int)(space - command->name) : 0, command->name,
			     space ? space + 1 : command->name);
		escaped(command->summary, "'\\");
		(void)fputs("'\n", stdout);
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		(void)printf("complete -c fsboxctl -n '__fsboxctl_at \"\"' -a %s -d '%s'\n",
			     groups[i].name, groups[i].summary);
	for (size_t i = 0; i < count; i++) {
		each_option(&commands[i], fish_option);
		fish_words(&commands[i]);
	}
}

int command_completion(struct ctl *ctl)
{
	const char *shell = ctl->args.words[0];
	struct error err = ERROR_INIT;

	if (strcmp(shell, "bash") == 0)
		print_bash();
	else if (strcmp(shell, "zsh") == 0)
		print_zsh();
	else if (strcmp(shell, "fish") == 0)
		print_fish();
	else {
		(void)error_set(&err, ERR_INVALID, 0, "'%s' is none of bash, zsh, fish", shell);
		return output_usage(ctl, NULL, &err);
	}
	return CTL_OK;
}
