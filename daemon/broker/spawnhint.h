/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SPAWNHINT_H
#define FSBOX_DAEMON_BROKER_SPAWNHINT_H

/* What to do about a refused spawn, where that is not plain from the message; static, or NULL. */

#include "common/error.h"

const char *spawnhint(enum error_kind kind);

#endif
