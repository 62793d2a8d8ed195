/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"

/* One read of a frame's body: bounds what a length that is only announced makes us reserve. */
#define READ_CHUNK_BYTES 65536

/* Where these are missing, fcntl() and SO_NOSIGPIPE in channel_init_take() do their work. */
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#if defined(SO_PASSCRED) && defined(SCM_CREDENTIALS)
#define CREDENTIALS_SPACE CMSG_SPACE(sizeof(struct ucred))
#else
#define CREDENTIALS_SPACE 0
#endif

#define RIGHTS_SPACE CMSG_SPACE(LIMIT_FRAME_FDS * sizeof(int))

/*
 * @size, @sent  of bytes, header included
 * @fds          ride with the first byte, closed once that is out
 */
struct channel_output {
	struct channel_output *next; /* channel.first */
	struct fdset fds;
	size_t size;
	size_t sent;
	uint8_t bytes[];
};

/* What came with one recvmsg(). */
struct arrival {
	struct fdset fds;
	struct channel_sender sender;
	bool has_sender;
	bool truncated;
};

/* ---- life ---------------------------------------------------------------------------- */

void channel_frame_deinit(struct channel_frame *frame)
{
	if (!frame)
		return;
	buf_deinit(&frame->payload);
	fdset_deinit(&frame->fds);
}

int channel_init_take(struct channel *channel, int fd, bool credentials, struct error *err)
{
	int flags = 0;

	*channel = (struct channel){ .fd = fd };
	frame_decoder_init(&channel->decoder);

	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare a socket");
#ifdef SO_NOSIGPIPE
	if (setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &(int){ 1 }, sizeof(int)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "set SO_NOSIGPIPE");
#endif
	if (!credentials)
		return 0;
#ifdef SO_PASSCRED
	channel->credentials = true;
#endif
	return channel_show_sender(channel, err);
}

int channel_show_sender(struct channel *channel, struct error *err)
{
#ifdef SO_PASSCRED
	if (setsockopt(channel->fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "set SO_PASSCRED");
#else
	(void)channel;
	(void)err;
#endif
	return 0;
}

static void output_pop(struct channel *channel)
{
	struct channel_output *output = channel->first;

	channel->first = output->next;
	if (!channel->first)
		channel->last = NULL;
	channel->queued_bytes -= output->size;
	fdset_deinit(&output->fds);
	free(output);
}

void channel_deinit(struct channel *channel)
{
	if (!channel)
		return;
	while (channel->first)
		output_pop(channel);
	frame_decoder_deinit(&channel->decoder);
	fdset_deinit(&channel->incoming);
	if (channel->fd >= 0)
		(void)close(channel->fd);
	channel->fd = -1;
}

/* ---- receiving ----------------------------------------------------------------------- */

static void rights_collect(struct arrival *arrival, const struct cmsghdr *header)
{
	size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		int fd = -1;

		memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
		/* Too many: closed, and the frame is refused. */
		if (fdset_add_take(&arrival->fds, fd, NULL) < 0)
			arrival->truncated = true;
	}
}

static void arrival_collect(struct arrival *arrival, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET)
			continue;
		if (header->cmsg_type == SCM_RIGHTS)
			rights_collect(arrival, header);
#if defined(SO_PASSCRED) && defined(SCM_CREDENTIALS)
		if (header->cmsg_type == SCM_CREDENTIALS) {
			struct ucred credentials;

			memcpy(&credentials, CMSG_DATA(header), sizeof(credentials));
			arrival->sender = (struct channel_sender){ .pid = credentials.pid,
								   .uid = credentials.uid,
								   .gid = credentials.gid };
			arrival->has_sender = true;
		}
#endif
	}
	/* Descriptors that did not fit, or for which this process has no room: lost for good. */
	if (message->msg_flags & MSG_CTRUNC)
		arrival->truncated = true;
}

/*
 * Read at most SIZE bytes into DATA. Returns how many, 0 at the end of the stream, -EAGAIN when there
 * are none now, another negative errno otherwise. ARRIVAL owns what came along.
 */
static ssize_t read_some(int fd, void *data, size_t size, struct arrival *arrival)
{
	union {
		char bytes[RIGHTS_SPACE + CREDENTIALS_SPACE];
		struct cmsghdr align;
	} control;
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t got = 0;

	do {
		got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	arrival_collect(arrival, &message);
	return got;
}

static bool sender_equal(const struct channel_sender *a, const struct channel_sender *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->gid == b->gid;
}

/* Whether what came with these bytes belongs where they are; takes it over. */
static int arrival_accept(struct channel *channel, struct arrival *arrival, bool first_byte,
			  struct error *err)
{
	if (arrival->truncated)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "more than %d descriptors with one frame, or no room for them",
				 LIMIT_FRAME_FDS);
	if (arrival->fds.count > 0 && !first_byte)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "descriptors do not ride with the first byte of the frame");
	if (channel->credentials && !arrival->has_sender)
		return error_set(err, ERR_BAD_FRAME, 0, "bytes without credentials");
	if (first_byte) {
		fdset_move(&channel->incoming, &arrival->fds);
		channel->sender = arrival->sender;
	} else if (channel->credentials && !sender_equal(&channel->sender, &arrival->sender)) {
		return error_set(err, ERR_BAD_FRAME, 0,
				 "one frame from several processes (%d and %d)",
				 (int)channel->sender.pid, (int)arrival->sender.pid);
	}
	return 0;
}

static int end_of_stream(struct channel *channel, struct error *err)
{
	channel->eof = true;
	if (frame_begun(&channel->decoder))
		return error_set(err, ERR_BAD_FRAME, 0, "the stream ended within a frame");
	return 0;
}

static void arrival_deinit(struct arrival *arrival)
{
	fdset_deinit(&arrival->fds);
}

/*
 * One read. Returns 1 when the frame is complete, 0 otherwise; *ret_more tells whether reading on may
 * bring more.
 */
static int receive_once(struct channel *channel, bool *ret_more, struct error *err)
{
	AUTO(arrival_deinit) struct arrival arrival = { .has_sender = false };
	uint8_t chunk[READ_CHUNK_BYTES];
	bool first_byte = !frame_begun(&channel->decoder);
	size_t wanted = first_byte ? 1 : frame_wanted(&channel->decoder);
	size_t used = 0;
	ssize_t got = 0;
	int r = 0;

	if (wanted > sizeof(chunk))
		wanted = sizeof(chunk);
	got = read_some(channel->fd, chunk, wanted, &arrival);
	*ret_more = got > 0;
	if (got == -EAGAIN)
		return 0;
	/* A peer that closed without reading everything is as gone as one that read it. */
	if (got == 0 || got == -ECONNRESET)
		return end_of_stream(channel, err);
	if (got < 0)
		return error_set(err, ERR_SYSTEM, (int)-got, "read a frame");

	r = arrival_accept(channel, &arrival, first_byte, err);
	if (r < 0)
		return r;
	return frame_decode(&channel->decoder, chunk, (size_t)got, &used, err);
}

int channel_receive(struct channel *channel, struct channel_frame *ret_frame, struct error *err)
{
	bool more = !channel->eof;

	while (more) {
		int r = receive_once(channel, &more, err);

		if (r < 0)
			return r;
		if (r > 0) {
			ret_frame->payload = channel->decoder.body;
			fdset_move(&ret_frame->fds, &channel->incoming);
			ret_frame->sender = channel->sender;
			frame_decoder_init(&channel->decoder);
			return 1;
		}
	}
	return 0;
}

bool channel_mid_frame(const struct channel *channel)
{
	return frame_begun(&channel->decoder);
}

/* ---- sending ------------------------------------------------------------------------- */

/*
 * Send from PARTS, the descriptors of FDS (may be NULL) with the first byte. Returns how many bytes
 * went, 0 when the socket takes none now, or fails.
 */
static ssize_t write_some(int fd, struct iovec *parts, size_t part_count, const struct fdset *fds,
			  struct error *err)
{
	union {
		char bytes[RIGHTS_SPACE];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = part_count };
	struct cmsghdr *header = NULL;
	ssize_t put = 0;

	if (fds && fds->count > 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fds->count * sizeof(int));
		header = &control.align;
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fds->count * sizeof(int));
		memcpy(CMSG_DATA(header), fds->fds, fds->count * sizeof(int));
	}

	do {
		put = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (put < 0 && errno == EINTR);
	if (put >= 0)
		return put;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return error_set(err, ERR_UNREACHABLE, errno, "send");
	return error_set(err, ERR_SYSTEM, errno, "send");
}

bool channel_wants_write(const struct channel *channel)
{
	return channel->first != NULL;
}

int channel_flush(struct channel *channel, struct error *err)
{
	while (channel->first) {
		struct channel_output *output = channel->first;
		struct iovec part = { .iov_base = output->bytes + output->sent,
				      .iov_len = output->size - output->sent };
		ssize_t put = write_some(channel->fd, &part, 1, &output->fds, err);

		if (put <= 0)
			return (int)put;
		fdset_deinit(&output->fds);
		output->sent += (size_t)put;
		if (output->sent == output->size)
			output_pop(channel);
	}
	return 0;
}

/* Keep the frame of HEADER and PAYLOAD, of which SENT bytes are out already. */
static int output_push(struct channel *channel, const uint8_t header[FRAME_HEADER_BYTES],
		       const void *payload, size_t size, size_t sent, struct fdset *fds,
		       struct error *err)
{
	size_t total = FRAME_HEADER_BYTES + size;
	struct channel_output *output = malloc(sizeof(*output) + total);

	if (!output)
		return error_set(err, ERR_NOMEM, 0, "queue a frame of %zu bytes", size);
	*output = (struct channel_output){ .size = total, .sent = sent };
	memcpy(output->bytes, header, FRAME_HEADER_BYTES);
	memcpy(output->bytes + FRAME_HEADER_BYTES, payload, size);
	fdset_move(&output->fds, fds);

	if (channel->last)
		channel->last->next = output;
	else
		channel->first = output;
	channel->last = output;
	channel->queued_bytes += total;
	return 0;
}

/* As channel_send(); FDS is there and is emptied by the caller. */
static int send_frame(struct channel *channel, const void *payload, size_t size, struct fdset *fds,
		      struct error *err)
{
	uint8_t header[FRAME_HEADER_BYTES];
	struct iovec parts[] = {
		{ .iov_base = header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = size },
	};
	ssize_t put = 0;
	int r = frame_header(header, size, err);

	if (r < 0)
		return r;
	if (fdset_unclaimed(fds) != fds->count)
		return error_set(err, ERR_BAD_FRAME, 0, "a descriptor to be sent was given away");
	if (channel->queued_bytes + sizeof(header) + size > LIMIT_REPLY_QUEUE_BYTES)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0,
				 "the peer does not read: %zu bytes wait for it",
				 channel->queued_bytes);

	if (!channel->first) {
		put = write_some(channel->fd, parts, ARRAY_SIZE(parts), fds, err);
		if (put < 0)
			return (int)put;
		if ((size_t)put == sizeof(header) + size)
			return 0;
		if (put > 0)
			fdset_deinit(fds);
	}
	r = output_push(channel, header, payload, size, (size_t)put, fds, err);
	if (r < 0)
		return r;
	return channel_flush(channel, err);
}

int channel_send(struct channel *channel, const void *payload, size_t size, struct fdset *fds,
		 struct error *err)
{
	struct fdset none = FDSET_INIT;
	int r = send_frame(channel, payload, size, fds ? fds : &none, err);

	fdset_deinit(fds);
	return r;
}
