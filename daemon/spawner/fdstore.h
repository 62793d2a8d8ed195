/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_FDSTORE_H
#define FSBOX_DAEMON_SPAWNER_FDSTORE_H

/*
 * The service manager's descriptor store (systemd.service(5), FileDescriptorStoreMax=): what is in it when
 * this fsboxd ends is passed to the next one, and is perhaps not in it any more; so everything is stored again
 * at each start, in place of what it has under that name.
 *
 * In it are the listening socket, where fsboxd made that itself ("listen"), so that nobody is refused
 * between two, and a pidfd of each job's pid 1 ("job-NUMBER"), so that it is known for sure which process
 * that was. Jobs are found without it too (adopt.h).
 *
 * Each message costs the service manager more than it costs us, so a job is stored when it has run for a
 * while, and all that are not are when fsboxd ends. Without a service manager nothing happens.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/spawner/loop.h"

struct job;
struct spawner;

#define FDSTORE_LISTEN "listen"
#define FDSTORE_AFTER_MS 1000

/* A job's pidfd that was in the store; owned. */
struct fdstore_item {
	uint64_t job;
	int fd;
};

/* @had_listen  the listening socket was in it; @listen_stored: it is again */
struct fdstore {
	struct fdstore_item *items;
	size_t count;
	bool had_listen;
	bool listen_stored;
	struct loop_timer timer;
};

/*
 * Of *COUNT descriptors from 3 on, which the service manager passed (notify_listen_fds()), take those of
 * jobs, by their names in LISTEN_FDNAMES. The others, *COUNT from then on, are moved together. Fails with
 * ERR_NOMEM or ERR_SYSTEM.
 */
int fdstore_take(struct fdstore *store, int *count, struct error *err);

/* The descriptor of JOB's pid 1, now the caller's and not in the store any more, or -1. */
int fdstore_claim(struct fdstore *store, uint64_t job);

/* Those that nobody claimed are closed, here and in the service manager's store. */
void fdstore_drop_rest(struct fdstore *store);

/* JOB runs: it will be stored if it still does after a while. */
void fdstore_job_runs(struct job *job);

/* JOB is over. */
void fdstore_job_over(struct job *job);

/* fsboxd ends, or begins: whatever is to be stored and is not yet. */
void fdstore_all(struct spawner *spawner);

#endif
