/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/records.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/log.h"

struct record {
	struct egress_event event;
	struct record *next; /* records.first, oldest first */
};

static void drop_first(struct records *records)
{
	struct record *record = records->first;

	records->first = record->next;
	if (!records->first)
		records->last = NULL;
	records->count--;
	free(record);
}

/* Into the file, whole: after a part of one nobody could read those that follow. */
static void write_down(struct records *records, const struct egress_event *event)
{
	if (records->file_fd >= 0 &&
	    write(records->file_fd, event, sizeof(*event)) == (ssize_t)sizeof(*event))
		return;
	if (records->file_fd >= 0)
		log_write(LOG_ERROR, "records are dropped: there is no room for more");
	records->file_fd = -1;
	records->lost++;
}

static void write_all_down(struct records *records)
{
	if (!records->gone)
		log_write(LOG_WARNING, "fsboxd reads no records any more");
	records->gone = true;
	while (records->first) {
		write_down(records, &records->first->event);
		drop_first(records);
	}
}

static void flush(struct records *records)
{
	while (records->first) {
		/* Shorter than PIPE_BUF: all of it or nothing. */
		ssize_t wrote =
			write(records->fd, &records->first->event, sizeof(records->first->event));

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EAGAIN) {
			(void)event_add(&records->writable, NULL);
			return;
		}
		if (wrote < 0) {
			write_all_down(records);
			return;
		}
		drop_first(records);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

void records_init(struct records *records, struct event_base *base, int fd, int file_fd)
{
	*records = (struct records){ .fd = fd, .file_fd = file_fd };
	(void)event_assign(&records->writable, base, fd, EV_WRITE, on_writable, records);
}

void records_deinit(struct records *records)
{
	while (records->first)
		drop_first(records);
	if (event_initialized(&records->writable))
		(void)event_del(&records->writable);
}

void records_add(struct records *records, struct egress_event *event)
{
	struct record *record = NULL;
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	event->size = sizeof(*event);
	event->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (records->gone) {
		write_down(records, event);
		return;
	}
	record = malloc(sizeof(*record));
	if (!record) {
		records->lost++;
		return;
	}
	record->event = *event;
	record->next = NULL;
	if (records->last)
		records->last->next = record;
	else
		records->first = record;
	records->last = record;
	records->count++;
	flush(records);
}

bool records_full(const struct records *records)
{
	return records->count >= LIMIT_EGRESS_EVENT_QUEUE;
}
