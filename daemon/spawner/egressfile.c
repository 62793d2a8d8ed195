/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/egressfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"

#define PREFIX 'e'
#define MAGIC 0x31456773u

/* A writer that was seen to live may have gone just before we listened for that. */
#define LOOK_AGAIN_MS 1000

/* Until those who record have room again. */
#define PAUSE_MS 20

/*
 * At the beginning of the file; the writer never writes there.
 *
 * @read  bytes behind this that were recorded
 */
struct head {
	uint32_t magic;
	uint32_t event_bytes;
	char boot_id[40];
	uint64_t read;
};

struct egressfile {
	char name[EGRESSFILE_NAME_BYTES];
	int fd;
	int watch;
	struct head head;
	bool nonsense;
	struct egressfile *next; /* egressfiles.first */
};

/* ---- writing ------------------------------------------------------------------------- */

static int write_head(const struct jobfiles *jobs, const char *name, struct error *err)
{
	AUTO(auto_close)
	int fd = openat(jobs->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	struct head head = { .magic = MAGIC, .event_bytes = sizeof(struct egress_event) };

	memcpy(head.boot_id, jobs->boot_id, sizeof(head.boot_id));
	if (fd >= 0 && write(fd, &head, sizeof(head)) == (ssize_t)sizeof(head))
		return 0;
	(void)error_set(err, ERR_SYSTEM, errno, "a file for records of fsbox-egress");
	/* Where there is no room each job that asks for network would leave one. */
	if (fd >= 0)
		egressfile_remove(jobs, name);
	return -ERR_SYSTEM;
}

int egressfile_make(const struct jobfiles *jobs, char ret_name[EGRESSFILE_NAME_BYTES], int *ret_fd,
		    struct error *err)
{
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)snprintf(name, sizeof(name), "%c%llu", PREFIX, (unsigned long long)loop_now_ms());
	if (write_head(jobs, name, err) < 0)
		return -ERR_SYSTEM;
	fd = openat(jobs->dir_fd, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	/* The lock is that of the open file, wherever it is passed to. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		(void)error_set(err, ERR_SYSTEM, errno, "a file for records of fsbox-egress");
		auto_close(&fd);
		egressfile_remove(jobs, name);
		return -ERR_SYSTEM;
	}
	memcpy(ret_name, name, sizeof(name));
	*ret_fd = fd;
	return 0;
}

void egressfile_remove(const struct jobfiles *jobs, const char *name)
{
	(void)unlinkat(jobs->dir_fd, name, 0);
}

/* ---- reading ------------------------------------------------------------------------- */

/* False: nothing that follows can be read, now or ever. */
static bool read_one(struct egressfiles *files, struct egressfile *file)
{
	struct egress_event event;
	struct error err = ERROR_INIT;
	off_t at = (off_t)(sizeof(file->head) + file->head.read);
	ssize_t got = pread(file->fd, &event, sizeof(event), at);

	if (got != (ssize_t)sizeof(event))
		return false;
	if (egress_event_check(&event, sizeof(event), &err) < 0) {
		log_write(LOG_ERROR, "a fsbox-egress of before wrote what makes no sense (%s)",
			  err.message);
		file->nonsense = true;
		return false;
	}
	file->head.read += sizeof(event);
	files->on_event(&event, files->arg);
	return true;
}

/* False: there may be more than can be recorded now. */
static bool read_all(struct egressfiles *files, struct egressfile *file)
{
	uint64_t before = file->head.read;
	bool may = true;

	/* One event after the other is recorded once, also by the fsboxd after us. */
	while (!file->nonsense && file->head.read < EGRESSFILE_BYTES &&
	       (may = files->may(files->arg)) && read_one(files, file))
		continue;
	if (file->head.read != before &&
	    pwrite(file->fd, &file->head, sizeof(file->head), 0) != (ssize_t)sizeof(file->head))
		log_write(LOG_WARNING, "records of fsbox-egress may be recorded twice");
	return may;
}

static bool has_writer(const struct egressfile *file)
{
	if (flock(file->fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	(void)flock(file->fd, LOCK_UN);
	return false;
}

static void close_file(struct egressfiles *files, struct egressfile *file)
{
	struct egressfile **at = &files->first;

	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	if (file->watch >= 0)
		(void)inotify_rm_watch(files->notify_fd, file->watch);
	(void)close(file->fd);
	free(file);
}

static void look_again(void *arg);

/* A part of one is the last for which there was room: those that followed are lost, nobody knows how many. */
static void tell_lost(const struct egressfiles *files, const struct egressfile *file)
{
	const struct egress_event lost = { .size = sizeof(lost),
					   .kind = EGRESS_EVENT_STATS,
					   .stats = { .lost_events = 1 } };
	struct stat st;

	if (!file->nonsense && fstat(file->fd, &st) == 0 &&
	    (uint64_t)st.st_size > sizeof(file->head) + file->head.read)
		files->on_event(&lost, files->arg);
}

/* What is new in it; if its writer was gone before, that is the end of it. */
static void serve(struct egressfiles *files, struct egressfile *file)
{
	bool over = !has_writer(file);

	if (!read_all(files, file)) {
		loop_arm(files->loop, &files->later, PAUSE_MS, look_again, files);
	} else if (over) {
		tell_lost(files, file);
		egressfile_remove(files->jobs, file->name);
		close_file(files, file);
	}
}

static void look_again(void *arg)
{
	struct egressfiles *files = arg;
	struct egressfile *next = NULL;

	/* Of those that could not be watched nobody tells. */
	for (const struct egressfile *file = files->first; file; file = file->next)
		if (file->watch < 0)
			loop_arm(files->loop, &files->later, LOOK_AGAIN_MS, look_again, files);
	for (struct egressfile *file = files->first; file; file = next) {
		next = file->next;
		serve(files, file);
	}
}

static void take_note(struct egressfiles *files, const struct inotify_event *event)
{
	struct egressfile *next = NULL;

	/* A writer's lock goes a moment after its end was told, or that was the end of another descriptor. */
	if (event->mask & (IN_CLOSE_WRITE | IN_Q_OVERFLOW))
		loop_arm(files->loop, &files->later, LOOK_AGAIN_MS, look_again, files);
	for (struct egressfile *file = files->first; file; file = next) {
		next = file->next;
		if (file->watch == event->wd || event->mask & IN_Q_OVERFLOW)
			serve(files, file);
	}
}

static void on_note(uint32_t events, void *arg)
{
	struct egressfiles *files = arg;
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t got = read(files->notify_fd, bytes, sizeof(bytes));

	(void)events;
	for (ssize_t at = 0; at < got;) {
		const struct inotify_event *event = (const void *)(bytes + at);

		take_note(files, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

/* ---- begin and end --------------------------------------------------------------------- */

static bool is_sound(const struct egressfiles *files, const struct egressfile *file)
{
	const struct head *head = &file->head;

	return jobfile_is_ours(file->fd) &&
	       pread(file->fd, (void *)(uintptr_t)head, sizeof(*head), 0) ==
		       (ssize_t)sizeof(*head) &&
	       head->magic == MAGIC && head->event_bytes == sizeof(struct egress_event) &&
	       memcmp(head->boot_id, files->jobs->boot_id, sizeof(head->boot_id)) == 0 &&
	       head->read % sizeof(struct egress_event) == 0 && head->read < EGRESSFILE_BYTES;
}

static void take_file(const char *name, void *arg)
{
	struct egressfiles *files = arg;
	struct egressfile *file = NULL;
	char path[64];

	if (name[0] != PREFIX || strlen(name) >= EGRESSFILE_NAME_BYTES)
		return;
	file = calloc(1, sizeof(*file));
	if (!file)
		return;
	memcpy(file->name, name, strlen(name));
	file->fd = openat(files->jobs->dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file->fd < 0 || !is_sound(files, file)) {
		log_write(LOG_WARNING, "the records of fsbox-egress in %s are none, and removed",
			  file->name);
		egressfile_remove(files->jobs, name);
		auto_close(&file->fd);
		free(file);
		return;
	}
	/* By our own descriptor: that name is the file's, whatever becomes of the folder. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	file->watch = inotify_add_watch(files->notify_fd, path, IN_MODIFY | IN_CLOSE_WRITE);
	file->next = files->first;
	files->first = file;
	serve(files, file);
}

int egressfiles_take_over(struct egressfiles *files, const struct jobfiles *jobs, struct loop *loop,
			  egresslink_event_fn *on_event, egressfiles_may_fn *may, void *arg,
			  struct error *err)
{
	int r = 0;

	*files = (struct egressfiles)EGRESSFILES_INIT;
	files->jobs = jobs;
	files->loop = loop;
	files->on_event = on_event;
	files->may = may;
	files->arg = arg;
	files->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (files->notify_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "inotify");
	r = loop_add(loop, &files->source, files->notify_fd, EPOLLIN, on_note, files, err);
	if (r == 0)
		r = jobfiles_each_name(jobs, err, take_file, files);
	if (r < 0 || !files->first)
		egressfiles_deinit(files);
	else if (!files->later.armed)
		loop_arm(loop, &files->later, LOOK_AGAIN_MS, look_again, files);
	return r;
}

void egressfiles_deinit(struct egressfiles *files)
{
	if (!files->loop)
		return;
	while (files->first)
		close_file(files, files->first);
	loop_disarm(files->loop, &files->later);
	loop_remove(files->loop, &files->source);
	auto_close(&files->notify_fd);
	*files = (struct egressfiles)EGRESSFILES_INIT;
}
