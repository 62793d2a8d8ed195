/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_LOG_H
#define FSBOX_DAEMON_LOG_H

/*
 * What the roles tell their administrator: one line on stderr for each thing, written at once.
 *
 * A failure is logged once, where it is handled. Every byte that is not printable ASCII leaves as
 * \xNN, so that nobody's file name can forge a line. Writing never waits: while stderr takes
 * nothing, lines are dropped and counted, and the next line that fits says how many.
 *
 * Keeps errno. The only mutable state at file level in the program; for one thread.
 */

#include <stdbool.h>

#include "common/error.h"

enum log_level { LOG_ERROR = 0, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* A line is cut here, its prefix and newline included. */
#define LOG_LINE_BYTES 2048

/*
 * Set who speaks and from which level on. Before this only errors are written, as "fsbox".
 *
 * @role    a string that stays
 * @level   the least important level that is still written
 * @sd      begin lines with "<N>", the priority as sd-daemon(3) has it, instead of the role
 */
void log_open(const char *role, enum log_level level, bool sd);

void log_set_level(enum log_level level);

/* Whether stderr is the journal's stream, as systemd says by JOURNAL_STREAM. */
bool log_stderr_is_journal(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "WHAT: message (kind)" as an error. */
void log_failure(const struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
