/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/fdset.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/scope.h"

void fdset_deinit(struct fdset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		if (set->fds[i] >= 0)
			(void)close(set->fds[i]);
	set->count = 0;
}

int fdset_add_take(struct fdset *set, int fd, struct error *err)
{
	AUTO(auto_close) int owned = fd;
	int flags = 0;

	if (owned < 0)
		return error_set(err, ERR_BAD_FRAME, 0, "not a descriptor");
	if (set->count == LIMIT_FRAME_FDS)
		return error_set(err, ERR_BAD_FRAME, 0, "more than %d descriptors with one frame",
				 LIMIT_FRAME_FDS);

	flags = fcntl(owned, F_GETFD);
	if (flags < 0 || fcntl(owned, F_SETFD, flags | FD_CLOEXEC) < 0)
		return error_set(err, ERR_BAD_FRAME, errno, "descriptor %d", fd);
	set->fds[set->count++] = steal_fd(&owned);
	return 0;
}

int fdset_add_dup(struct fdset *set, int fd, struct error *err)
{
	int copy = -1;

	/* 3: never one of the standard numbers, which an exec'd program would take for its own. */
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return error_set(err, ERR_SYSTEM, errno, "duplicate descriptor %d", fd);
	return fdset_add_take(set, copy, err);
}

int fdset_claim(struct fdset *set, size_t index, int *ret_fd, struct error *err)
{
	if (index >= set->count)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "descriptor index %zu, but %zu came with the frame", index,
				 set->count);
	if (set->fds[index] < 0)
		return error_set(err, ERR_BAD_FRAME, 0, "descriptor index %zu is used twice",
				 index);
	*ret_fd = steal_fd(&set->fds[index]);
	return 0;
}

size_t fdset_unclaimed(const struct fdset *set)
{
	size_t left = 0;

	for (size_t i = 0; i < set->count; i++)
		if (set->fds[i] >= 0)
			left++;
	return left;
}

void fdset_move(struct fdset *to, struct fdset *from)
{
	fdset_deinit(to);
	*to = *from;
	from->count = 0;
}
