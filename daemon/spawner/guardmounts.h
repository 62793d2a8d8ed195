/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDMOUNTS_H
#define FSBOX_DAEMON_SPAWNER_GUARDMOUNTS_H

/*
 * How a guard hears that a mount namespace lost a mount: from fanotify (Linux 6.15), which names the
 * mount; else by waiting for a change of the mountinfo of a process in it, which says no more than that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* @fd  fanotify; -1 where there is none */
struct guardmounts {
	int fd;
};

#define GUARDMOUNTS_INIT \
	{                \
		.fd = -1 \
	}

/*
 * One namespace.
 *
 * @info_fd      its mountinfo, to be waited for with EPOLLPRI; -1 with fanotify
 * @count        how many mounts it had; 0: cannot be told
 * @first, @last numbers of mounts are between these, but for those that came later
 */
struct guardmounts_ns {
	int info_fd;
	size_t count;
	uint64_t first;
	uint64_t last;
};

#define GUARDMOUNTS_NS_INIT   \
	{                     \
		.info_fd = -1 \
	}

void guardmounts_init(struct guardmounts *mounts);
void guardmounts_deinit(struct guardmounts *mounts);

/*
 * Tell of NS_FD's mounts from now on. @pid: a process in it that lives. Fails with ERR_SYSTEM; nothing
 * will be told then.
 */
int guardmounts_add(struct guardmounts *mounts, int ns_fd, pid_t pid, struct guardmounts_ns *ret_ns,
		    struct error *err);
void guardmounts_remove(struct guardmounts *mounts, int ns_fd, struct guardmounts_ns *ns);

/* Count them again, after a repair. */
void guardmounts_recount(int ns_fd, struct guardmounts_ns *ns);

/* Whether the mount ID may have been NS's. */
bool guardmounts_may_be(const struct guardmounts_ns *ns, uint64_t id);

/* @id  of a mount that is gone; 0: events were lost, it may be any */
typedef void guardmounts_fn(uint64_t id, void *arg);

/* Everything that fanotify has to tell. */
void guardmounts_read(const struct guardmounts *mounts, guardmounts_fn *fn, void *arg);

/* mountinfo changed: it must be read before it can tell again. */
void guardmounts_read_info(const struct guardmounts_ns *ns);

#endif
