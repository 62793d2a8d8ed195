/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_VERIFY_H
#define FSBOX_DAEMON_SPAWNER_VERIFY_H

/*
 * Whether what a broker asks for may run on this host, by the authority that fsboxd read itself
 * (R11). The broker is the user, so everything in a plan is the user's word.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "proto/wire/spawnop.h"

struct spawner;

/*
 * What no plan may open: fsbox's own paths (R25), and their other names and those of what the host's
 * configuration protects, by the mounts as they are (R11).
 *
 * @mountinfo_fd  tells when mounts changed; -1: never read
 * @is_current    both lists are by the configuration, and by the mounts when the kernel last spoke of a
 *                change
 */
struct protected_paths {
	int mountinfo_fd;
	bool is_current;
	struct string_list deny;
	struct string_list read_only;
};

#define PROTECTED_PATHS_INIT        \
	{                           \
		.mountinfo_fd = -1, \
	}

void protected_paths_deinit(struct protected_paths *paths);

/*
 * Bring SPAWNER's up to date: one system call when no mount changed. Fails with ERR_SYSTEM, ERR_NOMEM,
 * ERR_POLICY_INVALID (too many other names), and then again the next time.
 */
int protected_paths_refresh(struct spawner *spawner, struct error *err);

/*
 * Map PLAN_FD, a memfd that fsboxd made and the broker filled and sealed: the plan, and behind it the
 * network policy.
 *
 * @announced  how many bytes that are: the file's size, and what the caller munmap()s
 *
 * Fails with ERR_BAD_FRAME (size, seals) or ERR_SYSTEM.
 */
int verify_map(int plan_fd, size_t announced, const uint8_t **ret_bytes, struct error *err);

/*
 * Whether a job of UID may have PLAN, by the mounts as they are now. @granted: a network beyond the
 * host's `max-net` that a grant allows; NET_NONE. Fails with ERR_POLICY_INVALID,
 * ERR_NOT_AUTHORIZED or ERR_ENGINE_UNAVAILABLE, naming what is wrong, or as protected_paths_refresh().
 */
int verify_plan(struct spawner *spawner, uid_t uid, const struct plan *plan, enum net_mode granted,
		struct error *err);

/*
 * Whether the request beside the plan is sound; fills in the configured limits where it has none.
 * Fails likewise.
 */
int verify_start(const struct spawner *spawner, struct op_start *start, struct error *err);

/*
 * Whether the room that START names is the one that PLAN makes: a network of its own is no open one
 * whatever the broker calls it, and the host's is no closed one. For each job: that a template was
 * verified for one with a grant is no permission for the next. Fails with ERR_POLICY_INVALID,
 * ERR_NOT_AUTHORIZED (more than `max-net` without @granted), ERR_GRANT_INVALID.
 */
int verify_room(const struct spawner *spawner, const struct op_start *start,
		const struct plan *plan, enum net_mode granted, struct error *err);

#endif
