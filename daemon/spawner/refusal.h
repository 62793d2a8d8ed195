/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_REFUSAL_H
#define FSBOX_DAEMON_SPAWNER_REFUSAL_H

/*
 * The one thing fsboxd ever says to a client itself: a complete frame with a JSON-RPC error, before
 * it closes a connection that it does not give to a broker. fsboxd has no JSON: the frame is put
 * together from constant text and words of ours.
 */

#include <stddef.h>

#include "common/error.h"

#define REFUSAL_BYTES 2048

/*
 * Fill FRAME with the refusal of this kind: four bytes of length and the object. Bytes that are not
 * printable ASCII, quotes and backslashes become '?'; what is too long is cut.
 *
 * @stage  which check said no, one word; NULL: none
 * @hint   what to do about it; NULL: nothing
 *
 * Returns the frame's length.
 */
size_t refusal_frame(char frame[REFUSAL_BYTES], enum error_kind kind, const char *message,
		     const char *stage, const char *hint);

#endif
