/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A frame's payload with as many descriptors as the first byte says (at most three). What is taken is
 * written again, and that must read and write the same once more. Replies are read as results of
 * the method that the first byte names. No descriptor may be left afterwards.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/json/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decode and encode; false when it is refused. FDS gives the descriptors and gets those for OUT. */
static int rewrite(const char *text, size_t size, enum method method, struct fdset *fds,
		   struct buf *out)
{
	union method_params params;
	union method_result result;
	struct wait_result exited;
	struct message message;
	int r = message_parse(&message, text, size, fds, NULL);

	if (r == 0 && message.kind == MESSAGE_REQUEST) {
		r = message_decode_params(&message, &params, NULL);
		if (r == 0) {
			if (message_encode_request(out, fds, &message.id, message.method, &params,
						   NULL) < 0)
				abort();
			method_params_deinit(message.method, &params);
		}
	} else if (r == 0 && message.kind == MESSAGE_RESULT) {
		r = message_decode_result(&message, method, &result, NULL);
		if (r == 0) {
			if (message_encode_result(out, fds, &message.id, method, &result, NULL) < 0)
				abort();
			method_result_deinit(method, &result);
		}
	} else if (r == 0 && message.kind == MESSAGE_EXITED) {
		r = message_decode_exited(&message, &exited, NULL);
		if (r == 0) {
			if (message_encode_exited(out, &exited, NULL) < 0)
				abort();
			wait_result_deinit(&exited);
		}
	} else if (r == 0 && message_encode_error(out, &message.id, &message.error, NULL) < 0) {
		abort();
	}
	message_deinit(&message);
	return r == 0;
}

/* The lowest descriptor that is free: the same before and after, or one leaked. */
static int lowest_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);

	(void)close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf once = BUF_INIT(LIMIT_FRAME_BYTES);
	struct buf twice = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	enum method method = METHOD_HELLO;
	int before = lowest_free();

	if (size < 1)
		return 0;
	method = (enum method)(1 + (data[0] >> 2) % (METHOD_COUNT - 1));
	for (int i = 0; i < (data[0] & 3); i++)
		if (fdset_add_dup(&fds, 0, NULL) < 0)
			return 0;
	if (rewrite((const char *)data + 1, size - 1, method, &fds, &once)) {
		if (!rewrite(buf_text(&once), once.size, method, &fds, &twice) ||
		    strcmp(buf_text(&once), buf_text(&twice)) != 0)
			abort();
	}
	fdset_deinit(&fds);
	buf_deinit(&once);
	buf_deinit(&twice);
	if (before >= 0 && lowest_free() != before)
		abort();
	return 0;
}
