/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_OUTPUT_H
#define FSBOX_CLIENT_CTL_OUTPUT_H

/*
 * What fsboxctl shows: results on standard output, everything about itself on standard error.
 *
 * Foreign text (paths, names, the daemon's messages) is escaped, so that it cannot drive a terminal;
 * with --json it is JSON. Colours are for terminals only, and NO_COLOR switches them off.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/fsbox.h"
#include "client/ctl/option.h"
#include "common/error.h"

struct ctl_command;
struct json_writer;
struct buf;

/*
 * @command        what runs
 * @null_stdio     bit n: descriptor n was closed when fsboxctl was started, or is not for the job
 * @box            the connection, once ctl_open() succeeded
 */
struct ctl {
	struct ctl_args args;
	const struct ctl_command *command;
	bool colour_out;
	bool colour_err;
	bool terminal_err;
	unsigned null_stdio;
	struct fsbox *box;
};

/* Look at the terminals and NO_COLOR. */
void output_init(struct ctl *ctl);

/*
 * Connect as the global options say, showing why it failed: then -1, and the exit status is
 * CTL_FAILED. A second call is a no-op.
 */
int ctl_open(struct ctl *ctl);

/* The same, but the error is the caller's to show. */
int ctl_open_error(struct ctl *ctl, struct fsbox_error *err);

/* TEXT with control characters and bytes that are no UTF-8 as \xNN; for people, so not reversible. */
void output_text(FILE *file, const char *text);

/* TEXT (NULL: "-") as output_text() shows it, padded to WIDTH columns. Returns how many it took. */
size_t output_padded(FILE *file, const char *text, size_t width);

enum output_style { STYLE_PLAIN = 0, STYLE_BOLD, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_DIM };

/* Begin and end a style where FILE shows colours. */
void output_style(const struct ctl *ctl, FILE *file, enum output_style style);

/*
 * `fsboxctl: WHAT: MESSAGE (KIND); HINT` on standard error; with --json an object {"error": ...} on
 * standard output, or where that is the command's (spawn) on standard error.
 *
 * @what  may be NULL
 */
void output_error(const struct ctl *ctl, const char *what, const struct fsbox_error *err);

/* The same for an error of our own, with the kind's hint. */
void output_failure(const struct ctl *ctl, const char *what, const struct error *err);

/*
 * The command line is wrong: says how to learn more. Returns CTL_USAGE, or CTL_FAILED for spawn.
 *
 * @group  where there is no command: the group of commands that was meant, or NULL
 */
int output_usage(const struct ctl *ctl, const char *group, const struct error *err);

/* One line on standard error, for people: only on a terminal or with -v, never with -q. */
void output_note(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* {"error":{kind,message,hint,...}} into WRITER. */
void output_error_json(struct json_writer *writer, const struct fsbox_error *err);

/* The finished JSON of OUT as one line on FILE; returns STATUS, or CTL_FAILED when it cannot be. */
int output_json(const struct ctl *ctl, FILE *file, struct json_writer *writer, struct buf *out,
		int status);

/* Whole seconds and the like for people: "3 s", "2 min", "5 h", "4 d". */
const char *output_age(char out[static 32], uint64_t milliseconds);

/* "1.5 GiB". */
const char *output_bytes(char out[static 32], uint64_t bytes);

#endif
