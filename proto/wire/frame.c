/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/frame.h"

#include <string.h>

void frame_decoder_init(struct frame_decoder *decoder)
{
	*decoder = (struct frame_decoder){ .body = BUF_INIT(LIMIT_FRAME_BYTES) };
}

void frame_decoder_deinit(struct frame_decoder *decoder)
{
	if (!decoder)
		return;
	buf_deinit(&decoder->body);
	decoder->header_bytes = 0;
	decoder->length = 0;
}

void frame_decoder_reset(struct frame_decoder *decoder)
{
	buf_clear(&decoder->body);
	decoder->header_bytes = 0;
	decoder->length = 0;
}

static int length_check(size_t length, struct error *err)
{
	if (length == 0)
		return error_set(err, ERR_BAD_FRAME, 0, "frame of length 0");
	if (length > LIMIT_FRAME_BYTES)
		return error_set(err, ERR_FRAME_TOO_LARGE, 0, "frame of %zu bytes, at most %u",
				 length, LIMIT_FRAME_BYTES);
	return 0;
}

/* Take header bytes from DATA; *ret_used says how many. */
static int header_decode(struct frame_decoder *decoder, const uint8_t *data, size_t size,
			 size_t *ret_used, struct error *err)
{
	size_t take = FRAME_HEADER_BYTES - decoder->header_bytes;

	if (take > size)
		take = size;
	memcpy(decoder->header + decoder->header_bytes, data, take);
	decoder->header_bytes += take;
	*ret_used = take;
	if (decoder->header_bytes < FRAME_HEADER_BYTES)
		return 0;

	decoder->length = (uint32_t)decoder->header[0] << 24 | (uint32_t)decoder->header[1] << 16 |
			  (uint32_t)decoder->header[2] << 8 | (uint32_t)decoder->header[3];
	return length_check(decoder->length, err);
}

int frame_decode(struct frame_decoder *decoder, const void *data, size_t size, size_t *ret_used,
		 struct error *err)
{
	const uint8_t *bytes = data;
	size_t used = 0;
	size_t take = 0;
	int r = 0;

	if (decoder->header_bytes < FRAME_HEADER_BYTES && size > 0) {
		r = header_decode(decoder, bytes, size, &used, err);
		if (r < 0)
			return r;
	}
	if (decoder->header_bytes == FRAME_HEADER_BYTES && used < size) {
		take = decoder->length - decoder->body.size;
		if (take > size - used)
			take = size - used;
		if (buf_add(&decoder->body, bytes + used, take) < 0)
			return error_set(err, ERR_NOMEM, 0, "frame of %u bytes", decoder->length);
		used += take;
	}

	*ret_used = used;
	return decoder->header_bytes == FRAME_HEADER_BYTES && decoder->body.size == decoder->length;
}

size_t frame_wanted(const struct frame_decoder *decoder)
{
	if (decoder->header_bytes < FRAME_HEADER_BYTES)
		return FRAME_HEADER_BYTES - decoder->header_bytes;
	return decoder->length - decoder->body.size;
}

bool frame_begun(const struct frame_decoder *decoder)
{
	return decoder->header_bytes > 0;
}

int frame_header(uint8_t ret_header[FRAME_HEADER_BYTES], size_t length, struct error *err)
{
	int r = length_check(length, err);

	if (r < 0)
		return r;
	ret_header[0] = (uint8_t)(length >> 24);
	ret_header[1] = (uint8_t)(length >> 16);
	ret_header[2] = (uint8_t)(length >> 8);
	ret_header[3] = (uint8_t)length;
	return 0;
}
