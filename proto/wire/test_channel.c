/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/channel.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/fdcount.h"

/* One end is a channel, the other a bare socket that a hostile client holds. */
struct pair {
	struct channel channel;
	int raw;
	size_t fds_before;
};

static void pair_open(struct pair *pair, bool credentials)
{
	int fds[2] = { -1, -1 };

	pair->fds_before = fd_count();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(channel_init_take(&pair->channel, fds[0], credentials, NULL), 0);
	pair->raw = fds[1];
}

static void pair_close(struct pair *pair)
{
	channel_deinit(&pair->channel);
	channel_deinit(&pair->channel);
	if (pair->raw >= 0)
		(void)close(pair->raw);
	assert_int_equal(fd_count(), pair->fds_before);
}

/* Send bytes with COUNT descriptors, each a duplicate of standard input. */
static ssize_t raw_send(int fd, const void *data, size_t size, size_t count)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[64] = { 0 };

	if (count > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static void frames_in_portions_of_any_size(void **state)
{
	static const uint8_t stream[] = {
		0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 2, 'o', 'k'
	};

	(void)state;
	for (size_t chunk = 1; chunk <= sizeof(stream); chunk++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct pair pair;
		size_t frames = 0;

		pair_open(&pair, true);
		for (size_t at = 0; at < sizeof(stream); at += chunk) {
			size_t left = sizeof(stream) - at;

			assert_true(raw_send(pair.raw, stream + at, left < chunk ? left : chunk,
					     0) > 0);
			while (channel_receive(&pair.channel, &frame, NULL) == 1) {
				assert_string_equal(buf_text(&frame.payload),
						    frames == 0 ? "hello" : "ok");
				assert_int_equal(frame.sender.pid, getpid());
				assert_int_equal(frame.sender.uid, getuid());
				assert_int_equal(frame.fds.count, 0);
				channel_frame_deinit(&frame);
				frames++;
			}
			assert_int_equal(channel_mid_frame(&pair.channel),
					 at + chunk < sizeof(stream) && at + chunk != 9);
		}
		assert_int_equal(frames, 2);
		pair_close(&pair);
	}
}

static void descriptors_ride_with_the_first_byte(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct pair pair;

	(void)state;
	for (size_t count = 1; count <= LIMIT_FRAME_FDS; count++) {
		pair_open(&pair, true);
		assert_int_equal(raw_send(pair.raw, stream, sizeof(stream), count), sizeof(stream));
		assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
		assert_int_equal(frame.fds.count, count);
		for (size_t i = 0; i < count; i++)
			assert_true(fcntl(frame.fds.fds[i], F_GETFD) & FD_CLOEXEC);
		channel_frame_deinit(&frame);
		channel_frame_deinit(&frame);
		pair_close(&pair);
	}
	channel_frame_deinit(NULL);
}

/* Descriptors with any other byte, however the bytes are cut. */
static void descriptors_with_a_later_byte_are_refused(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 3, 'x', 'y', 'z' };

	(void)state;
	for (size_t at = 1; at < sizeof(stream); at++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct error err = ERROR_INIT;
		struct pair pair;

		pair_open(&pair, true);
		assert_int_equal(raw_send(pair.raw, stream, at, 0), at);
		assert_int_equal(raw_send(pair.raw, stream + at, sizeof(stream) - at, 1),
				 sizeof(stream) - at);
		assert_int_equal(channel_receive(&pair.channel, &frame, &err), -ERR_BAD_FRAME);
		assert_string_equal(err.message,
				    "descriptors do not ride with the first byte of the frame");
		pair_close(&pair);
	}
}

/* The next frame's descriptors stay with the next frame, though all bytes are there at once. */
static void descriptors_stay_with_their_frame(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct pair pair;

	(void)state;
	pair_open(&pair, false);
	for (size_t count = 0; count < 4; count++)
		assert_int_equal(raw_send(pair.raw, stream, sizeof(stream), count), sizeof(stream));
	for (size_t count = 0; count < 4; count++) {
		assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
		assert_int_equal(frame.fds.count, count);
		channel_frame_deinit(&frame);
	}
	pair_close(&pair);
}

static void too_many_descriptors_end_the_peer(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };
	static const size_t counts[] = { LIMIT_FRAME_FDS + 1, LIMIT_FRAME_FDS + 7, 64 };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(counts); i++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct error err = ERROR_INIT;
		struct pair pair;

		pair_open(&pair, i % 2 == 0);
		assert_int_equal(raw_send(pair.raw, stream, sizeof(stream), counts[i / 2]),
				 sizeof(stream));
		assert_int_equal(channel_receive(&pair.channel, &frame, &err), -ERR_BAD_FRAME);
		pair_close(&pair);
	}
}

/* With no room in the descriptor table the kernel drops them and says MSG_CTRUNC. */
static void no_room_for_descriptors_ends_the_peer(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct error err = ERROR_INIT;
	struct rlimit old;
	struct rlimit tight;
	struct pair pair;
	int lowest = -1;

	(void)state;
	pair_open(&pair, true);
	assert_int_equal(raw_send(pair.raw, stream, sizeof(stream), 3), sizeof(stream));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
	(void)close(lowest);
	tight = (struct rlimit){ .rlim_cur = (rlim_t)lowest + 1, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	assert_int_equal(channel_receive(&pair.channel, &frame, &err), -ERR_BAD_FRAME);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	pair_close(&pair);
}

static void child_sends(int fd, const void *data, size_t size)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0)
		_exit(write(fd, data, size) == (ssize_t)size ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void R2_one_frame_from_two_processes_is_refused(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 3, 'x', 'y', 'z' };

	(void)state;
	for (size_t at = 1; at < sizeof(stream); at++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct error err = ERROR_INIT;
		struct pair pair;

		pair_open(&pair, true);
		assert_int_equal(write(pair.raw, stream, at), at);
		child_sends(pair.raw, stream + at, sizeof(stream) - at);
		assert_int_equal(channel_receive(&pair.channel, &frame, &err), -ERR_BAD_FRAME);
		assert_non_null(strstr(err.message, "one frame from several processes"));
		pair_close(&pair);
	}
}

static void R2_each_frame_tells_its_own_sender(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct pair pair;

	(void)state;
	pair_open(&pair, true);
	assert_int_equal(write(pair.raw, stream, sizeof(stream)), sizeof(stream));
	child_sends(pair.raw, stream, sizeof(stream));
	assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
	assert_int_equal(frame.sender.pid, getpid());
	channel_frame_deinit(&frame);
	assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
	assert_int_not_equal(frame.sender.pid, getpid());
	assert_int_not_equal(frame.sender.pid, 0);
	channel_frame_deinit(&frame);
	pair_close(&pair);
}

/* The option is set when the peer has begun to speak: its first bytes have no sender, the others have. */
static void R2_who_shows_its_sender_compares_none(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 3, 'x', 'y', 'z' };

	(void)state;
	for (size_t at = 1; at < sizeof(stream); at++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct channel peer = CHANNEL_INIT;
		struct pair pair;

		pair_open(&pair, false);
		assert_int_equal(write(pair.raw, stream, at), at);
		assert_int_equal(channel_show_sender(&pair.channel, NULL), 0);
		assert_int_equal(write(pair.raw, stream + at, sizeof(stream) - at),
				 sizeof(stream) - at);
		assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
		assert_memory_equal(buf_text(&frame.payload), "xyz", 3);
		channel_frame_deinit(&frame);

		/* Sent while the peer does not ask: known all the same. */
		assert_int_equal(channel_send(&pair.channel, "{}", 2, NULL, NULL), 0);
		assert_int_equal(channel_init_take(&peer, pair.raw, true, NULL), 0);
		pair.raw = -1;
		assert_int_equal(channel_receive(&peer, &frame, NULL), 1);
		assert_int_equal(frame.sender.pid, getpid());
		channel_frame_deinit(&frame);
		channel_deinit(&peer);
		pair_close(&pair);
	}
}

static void bad_lengths_are_refused(void **state)
{
	static const uint8_t zero[] = { 0, 0, 0, 0 };
	static const uint8_t huge[] = { 0x00, 0x40, 0x00, 0x01 };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct pair pair;

	(void)state;
	pair_open(&pair, true);
	assert_int_equal(write(pair.raw, zero, 4), 4);
	assert_int_equal(channel_receive(&pair.channel, &frame, NULL), -ERR_BAD_FRAME);
	pair_close(&pair);
	pair_open(&pair, true);
	assert_int_equal(write(pair.raw, huge, 4), 4);
	assert_int_equal(channel_receive(&pair.channel, &frame, NULL), -ERR_FRAME_TOO_LARGE);
	pair_close(&pair);
}

static void end_between_frames_is_no_error_and_within_one_is(void **state)
{
	static const uint8_t stream[] = { 0, 0, 0, 1, 'x' };

	(void)state;
	for (size_t size = 0; size <= sizeof(stream); size++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct pair pair;
		bool whole = size == 0 || size == sizeof(stream);

		pair_open(&pair, true);
		assert_int_equal(write(pair.raw, stream, size), size);
		(void)close(pair.raw);
		pair.raw = -1;
		if (size == sizeof(stream)) {
			assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 1);
			channel_frame_deinit(&frame);
		}
		assert_int_equal(channel_receive(&pair.channel, &frame, NULL),
				 whole ? 0 : -ERR_BAD_FRAME);
		assert_true(pair.channel.eof);
		if (whole)
			assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 0);
		pair_close(&pair);
	}
}

/* A peer that closes without having read everything: ECONNRESET is an end too. */
static void reset_is_the_end(void **state)
{
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct pair pair;

	(void)state;
	pair_open(&pair, true);
	assert_int_equal(channel_send(&pair.channel, "x", 1, NULL, NULL), 0);
	(void)close(pair.raw);
	pair.raw = -1;
	assert_int_equal(channel_receive(&pair.channel, &frame, NULL), 0);
	assert_true(pair.channel.eof);
	assert_int_equal(channel_send(&pair.channel, "x", 1, NULL, NULL), -ERR_UNREACHABLE);
	pair_close(&pair);
}

static void channels_talk_with_descriptors_both_ways(void **state)
{
	struct channel left = CHANNEL_INIT;
	struct channel right = CHANNEL_INIT;
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct fdset fds = FDSET_INIT;
	size_t before = fd_count();
	int pair[2] = { -1, -1 };

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(channel_init_take(&left, pair[0], true, NULL), 0);
	assert_int_equal(channel_init_take(&right, pair[1], true, NULL), 0);
	for (int i = 0; i < LIMIT_FRAME_FDS; i++)
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	assert_int_equal(channel_send(&left, "{}", 2, &fds, NULL), 0);
	assert_int_equal(fds.count, 0);
	assert_false(channel_wants_write(&left));
	assert_int_equal(channel_receive(&right, &frame, NULL), 1);
	assert_int_equal(frame.fds.count, LIMIT_FRAME_FDS);
	assert_int_equal(channel_send(&right, "[]", 2, &frame.fds, NULL), 0);
	channel_frame_deinit(&frame);
	assert_int_equal(channel_receive(&left, &frame, NULL), 1);
	assert_string_equal(buf_text(&frame.payload), "[]");
	assert_int_equal(frame.fds.count, LIMIT_FRAME_FDS);
	channel_frame_deinit(&frame);
	assert_int_equal(channel_receive(&left, &frame, NULL), 0);
	channel_deinit(&left);
	channel_deinit(&right);
	channel_deinit(NULL);
	assert_int_equal(fd_count(), before);
}

static void bad_sends_close_their_descriptors(void **state)
{
	struct fdset fds = FDSET_INIT;
	struct pair pair;
	int claimed = -1;

	(void)state;
	pair_open(&pair, true);
	assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	assert_int_equal(channel_send(&pair.channel, "", 0, &fds, NULL), -ERR_BAD_FRAME);
	assert_int_equal(fds.count, 0);
	assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	assert_int_equal(fdset_claim(&fds, 0, &claimed, NULL), 0);
	(void)close(claimed);
	assert_int_equal(channel_send(&pair.channel, "x", 1, &fds, NULL), -ERR_BAD_FRAME);
	pair_close(&pair);
}

/* Everything a stalled peer makes us keep: bounded, in order once it reads, descriptors with theirs. */
static void queue_is_bounded_and_keeps_its_order(void **state)
{
	struct channel reader = CHANNEL_INIT;
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct error err = ERROR_INIT;
	char *payload = calloc(1, 100000);
	struct pair pair;
	size_t sent = 0;
	int r = 0;

	(void)state;
	assert_non_null(payload);
	pair_open(&pair, true);
	assert_int_equal(channel_init_take(&reader, pair.raw, true, NULL), 0);
	pair.raw = -1;
	while (true) {
		struct fdset fds = FDSET_INIT;

		memset(payload, (int)('a' + sent % 26), 100000);
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		r = channel_send(&pair.channel, payload, 100000, &fds, &err);
		if (r < 0)
			break;
		sent++;
		assert_true(pair.channel.queued_bytes <= LIMIT_REPLY_QUEUE_BYTES);
	}
	assert_int_equal(r, -ERR_QUOTA_EXCEEDED);
	assert_true(pair.channel.queued_bytes + 100004 > LIMIT_REPLY_QUEUE_BYTES);
	assert_true(channel_wants_write(&pair.channel));

	for (size_t i = 0; i < sent; i++) {
		while ((r = channel_receive(&reader, &frame, &err)) == 0)
			assert_int_equal(channel_flush(&pair.channel, NULL), 0);
		assert_int_equal(r, 1);
		assert_int_equal(frame.payload.size, 100000);
		assert_int_equal(frame.payload.data[99999], 'a' + i % 26);
		assert_int_equal(frame.fds.count, 1);
		channel_frame_deinit(&frame);
	}
	assert_false(channel_wants_write(&pair.channel));
	assert_int_equal(pair.channel.queued_bytes, 0);
	channel_deinit(&reader);
	pair_close(&pair);
	free(payload);
}

static void queue_takes_exactly_its_bound(void **state)
{
	char *payload = calloc(1, LIMIT_FRAME_BYTES);
	struct pair pair;
	size_t room = 0;

	(void)state;
	assert_non_null(payload);
	pair_open(&pair, true);
	/* Fill the socket, then the queue to the last byte. */
	while (!channel_wants_write(&pair.channel))
		assert_int_equal(channel_send(&pair.channel, payload, 65536, NULL, NULL), 0);
	while ((room = LIMIT_REPLY_QUEUE_BYTES - pair.channel.queued_bytes) > 2u << 20)
		assert_int_equal(channel_send(&pair.channel, payload, 1u << 20, NULL, NULL), 0);
	assert_int_equal(channel_send(&pair.channel, payload, room - 3, NULL, NULL),
			 -ERR_QUOTA_EXCEEDED);
	assert_int_equal(channel_send(&pair.channel, payload, room - 4, NULL, NULL), 0);
	assert_int_equal(pair.channel.queued_bytes, LIMIT_REPLY_QUEUE_BYTES);
	pair_close(&pair);
	free(payload);
}

static void what_is_no_socket_fails(void **state)
{
	struct channel channel = CHANNEL_INIT;
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct error err = ERROR_INIT;
	size_t before = fd_count();

	(void)state;
	assert_int_equal(channel_init_take(&channel, open("/dev/null", O_RDWR | O_CLOEXEC), true,
					   &err),
			 -ERR_SYSTEM);
	channel_deinit(&channel);
	assert_int_equal(channel_init_take(&channel, -1, true, &err), -ERR_SYSTEM);
	channel_deinit(&channel);
	assert_int_equal(
		channel_init_take(&channel, open("/dev/null", O_RDWR | O_CLOEXEC), false, &err), 0);
	assert_int_equal(channel_receive(&channel, &frame, &err), -ERR_SYSTEM);
	assert_int_equal(channel_send(&channel, "x", 1, NULL, &err), -ERR_SYSTEM);
	channel_deinit(&channel);
	assert_int_equal(fd_count(), before);
}

/* Portions, descriptors and lengths at random: never a crash, never a leak, order as sent. */
static void random_streams(void **state)
{
	unsigned seed = 20240601;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		uint8_t bytes[64];
		struct pair pair;

		pair_open(&pair, rand_r(&seed) % 2 == 0);
		for (int step = 0; step < 20; step++) {
			size_t size = 1 + (size_t)rand_r(&seed) % sizeof(bytes);
			size_t count = rand_r(&seed) % 3 == 0 ? (size_t)rand_r(&seed) % 18 : 0;

			for (size_t i = 0; i < size; i++)
				bytes[i] = rand_r(&seed) % 4 == 0 ? (uint8_t)rand_r(&seed) : 0;
			(void)raw_send(pair.raw, bytes, size, count);
			if (channel_receive(&pair.channel, &frame, NULL) < 0)
				break;
			channel_frame_deinit(&frame);
		}
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_in_portions_of_any_size),
		cmocka_unit_test(descriptors_ride_with_the_first_byte),
		cmocka_unit_test(descriptors_with_a_later_byte_are_refused),
		cmocka_unit_test(descriptors_stay_with_their_frame),
		cmocka_unit_test(too_many_descriptors_end_the_peer),
		cmocka_unit_test(no_room_for_descriptors_ends_the_peer),
		cmocka_unit_test(R2_one_frame_from_two_processes_is_refused),
		cmocka_unit_test(R2_each_frame_tells_its_own_sender),
		cmocka_unit_test(R2_who_shows_its_sender_compares_none),
		cmocka_unit_test(bad_lengths_are_refused),
		cmocka_unit_test(end_between_frames_is_no_error_and_within_one_is),
		cmocka_unit_test(reset_is_the_end),
		cmocka_unit_test(channels_talk_with_descriptors_both_ways),
		cmocka_unit_test(bad_sends_close_their_descriptors),
		cmocka_unit_test(queue_is_bounded_and_keeps_its_order),
		cmocka_unit_test(queue_takes_exactly_its_bound),
		cmocka_unit_test(what_is_no_socket_fails),
		cmocka_unit_test(random_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
