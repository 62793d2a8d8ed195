/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ACCEPT_H
#define FSBOX_DAEMON_SPAWNER_ACCEPT_H

/*
 * From a connection in the listening socket's queue to one of a broker: who is it, may it, and away.
 */

struct error;
struct spawner;

/* Begin to accept. Fails with ERR_SYSTEM. */
int accept_begin(struct spawner *spawner, struct error *err);

/* No more from now on. */
void accept_end(struct spawner *spawner);

#endif
