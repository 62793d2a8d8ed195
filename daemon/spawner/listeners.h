/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LISTENERS_H
#define FSBOX_DAEMON_SPAWNER_LISTENERS_H

/*
 * The listening sockets of a job that fsbox-egress serves: made by the job's init in the job's own
 * network, handed out before the command starts. No helper runs inside, and nothing inside holds one.
 */

#include "common/error.h"
#include "proto/wire/spawnop.h"

/*
 * Make what SETUP asks for on 127.0.0.1 and send it over EGRESS_FD (egressop.h), which stays open: its
 * end is the end of the job. What connects early waits in the backlog. Does not block.
 *
 * Fails with ERR_SETUP_FAILED: a port is taken or not ours to take, or fsbox-egress is gone.
 */
int listeners_hand_over(int egress_fd, const struct setup_header *setup, struct error *err);

#endif
