/* SPDX-License-Identifier: Apache-2.0 */

/* fsboxctl: reads the command line, finds the command in the table, runs it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "common/scope.h"

/*
 * Descriptors 0 to 2 that were closed are opened on /dev/null, so that none of ours is taken for the
 * caller's; the command then gets /dev/null too.
 */
static void secure_stdio(struct ctl *ctl)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
			if (open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC) != fd)
				_exit(CTL_FAILED);
			ctl->null_stdio |= 1U << fd;
		}
}

static bool is_group(const char *word)
{
	size_t count = 0;
	const struct ctl_command *commands = ctl_commands(&count);

	for (size_t i = 0; i < count; i++)
		if (strncmp(commands[i].name, word, strlen(word)) == 0 &&
		    commands[i].name[strlen(word)] == ' ')
			return true;
	return false;
}

/* Neither a command nor a group of them: say which was probably meant. */
static int unknown_command(struct ctl *ctl, const char *group, const char *word)
{
	const char *names[64];
	size_t count = 0;
	size_t known = 0;
	const char *closest = NULL;
	const struct ctl_command *commands = ctl_commands(&count);
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < count && known + 2 < ARRAY_SIZE(names); i++) {
		if (group && strncmp(commands[i].name, group, strlen(group)) == 0 &&
		    commands[i].name[strlen(group)] == ' ')
			names[known++] = commands[i].name + strlen(group) + 1;
		else if (!group)
			names[known++] = commands[i].name;
		if (!group && commands[i].alias)
			names[known++] = commands[i].alias;
	}
	closest = option_closest(word, names, known);
	(void)error_set(&err, ERR_INVALID, 0, "unknown command '%s%s%s'%s%s%s", group ? group : "",
			group ? " " : "", word, closest ? ", did you mean '" : "",
			closest ? closest : "", closest ? "'?" : "");
	return output_usage(ctl, group, &err);
}

static int check_words(const struct ctl_command *command, const struct ctl_args *args,
		       struct error *err)
{
	if (args->word_count < command->min_words)
		return error_set(err, ERR_INVALID, 0, "it needs %s", command->arguments);
	if (args->word_count > command->max_words)
		return error_set(err, ERR_INVALID, 0, "'%s' is too much",
				 args->words[command->max_words]);
	return 0;
}

/* What was written must have arrived: a full disk must not look like success. */
static int finish(const struct ctl *ctl, int status)
{
	struct fsbox_error err = { .kind = "internal", .message = "write standard output" };

	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	if (errno == EPIPE)
		return status; /* the reader had enough */
	err.errnum = errno;
	(void)snprintf(err.message, sizeof(err.message), "write standard output: %s",
		       strerror(errno));
	output_error(ctl, NULL, &err);
	return CTL_FAILED;
}

static int run_command(struct ctl *ctl, char **rest)
{
	const struct ctl_command *command = ctl->command;
	const struct option_table tables[] = {
		{ command->options, command->option_count },
		{ command->more, command->more_count },
		ctl_common_options(),
	};
	struct error err = ERROR_INIT;
	size_t used = 0;

	if (option_parse(&ctl->args, tables, ARRAY_SIZE(tables), command->stop_at_word, rest, &used,
			 &err) < 0)
		return output_usage(ctl, NULL, &err);
	if (ctl->args.help) {
		usage_command(ctl, command);
		return CTL_OK;
	}
	if (check_words(command, &ctl->args, &err) < 0)
		return output_usage(ctl, NULL, &err);
	return command->run(ctl);
}

static int run(struct ctl *ctl, char **argv)
{
	const struct option_table tables[] = { ctl_global_options(), ctl_common_options() };
	struct error err = ERROR_INIT;
	size_t used = 0;
	char *const *words = NULL;

	if (option_parse(&ctl->args, tables, ARRAY_SIZE(tables), true, argv, &used, &err) < 0)
		return output_usage(ctl, NULL, &err);
	words = ctl->args.words;
	if (words[0] && strcmp(words[0], "help") == 0) {
		ctl->args.help = true;
		words++;
	}
	if (ctl->args.version)
		return command_version(ctl);
	if (!words[0]) {
		if (!ctl->args.help) {
			(void)error_set(&err, ERR_INVALID, 0, "no command");
			return output_usage(ctl, NULL, &err);
		}
		usage_program(ctl);
		return CTL_OK;
	}

	ctl->command = ctl_command_find(words, &used);
	if (!ctl->command) {
		bool group = is_group(words[0]);

		if (group && words[1] && words[1][0] != '-')
			return unknown_command(ctl, words[0], words[1]);
		if (!group)
			return unknown_command(ctl, NULL, words[0]);
		usage_group(ctl, words[0]);
		return ctl->args.help || words[1] ? CTL_OK : CTL_USAGE;
	}
	return run_command(ctl, (char **)words + used);
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .args = CTL_ARGS_INIT };
	int status = 0;

	secure_stdio(&ctl);
	output_init(&ctl);
	status = run(&ctl, argv + (argc > 0));
	status = finish(&ctl, status);
	(void)fsbox_close(ctl.box);
	ctl_args_deinit(&ctl.args);
	return status;
}
