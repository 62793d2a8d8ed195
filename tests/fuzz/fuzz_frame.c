/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream of frames, read twice: as one piece and in portions of as many bytes as the first byte says.
 * Both must see the same frames and end in the same way.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All payloads one after the other, each behind its header again. */
static int read_all(const uint8_t *data, size_t size, size_t portion, struct buf *out)
{
	struct frame_decoder decoder;
	size_t at = 0;
	int r = 0;

	frame_decoder_init(&decoder);
	while (at < size && r >= 0) {
		size_t left = size - at < portion ? size - at : portion;
		size_t used = 0;

		if (frame_wanted(&decoder) == 0)
			abort();
		r = frame_decode(&decoder, data + at, left, &used, NULL);
		if (r < 0)
			break;
		if (used == 0 || used > left)
			abort();
		at += used;
		if (r == 1) {
			uint8_t header[FRAME_HEADER_BYTES];

			if (frame_header(header, decoder.body.size, NULL) < 0)
				abort();
			(void)buf_add(out, header, sizeof(header));
			(void)buf_add(out, decoder.body.data, decoder.body.size);
			frame_decoder_reset(&decoder);
		}
	}
	frame_decoder_deinit(&decoder);
	return r < 0 ? r : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(64u << 20);
	struct buf portions = BUF_INIT(64u << 20);
	int a = 0;
	int b = 0;

	if (size < 1)
		return 0;
	a = read_all(data + 1, size - 1, size, &whole);
	b = read_all(data + 1, size - 1, data[0] + 1u, &portions);
	if (a != b || whole.size != portions.size || whole.size > size - 1 ||
	    strcmp(buf_text(&whole), buf_text(&portions)) != 0 ||
	    (whole.size > 0 && memcmp(whole.data, data + 1, whole.size) != 0))
		abort();
	buf_deinit(&whole);
	buf_deinit(&portions);
	return 0;
}
