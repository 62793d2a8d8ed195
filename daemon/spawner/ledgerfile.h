/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LEDGERFILE_H
#define FSBOX_DAEMON_SPAWNER_LEDGERFILE_H

/*
 * The file that the ledger is kept in: `ledger` in the state directory, lines that are only ever appended,
 * until all of it is written anew beside it and takes its place.
 *
 * A line that could not be written whole is taken back. After a failed sync nobody knows what is on the
 * disk: then, and when the file could not be opened, the next append writes everything anew first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

struct buf;

/* Append the INDEX-th piece of all that is worth keeping to OUT; false: there is no more. */
typedef bool ledger_file_write_fn(struct buf *out, size_t index, void *arg);

/* One line without its newline, of any bytes. */
typedef void ledger_file_line_fn(const char *text, size_t size, void *arg);

/*
 * @fd        of the file; -1: there is none, or what is there is none
 * @lock_fd   keeps a second fsboxd from the same directory
 * @size      of what is good in the file
 * @unended   what is at its end is no whole line, and could not be cut off
 * @suspect   it cannot be appended to: a sync failed, or it could only be read
 */
struct ledger_file {
	int dir_fd;
	int lock_fd;
	int fd;
	off_t size;
	bool unended;
	bool suspect;
	ledger_file_write_fn *write;
	void *arg;
};

#define LEDGER_FILE_INIT                               \
	{                                              \
		.dir_fd = -1, .lock_fd = -1, .fd = -1, \
	}

/*
 * Open or make the file in DIR. WRITE gives the contents when they are to be written anew. Fails with
 * ERR_CONFIG when another fsboxd has it, ERR_SYSTEM. That the file cannot be made or written (a disk that is
 * full or read-only) is no failure yet: RET_WHY says why, and it is tried again when something is to
 * be written.
 */
int ledger_file_open(struct ledger_file *file, const char *dir, ledger_file_write_fn *write,
		     void *arg, struct error *ret_why, struct error *err);

void ledger_file_close(struct ledger_file *file);

/*
 * Every line of the file, the header left out. The last one may have been torn. Returns how many were no
 * lines at all: too long, or the header was not ours. Fails with ERR_SYSTEM.
 */
int ledger_file_read(struct ledger_file *file, ledger_file_line_fn *fn, void *arg, size_t *ret_bad,
		     struct error *err);

/*
 * Append LINE, SIZE bytes. With SYNC it is on the disk when this returns. Fails with ERR_LEDGER_FAILED; the
 * file then is as it was.
 */
int ledger_file_append(struct ledger_file *file, const void *line, size_t size, bool sync,
		       struct error *err);

/*
 * Write everything anew, atomically. @keep_old: what was there is kept as `ledger.damaged`. Fails with
 * ERR_LEDGER_FAILED; the old file then stays.
 */
int ledger_file_replace(struct ledger_file *file, bool keep_old, struct error *err);

/* There is nothing worth keeping. */
void ledger_file_clear(struct ledger_file *file);

#endif
