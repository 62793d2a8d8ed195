/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_NSFD_H
#define FSBOX_DAEMON_SPAWNER_NSFD_H

/*
 * Descriptors of the namespaces that a child of ours stands in: taken by us, never sent to us.
 */

#include <sys/types.h>

enum nsfd_kind { NSFD_MOUNT, NSFD_NET, NSFD_USER, NSFD_IPC, NSFD_UTS, NSFD_CGROUP };

/*
 * By the ioctl of its pidfd (Linux 6.11), else by /proc. The child must be alive and not reaped.
 * The descriptor (close-on-exec) is the caller's; -1 with errno on failure.
 */
int nsfd_open(int pidfd, pid_t pid, enum nsfd_kind kind);

#endif
