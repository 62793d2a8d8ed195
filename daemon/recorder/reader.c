/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/recorder/jsonline.h"

/* Read at once: at least one line of any length. */
#define CHUNK_BYTES (4 * JSONLINE_BYTES)

/* Turns of one step, before others are looked at. */
#define TURNS 16

static int open_file(int dir_fd, const char *name)
{
	AUTO(auto_close)
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? steal_fd(&fd) : -1;
}

void reader_init_take(struct reader *reader, const struct recorder_control *what, int out_fd,
		      int dir_fd, const char *name)
{
	char old[NAME_MAX + 3];

	*reader = (struct reader)READER_INIT;
	reader->what = *what;
	reader->out_fd = out_fd;
	buf_init(&reader->pending, (size_t)2 * CHUNK_BYTES);
	(void)snprintf(old, sizeof(old), "%.*s.1", NAME_MAX, name);
	/* Both before either is read: a rotation in between moves names, not files. */
	reader->old_fd = open_file(dir_fd, old);
	reader->file_fd = open_file(dir_fd, name);
}

void reader_deinit(struct reader *reader)
{
	auto_close(&reader->out_fd);
	auto_close(&reader->old_fd);
	auto_close(&reader->file_fd);
	buf_deinit(&reader->pending);
	*reader = (struct reader)READER_INIT;
}

/* ---- whose lines ------------------------------------------------------------------------- */

struct line {
	const char *at;
	const char *end;
};

static bool skip(struct line *line, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(line->end - line->at) < size || memcmp(line->at, text, size) != 0)
		return false;
	line->at += size;
	return true;
}

/* Over a string that we wrote without quotes or escapes inside. */
static bool skip_string(struct line *line)
{
	const char *quote = memchr(line->at, '"', (size_t)(line->end - line->at));

	if (!quote)
		return false;
	line->at = quote + 1;
	return true;
}

static uint64_t number(struct line *line)
{
	uint64_t value = 0;

	for (; line->at < line->end && *line->at >= '0' && *line->at <= '9'; line->at++)
		value = value * 10 + (uint64_t)(*line->at - '0');
	return value;
}

bool reader_may_see(const struct recorder_control *what, const char *text, size_t size)
{
	struct line line = { text, text + size };
	uint64_t job = 0;
	uint64_t uid = 0;
	bool has_uid = false;

	if (!skip(&line, "{\"time\":\"") || !skip_string(&line) || !skip(&line, ",\"event\":\"") ||
	    !skip_string(&line))
		return what->everybody != 0 && what->job == 0;
	if (skip(&line, ",\"seq\":"))
		(void)number(&line);
	if (skip(&line, ",\"job\":"))
		job = number(&line);
	if (skip(&line, ",\"uid\":")) {
		uid = number(&line);
		has_uid = true;
	}
	if (what->job != 0 && what->job != job)
		return false;
	return what->everybody != 0 || (has_uid && uid == what->uid);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Whole lines from the present place on into what is pending. False: no whole line is there. */
static bool take_lines(struct reader *reader, int fd)
{
	char chunk[CHUNK_BYTES];
	ssize_t got = pread(fd, chunk, sizeof(chunk), (off_t)reader->offset);
	size_t used = 0;

	for (;;) {
		const char *line = chunk + used;
		const char *newline = got > 0 ? memchr(line, '\n', (size_t)got - used) : NULL;
		size_t size = newline ? (size_t)(newline - line) + 1 : 0;

		if (!newline)
			break;
		if (reader_may_see(&reader->what, line, size))
			(void)buf_add(&reader->pending, line, size);
		used += size;
	}
	/* No line of ours is as long as that: somebody else's, and not to be stuck at. */
	if (used == 0 && got == (ssize_t)sizeof(chunk))
		used = sizeof(chunk);
	reader->offset += used;
	return used > 0;
}

/* The present file was moved aside and there is a new one: go on in that. */
static bool follow_rotation(struct reader *reader, int dir_fd, const char *name)
{
	AUTO(auto_close) int fd = open_file(dir_fd, name);
	struct stat ours;
	struct stat named;

	if (fd < 0 || fstat(fd, &named) < 0)
		return false;
	if (reader->file_fd >= 0 && fstat(reader->file_fd, &ours) == 0 &&
	    ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) {
		if ((uint64_t)named.st_size >= reader->offset)
			return false;
		reader->offset = 0; /* somebody cut it */
		return true;
	}
	auto_close(&reader->file_fd);
	reader->file_fd = steal_fd(&fd);
	reader->offset = 0;
	return true;
}

/* False: there is nothing more now. */
static bool read_on(struct reader *reader, int dir_fd, const char *name)
{
	if (reader->old_fd >= 0) {
		if (take_lines(reader, reader->old_fd))
			return true;
		auto_close(&reader->old_fd);
		reader->old_fd = -1;
		reader->offset = 0;
	}
	if (reader->file_fd >= 0 && take_lines(reader, reader->file_fd))
		return true;
	return reader->what.follow != 0 && follow_rotation(reader, dir_fd, name);
}

enum reader_state reader_step(struct reader *reader, int dir_fd, const char *name)
{
	for (int turn = 0; turn < TURNS; turn++) {
		while (reader->sent < reader->pending.size) {
			ssize_t wrote = write(reader->out_fd, reader->pending.data + reader->sent,
					      reader->pending.size - reader->sent);

			if (wrote < 0 && errno == EAGAIN)
				return READER_WAITS_FOR_ROOM;
			if (wrote < 0 && errno != EINTR)
				return READER_OVER;
			reader->sent += wrote > 0 ? (size_t)wrote : 0;
		}
		buf_clear(&reader->pending);
		reader->sent = 0;
		if (!read_on(reader, dir_fd, name))
			return reader->what.follow != 0 ? READER_WAITS_FOR_LINES : READER_OVER;
	}
	return READER_WAITS_FOR_ROOM;
}
