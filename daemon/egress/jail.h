/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_JAIL_H
#define FSBOX_DAEMON_EGRESS_JAIL_H

/*
 * What fsbox-egress gives up before it reads the first byte of a sandbox (R33).
 *
 *	                the proxy                       those that look names up
 *	capabilities    none, bounding and ambient too  none
 *	no_new_privs    yes                             yes
 *	dumpable, core  no                              no
 *	files           none can be opened              reading below the folders that the resolver
 *	                                                and its libraries need
 *	bind to TCP     no                              no (both: from Landlock's ABI 4 on)
 *	signals,        to nobody else                  to nobody else (both: from ABI 6 on)
 *	abstract sockets
 *	system calls    a list of what it needs         all but a list: no program is executed,
 *	                                                nobody traced
 *	new sockets     IPv4, IPv6                      Unix, IPv4, IPv6, netlink
 *	new memory      never executable                as the libraries need
 *
 * Landlock is used as far as the kernel has it; the filter of system calls must be there.
 */

#include "common/error.h"

enum jail_role { JAIL_PROXY = 1, JAIL_RESOLVER };

/* For good. A single-threaded caller only. ERR_SYSTEM: the caller must exit. */
int jail_enter(enum jail_role role, struct error *err);

/* The highest number of files this process may open, raised as far as it may. */
unsigned jail_raise_files(void);

#endif
