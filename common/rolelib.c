/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rolelib.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"

/* Whether PATH, once normalised, covers NORMAL_CHILD. One that does not normalise covers nothing. */
static bool covers_raw(const char *path, const char *normal_child)
{
	size_t size = 0;

	if (!path_normal_length(path, &size))
		return false;
	if (size == 1)
		return true;
	return strncmp(path, normal_child, size) == 0 &&
	       (normal_child[size] == '/' || normal_child[size] == '\0');
}

static bool list_covers(const struct string_list *list, const char *normal_child)
{
	for (size_t i = 0; i < list->count; i++)
		if (covers_raw(list->items[i], normal_child))
			return true;
	return false;
}

static int baseline_denies(bool *ret_denies, const struct policy_context *context,
			   const char *normal_path, struct error *err)
{
	AUTO(buf_deinit) struct buf path = BUF_INIT(LIMIT_FRAME_BYTES);
	const struct baseline_entry *entry = NULL;

	for (size_t i = 0; (entry = baseline_entry(context->platform, i)); i++) {
		if (entry->access != ACCESS_DENY)
			continue;
		if (baseline_path(entry, context->home_dir, &path) < 0)
			return buf_check(&path, "a path of the baseline", err);
		if (covers_raw(buf_text(&path), normal_path))
			*ret_denies = true;
	}
	return 0;
}

/* The bracket expression that begins at AT: what follows it, or NULL when the dialects differ. */
static const char *skip_bracket(const char *at)
{
	at++;
	if (*at == '^')
		at++;
	if (*at == ']') /* a member here, the end of an empty set there */
		return NULL;
	for (; *at && *at != ']'; at++) {
		if (*at == '\\' || (*at == '[' && at[1] && strchr(":.=", at[1])))
			return NULL;
	}
	return *at ? at + 1 : at;
}

static bool is_quantifier(char byte)
{
	return byte == '*' || byte == '+' || byte == '?';
}

enum dialect {
	DIALECT_COMMON,   /* read alike as POSIX extended and as JavaScript expression */
	DIALECT_DOUBTFUL, /* read differently, or only by one of them */
	DIALECT_INVALID,  /* no expression to either */
};

/* What the byte at AT is by itself; PREVIOUS is the one before it, NUL at the beginning. */
static enum dialect dialect_of_byte(const char *at, char previous)
{
	bool lazy = *at == '?' && is_quantifier(previous);
	bool group = *at == '?' && previous == '(';

	if (*at == '{' || lazy || group)
		return DIALECT_DOUBTFUL;
	if (is_quantifier(*at) &&
	    (previous == '\0' || is_quantifier(previous) || strchr("(|^", previous)))
		return DIALECT_INVALID; /* nothing to repeat */
	if (*at == '\\' && !at[1])
		return DIALECT_INVALID;
	if (*at == '\\' && !strchr(".[]()*+?{}|^$/\\-", at[1]))
		return DIALECT_DOUBTFUL;
	return DIALECT_COMMON;
}

static enum dialect dialect_of(const char *expression)
{
	enum dialect dialect = DIALECT_COMMON;
	char previous = '\0';

	for (const char *at = expression; *at && dialect == DIALECT_COMMON;) {
		dialect = dialect_of_byte(at, previous);
		previous = *at;
		if (*at == '[' || *at == '\\')
			previous = 'x'; /* something to repeat */
		if (*at == '[')
			at = skip_bracket(at);
		else
			at += *at == '\\' && at[1] ? 2 : 1;
		if (!at)
			return DIALECT_DOUBTFUL;
	}
	return dialect;
}

/* Whether EXPRESSION keeps PATH away: *RET_MATCHES becomes true, or stays as it is. */
static int expression_matches(bool *ret_matches, const char *expression, const char *path,
			      struct error *err)
{
	enum dialect dialect = dialect_of(expression);
	regex_t compiled;
	int r = 0;

	if (dialect == DIALECT_INVALID)
		return 0;
	if (dialect == DIALECT_DOUBTFUL || strlen(expression) > ROLE_REGEX_BYTES) {
		*ret_matches = true;
		return 0;
	}
	r = regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB);
	if (r == REG_ESPACE)
		return error_set(err, ERR_NOMEM, 0, "no memory for a regular expression");
	if (r != 0)
		return 0;
	r = regexec(&compiled, path, 0, NULL, 0);
	regfree(&compiled);
	if (r == REG_ESPACE)
		return error_set(err, ERR_NOMEM, 0, "no memory for a regular expression");
	if (r == 0)
		*ret_matches = true;
	return 0;
}

static int is_withheld(bool *ret_withheld, const struct policy_context *context,
		       const char *normal_path, struct error *err)
{
	const struct string_list *regexes = &context->mandatory_deny_regexes;
	int r = baseline_denies(ret_withheld, context, normal_path, err);

	if (list_covers(&context->user_deny, normal_path) ||
	    list_covers(&context->mandatory_deny_paths, normal_path))
		*ret_withheld = true;
	for (size_t i = 0; r == 0 && !*ret_withheld && i < regexes->count; i++)
		r = expression_matches(ret_withheld, regexes->items[i], normal_path, err);
	return r;
}

int role_library_access(enum access *ret_access, const struct policy_context *context,
			struct error *err)
{
	AUTO(auto_free) char *path = NULL;
	bool withheld = false;
	int r = 0;

	*ret_access = ACCESS_NONE;
	if (!context->role_library_subtree)
		return 0;
	path = path_normalize(context->role_library_subtree);
	if (!path)
		return errno == ENOMEM ? error_set(err, ERR_NOMEM, 0, "no memory for a path") : 0;

	r = is_withheld(&withheld, context, path, err);
	if (r < 0 || withheld)
		return r;
	if (list_covers(&context->user_read_only, path) ||
	    list_covers(&context->mandatory_read_only_paths, path))
		*ret_access = ACCESS_READ_ONLY;
	else
		*ret_access = ACCESS_READ_WRITE;
	return 0;
}
