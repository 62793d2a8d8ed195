/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ENGINEWORDS_H
#define FSBOX_DAEMON_SPAWNER_ENGINEWORDS_H

/*
 * What an engine's program says on stderr: kept for the message when it fails, never more than fits.
 */

#include "common/error.h"
#include "daemon/spawner/quote.h"

#define ENGINEWORDS_BYTES QUOTE_BYTES

/* A descriptor to write to, the caller's; nobody can make the file longer. Fails with ERR_SYSTEM. */
int enginewords_new(struct error *err);

/* The beginning of what was written to FD (-1: nothing), without line ends at its end. */
void enginewords_read(int fd, char ret_words[ENGINEWORDS_BYTES]);

#endif
