/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/closing.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "daemon/log.h"
#include "daemon/spawner/quota.h"

/* One child that closes one socket. */
struct closer {
	struct closing *closing;
	uid_t uid;
	struct child child;
};

void closing_init(struct closing *closing, struct children *children, struct quota *quota)
{
	*closing = (struct closing){ .children = children, .quota = quota };
}

static int closer_main(void *arg)
{
	const int *fd = arg;

	/* Away with all other descriptors, so that hanging here keeps nothing else open. */
	if (child_arrange_fds(fd, 1, false, NULL) < 0)
		return 1;
	(void)close(CHILD_FIRST_FD);
	return 0;
}

static bool start_closer(struct closing *closing, int fd, uid_t uid);

/* A child came back: whoever waited for its place goes on. */
static void retry_waiting(struct closing *closing)
{
	size_t kept = 0;
	size_t count = closing->waiting_count;

	for (size_t i = 0; i < count; i++) {
		struct closing_entry entry = closing->waiting[i];

		if (!start_closer(closing, entry.fd, entry.uid))
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

/* False: it cannot be closed now. */
static bool start_closer(struct closing *closing, int fd, uid_t uid)
{
	struct closer *closer = NULL;

	if (quota_take(closing->quota, uid, QUOTA_CLOSERS, NULL) < 0)
		return false;
	closer = calloc(1, sizeof(*closer));
	if (!closer || child_start(closing->children, &closer->child, closer_main, &fd,
				   closer_on_exit, closer, NULL) < 0) {
		free(closer);
		quota_give(closing->quota, uid, QUOTA_CLOSERS);
		return false;
	}
	closer->closing = closing;
	closer->uid = uid;

	/* Not the last descriptor: the child has one until it is through. */
	(void)close(fd);
	return true;
}

void closing_take_channel(struct closing *closing, int fd, uid_t uid)
{
	if (start_closer(closing, fd, uid))
		return;
	if (closing->waiting_count == LIMIT_LINGERING) {
		log_write(LOG_ERROR, "descriptor of user %u stays open: closing it would hang",
			  uid);
		return;
	}
	closing->waiting[closing->waiting_count++] = (struct closing_entry){ fd, uid };
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
