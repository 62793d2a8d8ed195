/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_NOTIFY_H
#define FSBOX_DAEMON_SPAWNER_NOTIFY_H

/*
 * The two conversations with a service manager, as sd_notify(3) and sd_listen_fds(3) describe them,
 * without its library.
 */

#include <stdbool.h>

#include "common/error.h"

/*
 * Send STATE ("READY=1", "STOPPING=1", several lines) to the socket that NOTIFY_SOCKET names.
 * Returns 0 as well when nobody asked. Never blocks. Fails with ERR_INVALID (an address we do not
 * understand) or ERR_SYSTEM.
 */
int notify_send(const char *state, struct error *err);

/* The same with a descriptor, which is borrowed: for FDSTORE=1. */
int notify_send_fd(const char *state, int fd, struct error *err);

/* Whether somebody asked to be told. */
bool notify_is_there(void);

/*
 * The number of descriptors from 3 on that the service manager passed to this very process
 * (LISTEN_FDS, LISTEN_PID); 0 when there are none. They are made close-on-exec. Fails with
 * ERR_INVALID when the variables make no sense.
 */
int notify_listen_fds(struct error *err);

/* Remove all variables of both conversations from the environment. */
void notify_unset(void);

#endif
