/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_CONFLINE_H
#define FSBOX_COMMON_CONFLINE_H

/*
 * The lines of a configuration file: `key = value`, blank lines, `#` comments.
 *
 * A `#` begins a comment at the start of a line and after a blank. A value in double quotes keeps
 * its blanks and `#`; inside it \" \\ and \n are the only escapes. Lines end with LF or CRLF. NUL and
 * other control bytes but the tab are refused, as are lines beyond LIMIT_CONFIG_LINE_BYTES.
 */

#include <stddef.h>

#include "common/error.h"
#include "common/limits.h"

/*
 * A file being read; borrowed bytes.
 *
 * @line   number of the line returned last, from 1
 * @key    of that line, terminated
 * @value  likewise, without quotes and escapes
 */
struct confline {
	const char *text;
	size_t size;
	size_t line;
	char key[LIMIT_NAME_BYTES + 1];
	char value[LIMIT_CONFIG_LINE_BYTES + 1];
};

void confline_init(struct confline *reader, const char *text, size_t size);

/*
 * The next line that says something: 1 when reader->key and ->value are filled, 0 at the end. Fails
 * with ERR_CONFIG and a message without the file's name and line: the caller puts them in front.
 */
int confline_next(struct confline *reader, struct error *err);

#endif
