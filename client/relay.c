/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fsbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/convert.h"
#include "client/hint.h"
#include "common/scope.h"

#define RELAY_BYTES 65536
#define RELAY_ROUNDS 16 /* portions moved in one go before the caller's loop has its turn again */

/*
 * One direction of one descriptor.
 *
 * @file_fd   the caller's file; borrowed; -1: nothing is relayed here
 * @job_fd    the pipe's end for the job; ours until fsbox_relay_started()
 * @pipe_fd   our end, non-blocking; -1 once this direction is done
 * @errnum    why the file could not be read or written; 0: it could
 * @data      read from the file and not yet in the pipe: @start to @end
 */
struct stream {
	int file_fd;
	int job_fd;
	int pipe_fd;
	int errnum;
	bool towards_job;
	char *data;
	size_t start;
	size_t end;
};

struct fsbox_relay {
	struct stream streams[3];
	int passed[3]; /* what the job gets: a pipe's end, or the caller's descriptor */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(steal_fd(fd));
}

static int stream_open(struct stream *stream, int fd, bool towards_job)
{
	int ends[2];

	stream->data = malloc(RELAY_BYTES);
	if (!stream->data || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	stream->file_fd = fd;
	stream->towards_job = towards_job;
	stream->job_fd = ends[towards_job ? 0 : 1];
	stream->pipe_fd = ends[towards_job ? 1 : 0];
	return fcntl(stream->pipe_fd, F_SETFL, O_NONBLOCK);
}

int fsbox_relay_new(struct fsbox_relay **ret_relay, const int fds[3], struct fsbox_error *err)
{
	struct fsbox_relay *relay = calloc(1, sizeof(*relay));
	struct error fail = ERROR_INIT;

	if (!relay)
		return convert_no_memory(err);
	for (int i = 0; i < 3; i++) {
		relay->streams[i] = (struct stream){ .file_fd = -1, .job_fd = -1, .pipe_fd = -1 };
		relay->passed[i] = fds[i];
	}

	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fds[i] < 0 || fstat(fds[i], &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (stream_open(&relay->streams[i], fds[i], i == 0) < 0) {
			(void)error_set(&fail, ERR_SYSTEM, errno, "make a relay");
			(void)fsbox_relay_free(relay);
			return hint_fill(err, &fail, NULL);
		}
		relay->passed[i] = relay->streams[i].job_fd;
	}
	*ret_relay = relay;
	return 0;
}

struct fsbox_relay *fsbox_relay_free(struct fsbox_relay *relay)
{
	if (!relay)
		return NULL;
	for (int i = 0; i < 3; i++) {
		close_fd(&relay->streams[i].job_fd);
		close_fd(&relay->streams[i].pipe_fd);
		free(relay->streams[i].data);
	}
	free(relay);
	return NULL;
}

int fsbox_relay_fd(const struct fsbox_relay *relay, int index)
{
	return index >= 0 && index < 3 ? relay->passed[index] : -1;
}

void fsbox_relay_started(struct fsbox_relay *relay)
{
	for (int i = 0; i < 3; i++)
		close_fd(&relay->streams[i].job_fd);
}

size_t fsbox_relay_poll(const struct fsbox_relay *relay, struct pollfd fds[FSBOX_RELAY_POLLFDS])
{
	size_t count = 0;

	for (int i = 0; i < 3; i++) {
		const struct stream *stream = &relay->streams[i];

		if (stream->pipe_fd >= 0)
			fds[count++] = (struct pollfd){
				.fd = stream->pipe_fd,
				.events = stream->towards_job ? POLLOUT : POLLIN,
			};
	}
	return count;
}

/* From the file into the pipe, until the pipe is full. EPIPE: the job reads no more, which is fine. */
static void feed(struct stream *stream)
{
	for (int round = 0; stream->pipe_fd >= 0 && round < RELAY_ROUNDS; round++) {
		ssize_t moved = 0;

		if (stream->start == stream->end) {
			moved = read(stream->file_fd, stream->data, RELAY_BYTES);
			if (moved < 0 && errno == EINTR)
				continue;
			if (moved < 0)
				stream->errnum = errno;
			if (moved <= 0) {
				close_fd(&stream->pipe_fd);
				return;
			}
			stream->start = 0;
			stream->end = (size_t)moved;
		}
		moved = write(stream->pipe_fd, stream->data + stream->start,
			      stream->end - stream->start);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0 && errno == EAGAIN)
			return;
		if (moved < 0)
			close_fd(&stream->pipe_fd);
		else
			stream->start += (size_t)moved;
	}
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		data += written;
		size -= (size_t)written;
	}
	return 0;
}

/*
 * One portion from the pipe into the file; false when there is none now. A file that takes no more
 * closes the pipe, and the job gets EPIPE, as it would have got its own error.
 */
static bool drain_portion(struct stream *stream)
{
	ssize_t got = 0;

	if (stream->pipe_fd < 0)
		return false;
	got = read(stream->pipe_fd, stream->data, RELAY_BYTES);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	if (got > 0 && write_all(stream->file_fd, stream->data, (size_t)got) == 0)
		return true;
	if (got != 0)
		stream->errnum = errno;
	close_fd(&stream->pipe_fd);
	return false;
}

static void drain(struct stream *stream)
{
	for (int round = 0; round < RELAY_ROUNDS; round++)
		if (!drain_portion(stream))
			return;
}

/* Writing raises SIGPIPE or SIGXFSZ on failure; a library must not let the program die of that. */
struct quiet {
	sigset_t before;
	sigset_t pending;
};

static void quiet_begin(struct quiet *quiet)
{
	sigset_t quieted;

	(void)sigemptyset(&quieted);
	(void)sigaddset(&quieted, SIGPIPE);
	(void)sigaddset(&quieted, SIGXFSZ);
	(void)sigpending(&quiet->pending);
	(void)pthread_sigmask(SIG_BLOCK, &quieted, &quiet->before);
}

/* Take back the signals of our own making, then let others through again. */
static void quiet_end(const struct quiet *quiet)
{
	const struct timespec now = { .tv_sec = 0 };
	const int quieted[] = { SIGPIPE, SIGXFSZ };
	int saved_errno = errno;

	for (size_t i = 0; i < ARRAY_SIZE(quieted); i++) {
		sigset_t one;

		if (sigismember(&quiet->pending, quieted[i]) == 1)
			continue;
		(void)sigemptyset(&one);
		(void)sigaddset(&one, quieted[i]);
		while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR)
			;
	}
	(void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
	errno = saved_errno;
}

void fsbox_relay_process(struct fsbox_relay *relay)
{
	struct quiet quiet;

	quiet_begin(&quiet);
	for (int i = 0; i < 3; i++) {
		if (relay->streams[i].towards_job)
			feed(&relay->streams[i]);
		else
			drain(&relay->streams[i]);
	}
	quiet_end(&quiet);
}

int fsbox_relay_finish(struct fsbox_relay *relay, struct fsbox_error *err)
{
	static const char *const names[] = { "read standard input", "write standard output",
					     "write standard error" };
	struct error fail = ERROR_INIT;
	struct quiet quiet;

	fsbox_relay_started(relay);
	close_fd(&relay->streams[0].pipe_fd); /* nobody is left to read */
	quiet_begin(&quiet);
	for (int i = 1; i < 3; i++)
		while (drain_portion(&relay->streams[i]))
			;
	quiet_end(&quiet);

	for (int i = 0; i < 3; i++)
		if (relay->streams[i].errnum != 0) {
			(void)error_set(&fail, ERR_SYSTEM, relay->streams[i].errnum, "%s",
					names[i]);
			return hint_fill(err, &fail,
					 "is the disk full, or the file on a failing file system?");
		}
	return 0;
}
