/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/closing.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "daemon/log.h"
#include "daemon/spawner/quota.h"

/* One child that closes what it was given. */
struct closer {
	struct closing *closing;
	uid_t uid;
	struct child child;
};

/* @drain  nobody will receive any more, whoever else has these sockets */
struct closer_work {
	const int *fds;
	size_t count;
	bool drain;
};

/* Messages taken out of one socket: there is one with descriptors, more are somebody's mischief. */
#define DRAIN_MAX 64

void closing_init(struct closing *closing, struct loop *loop, struct children *children,
		  struct quota *quota)
{
	*closing = (struct closing){ .loop = loop, .children = children, .quota = quota };
}

/* Receive what is there: it is this process's then, and goes with it. */
static void drain(int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(LIMIT_FRAME_FDS * sizeof(int))];
	} control;
	char byte = 0;

	for (int i = 0; i < DRAIN_MAX; i++) {
		struct iovec bytes = { &byte, 1 };
		struct msghdr header = {
			.msg_iov = &bytes,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};

		if (recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
			return;
	}
}

static int closer_main(void *arg)
{
	const struct closer_work *work = arg;

	/* Away with all other descriptors, so that hanging here keeps nothing else open. */
	if (child_arrange_fds(work->fds, work->count, false, NULL) < 0)
		return 1;
	for (size_t i = 0; i < work->count; i++) {
		if (work->drain)
			drain(CHILD_FIRST_FD + (int)i);
		(void)close(CHILD_FIRST_FD + (int)i);
	}
	return 0;
}

static bool start_closer(struct closing *closing, struct closer_work *work, uid_t uid);

/* A child came back: whoever waited for its place goes on. */
static void retry_waiting(struct closing *closing)
{
	size_t kept = 0;
	size_t count = closing->waiting_count;

	for (size_t i = 0; i < count; i++) {
		struct closing_entry entry = closing->waiting[i];
		struct closer_work work = { &entry.fd, 1, entry.drain };

		if (!start_closer(closing, &work, entry.uid))
			closing->waiting[kept++] = entry;
	}
	closing->waiting_count = kept;
}

static void closer_on_exit(int status, void *arg)
{
	struct closer *closer = arg;
	struct closing *closing = closer->closing;

	(void)status;
	quota_give(closing->quota, closer->uid, QUOTA_CLOSERS);
	free(closer);
	retry_waiting(closing);
}

/* False: they cannot be closed now. */
static bool start_closer(struct closing *closing, struct closer_work *work, uid_t uid)
{
	struct closer *closer = NULL;

	if (quota_take(closing->quota, uid, QUOTA_CLOSERS, NULL) < 0)
		return false;
	closer = calloc(1, sizeof(*closer));
	if (!closer || child_start(closing->children, &closer->child, closer_main, work,
				   closer_on_exit, closer, NULL) < 0) {
		free(closer);
		quota_give(closing->quota, uid, QUOTA_CLOSERS);
		return false;
	}
	closer->closing = closing;
	closer->uid = uid;

	/* Not the last descriptors: the child has one of each until it is through. */
	for (size_t i = 0; i < work->count; i++)
		(void)close(work->fds[i]);
	return true;
}

static void wait_for_closer(struct closing *closing, int fd, uid_t uid, bool drained)
{
	if (closing->waiting_count == LIMIT_LINGERING) {
		log_write(LOG_ERROR, "descriptor of user %u stays open: closing it would hang",
			  uid);
		return;
	}
	closing->waiting[closing->waiting_count++] = (struct closing_entry){ fd, uid, drained };
}

void closing_take_channel(struct closing *closing, int fd, uid_t uid)
{
	struct closer_work work = { &fd, 1, true };

	if (!start_closer(closing, &work, uid))
		wait_for_closer(closing, fd, uid, true);
}

static void close_batch(struct closing *closing)
{
	size_t count = closing->batch_count;
	struct closer_work work = { closing->batch, count, false };

	loop_disarm(closing->loop, &closing->batch_timer);
	closing->batch_count = 0;
	if (count == 0 || start_closer(closing, &work, closing->batch_uid))
		return;
	for (size_t i = 0; i < count; i++)
		wait_for_closer(closing, closing->batch[i], closing->batch_uid, false);
}

static void on_batch_time(void *arg)
{
	close_batch(arg);
}

void closing_take_later(struct closing *closing, int fd, uid_t uid)
{
	if (closing->batch_count == CLOSING_BATCH || closing->batch_uid != uid)
		close_batch(closing);
	if (closing->batch_count == 0)
		loop_arm(closing->loop, &closing->batch_timer, CLOSING_LATER_MS, on_batch_time,
			 closing);
	closing->batch_uid = uid;
	closing->batch[closing->batch_count++] = fd;
}

void closing_deinit(struct closing *closing)
{
	if (closing->loop)
		loop_disarm(closing->loop, &closing->batch_timer);
}

void closing_take_stream(struct closing *closing, int fd, uid_t uid)
{
	int queued = 0;

	/* Descriptors in a stream ride with a byte: no bytes, no descriptors. */
	if (shutdown(fd, SHUT_RD) == 0 && ioctl(fd, SIOCINQ, &queued) == 0 && queued == 0) {
		(void)close(fd);
		return;
	}
	closing_take_channel(closing, fd, uid);
}

bool closing_full(const struct closing *closing)
{
	return closing->waiting_count == LIMIT_LINGERING;
}
