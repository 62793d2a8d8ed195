/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_CONFINE_H
#define FSBOX_DAEMON_CONFINE_H

/*
 * What a role gives up for good, before it reads the first byte that somebody else wrote.
 *
 *	                     broker              recorder            init (piece by piece)
 *	inherited files      all but its own     all but its own     all but its own
 *	dumpable             no                  no                  no
 *	core files           none                none                as the peer's (R20)
 *	no_new_privs         yes                 yes                 yes
 *	capabilities         kept for root only  none                none, bounding and ambient too
 *	exec, ptrace         refused             refused             as the job's filter says
 *	sockets              any                 AF_UNIX only        as the job's filter says
 *
 * The broker of root keeps its capabilities: without them the kernel would hide from it whether a
 * sender still lives in our namespaces (ptrace access needs a superset). It is root already; there
 * is nothing left for it to gain.
 *
 * Not dumpable also means that nobody of the same user can ptrace the role or read its memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum confine_role { CONFINE_BROKER = 1, CONFINE_RECORDER };

/*
 * Keep the descriptors 0 .. LAST, close every other one. Fails with ERR_SYSTEM when one of those to
 * be kept is not open: then what we would open next would take its number, and its meaning.
 */
int confine_descriptors(int last, struct error *err);

/*
 * Everything of the table above but the descriptors. Single-threaded callers only. Fails with
 * ERR_SYSTEM; the role must then exit.
 */
int confine_enter(enum confine_role role, struct error *err);

/*
 * Nothing that this process executes, or its children do, gets a capability that is not in KEPT (a bit for each
 * number; capabilities(7)). What it has itself it keeps. Where it may drop none (CAP_SETPCAP) nothing is done.
 * Fails with ERR_SYSTEM.
 */
int confine_bounding(uint64_t kept, struct error *err);

/* The pieces, for init, which takes them in the order of R16. Each fails with ERR_SYSTEM. */
int confine_not_dumpable(struct error *err);
int confine_drop_capabilities(
	struct error *err); /* bounding, ambient, then all three sets; verified */
int confine_no_new_privs(struct error *err);

/* ---- Landlock of jobs ---------------------------------------------------------------- */

/*
 * From this ABI on (Linux 5.19) a rename across directories can be allowed; before it Landlock would
 * break every tool that saves atomically, so it is not used at all (R22).
 */
#define LANDLOCK_ABI_MIN 2

/* From this ABI on (Linux 6.12) abstract sockets and signals are held too. */
#define LANDLOCK_ABI_SCOPES 6

/* The version the running kernel enforces; 0 where it has none. */
int confine_landlock_abi(void);

/*
 * What jobs lack on a kernel with this version, one sentence for each INDEX from 0 on, for `status`;
 * NULL: no more. Static.
 */
const char *confine_landlock_gap(int abi, size_t index);

#endif
