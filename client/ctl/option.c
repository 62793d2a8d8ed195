/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "common/units.h"

#define NAMES_MAX 64

/* ---- small things -------------------------------------------------------------------- */

void ctl_list_add(struct ctl_list *list, const char *item)
{
	if (list->count + 1 >= list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 8;
		list->items = reallocarray(list->items, list->capacity, sizeof(*list->items));
		if (!list->items)
			abort(); /* a few pointers of one's own command line */
	}
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
}

void ctl_args_deinit(struct ctl_args *args)
{
	struct ctl_list *const lists[] = { &args->rw,          &args->ro,
					   &args->deny,        &args->env,
					   &args->env_pass,    &args->socket_allow,
					   &args->allow_hosts, &args->deny_hosts,
					   &args->forward,     &args->made };

	for (size_t i = 0; i < args->made.count; i++)
		free((char *)args->made.items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		free(lists[i]->items);
		*lists[i] = (struct ctl_list){ .items = NULL };
	}
}

/* How many letters must be changed, added, removed or swapped to make A into B. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NAMES_MAX + 1];
	size_t length = strlen(b);

	if (strlen(a) > NAMES_MAX || length > NAMES_MAX)
		return NAMES_MAX;
	for (size_t j = 0; j <= length; j++)
		rows[0][j] = j;

	for (size_t i = 1; a[i - 1]; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		const size_t *above_that = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    above_that[j - 2] + 1 < best)
				best = above_that[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[strlen(a) % 3][length];
}

const char *option_closest(const char *word, const char *const *names, size_t count)
{
	const char *closest = NULL;
	size_t best = strlen(word) / 2 < 3 ? strlen(word) / 2 : 3;

	for (size_t i = 0; i < count; i++) {
		size_t away = distance(word, names[i]);

		/* What was only begun counts as close. */
		if (strlen(word) > 2 && strncmp(word, names[i], strlen(word)) == 0)
			away = 1;
		if (away < best || (away == best && !closest)) {
			best = away;
			closest = names[i];
		}
	}
	return closest;
}

/* $PWD, if it is the current directory by another spelling. */
static const char *logical_cwd(void)
{
	const char *pwd = getenv("PWD");
	struct stat named;
	struct stat real;

	if (!pwd || pwd[0] != '/' || path_refusal(pwd) || stat(pwd, &named) < 0 ||
	    stat(".", &real) < 0 || named.st_dev != real.st_dev || named.st_ino != real.st_ino)
		return NULL;
	return pwd;
}

/* The end of the last `..` segment of PATH, or NULL. */
static const char *after_last_dotdot(const char *path)
{
	const char *after = NULL;

	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			after = at + 3;
	return after;
}

/* Where `..` leads only the file system can tell: up to the last one the path is looked up. */
static char *resolve_dotdot(const char *path)
{
	const char *rest = after_last_dotdot(path);
	AUTO(auto_free) char *front = NULL;
	AUTO(auto_free) char *real = NULL;

	if (!rest)
		return strdup(path);
	front = strndup(path, (size_t)(rest - path));
	if (!front)
		return NULL;
	real = realpath(front, NULL);
	return real ? path_join(real, rest) : NULL;
}

static char *make_absolute(const char *path)
{
	AUTO(auto_free) char *physical = NULL;
	AUTO(auto_free) char *joined = NULL;
	AUTO(auto_free) char *plain = NULL;
	const char *cwd = NULL;

	if (path[0] != '/') {
		cwd = logical_cwd();
		if (!cwd) {
			physical = getcwd(NULL, 0);
			cwd = physical;
		}
		if (!cwd)
			return NULL;
		if (cwd[0] != '/') {
			errno = ENOENT;
			return NULL;
		}
		joined = path_join(cwd, path);
	} else {
		joined = strdup(path);
	}

	/* `.` and doubled slashes mean nothing; what they separate is left as it is spelled. */
	plain = joined ? path_collapse(joined) : NULL;
	return plain ? resolve_dotdot(plain) : NULL;
}

int option_path(struct ctl_args *args, const char *path, const char **ret_path, struct error *err)
{
	char *absolute = NULL;

	if (path[0] == '\0')
		return error_set(err, ERR_INVALID, 0, "the path is empty");
	absolute = make_absolute(path);
	if (!absolute)
		return error_set(err, errno == ENOMEM ? ERR_NOMEM : ERR_PATH_NOT_FOUND, errno,
				 "'%s'", path);
	ctl_list_add(&args->made, absolute);
	*ret_path = absolute;
	return 0;
}

/* ---- arguments ----------------------------------------------------------------------- */

static bool choice_has(const char *choices, const char *text)
{
	size_t length = strlen(text);

	for (const char *at = choices; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (length > 0 && strncmp(at, text, length) == 0 &&
		    (at[length] == '\0' || at[length] == '|'))
			return true;
	}
	return false;
}

static int wrong(struct error *err, const struct ctl_option *option, const char *value,
		 const char *wanted)
{
	return error_set(err, ERR_INVALID, 0, "%s: '%s' is not %s", option->flag, value, wanted);
}

static int put_path(struct ctl_args *args, const char **field, const struct ctl_option *option,
		    const char *value, struct error *err)
{
	int r = option_path(args, value, field, err);

	if (r < 0)
		error_prefix(err, "%s", option->flag);
	return r;
}

static int put_fd(int *field, const struct ctl_option *option, const char *value, struct error *err)
{
	uint64_t number = 0;

	if (!parse_count(value, 0, 1 << 20, &number))
		return wrong(err, option, value, "a descriptor's number");
	if (fcntl((int)number, F_GETFD) < 0)
		return error_set(err, ERR_INVALID, errno, "%s: descriptor %s", option->flag, value);
	*field = (int)number;
	return 0;
}

static int put_text(struct ctl_args *args, void *field, const struct ctl_option *option,
		    const char *value, struct error *err)
{
	const char **text = field;
	struct ctl_list *list = field;
	const char *absolute = NULL;
	int r = 0;

	if (option->form == OPTION_CHOICE && !choice_has(option->argument, value))
		return error_set(err, ERR_INVALID, 0, "%s: '%s' is none of %s", option->flag, value,
				 option->argument);
	if (option->form == OPTION_ENV_LIST && (value[0] == '=' || !strchr(value, '=')))
		return wrong(err, option, value, "NAME=VALUE");

	if (option->form == OPTION_PATH_LIST) {
		r = put_path(args, &absolute, option, value, err);
		if (r == 0)
			ctl_list_add(list, absolute);
		return r;
	}
	if (option->form == OPTION_TEXT_LIST || option->form == OPTION_ENV_LIST) {
		ctl_list_add(list, value);
		return 0;
	}
	if ((option->form == OPTION_PATH && strcmp(value, "-") != 0) ||
	    (option->form == OPTION_FILE && strchr(value, '/')))
		return put_path(args, text, option, value, err);
	*text = value;
	return 0;
}

static int put_value(struct ctl_args *args, const struct ctl_option *option, const char *value,
		     struct error *err)
{
	void *field = (char *)args + option->offset;

	switch (option->form) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
	case OPTION_CHOICE:
	case OPTION_PATH:
	case OPTION_FILE:
	case OPTION_TEXT_LIST:
	case OPTION_PATH_LIST:
	case OPTION_ENV_LIST:
		return put_text(args, field, option, value, err);
	case OPTION_DURATION:
		if (!parse_duration_ms(value, field) || *(uint64_t *)field == 0)
			return wrong(err, option, value, "a duration like 500ms, 20s, 5m or 1h");
		return 0;
	case OPTION_SIZE:
		if (!parse_size_bytes(value, field) || *(uint64_t *)field == 0)
			return wrong(err, option, value, "a size like 512K, 64M or 2G");
		return 0;
	case OPTION_COUNT:
		if (!parse_count(value, 1, UINT32_MAX, field))
			return wrong(err, option, value, "a number from 1 on");
		return 0;
	case OPTION_CPUS:
		if (!parse_cpus_milli(value, field) || *(uint32_t *)field == 0)
			return wrong(err, option, value, "a number of processors like 2 or 1.5");
		return 0;
	case OPTION_FD:
		return put_fd(field, option, value, err);
	}
	return 0;
}

/* ---- the walk ------------------------------------------------------------------------ */

struct walk {
	struct ctl_args *args;
	const struct option_table *tables;
	size_t table_count;
	char **argv;
	size_t at;
};

/* The option called FLAG (LENGTH bytes of it), or with LETTER. */
static const struct ctl_option *find(const struct walk *walk, const char *flag, size_t length,
				     char letter)
{
	for (size_t t = 0; t < walk->table_count; t++)
		for (size_t i = 0; i < walk->tables[t].count; i++) {
			const struct ctl_option *option = &walk->tables[t].options[i];

			if (letter ? option->letter == letter
				   : strlen(option->flag) == length &&
					     strncmp(option->flag, flag, length) == 0)
				return option;
		}
	return NULL;
}

static int unknown(const struct walk *walk, const char *word, struct error *err)
{
	const char *names[NAMES_MAX];
	AUTO(auto_free) char *flag = strndup(word, strcspn(word, "="));
	const char *closest = NULL;
	size_t count = 0;

	for (size_t t = 0; t < walk->table_count; t++)
		for (size_t i = 0; i < walk->tables[t].count && count < NAMES_MAX; i++)
			names[count++] = walk->tables[t].options[i].flag;
	if (flag && strlen(flag) > 2)
		closest = option_closest(flag, names, count);
	if (closest)
		return error_set(err, ERR_INVALID, 0, "unknown option '%s', did you mean '%s'?",
				 flag, closest);
	return error_set(err, ERR_INVALID, 0, "unknown option '%s'", flag ? flag : word);
}

static int walk_long(struct walk *walk, struct error *err)
{
	const char *word = walk->argv[walk->at++];
	size_t length = strcspn(word, "=");
	const struct ctl_option *option = find(walk, word, length, 0);
	const char *value = word[length] == '=' ? word + length + 1 : NULL;

	if (!option)
		return unknown(walk, word, err);
	if (option->form == OPTION_FLAG && value)
		return error_set(err, ERR_INVALID, 0, "%s takes no argument", option->flag);
	if (option->form != OPTION_FLAG && !value) {
		value = walk->argv[walk->at];
		if (!value)
			return error_set(err, ERR_INVALID, 0, "%s needs an argument: %s",
					 option->flag, option->argument);
		walk->at++;
	}
	return put_value(walk->args, option, value, err);
}

/* "-qv" is "-q -v"; no letter takes an argument. */
static int walk_letters(struct walk *walk, struct error *err)
{
	const char *word = walk->argv[walk->at++];
	int r = 0;

	for (const char *letter = word + 1; *letter && r == 0; letter++) {
		const struct ctl_option *option = find(walk, NULL, 0, *letter);

		if (!option)
			return error_set(err, ERR_INVALID, 0, "unknown option '-%c'", *letter);
		r = put_value(walk->args, option, NULL, err);
	}
	return r;
}

int option_parse(struct ctl_args *args, const struct option_table *tables, size_t table_count,
		 bool stop_at_word, char **argv, size_t *ret_used, struct error *err)
{
	struct walk walk = {
		.args = args,
		.tables = tables,
		.table_count = table_count,
		.argv = argv,
	};
	size_t words = 0;
	int r = 0;

	while (argv[walk.at] && r == 0) {
		char *word = argv[walk.at];

		if (strcmp(word, "--") == 0) {
			walk.at++;
			break;
		}
		if (strncmp(word, "--", 2) == 0)
			r = walk_long(&walk, err);
		else if (word[0] == '-' && word[1] != '\0')
			r = walk_letters(&walk, err);
		else if (stop_at_word)
			break;
		else {
			argv[words++] = word;
			walk.at++;
		}
	}
	if (r < 0)
		return r;

	*ret_used = walk.at;
	if (!stop_at_word)
		while (argv[walk.at])
			argv[words++] = argv[walk.at++];
	if (stop_at_word) {
		args->words = argv + walk.at;
		for (args->word_count = 0; args->words[args->word_count]; args->word_count++)
			;
	} else {
		argv[words] = NULL;
		args->words = argv;
		args->word_count = words;
	}
	return 0;
}
