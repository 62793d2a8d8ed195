/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_OPTION_H
#define FSBOX_CLIENT_CTL_OPTION_H

/*
 * The command line of one command: a table of options in, a filled struct ctl_args out.
 *
 * Parser, --help, shell completion and the test that holds the manual against them read the same
 * tables, so that an option exists everywhere or nowhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Texts ended by NULL, borrowed. */
struct ctl_list {
	const char **items;
	size_t count;
	size_t capacity;
};

/* Values of all options of all commands; absent: NULL, 0, false, and -1 for descriptors. */
struct ctl_args {
	/* of every command */
	bool help;
	bool json;

	/* before the command */
	const char *socket;
	bool user;
	bool no_autostart;
	bool quiet;
	bool verbose;
	bool version;

	/* what a policy is made of: spawn, why, policy */
	const char *profile;
	const char *context; /* a file, "-": standard input */
	struct ctl_list rw;
	struct ctl_list ro;
	struct ctl_list deny;
	struct ctl_list socket_allow;
	const char *absent;
	const char *cwd;
	const char *net;
	struct ctl_list allow_hosts;
	struct ctl_list deny_hosts;
	struct ctl_list forward;
	const char *engine;
	struct ctl_list env;
	struct ctl_list env_pass;
	bool allow_home;
	bool allow_git_config;
	bool egress_only;

	/* spawn */
	uint64_t timeout_ms;
	uint64_t memory_bytes;
	uint64_t pids;
	uint32_t cpus_milli;
	bool detach;
	bool dry_run;
	const char *label;
	int status_fd;

	int grant_fd;
	bool grant_request;

	/* jobs, events */
	bool all;
	bool follow;
	uint64_t job;

	/* grant create */
	const char *request;
	uint64_t ttl_ms;
	struct ctl_list stdin_kinds;
	struct ctl_list stdout_kinds;
	struct ctl_list stderr_kinds;

	/* doctor */
	bool repair;

	/* policy compile */
	const char *platform;
	const char *to;
	bool plain;

	struct ctl_list made; /* paths made absolute: owned, unlike all other texts */

	/* what is left: words, ended by NULL */
	char *const *words;
	size_t word_count;
};

#define CTL_ARGS_INIT                           \
	{                                       \
		.status_fd = -1, .grant_fd = -1 \
	}

/* How an option's argument is read, and the type of its field. */
enum option_form {
	OPTION_FLAG,      /* no argument; bool */
	OPTION_TEXT,      /* const char * */
	OPTION_CHOICE,    /* const char *, one of @argument's words between bars */
	OPTION_PATH,      /* const char *, made absolute; "-" stays */
	OPTION_FILE,      /* const char *, made absolute where it has a slash: a name or a file */
	OPTION_TEXT_LIST, /* struct ctl_list */
	OPTION_PATH_LIST, /* struct ctl_list, made absolute */
	OPTION_ENV_LIST,  /* struct ctl_list, NAME=VALUE */
	OPTION_DURATION,  /* uint64_t, milliseconds */
	OPTION_SIZE,      /* uint64_t, bytes */
	OPTION_COUNT,     /* uint64_t, at least 1 */
	OPTION_CPUS,      /* uint32_t, thousandths */
	OPTION_FD,        /* int, an open descriptor */
};

/*
 * @flag      "--rw"
 * @letter    'v' for "-v", or 0
 * @argument  "DIR", "none|proxy|host"; NULL for flags
 * @help      one line for --help, manual and completion
 */
struct ctl_option {
	const char *flag;
	char letter;
	enum option_form form;
	size_t offset; /* of the field in struct ctl_args */
	const char *argument;
	const char *help;
};

/*
 * Read options from ARGV (without the program's name, ended by NULL) into ARGS.
 *
 * @tables, @table_count  looked at in order
 * @stop_at_word  the first word ends the options (it is a command of its own); otherwise words and
 *                options may be mixed; "--" ends the options in any case
 * @argv          words are moved to its front
 * @ret_used      how many elements were consumed, when it stopped at a word; else all
 *
 * Fails with ERR_INVALID: a sentence for people that names what is wrong and, for a name that is not
 * known, the closest that is.
 */
struct option_table {
	const struct ctl_option *options;
	size_t count;
};
int option_parse(struct ctl_args *args, const struct option_table *tables, size_t table_count,
		 bool stop_at_word, char **argv, size_t *ret_used, struct error *err);

/*
 * PATH made absolute: relative ones are taken from $PWD where that really is the current directory,
 * so that links in it keep their spelling, else from getcwd(3). Empty and `.` segments go; a path with
 * `..` is looked up as far as the last of them, as the kernel would, since rules may not have any.
 *
 * @ret_path  owned by ARGS
 *
 * Fails with ERR_INVALID (empty) or ERR_PATH_NOT_FOUND (the current directory has no name, or what
 * stands before `..` does not exist).
 */
int option_path(struct ctl_args *args, const char *path, const char **ret_path, struct error *err);

/* The closest of NAMES (COUNT of them) to WORD, or NULL when none is close. */
const char *option_closest(const char *word, const char *const *names, size_t count);

void ctl_list_add(struct ctl_list *list, const char *item);
void ctl_args_deinit(struct ctl_args *args);

#endif
