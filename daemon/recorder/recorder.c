/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/recorder/journal.h"
#include "daemon/recorder/jsonline.h"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* ERRNUM kept COUNT events out of the file. */
static void recorder_lose(struct recorder *recorder, size_t count, int errnum)
{
	recorder->lost += count;
	recorder->lost_errno = errnum;
	recorder->failed = true;
	if (recorder->complained)
		return;
	recorder->complained = true;
	log_write(LOG_ERROR, "'%s': %s; events are lost until it can be written",
		  recorder->options.path, strerror(errnum));
}

static void recorder_sync(struct recorder *recorder)
{
	if (recorder->fd < 0 || !recorder->dirty)
		return;
	/* EIO here means that pages are gone for good: the kernel forgets the failure after saying
	 * it once, so it counts as one lost event rather than as none. */
	if (fdatasync(recorder->fd) < 0 && errno != EINVAL && errno != EROFS)
		recorder_lose(recorder, 1, errno);
	recorder->dirty = false;
	recorder->synced_ms = now_ms();
}

static void recorder_close(struct recorder *recorder)
{
	recorder_sync(recorder);
	auto_close(&recorder->fd);
	recorder->fd = -1;
}

/* Open the file if it is not; 0 or -errno. */
static int recorder_open(struct recorder *recorder)
{
	mode_t mode = recorder->options.group_readable ? 0640 : 0600;
	AUTO(auto_close) int fd = -1;
	struct stat st;

	if (recorder->fd >= 0)
		return 0;
	/* O_NONBLOCK: a FIFO planted at the name must not hold us here. */
	fd = openat(recorder->dir_fd, recorder->name,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		    mode);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* Whatever umask we were started with. */
	if (st.st_uid == geteuid() && (st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return -errno;
	recorder->size = (uint64_t)st.st_size;
	recorder->fd = steal_fd(&fd);
	return 0;
}

/* Whether our file is still the one at its name: an administrator may have moved or removed it. */
static bool recorder_is_current(const struct recorder *recorder)
{
	struct stat ours;
	struct stat named;

	return fstat(recorder->fd, &ours) == 0 &&
	       fstatat(recorder->dir_fd, recorder->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* Make room for SIZE bytes by moving the file aside; if that fails it grows on. */
static void recorder_rotate(struct recorder *recorder, uint64_t size)
{
	char old[sizeof(recorder->name) + 2];

	if (recorder->options.max_bytes == 0 || recorder->size == 0 ||
	    recorder->size + size <= recorder->options.max_bytes)
		return;
	(void)snprintf(old, sizeof(old), "%s.1", recorder->name);
	if (renameat(recorder->dir_fd, recorder->name, recorder->dir_fd, old) == 0)
		recorder_close(recorder);
}

/* All of SIZE bytes or nothing; 0 or -errno. */
static int recorder_append(struct recorder *recorder, const char *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(recorder->fd, data + done, size - done);
		int errnum = n < 0 ? errno : ENOSPC;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* We are the only writer: cut off the piece, so that every line is whole. */
			if (done > 0 && ftruncate(recorder->fd, (off_t)recorder->size) < 0)
				recorder->size += done;
			return -errnum;
		}
		done += (size_t)n;
	}
	recorder->size += size;
	recorder->dirty = true;
	return 0;
}

/* Write the batch; 0 or -errno. */
static int recorder_write(struct recorder *recorder)
{
	AUTO(buf_deinit) struct buf lost = BUF_INIT(JSONLINE_BYTES);
	int r = 0;

	if (recorder->fd >= 0 && !recorder_is_current(recorder))
		recorder_close(recorder);
	if ((r = recorder_open(recorder)) < 0)
		return r;
	recorder_rotate(recorder, recorder->batch.size);
	if ((r = recorder_open(recorder)) < 0)
		return r;
	if (recorder->lost > 0) {
		if (jsonline_lost(&lost, clock_ns(CLOCK_REALTIME), recorder->lost,
				  recorder->lost_errno) < 0)
			return -ENOMEM;
		if ((r = recorder_append(recorder, lost.data, lost.size)) < 0)
			return r;
		recorder->lost = 0;
	}
	return recorder_append(recorder, recorder->batch.data, recorder->batch.size);
}

static void recorder_put(struct recorder *recorder, const struct event_message *messages,
			 size_t count)
{
	bool journal = recorder->options.journal && journal_available();
	int r = 0;

	buf_clear(&recorder->batch);
	for (size_t i = 0; i < count; i++) {
		size_t start = recorder->batch.size;

		if (jsonline_event(&recorder->batch, &messages[i]) < 0) {
			recorder_lose(recorder, count, ENOMEM);
			return;
		}
		if (journal) {
			char *line = recorder->batch.data + start;
			char *newline = recorder->batch.data + recorder->batch.size - 1;

			*newline = '\0';
			journal_send(&messages[i], line);
			*newline = '\n';
		}
	}
	r = recorder_write(recorder);
	if (r < 0)
		recorder_lose(recorder, count, -r);
	else
		recorder->complained = false;
	if (recorder->dirty && now_ms() - recorder->synced_ms >= RECORDER_SYNC_MS)
		recorder_sync(recorder);
}

/* Without room in the pipe fsboxd does not hear it, and gives up waiting by itself. */
static void recorder_acknowledge(const struct recorder *recorder,
				 const struct event_message *messages, size_t count)
{
	const struct recorder_ack ack = {
		.first = messages[0].seq,
		.last = messages[count - 1].seq,
		.durable = !recorder->failed,
	};

	if (recorder->ack_fd >= 0 && ack.first != 0)
		(void)!write(recorder->ack_fd, &ack, sizeof(ack));
}

void recorder_take(struct recorder *recorder, const struct event_message *messages, size_t count)
{
	bool urgent = false;

	for (size_t i = 0; i < count; i++)
		urgent = urgent || messages[i].urgent != 0;
	recorder->failed = false;
	recorder_put(recorder, messages, count);
	if (!urgent)
		return;
	recorder_sync(recorder);
	recorder_acknowledge(recorder, messages, count);
}

/* ---- readers ------------------------------------------------------------------------- */

static void recorder_step(struct recorder *recorder, size_t i)
{
	recorder->reader_states[i] =
		reader_step(&recorder->readers[i], recorder->dir_fd, recorder->name);
	if (recorder->reader_states[i] == READER_OVER)
		reader_deinit(&recorder->readers[i]);
}

void recorder_add_reader_take(struct recorder *recorder, const struct recorder_control *what,
			      int out_fd)
{
	static const char busy[] = "{\"error\":\"quota-exceeded\"}\n";
	size_t place = LIMIT_EVENT_READERS;
	size_t same = 0;

	for (size_t i = LIMIT_EVENT_READERS; i-- > 0;) {
		if (recorder->readers[i].out_fd < 0)
			place = i;
		else if (recorder->readers[i].what.uid == what->uid)
			same++;
	}
	if (place == LIMIT_EVENT_READERS || same >= LIMIT_EVENT_READERS_PER_UID) {
		(void)!write(out_fd, busy, sizeof(busy) - 1);
		(void)close(out_fd);
		return;
	}
	reader_init_take(&recorder->readers[place], what, out_fd, recorder->dir_fd, recorder->name);
	recorder_step(recorder, place);
}

/* One order of fsboxd's. False: there will be none any more. */
static bool recorder_take_order(struct recorder *recorder)
{
	struct recorder_control control = { .size = 0 };
	struct iovec iov = { &control, sizeof(control) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space;
	struct msghdr header = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = space.bytes,
				 .msg_controllen = sizeof(space.bytes) };
	ssize_t got = recvmsg(recorder->control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	AUTO(auto_close) int fd = -1;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	if (got <= 0 || fd < 0 || recorder_control_check(&control, (size_t)got, NULL) < 0)
		return false;
	recorder_add_reader_take(recorder, &control, steal_fd(&fd));
	return true;
}

int recorder_init(struct recorder *recorder, const struct recorder_options *options,
		  struct error *err)
{
	const char *slash = strrchr(options->path, '/');
	char dir[LIMIT_PATH_BYTES + 1];

	*recorder = (struct recorder)RECORDER_INIT;
	recorder->options = *options;
	if (options->linked) {
		recorder->control_fd = RECORDER_FD_CONTROL;
		recorder->ack_fd = RECORDER_FD_ACK;
	}
	buf_init(&recorder->batch, (size_t)RECORDER_BATCH * JSONLINE_BYTES);
	for (size_t i = 0; i < LIMIT_EVENT_READERS; i++)
		recorder->readers[i] = (struct reader)READER_INIT;
	if (options->path[0] != '/' || slash == NULL || slash[1] == '\0' ||
	    strlen(options->path) > LIMIT_PATH_BYTES - 2)
		return error_set(err, ERR_INVALID, 0, "'%s' is no absolute path of a file",
				 options->path);
	(void)snprintf(recorder->name, sizeof(recorder->name), "%s", slash + 1);
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - options->path), options->path);
	recorder->dir_fd = open(slash == options->path ? "/" : dir,
				O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (recorder->dir_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open directory '%s'", dir);
	(void)recorder_open(recorder);
	return 0;
}

void recorder_deinit(struct recorder *recorder)
{
	if (recorder == NULL)
		return;
	recorder_close(recorder);
	/* Only where there is a directory were readers ever made. */
	for (size_t i = 0; recorder->dir_fd >= 0 && i < LIMIT_EVENT_READERS; i++)
		reader_deinit(&recorder->readers[i]);
	auto_close(&recorder->dir_fd);
	recorder->dir_fd = -1;
	buf_deinit(&recorder->batch);
}

/* Milliseconds until the file must be synced, -1 when there is nothing to sync. */
static int recorder_timeout(const struct recorder *recorder)
{
	uint64_t waited = now_ms() - recorder->synced_ms;

	if (!recorder->dirty)
		return -1;
	return waited >= RECORDER_SYNC_MS ? 0 : (int)(RECORDER_SYNC_MS - waited);
}

/* What is read of the events pipe. */
struct intake {
	struct event_message messages[RECORDER_BATCH];
	size_t filled;
	bool over;
};

/*
 * A pipe keeps each message whole (they are shorter than PIPE_BUF), but a read may take several and
 * end inside one: the rest stays at the front.
 */
static int recorder_read_events(struct recorder *recorder, int events_fd, struct intake *in,
				struct error *err)
{
	_Static_assert(sizeof(struct event_message) <= 4096, "one event is one atomic write");
	char *bytes = (char *)in->messages;
	size_t count = 0;
	ssize_t n = read(events_fd, bytes + in->filled, sizeof(in->messages) - in->filled);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return error_set(err, ERR_SYSTEM, errno, "read events");
	if (n == 0 && in->filled > 0)
		return error_set(err, ERR_BAD_FRAME, 0, "events end inside a message");
	in->over = n == 0;
	in->filled += (size_t)n;
	for (; (count + 1) * sizeof(in->messages[0]) <= in->filled; count++)
		if (event_message_check(&in->messages[count], sizeof(in->messages[0]), err) < 0)
			return -ERR_BAD_FRAME;
	if (count > 0)
		recorder_take(recorder, in->messages, count);
	in->filled -= count * sizeof(in->messages[0]);
	memmove(bytes, &in->messages[count], in->filled);
	return 0;
}

/* Those who wait for lines, if there are new ones; those who wait for room, if there is some. */
static void recorder_serve_readers(struct recorder *recorder, const struct pollfd *polled,
				   bool lines)
{
	for (size_t i = 0; i < LIMIT_EVENT_READERS; i++) {
		struct reader *reader = &recorder->readers[i];

		if (reader->out_fd < 0)
			continue;
		if (polled[i].fd == reader->out_fd && (polled[i].revents & POLLERR) != 0)
			reader_deinit(reader); /* nobody reads any more */
		else if ((polled[i].fd == reader->out_fd && polled[i].revents != 0) ||
			 (lines && recorder->reader_states[i] == READER_WAITS_FOR_LINES))
			recorder_step(recorder, i);
	}
}

int recorder_run(struct recorder *recorder, int events_fd, struct error *err)
{
	struct intake in = { .filled = 0 };
	struct pollfd polled[2 + LIMIT_EVENT_READERS];
	ssize_t n = 0;
	int r = 0;

	while (!in.over) {
		polled[0] = (struct pollfd){ .fd = events_fd, .events = POLLIN };
		polled[1] = (struct pollfd){ .fd = recorder->control_fd, .events = POLLIN };
		for (size_t i = 0; i < LIMIT_EVENT_READERS; i++)
			polled[2 + i] = (struct pollfd){
				.fd = recorder->readers[i].out_fd,
				.events = recorder->reader_states[i] == READER_WAITS_FOR_ROOM
						  ? POLLOUT
						  : 0,
			};
		n = poll(polled, ARRAY_SIZE(polled), recorder_timeout(recorder));
		if (n < 0 && errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "poll events");
		if (n == 0)
			recorder_sync(recorder);
		if (n <= 0)
			continue;
		if (polled[0].revents != 0 &&
		    (r = recorder_read_events(recorder, events_fd, &in, err)) < 0)
			return r;
		recorder_serve_readers(recorder, polled + 2, polled[0].revents != 0);
		if (polled[1].revents != 0 && !recorder_take_order(recorder))
			recorder->control_fd = -1;
	}
	return 0;
}
