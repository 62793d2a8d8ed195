/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_HOSTVIEW_H
#define FSBOX_DAEMON_HOSTVIEW_H

/*
 * The file system as this process sees it, for common/pathview.h. Looks paths up with this process's
 * own rights and may hang where a file system does not answer: only for roles that run as the user.
 */

#include "common/pathview.h"

/* @cwd  absolute, borrowed */
struct path_view hostview(const char *cwd);

#endif
