/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_NATIVEPROBE_H
#define FSBOX_DAEMON_SPAWNER_NATIVEPROBE_H

/*
 * Whether the native engine works here, found out by using it, and what it needs once: done when
 * fsboxd starts, before any client.
 */

#include "common/error.h"
#include "daemon/identity.h"

/*
 * User mode: a user namespace of our own for all native jobs, as a descriptor that is the caller's.
 * Fails with ERR_ENGINE_UNAVAILABLE, saying why.
 */
int nativeprobe_user_namespace(const struct identity *identity, struct error *err);

/*
 * Run a trivial job as IDENTITY: build a template, enter it, confine an init; and prove that a pin
 * holds (R23). @user_ns_fd as in struct native_input. Waits up to PROBE_MS; a child that hangs is killed.
 *
 * Fails with ERR_ENGINE_UNAVAILABLE, saying why.
 */
int nativeprobe_run(const struct identity *identity, int user_ns_fd, struct error *err);

#endif
