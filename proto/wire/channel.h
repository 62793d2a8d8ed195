/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_CHANNEL_H
#define FSBOX_PROTO_WIRE_CHANNEL_H

/*
 * One non-blocking Unix stream socket that carries frames with up to LIMIT_FRAME_FDS descriptors.
 *
 * Descriptors belong to a frame when they ride with its first byte. That is checked exactly: the
 * first byte of each frame is read alone, since the kernel would otherwise show earlier bytes and a
 * later byte's descriptors in one piece. Nothing is ever read past the end of a frame, so that a
 * level-triggered event loop sees all there is, and not reading a channel holds its peer back.
 *
 * With SO_PASSCRED each read also yields who wrote the bytes. The kernel attaches that when a byte is
 * sent, if at that moment either end has the option set (or nobody has accepted the connection yet);
 * otherwise the sender reads as pid 0. So clients set it before their first byte, and a server on its
 * listening socket too, from which Linux 6.18 hands it on to what is accepted. Clients have connected by
 * then: what a daemon says before they set it has no sender, and what it says afterwards has one. So they
 * do not compare.
 *
 * A failed channel is finished: close it. Nothing here blocks, and no call raises SIGPIPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/wire/fdset.h"
#include "proto/wire/frame.h"

struct channel_output; /* one frame on its way out */

/* Who sent a frame. Zero with no SO_PASSCRED or where the platform cannot tell. */
struct channel_sender {
	pid_t pid; /* 0: unknown here, or not in our pid namespace */
	uid_t uid;
	gid_t gid;
};

/*
 * @fd            the socket, owned; -1 when there is none
 * @credentials   the sender of each frame is told and compared
 * @eof           the peer closed its end, between two frames
 * @incoming      decoder, descriptors and sender of the frame under way
 * @first, @last  output queue
 * @queued_bytes  what the queue holds, headers included; at most LIMIT_REPLY_QUEUE_BYTES
 */
struct channel {
	int fd;
	bool credentials;
	bool eof;
	struct frame_decoder decoder;
	struct fdset incoming;
	struct channel_sender sender;
	struct channel_output *first;
	struct channel_output *last;
	size_t queued_bytes;
};

#define CHANNEL_INIT     \
	{                \
		.fd = -1 \
	}

/* One received frame. Owned by the receiver: channel_frame_deinit(). */
struct channel_frame {
	struct buf payload;
	struct fdset fds;
	struct channel_sender sender;
};

#define CHANNEL_FRAME_INIT          \
	{                           \
		.payload = { NULL } \
	}

void channel_frame_deinit(struct channel_frame *frame); /* NULL and zeroed are fine */

/*
 * Use FD, a connected SOCK_STREAM Unix socket, which is the channel's from now on even when this
 * fails. It is made non-blocking and close-on-exec, and gets SO_PASSCRED when CREDENTIALS is set.
 *
 * Fails with ERR_SYSTEM. FD is in any case closed by channel_deinit().
 */
int channel_init_take(struct channel *channel, int fd, bool credentials, struct error *err);

/*
 * Set SO_PASSCRED, so that what is sent from now on tells the peer its sender, whatever the peer has set.
 * Senders of what is received are not compared. Fails with ERR_SYSTEM.
 */
int channel_show_sender(struct channel *channel, struct error *err);

/* Closes the socket and every descriptor not handed on. NULL, CHANNEL_INIT, failed: all fine. */
void channel_deinit(struct channel *channel);

/*
 * The next frame, reading as far as needed.
 *
 * @ret_frame  must hold nothing; filled only when 1 is returned
 *
 * Returns 1: here is a frame. Returns 0: nothing complete now; wait until the socket is readable,
 * unless channel->eof tells that the peer is gone. Fails with ERR_BAD_FRAME (empty, cut off by the
 * end of the stream, descriptors away from the first byte, too many or truncated, several senders),
 * ERR_FRAME_TOO_LARGE, ERR_NOMEM, ERR_SYSTEM (the read failed).
 */
int channel_receive(struct channel *channel, struct channel_frame *ret_frame, struct error *err);

/* Whether a frame has begun to arrive: its time is limited (LIMIT_FRAME_MS). */
bool channel_mid_frame(const struct channel *channel);

/*
 * Queue one frame, then send what the socket takes.
 *
 * @payload  copied as far as it could not be sent at once
 * @fds      may be NULL; emptied in any case: sent, queued or closed
 *
 * Fails with ERR_BAD_FRAME, ERR_FRAME_TOO_LARGE, ERR_QUOTA_EXCEEDED (the queue would pass its bound: a
 * peer that does not read), ERR_UNREACHABLE (the peer is gone), ERR_NOMEM, ERR_SYSTEM.
 */
int channel_send(struct channel *channel, const void *payload, size_t size, struct fdset *fds,
		 struct error *err);

/* Send what the socket takes: call when it is writable. Fails as channel_send(). */
int channel_flush(struct channel *channel, struct error *err);

/* Whether the queue holds anything: wait until the socket is writable. */
bool channel_wants_write(const struct channel *channel);

#endif
