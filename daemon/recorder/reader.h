/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_RECORDER_READER_H
#define FSBOX_DAEMON_RECORDER_READER_H

/*
 * Somebody who reads events: lines of the file, those that concern him, into a pipe that fsboxd made.
 *
 * The file itself is the queue, so that a slow reader costs nothing but his place in it. One who
 * follows also sees what is written later, over rotations. What he may see is settled by the first
 * fields of each line, which nobody but us has written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "proto/wire/eventop.h"

/*
 * @what        whose and which events
 * @out_fd      owned, never blocks
 * @old_fd      the file before the present one, or -1 once it was read
 * @file_fd     the present one as it was when it was opened; -1: there was none
 * @offset      in the one that is read, of the next line
 * @pending     lines on their way, from @sent on
 */
struct reader {
	struct recorder_control what;
	int out_fd;
	int old_fd;
	int file_fd;
	uint64_t offset;
	struct buf pending;
	size_t sent;
};

#define READER_INIT                                        \
	{                                                  \
		.out_fd = -1, .old_fd = -1, .file_fd = -1, \
	}

enum reader_state {
	READER_WAITS_FOR_ROOM,  /* go on when @out_fd can be written */
	READER_WAITS_FOR_LINES, /* go on when something was recorded */
	READER_OVER,
};

/* OUT_FD is taken. @dir_fd, @name  of the file; the older one is NAME.1 */
void reader_init_take(struct reader *reader, const struct recorder_control *what, int out_fd,
		      int dir_fd, const char *name);
void reader_deinit(struct reader *reader);

/* Pass on what can be passed on now. Never blocks for long: a few lines at a time. */
enum reader_state reader_step(struct reader *reader, int dir_fd, const char *name);

/* Whether a line of events.jsonl, SIZE bytes, is for whoever asked for WHAT. */
bool reader_may_see(const struct recorder_control *what, const char *line, size_t size);

#endif
