/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

struct kind_row {
	const char *name;
	int exit_status;
	const char *meaning;
};

#define X(symbol, name, status, text) { name, status, text },
static const struct kind_row kind_rows[] = { ERROR_KINDS(X) };
#undef X

static const struct kind_row *kind_row(enum error_kind kind)
{
	size_t index = (size_t)kind - 1;

	if (kind == ERR_NONE || index >= ARRAY_SIZE(kind_rows))
		return NULL;
	return &kind_rows[index];
}

int error_set(struct error *err, enum error_kind kind, int errnum, const char *format, ...)
{
	va_list args;
	size_t used = 0;
	int printed = 0;

	if (!err)
		return -(int)kind;

	err->kind = kind;
	err->errnum = errnum;
	va_start(args, format);
	printed = vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	if (printed < 0)
		err->message[0] = '\0';

	used = strlen(err->message);
	if (errnum != 0 && used < sizeof(err->message))
		(void)snprintf(err->message + used, sizeof(err->message) - used, ": %s",
			       strerror(errnum));
	return -(int)kind;
}

void error_prefix(struct error *err, const char *format, ...)
{
	char joined[2 * ERROR_MESSAGE_BYTES];
	va_list args;
	size_t used = 0;
	int printed = 0;

	if (!err)
		return;

	va_start(args, format);
	printed = vsnprintf(joined, ERROR_MESSAGE_BYTES, format, args);
	va_end(args);
	if (printed < 0)
		return;

	used = strlen(joined);
	(void)snprintf(joined + used, sizeof(joined) - used, ": %s", err->message);
	memcpy(err->message, joined, sizeof(err->message) - 1);
}

void error_clear(struct error *err)
{
	if (!err)
		return;
	err->kind = ERR_NONE;
	err->errnum = 0;
	err->message[0] = '\0';
}

const char *error_name(enum error_kind kind)
{
	const struct kind_row *row = kind_row(kind);

	if (kind == ERR_NONE)
		return "ok";
	return row ? row->name : "internal";
}

enum error_kind error_from_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kind_rows); i++)
		if (strcmp(kind_rows[i].name, name) == 0)
			return (enum error_kind)(i + 1);
	return ERR_NONE;
}

const char *error_meaning(enum error_kind kind)
{
	const struct kind_row *row = kind_row(kind);

	return row ? row->meaning : "no error";
}

int error_exit_status(enum error_kind kind)
{
	const struct kind_row *row = kind_row(kind);

	return row ? row->exit_status : 125;
}
