/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/frame.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

/* Feed SIZE bytes in portions of CHUNK; 1 when a frame is complete, with *ret_used of all bytes. */
static int feed(struct frame_decoder *decoder, const uint8_t *data, size_t size, size_t chunk,
		size_t *ret_used, struct error *err)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < size) {
		size_t portion = size - at < chunk ? size - at : chunk;
		size_t used = 0;

		r = frame_decode(decoder, data + at, portion, &used, err);
		if (r >= 0)
			at += used;
	}
	*ret_used = at;
	return r;
}

static size_t build(uint8_t *to, const char *payload)
{
	size_t length = strlen(payload);

	assert_int_equal(frame_header(to, length, NULL), 0);
	memcpy(to + FRAME_HEADER_BYTES, payload, length);
	return FRAME_HEADER_BYTES + length;
}

static void any_chunking_gives_the_same_frames(void **state)
{
	static const char *const payloads[] = { "a", "{\"jsonrpc\":\"2.0\"}", "0123456789abcdef!" };
	uint8_t stream[256];
	size_t size = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		size += build(stream + size, payloads[i]);
	for (size_t chunk = 1; chunk <= size; chunk++) {
		struct frame_decoder decoder;
		size_t at = 0;

		frame_decoder_init(&decoder);
		for (size_t i = 0; i < 3; i++) {
			size_t used = 0;

			assert_false(frame_begun(&decoder));
			assert_int_equal(feed(&decoder, stream + at, size - at, chunk, &used, NULL),
					 1);
			assert_string_equal(buf_text(&decoder.body), payloads[i]);
			assert_int_equal(used, FRAME_HEADER_BYTES + strlen(payloads[i]));
			frame_decoder_reset(&decoder);
			at += used;
		}
		assert_int_equal(at, size);
		frame_decoder_deinit(&decoder);
	}
}

static void wanted_never_passes_the_end(void **state)
{
	struct frame_decoder decoder;
	uint8_t stream[64];
	size_t size = build(stream, "hello");
	size_t at = 0;
	size_t used = 0;
	int r = 0;

	(void)state;
	frame_decoder_init(&decoder);
	assert_int_equal(frame_wanted(&decoder), 4);
	assert_int_equal(frame_decode(&decoder, stream, 0, &used, NULL), 0);
	assert_int_equal(used, 0);
	while (r == 0) {
		size_t wanted = frame_wanted(&decoder);

		assert_in_range(wanted, 1, size - at);
		r = frame_decode(&decoder, stream + at, wanted, &used, NULL);
		assert_int_equal(used, wanted);
		at += used;
		assert_true(frame_begun(&decoder));
	}
	assert_int_equal(r, 1);
	assert_int_equal(at, size);
	frame_decoder_deinit(&decoder);
	frame_decoder_deinit(NULL);
}

static void length_zero_is_refused(void **state)
{
	static const uint8_t zero[4] = { 0, 0, 0, 0 };
	struct frame_decoder decoder;
	struct error err = ERROR_INIT;
	uint8_t header[4];
	size_t used = 0;

	(void)state;
	frame_decoder_init(&decoder);
	assert_int_equal(feed(&decoder, zero, 4, 1, &used, &err), -ERR_BAD_FRAME);
	assert_int_equal(err.kind, ERR_BAD_FRAME);
	assert_int_equal(frame_header(header, 0, &err), -ERR_BAD_FRAME);
	frame_decoder_deinit(&decoder);
}

static void longest_frame_passes_and_one_more_byte_does_not(void **state)
{
	uint8_t *payload = calloc(1, LIMIT_FRAME_BYTES);
	uint8_t header[FRAME_HEADER_BYTES];
	struct frame_decoder decoder;
	struct error err = ERROR_INIT;
	size_t used = 0;

	(void)state;
	assert_non_null(payload);
	frame_decoder_init(&decoder);
	assert_int_equal(frame_header(header, LIMIT_FRAME_BYTES, &err), 0);
	assert_int_equal(frame_decode(&decoder, header, 4, &used, &err), 0);
	assert_int_equal(feed(&decoder, payload, LIMIT_FRAME_BYTES, 65536, &used, &err), 1);
	assert_int_equal(decoder.body.size, LIMIT_FRAME_BYTES);
	frame_decoder_reset(&decoder);

	assert_int_equal(frame_header(header, LIMIT_FRAME_BYTES + 1, &err), -ERR_FRAME_TOO_LARGE);
	header[0] = 0x00;
	header[1] = 0x40;
	header[2] = 0x00;
	header[3] = 0x01;
	assert_int_equal(frame_decode(&decoder, header, 4, &used, &err), -ERR_FRAME_TOO_LARGE);
	assert_string_equal(err.message, "frame of 4194305 bytes, at most 4194304");
	frame_decoder_reset(&decoder);
	memset(header, 0xff, 4);
	assert_int_equal(frame_decode(&decoder, header, 4, &used, &err), -ERR_FRAME_TOO_LARGE);
	frame_decoder_deinit(&decoder);
	free(payload);
}

static void announced_length_reserves_nothing(void **state)
{
	static const uint8_t header[5] = { 0x00, 0x40, 0x00, 0x00, 'x' };
	struct frame_decoder decoder;
	size_t used = 0;

	(void)state;
	frame_decoder_init(&decoder);
	assert_int_equal(frame_decode(&decoder, header, 5, &used, NULL), 0);
	assert_in_range(decoder.body.capacity, 1, 4096);
	frame_decoder_deinit(&decoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_chunking_gives_the_same_frames),
		cmocka_unit_test(wanted_never_passes_the_end),
		cmocka_unit_test(length_zero_is_refused),
		cmocka_unit_test(longest_frame_passes_and_one_more_byte_does_not),
		cmocka_unit_test(announced_length_reserves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
