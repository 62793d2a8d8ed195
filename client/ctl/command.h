/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_COMMAND_H
#define FSBOX_CLIENT_CTL_COMMAND_H

/*
 * What fsboxctl can do: one sorted table of commands, each with its table of options.
 *
 * --help, shell completion (packaging/completion) and the test that holds fsboxctl(1) against the
 * program all read it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/ctl/option.h"
#include "client/ctl/output.h"

/* Exit statuses; those of `spawn` are fsbox_exit_status() and fsbox_error_exit_status(). */
enum ctl_status {
	CTL_OK = 0,
	CTL_NO = 1,      /* denied, not found, check failed */
	CTL_USAGE = 2,   /* the command line is wrong */
	CTL_FAILED = 125 /* the daemon is unreachable or refused; spawn: it could not be run */
};

/* What a word of the command line stands for, for completion. */
enum word_kind { WORD_NONE, WORD_COMMAND, WORD_JOB, WORD_SIGNAL, WORD_PATH, WORD_FILE, WORD_SHELL };

/*
 * @name       one word, or two ("policy show")
 * @alias      another name, or NULL
 * @arguments  of the usage line, after the options
 * @summary    one line, no final stop
 * @text       paragraphs, ended by a newline each
 * @examples   pairs of a comment and a command line, ended by NULL
 * @options    besides the common ones, @option_count of them; more in @more, @more_count
 * @stop_at_word  the first word begins a command of its own
 * @min_words, @max_words  how many words it takes
 * @word_kind  of the first word
 * @run        does it; returns the exit status
 */
struct ctl_command {
	const char *name;
	const char *alias;
	const char *arguments;
	const char *summary;
	const char *text;
	const char *const *examples;
	const struct ctl_option *options;
	size_t option_count;
	const struct ctl_option *more;
	size_t more_count;
	bool stop_at_word;
	size_t min_words;
	size_t max_words;
	enum word_kind word_kind;
	int (*run)(struct ctl *ctl);
};

/* All commands, by name. */
const struct ctl_command *ctl_commands(size_t *ret_count);

/* Options before the command, and those that every command takes. */
struct option_table ctl_global_options(void);
struct option_table ctl_common_options(void);

/*
 * The command that WORDS (ended by NULL) begin with, by name or alias; NULL when there is none.
 *
 * @ret_used  how many words its name has
 */
const struct ctl_command *ctl_command_find(char *const *words, size_t *ret_used);

/* Help for everything, for the commands beginning with GROUP, for one command. */
void usage_program(const struct ctl *ctl);
void usage_group(const struct ctl *ctl, const char *group);
void usage_command(const struct ctl *ctl, const struct ctl_command *command);

/* One for each row of the table. */
int command_completion(struct ctl *ctl);
int command_doctor(struct ctl *ctl);
int command_events(struct ctl *ctl);
int command_grant_create(struct ctl *ctl);
int command_grant_list(struct ctl *ctl);
int command_grant_revoke(struct ctl *ctl);
int command_inspect(struct ctl *ctl);
int command_policy_check(struct ctl *ctl);
int command_policy_compile(struct ctl *ctl);
int command_policy_diff(struct ctl *ctl);
int command_policy_migrate(struct ctl *ctl);
int command_policy_show(struct ctl *ctl);
int command_ps(struct ctl *ctl);
int command_signal(struct ctl *ctl);
int command_spawn(struct ctl *ctl);
int command_status(struct ctl *ctl);
int command_version(struct ctl *ctl);
int command_wait(struct ctl *ctl);
int command_whoami(struct ctl *ctl);
int command_why(struct ctl *ctl);

#endif
