/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_REPORT_H
#define FSBOX_DAEMON_SPAWNER_REPORT_H

/* Writing struct report_message: shared by the builder and init. */

#include "common/error.h"
#include "proto/wire/spawnop.h"

/* Zero MESSAGE and fill its header. */
void report_begin(struct report_message *message, enum report_kind kind);

/*
 * Write MESSAGE to the pipe FD. Blocks while the pipe is full, which fsboxd, its only reader, sees to.
 * Fails with ERR_UNREACHABLE when nobody reads any more (SIGPIPE must be ignored), or ERR_SYSTEM.
 */
int report_write(int fd, const struct report_message *message, struct error *err);

/* Wait for the GO byte that answers what was announced. ERR_UNREACHABLE when fsboxd is gone. */
int report_wait_go(int fd, struct error *err);

/*
 * Send MESSAGE over the job channel, with PASS_FD unless that is -1. Never blocks. The broker may be
 * gone, which is no reason to fail a job: nothing is returned.
 */
void report_send(int channel_fd, const struct report_message *message, int pass_fd);

#endif
