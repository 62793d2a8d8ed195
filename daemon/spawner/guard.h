/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARD_H
#define FSBOX_DAEMON_SPAWNER_GUARD_H

/*
 * Keeps the masks of running jobs in place (R27): one process for each identity that has jobs, forked by
 * fsboxd, entirely the peer but for what mounting takes.
 *
 * Whoever is outside a sandbox can rename something over a masked file, or remove it, or move a
 * directory above it: the kernel then takes the mount away in every sandbox, or the path leads to
 * something that no mount covers. The guard hears of it from the kernel (guardmounts.h for lost mounts,
 * inotify for names), looks at what each job sees there now, and covers it again; or kills the job,
 * where that is wanted or nothing else helps. Between the one and the other there is a window, which is
 * measured and told.
 *
 * Names that give a program execution when they appear (R28) are renamed as soon as they are there.
 *
 * It can be killed or stopped by its own user, which harms that user's jobs alone (R14); fsboxd notices.
 * When fsboxd is gone it goes on, and ends with the last of its jobs, or by SIGTERM when another fsboxd
 * has given them to a guard of its own (guardadopt.h).
 */

#include <stdbool.h>

#include "common/error.h"
#include "daemon/identity.h"

/*
 * All borrowed; the child owns its copies after fork.
 *
 * @switch_ids  system and root mode: become @identity; user mode: already that user
 * @user_ns_fd  user mode: the daemon's user namespace; else -1
 * @order_fd    seqpacket socket with SO_PASSCRED: struct guard_order
 * @report_fd   pipe to fsboxd: struct report_message
 */
struct guard_input {
	const struct identity *identity;
	bool switch_ids;
	int user_ns_fd;
	int order_fd;
	int report_fd;
};

/* Does not return. What it cannot begin ends it: to fsboxd that is a guard that died. */
_Noreturn void guard_run(const struct guard_input *input);

#endif
