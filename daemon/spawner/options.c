/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

/* Longer than any deployment would want to keep an unused daemon: a week. */
#define IDLE_EXIT_MAX_S (7L * 24 * 3600)

typedef int option_fn(struct options *options, const char *value, struct error *err);

/* @form  of the value, for help; NULL: takes none */
struct option_row {
	const char *name;
	const char *form;
	option_fn *set;
	const char *help;
};

static int set_mode(struct options *options, const char *value, struct error *err)
{
	static const enum daemon_mode modes[] = { MODE_SYSTEM, MODE_USER, MODE_ROOT };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(value, daemon_mode_name(modes[i])) == 0) {
			options->mode = modes[i];
			return 0;
		}
	}
	return error_set(err, ERR_INVALID, 0, "--mode: neither system, user nor root");
}

static int set_path(const char **field, const char *name, const char *value, struct error *err)
{
	if (value[0] != '/')
		return error_set(err, ERR_INVALID, 0, "%s: not an absolute path", name);
	*field = value;
	return 0;
}

static int set_socket(struct options *options, const char *value, struct error *err)
{
	return set_path(&options->socket, "--socket", value, err);
}

static int set_run_dir(struct options *options, const char *value, struct error *err)
{
	return set_path(&options->run_dir, "--run-dir", value, err);
}

static int set_state_dir(struct options *options, const char *value, struct error *err)
{
	return set_path(&options->state_dir, "--state-dir", value, err);
}

static int set_log_dir(struct options *options, const char *value, struct error *err)
{
	return set_path(&options->log_dir, "--log-dir", value, err);
}

static int set_exec_dir(struct options *options, const char *value, struct error *err)
{
	return set_path(&options->exec_dir, "--exec-dir", value, err);
}

static int set_config(struct options *options, const char *value, struct error *err)
{
	if (options->config_file_count == OPTIONS_CONFIG_FILES)
		return error_set(err, ERR_INVALID, 0, "--config: more than %d files",
				 OPTIONS_CONFIG_FILES);
	return set_path(&options->config_files[options->config_file_count++], "--config", value,
			err);
}

static int set_number(const char *name, const char *value, long most, long *ret_number,
		      struct error *err)
{
	char *end = NULL;

	errno = 0;
	*ret_number = strtol(value, &end, 10);
	if (errno != 0 || value[0] < '0' || value[0] > '9' || *end != '\0' || *ret_number > most)
		return error_set(err, ERR_INVALID, 0, "%s: not a number from 0 to %ld", name, most);
	return 0;
}

static int set_idle_exit(struct options *options, const char *value, struct error *err)
{
	long seconds = 0;
	int r = set_number("--idle-exit", value, IDLE_EXIT_MAX_S, &seconds, err);

	if (r < 0)
		return r;
	options->idle_exit_ms = (uint64_t)seconds * 1000;
	return 0;
}

static int set_ready_fd(struct options *options, const char *value, struct error *err)
{
	long fd = 0;
	int r = set_number("--ready-fd", value, 1 << 20, &fd, err);

	if (r < 0)
		return r;
	if (fd < 3)
		return error_set(err, ERR_INVALID, 0, "--ready-fd: must be 3 or more");
	options->ready_fd = (int)fd;
	return 0;
}

static int set_check_config(struct options *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	options->check_config = true;
	return 0;
}

static int set_end_jobs(struct options *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	options->end_jobs = true;
	return 0;
}

static int set_version(struct options *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	options->version = true;
	return 0;
}

static int set_help(struct options *options, const char *value, struct error *err)
{
	(void)value;
	(void)err;
	options->help = true;
	return 0;
}

static const struct option_row option_rows[] = {
	{ "--mode", "MODE", set_mode,
	  "system: serve group fsbox; user: serve oneself; root: serve root alone" },
	{ "--socket", "PATH", set_socket,
	  "listen here; not with a socket from the service manager" },
	{ "--run-dir", "DIR", set_run_dir, "runtime files" },
	{ "--state-dir", "DIR", set_state_dir, "what must survive" },
	{ "--log-dir", "DIR", set_log_dir, "events.jsonl" },
	{ "--exec-dir", "DIR", set_exec_dir, "where fsbox-broker and the other roles are" },
	{ "--config", "FILE", set_config, "read this instead of the usual files; repeatable" },
	{ "--idle-exit", "SECONDS", set_idle_exit, "end after so long without jobs and clients" },
	{ "--ready-fd", "N", set_ready_fd, "write a byte to this descriptor when serving" },
	{ "--check-config", NULL, set_check_config,
	  "read the configuration, say what is wrong, end" },
	{ "--end-jobs", NULL, set_end_jobs,
	  "end all jobs of a fsboxd that is gone, and nothing else" },
	{ "--version", NULL, set_version, "print the version" },
	{ "--help", NULL, set_help, "print this" },
};

void options_help(FILE *out)
{
	(void)fputs("usage: fsboxd [option]...\n"
		    "Runs commands in sandboxes for the clients on its socket; see fsboxd(8).\n\n",
		    out);
	for (size_t i = 0; i < ARRAY_SIZE(option_rows); i++) {
		const struct option_row *row = &option_rows[i];
		int width = fprintf(out, "  %s %s", row->name, row->form ? row->form : "");

		(void)fprintf(out, "%*s%s\n", width < 24 ? 24 - width : 1, "", row->help);
	}
	(void)fputs("\nEnvironment (can only make fsboxd stricter):\n"
		    "  FSBOX_FORCE_UNAVAILABLE=1  use no engine: every spawn is refused\n"
		    "  FSBOX_SANDBOX_REQUIRED=1   do not start where no engine works\n",
		    out);
}

/* "--name" or "--name=value". */
static const struct option_row *find_row(const char *word, const char **ret_value)
{
	for (size_t i = 0; i < ARRAY_SIZE(option_rows); i++) {
		size_t length = strlen(option_rows[i].name);

		if (strncmp(word, option_rows[i].name, length) != 0)
			continue;
		if (word[length] == '\0') {
			*ret_value = NULL;
			return &option_rows[i];
		}
		if (word[length] == '=') {
			*ret_value = word + length + 1;
			return &option_rows[i];
		}
	}
	return NULL;
}

/* Any value but empty and "0" switches on: one typed wrongly must not make us laxer. */
static bool switched_on(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] != '\0' && strcmp(value, "0") != 0;
}

int options_parse(struct options *ret_options, int argc, char *const argv[], struct error *err)
{
	struct options options = { .ready_fd = -1 };
	int r = 0;

	for (int i = 1; i < argc; i++) {
		const char *value = NULL;
		const struct option_row *row = find_row(argv[i], &value);

		if (!row)
			return error_set(err, ERR_INVALID, 0, "unknown option '%s'", argv[i]);
		if (!row->form && value)
			return error_set(err, ERR_INVALID, 0, "%s takes no value", row->name);
		if (row->form && !value && ++i < argc)
			value = argv[i];
		if (row->form && !value)
			return error_set(err, ERR_INVALID, 0, "%s needs a value", row->name);
		if ((r = row->set(&options, value, err)) < 0)
			return r;
	}
	options.unavailable = switched_on("FSBOX_FORCE_UNAVAILABLE");
	options.required = switched_on("FSBOX_SANDBOX_REQUIRED");
	*ret_options = options;
	return 0;
}

enum daemon_mode options_mode(const struct options *options, uid_t uid, bool activated)
{
	if (options->mode != 0)
		return options->mode;
	if (uid != 0)
		return MODE_USER;
	return activated ? MODE_SYSTEM : MODE_ROOT;
}
