/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_RECORDS_H
#define FSBOX_DAEMON_EGRESS_RECORDS_H

/*
 * Records on their way to fsboxd: written whole or not at all, in order, never waited for. When
 * fsboxd is slow they are kept up to a bound; at the bound nothing new is accepted (records_full()), so
 * that no decision goes unrecorded. When fsboxd is gone they are appended to a file, for the next one;
 * without that, or when it is full, they are counted and dropped.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire/egressop.h"

struct record; /* one that waits */

struct records {
	int fd;      /* borrowed, as the next */
	int file_fd; /* -1: none, or no more */
	struct event writable;
	struct record *first;
	struct record *last;
	size_t count;
	uint64_t lost;
	bool gone;
};

void records_init(struct records *records, struct event_base *base, int fd, int file_fd);
void records_deinit(struct records *records);

/* Fills size and time_ns of EVENT. */
void records_add(struct records *records, struct egress_event *event);

bool records_full(const struct records *records);

#endif
