/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_FRAME_H
#define FSBOX_PROTO_WIRE_FRAME_H

/*
 * One frame: four bytes of length, big-endian, then that many bytes. No I/O here.
 *
 * The decoder takes bytes in any portions. It never asks for memory on the strength of a length that
 * somebody merely announced: the body grows as its bytes arrive.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/limits.h"

#define FRAME_HEADER_BYTES 4

/*
 * @body    the payload so far; the whole payload once frame_decode() returned 1
 * @length  of the payload, known once the header is complete
 */
struct frame_decoder {
	struct buf body;
	uint8_t header[FRAME_HEADER_BYTES];
	size_t header_bytes;
	uint32_t length;
};

void frame_decoder_init(struct frame_decoder *decoder);
void frame_decoder_deinit(struct frame_decoder *decoder); /* NULL and zeroed are fine */

/* Forget the frame; the next byte begins another. */
void frame_decoder_reset(struct frame_decoder *decoder);

/*
 * Feed bytes, at most to the end of one frame.
 *
 * @ret_used  how many bytes of DATA belonged to the frame; the rest is the next frame's
 *
 * Returns 1 when the frame is complete: take the payload from decoder->body, then call
 * frame_decoder_reset(). Returns 0 when more bytes are needed. Fails with ERR_BAD_FRAME (length 0),
 * ERR_FRAME_TOO_LARGE (length > LIMIT_FRAME_BYTES), ERR_NOMEM; the stream is then of no more use.
 */
int frame_decode(struct frame_decoder *decoder, const void *data, size_t size, size_t *ret_used,
		 struct error *err);

/* How many bytes may be read without going past what is known of the frame; at least 1. */
size_t frame_wanted(const struct frame_decoder *decoder);

/* Whether a frame has begun and is not complete. */
bool frame_begun(const struct frame_decoder *decoder);

/* The header for a payload of LENGTH bytes. Fails as frame_decode() does. */
int frame_header(uint8_t ret_header[FRAME_HEADER_BYTES], size_t length, struct error *err);

#endif
