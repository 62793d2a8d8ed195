/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ENGINE_H
#define FSBOX_DAEMON_SPAWNER_ENGINE_H

/*
 * Which engines are part of this build, and which of them work on this machine now, found out by
 * running a trivial job with each.
 */

#include <stdbool.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "proto/wire/spawnop.h"

#define ENGINE_PATH_BYTES 256
#define ENGINE_REASON_BYTES 256

/*
 * @supported  built for this platform
 * @available  supported, and a trivial job ran
 * @path       program of the engine, or ""
 * @reason     why not, for people: printable ASCII; "" when available
 */
struct engine_info {
	enum engine_kind engine;
	bool supported;
	bool available;
	char path[ENGINE_PATH_BYTES];
	char reason[ENGINE_REASON_BYTES];
};

/*
 * @program     the engine's program, or NULL: where distributions put it, never PATH
 * @init_fd     memfd of builder_load_init(): it runs inside and confines itself as for a job, so that
 *              a kernel without the needed parts shows; -1: only the engine is tried
 * @identity    as whom to try: an ordinary user in system mode, since root's namespaces say nothing about
 *              those of others; NULL: as we are
 * @unavailable say no without trying, as FSBOX_FORCE_UNAVAILABLE=1 asks for (engine_forced())
 */
struct engine_probe {
	const char *program;
	int init_fd;
	const struct identity *identity;
	bool unavailable;
};

/*
 * Fill INFO. Forks, and waits for the child up to ENGINE_PROBE_MS; a child that hangs is killed and counts
 * as no. Never fails: what goes wrong is the reason.
 */
#define ENGINE_PROBE_MS 5000
void engine_probe(enum engine_kind engine, const struct engine_probe *probe,
		  struct engine_info *ret_info);

/* Whether our environment forbids every engine: FSBOX_FORCE_UNAVAILABLE set, not empty, not "0". */
bool engine_forced_unavailable(void);

/* Path of bubblewrap, or NULL. Static. */
const char *engine_find_bwrap(void);

#endif
