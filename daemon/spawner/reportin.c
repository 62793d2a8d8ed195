/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/reportin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int pipe_make(int *ret_read, int *ret_write, enum pipe_ours ours, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	*ret_read = ends[0];
	*ret_write = ends[1];
	if (fcntl(ours == PIPE_READ_OURS ? ends[0] : ends[1], F_SETFL, O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");
	return 0;
}

void reportin_init_take(struct reportin *in, int fd, reportin_fn *fn, void *arg)
{
	*in = (struct reportin){ .fd = fd, .fn = fn, .arg = arg };
	buf_init(&in->part, sizeof(struct report_message));
}

void reportin_deinit(struct reportin *in)
{
	if (in->fd >= 0)
		(void)close(in->fd);
	in->fd = -1;
	buf_deinit(&in->part);
}

static enum reportin_result take_messages(struct reportin *in, struct error *err)
{
	while (in->fd >= 0 && in->part.size >= 2 * sizeof(uint32_t)) {
		struct report_message report;
		uint32_t size = 0;
		uint32_t kind = 0;

		memcpy(&size, in->part.data, sizeof(size));
		memcpy(&kind, in->part.data + sizeof(size), sizeof(kind));
		if (size < 2 * sizeof(uint32_t) || size > sizeof(report) ||
		    size != report_message_size((enum report_kind)kind)) {
			(void)error_set(err, ERR_BAD_FRAME, 0, "of impossible size");
			return REPORTIN_GARBAGE;
		}
		if (in->part.size < size)
			break;
		memset(&report, 0, sizeof(report));
		memcpy(&report, in->part.data, size);
		buf_consume(&in->part, size);
		/* Processes of others get a copy of this memory. */
		explicit_bzero(in->part.data + in->part.size, size);
		if (report_message_check(&report, size, err) < 0)
			return REPORTIN_GARBAGE;
		in->fn(&report, in->arg);
	}
	return REPORTIN_MORE;
}

enum reportin_result reportin_read(struct reportin *in, struct error *err)
{
	size_t room = sizeof(struct report_message) - in->part.size;
	void *to = in->fd >= 0 ? buf_reserve(&in->part, room) : NULL;
	ssize_t got = 0;

	if (!to)
		return in->fd >= 0 ? REPORTIN_LATER : REPORTIN_END;
	got = read(in->fd, to, room);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return REPORTIN_LATER;
	if (got <= 0)
		return REPORTIN_END;
	buf_commit(&in->part, (size_t)got);
	return take_messages(in, err);
}
