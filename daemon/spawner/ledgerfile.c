/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledgerfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"

#define NAME "ledger"
#define NAME_NEW "ledger.new"
#define NAME_DAMAGED "ledger.damaged"
#define NAME_LOCK "ledger.lock"
#define HEADER "fsbox ledger 1\n"
#define HEADER_BYTES (sizeof(HEADER) - 1)

#define CHUNK_BYTES (64u << 10)

static int refuse(struct error *err, int errnum, const char *what)
{
	return error_set(err, ERR_LEDGER_FAILED, errnum, "the ledger of placeholders: %s", what);
}

static bool is_no_room(int errnum)
{
	return errnum == EROFS || errnum == ENOSPC || errnum == EDQUOT;
}

static bool write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done == 0 ? ENOSPC : errno;
			return false;
		}
		data += done;
		size -= (size_t)done;
	}
	return true;
}

/* ---- opening -------------------------------------------------------------------------- */

/* Like every lock of ours: of this process, children that hold a copy do not keep it. */
static int take_lock(struct ledger_file *file, struct error *err)
{
	struct flock lock = { .l_type = F_WRLCK };

	file->lock_fd = openat(file->dir_fd, NAME_LOCK,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (file->lock_fd < 0 && is_no_room(errno))
		return 0; /* nor can another one write there; tried again with the file */
	if (file->lock_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open '" NAME_LOCK "'");
	if (fcntl(file->lock_fd, F_SETLK, &lock) == 0)
		return 0;
	if (errno == EACCES || errno == EAGAIN)
		return error_set(err, ERR_CONFIG, 0,
				 "another fsboxd keeps its ledger there already");
	return error_set(err, ERR_SYSTEM, errno, "lock '" NAME_LOCK "'");
}

/* To be appended to, or at least read; -1 with errno. */
static int open_either(struct ledger_file *file)
{
	const int flags = O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(file->dir_fd, NAME, O_RDWR | O_CREAT | flags, 0600);
	int errnum = errno;

	if (fd >= 0 || errnum != EROFS)
		return fd;
	file->suspect = true;
	fd = openat(file->dir_fd, NAME, O_RDONLY | flags);
	errno = errnum;
	return fd;
}

/* What is not there, or is no file of ours, is replaced when something is to be written. */
static int open_file(struct ledger_file *file, struct error *ret_why, struct error *err)
{
	AUTO(auto_close) int fd = open_either(file);
	struct stat about;

	if (fd < 0 && (is_no_room(errno) || errno == ELOOP || errno == EISDIR || errno == ENXIO)) {
		(void)refuse(ret_why, errno, "open it");
		return 0;
	}
	if (fd < 0 || fstat(fd, &about) < 0)
		return error_set(err, ERR_SYSTEM, errno, "open the ledger of placeholders");
	if (!S_ISREG(about.st_mode) || about.st_size > (off_t)LIMIT_LEDGER_BYTES) {
		(void)refuse(ret_why, EINVAL, "it is no file, or much too large");
		return 0;
	}
	if (about.st_size == 0 && !file->suspect) {
		if (write_all(fd, HEADER, HEADER_BYTES) && fsync(fd) == 0 &&
		    fsync(file->dir_fd) == 0) {
			about.st_size = (off_t)HEADER_BYTES;
		} else {
			(void)refuse(ret_why, errno, "begin it");
			file->suspect = true;
		}
	}
	file->size = about.st_size;
	file->fd = steal_fd(&fd);
	return 0;
}

int ledger_file_open(struct ledger_file *file, const char *dir, ledger_file_write_fn *write,
		     void *arg, struct error *ret_why, struct error *err)
{
	int r = 0;

	*file = (struct ledger_file)LEDGER_FILE_INIT;
	file->write = write;
	file->arg = arg;
	file->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->dir_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open directory '%s'", dir);
	if ((r = take_lock(file, err)) < 0 || (r = open_file(file, ret_why, err)) < 0) {
		error_prefix(err, "state directory '%s'", dir);
		ledger_file_close(file);
	}
	return r;
}

void ledger_file_close(struct ledger_file *file)
{
	auto_close(&file->fd);
	auto_close(&file->dir_fd);
	auto_close(&file->lock_fd);
	*file = (struct ledger_file)LEDGER_FILE_INIT;
}

/* ---- reading -------------------------------------------------------------------------- */

/* @skipping  the line is longer than any of ours: up to its newline it is passed over */
struct line_reader {
	struct buf part;
	ledger_file_line_fn *fn;
	void *arg;
	size_t lines;
	size_t bad;
	bool skipping;
};

static void take_line(struct line_reader *reader, const char *text, size_t size)
{
	bool first = reader->lines++ == 0;

	if (first && (size != HEADER_BYTES - 1 || memcmp(text, HEADER, size) != 0))
		reader->bad++;
	if (!first && size >= LIMIT_LEDGER_LINE_BYTES)
		reader->bad++;
	else if (!first && size > 0)
		reader->fn(text, size, reader->arg);
}

static void take_lines(struct line_reader *reader)
{
	struct buf *part = &reader->part;
	size_t begin = 0;

	for (;;) {
		const char *text = (const char *)part->data + begin;
		const char *end =
			part->size > begin ? memchr(text, '\n', part->size - begin) : NULL;

		if (!end)
			break;
		if (reader->skipping)
			reader->bad++;
		else
			take_line(reader, text, (size_t)(end - text));
		reader->skipping = false;
		begin += (size_t)(end - text) + 1;
	}
	buf_consume(part, begin);
	if (part->size >= LIMIT_LEDGER_LINE_BYTES) {
		reader->skipping = true;
		buf_clear(part);
	}
}

static int read_lines(int fd, struct line_reader *reader, struct error *err)
{
	off_t at = 0;

	for (;;) {
		char *space = buf_reserve(&reader->part, CHUNK_BYTES);
		ssize_t got = space ? pread(fd, space, CHUNK_BYTES, at) : -1;

		if (got < 0 && space && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, space ? ERR_SYSTEM : ERR_NOMEM, space ? errno : 0,
					 "read the ledger of placeholders");
		if (got == 0)
			return 0;
		at += got;
		buf_commit(&reader->part, (size_t)got);
		take_lines(reader);
	}
}

int ledger_file_read(struct ledger_file *file, ledger_file_line_fn *fn, void *arg, size_t *ret_bad,
		     struct error *err)
{
	struct line_reader reader = { .fn = fn, .arg = arg };
	int r = 0;

	*ret_bad = 0;
	if (file->fd < 0)
		return 0;
	buf_init(&reader.part, LIMIT_LEDGER_LINE_BYTES + CHUNK_BYTES);
	r = read_lines(file->fd, &reader, err);
	/* A last line without an end was being written when fsboxd or the machine went down. */
	if (r == 0 && reader.part.size > 0 && !reader.skipping)
		take_line(&reader, (const char *)reader.part.data, reader.part.size);
	file->unended = reader.part.size > 0 || reader.skipping;
	buf_deinit(&reader.part);
	if (r == 0)
		*ret_bad = reader.bad + reader.skipping;
	return r;
}

/* ---- writing -------------------------------------------------------------------------- */

/* End what somebody else, or we, left there unended, so that it spoils no line of ours. */
static bool mend(struct ledger_file *file)
{
	off_t end = -1;

	if (!file->unended)
		return true;
	if (!write_all(file->fd, "\n", 1))
		return false;
	end = lseek(file->fd, 0, SEEK_END);
	if (end < 0)
		return false;
	file->size = end;
	file->unended = false;
	return true;
}

static bool has_lock(struct ledger_file *file, struct error *err)
{
	if (file->lock_fd >= 0)
		return true;
	return take_lock(file, err) == 0 && file->lock_fd >= 0;
}

int ledger_file_append(struct ledger_file *file, const void *line, size_t size, bool sync,
		       struct error *err)
{
	bool written = false;
	int r = 0;

	if (!has_lock(file, NULL))
		return refuse(err, errno, "lock it");
	if (file->fd < 0 || file->suspect) {
		r = ledger_file_replace(file, false, err);
		if (r < 0)
			return r;
	}
	if (!mend(file))
		return refuse(err, errno, "take back what was not written whole");
	written = write_all(file->fd, line, size);
	if (written && (!sync || fdatasync(file->fd) == 0)) {
		file->size += (off_t)size;
		return 0;
	}
	r = refuse(err, errno, written ? "get it onto the disk" : "write to it");
	file->suspect = written;
	file->unended = ftruncate(file->fd, file->size) < 0;
	return r;
}

/* Everything into FD, in pieces. */
static bool write_contents(const struct ledger_file *file, int fd, off_t *ret_size)
{
	struct buf out = BUF_INIT(CHUNK_BYTES + LIMIT_LEDGER_LINE_BYTES);
	bool more = true;
	bool good = buf_add_string(&out, HEADER) == 0;

	*ret_size = 0;
	for (size_t i = 0; good && more; i++) {
		more = file->write(&out, i, file->arg);
		if (out.failed) {
			errno = ENOMEM;
			good = false;
		} else if (!more || out.size >= CHUNK_BYTES) {
			good = write_all(fd, (const char *)out.data, out.size);
			*ret_size += (off_t)out.size;
			buf_clear(&out);
		}
	}
	buf_deinit(&out);
	return good;
}

int ledger_file_replace(struct ledger_file *file, bool keep_old, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	off_t size = 0;
	int r = 0;

	(void)unlinkat(file->dir_fd, NAME_NEW, 0);
	fd = openat(file->dir_fd, NAME_NEW,
		    O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(err, errno, "write it anew");
	if (!write_contents(file, fd, &size) || fsync(fd) < 0) {
		r = refuse(err, errno, "write it anew");
		(void)unlinkat(file->dir_fd, NAME_NEW, 0);
		return r;
	}
	if (keep_old || file->fd < 0) {
		(void)unlinkat(file->dir_fd, NAME_DAMAGED, 0);
		(void)linkat(file->dir_fd, NAME, file->dir_fd, NAME_DAMAGED, 0);
	}
	if (renameat(file->dir_fd, NAME_NEW, file->dir_fd, NAME) < 0) {
		r = refuse(err, errno, "put the new one in its place");
		(void)unlinkat(file->dir_fd, NAME_NEW, 0);
		return r;
	}
	auto_close(&file->fd);
	file->fd = steal_fd(&fd);
	file->size = size;
	file->unended = false;
	/* The name may still be the old one's after a power cut: what follows must not rely on it. */
	file->suspect = fsync(file->dir_fd) < 0;
	return file->suspect ? refuse(err, errno, "get its name onto the disk") : 0;
}

void ledger_file_clear(struct ledger_file *file)
{
	if (file->fd < 0 || file->suspect || file->size == (off_t)HEADER_BYTES)
		return;
	if (ftruncate(file->fd, (off_t)HEADER_BYTES) == 0) {
		file->size = (off_t)HEADER_BYTES;
		file->unended = false;
	}
}
