/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_REPORTIN_H
#define FSBOX_DAEMON_SPAWNER_REPORTIN_H

/*
 * fsboxd's end of a report pipe: bytes of a hostile writer to checked messages.
 */

#include <stdbool.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/wire/spawnop.h"

/* Called for each message in turn; may close the pipe (reportin_deinit()), never free the reader. */
typedef void reportin_fn(const struct report_message *report, void *arg);

/*
 * @fd    owned, non-blocking; -1: closed
 * @part  of a message that is not all there
 */
struct reportin {
	int fd;
	struct buf part;
	reportin_fn *fn;
	void *arg;
};

#define REPORTIN_INIT    \
	{                \
		.fd = -1 \
	}

void reportin_init_take(struct reportin *in, int fd, reportin_fn *fn, void *arg);

/* Close. Harmless when it is closed. */
void reportin_deinit(struct reportin *in);

enum reportin_result {
	REPORTIN_MORE,    /* something was read: there may be more */
	REPORTIN_LATER,   /* nothing now */
	REPORTIN_END,     /* nobody writes any more */
	REPORTIN_GARBAGE, /* ERR says what was wrong */
};

/* A pipe whose end that is ours is non-blocking. Fails with ERR_SYSTEM; what was made is in RET_*. */
enum pipe_ours { PIPE_READ_OURS, PIPE_WRITE_OURS };
int pipe_make(int *ret_read, int *ret_write, enum pipe_ours ours, struct error *err);

/* Read once and hand on what is complete. Closes nothing itself. */
enum reportin_result reportin_read(struct reportin *in, struct error *err);

#endif
