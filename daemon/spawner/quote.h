/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_QUOTE_H
#define FSBOX_DAEMON_SPAWNER_QUOTE_H

/* Foreign bytes (a path, a command's name) inside an error message. */

#include <stddef.h>

#define QUOTE_BYTES 256

struct quote {
	char text[QUOTE_BYTES];
};

/*
 * TEXT in single quotes; every byte that is not printable ASCII, a quote or a backslash as \xNN; cut with "..."
 * where it is too long. Use as quote(path).text in an argument: it lives to the end of the
 * expression's block.
 */
struct quote quote(const char *text);

#endif
