/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_HINT_H
#define FSBOX_CLIENT_HINT_H

/*
 * What to do about an error, one sentence for each kind: shown where the daemon has no better one.
 */

#include "client/fsbox.h"
#include "common/error.h"

/* The next step for KIND; "" for ERR_NONE; never NULL. Static text. */
const char *hint_for(enum error_kind kind);

/*
 * The public form of ERR, with HINT, or where that is NULL or empty the kind's own.
 *
 * @out  may be NULL
 *
 * Returns -1, so that it can end a function.
 */
int hint_fill(struct fsbox_error *out, const struct error *err, const char *hint);

#endif
