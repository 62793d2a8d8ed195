/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_RECORDER_RECORDER_H
#define FSBOX_DAEMON_RECORDER_RECORDER_H

/*
 * The records: takes events from fsboxd's pipe, appends them to events.jsonl and hands them to
 * journald.
 *
 * Durability: what is readable at once is one write; the file is synced at most every
 * RECORDER_SYNC_MS, and nothing that was written stays unsynced for longer. With nothing to do the
 * process sleeps without a timer.
 *
 * A full or broken disk ends nothing: what cannot be written is counted, the first failure of a row
 * is one line on stderr, and the first record that fits again is preceded by `recorder.lost` with
 * the count. No line is ever left half written.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/limits.h"
#include "daemon/recorder/reader.h"
#include "proto/wire/eventop.h"

#define RECORDER_SYNC_MS 100

/* Events that become one write; more wait in the pipe. */
#define RECORDER_BATCH 32

/*
 * @path            absolute; its directory must exist and be writable for us
 * @max_bytes       the file moves to PATH.1 (replacing an older one) rather than grow past this; 0:
 *                  never
 * @group_readable  mode 0640 rather than 0600; the group is the directory's (set-group-ID)
 * @journal         also tell journald, where it is there
 * @linked          fsboxd gives orders and wants to know what is durable
 */
struct recorder_options {
	const char *path;
	uint64_t max_bytes;
	bool group_readable;
	bool journal;
	bool linked;
};

/*
 * @dir_fd     of the file's directory; held so that a rename of a parent does not move the log
 * @fd         the file, or -1 while it cannot be opened
 * @size       where the next line begins
 * @synced_ms  when the file was last synced (CLOCK_MONOTONIC)
 * @dirty      something was written since
 * @lost       events that could not be written, not reported in the file yet
 * @lost_errno why the last of them could not
 * @failed     of the batch at hand: it is not in the file, or not durable
 * @control_fd, @ack_fd  borrowed; -1: nobody asks for events, nobody wants to know what is durable
 * @readers    those in use have an @out_fd
 * @complained stderr knows about the present row of failures
 */
struct recorder {
	struct recorder_options options;
	char name[LIMIT_PATH_BYTES + 1];
	int dir_fd;
	int fd;
	uint64_t size;
	uint64_t synced_ms;
	bool dirty;
	bool complained;
	bool failed;
	int control_fd;
	int ack_fd;
	struct reader readers[LIMIT_EVENT_READERS];
	enum reader_state reader_states[LIMIT_EVENT_READERS];
	uint64_t lost;
	int lost_errno;
	struct buf batch;
};

#define RECORDER_INIT                                                   \
	{                                                               \
		.dir_fd = -1, .fd = -1, .control_fd = -1, .ack_fd = -1, \
	}

/*
 * Open the directory and the file. A file that cannot be opened now is no failure (it is tried again
 * with each batch); a path without a directory is. OPTIONS' strings are borrowed for the recorder's
 * life. Fails with ERR_INVALID or ERR_SYSTEM.
 */
int recorder_init(struct recorder *recorder, const struct recorder_options *options,
		  struct error *err);

/* Sync and close. */
void recorder_deinit(struct recorder *recorder);

/*
 * Record COUNT checked events as one write; if one of them is urgent it is synced at once, and what
 * became of all is told through @ack_fd. Never fails: see above.
 */
void recorder_take(struct recorder *recorder, const struct event_message *messages, size_t count);

/* Somebody wants to read; OUT_FD is taken. Too many at a time are told so, on OUT_FD. */
void recorder_add_reader_take(struct recorder *recorder, const struct recorder_control *what,
			      int out_fd);

/*
 * Serve the pipe until its end, which is success. Fails with ERR_BAD_FRAME when fsboxd sends what it
 * never should, ERR_SYSTEM when the pipe cannot be read. Blocks. EVENTS_FD is borrowed.
 */
int recorder_run(struct recorder *recorder, int events_fd, struct error *err);

#endif
