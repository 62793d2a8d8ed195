/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDFILE_H
#define FSBOX_DAEMON_SPAWNER_GUARDFILE_H

/*
 * What the next fsboxd must know to guard the jobs of this one, beside their records (jobfile.h):
 *
 *	pN	plan number N, which jobs name in their records
 *	gN	the guard that is process N, whose identity it guards
 *
 * A file is whole before anything names it. One that is not as it was written, or is of another boot, is
 * removed and counts as none.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/jobfile.h"

/* ---- plans --------------------------------------------------------------------------- */

/* Keep BYTES of plan ID, for jobs of UID. Fails with ERR_SYSTEM; nothing is left then. */
int guardfile_keep_plan(const struct jobfiles *files, uint64_t id, uid_t uid, const void *bytes,
			size_t byte_count, struct error *err);

/*
 * Plan ID of UID again, in a sealed memfd, which is the caller's. That it can be decoded is known.
 * Fails with ERR_PATH_NOT_FOUND, ERR_BAD_FRAME, ERR_SYSTEM or ERR_NOMEM.
 */
int guardfile_read_plan(const struct jobfiles *files, uint64_t id, uid_t uid, int *ret_fd,
			size_t *ret_bytes, struct error *err);

void guardfile_remove_plan(const struct jobfiles *files, uint64_t id);

/* ---- guards -------------------------------------------------------------------------- */

/* PID, whose descriptor PIDFD is, guards jobs of IDENTITY. That it cannot be kept is logged. */
void guardfile_note(const struct jobfiles *files, pid_t pid, int pidfd,
		    const struct identity *identity);
void guardfile_forget(const struct jobfiles *files, pid_t pid);

/* ---- finding them again -------------------------------------------------------------- */

/*
 * @plan   whether some job names this plan; else it is removed
 * @guard  a guard that lives; its descriptor is to be taken by setting *pidfd to -1
 */
struct guardfile_found {
	bool (*plan)(uint64_t id, void *arg);
	void (*guard)(pid_t pid, int *pidfd, const struct identity *identity, void *arg);
	void *arg;
};

/* Each plan, or each guard, where FOUND has a function for them. Fails with ERR_SYSTEM. */
int guardfiles_scan(const struct jobfiles *files, const struct guardfile_found *found,
		    struct error *err);

#endif
