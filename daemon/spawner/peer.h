/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PEER_H
#define FSBOX_DAEMON_SPAWNER_PEER_H

/*
 * Who is at the other end of an accepted connection, asked of the kernel once, right after accept,
 * on the descriptor that accept gave us (R1). Never of a descriptor that came from anybody else:
 * such a one may answer with the credentials of whoever made it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/identity.h"

/*
 * @identity    effective ids at the time of connect(2), and the supplementary groups
 * @pidfd       owned; of the connecting process
 * @start_time  of that process, clock ticks since boot
 */
struct peer {
	struct identity identity;
	pid_t pid;
	int pidfd;
	uint64_t start_time;
};

#define PEER_INIT            \
	{                    \
		.pidfd = -1, \
	}

void peer_deinit(struct peer *peer);

/* Fails with ERR_NOT_AUTHORIZED (gone already, too many groups) or ERR_SYSTEM. */
int peer_read(int connection_fd, struct peer *ret_peer, struct error *err);

/*
 * What of a process was looked at before it was served (R6). The first that differs from an
 * unconfined process in our own namespaces is the reason for refusal.
 */
enum peer_check {
	PEER_FREE = 0,
	PEER_USER_NAMESPACE,
	PEER_MOUNT_NAMESPACE,
	PEER_PID_NAMESPACE,
	PEER_ROOT_DIRECTORY,
	PEER_NO_NEW_PRIVS,
	PEER_SECCOMP,
	PEER_LABEL,
	PEER_UNREADABLE,
	PEER_GONE,
	PEER_CHECK_COUNT,
};

/* One word for messages: "user-namespace" ...; "none" for PEER_FREE. */
const char *peer_check_name(enum peer_check check);

/* Whether configuration may admit a uid in spite of it: never a namespace or another root. */
bool peer_check_admissible(enum peer_check check);

/* Our own namespaces and root, to compare with. Read once, at start. */
struct peer_home {
	struct peer_ns {
		uint64_t dev;
		uint64_t ino;
	} user, mount, pid;
	struct peer_ns root;
};

int peer_home_read(struct peer_home *ret_home, struct error *err);

/*
 * How PEER is confined, by its pidfd so that a reused process number cannot answer.
 *
 * @admitted  configuration admits this uid: checks that are admissible are passed over
 */
enum peer_check peer_confinement(const struct peer *peer, const struct peer_home *home,
				 bool admitted);

/* Whether LABEL, as /proc/PID/attr/current has it, confines nothing. */
bool peer_label_is_free(const char *label);

#endif
