/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LOOP_H
#define FSBOX_DAEMON_SPAWNER_LOOP_H

/*
 * fsboxd's one thread: waits on descriptors and timers, calls one function for each that is due.
 *
 * Sources and timers live in their owners; the loop only links them. A callback may remove and free
 * any source or timer, its own included: nothing that was removed is called any more, not even if
 * the kernel reported it in the same round. With no timer armed the loop sleeps without limit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/error.h"

/* Descriptors handled in one round. */
#define LOOP_ROUND 64

typedef void loop_source_fn(uint32_t events, void *arg);
typedef void loop_timer_fn(void *arg);

/*
 * @fd      borrowed while in the loop; -1: not in the loop
 * @events  EPOLLIN, EPOLLOUT ...; level-triggered
 */
struct loop_source {
	int fd;
	uint32_t events;
	loop_source_fn *fn;
	void *arg;
};

#define LOOP_SOURCE_INIT  \
	{                 \
		.fd = -1, \
	}

struct loop_timer {
	uint64_t due_ms;
	loop_timer_fn *fn;
	void *arg;
	bool armed;
	struct loop_timer *prev; /* loop.timers, soonest first */
	struct loop_timer *next;
};

struct loop {
	int epoll_fd;
	bool stop;
	struct loop_timer *timers;
	struct loop_timer *last_timer;
	struct epoll_event round[LOOP_ROUND]; /* ptr NULL: was removed meanwhile */
	int round_count;
};

#define LOOP_INIT               \
	{                       \
		.epoll_fd = -1, \
	}

int loop_init(struct loop *loop, struct error *err);
void loop_deinit(struct loop *loop);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t loop_now_ms(void);

/* SOURCE must not be in the loop. Fails with ERR_SYSTEM. */
int loop_add(struct loop *loop, struct loop_source *source, int fd, uint32_t events,
	     loop_source_fn *fn, void *arg, struct error *err);

/* Wait for other EVENTS from now on; nothing happens if they are the same. */
int loop_change(struct loop *loop, struct loop_source *source, uint32_t events, struct error *err);

/* Forget SOURCE; before its descriptor is closed. Harmless when it is not in the loop. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Call FN once, AFTER_MS from now. An armed timer is moved. */
void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t after_ms, loop_timer_fn *fn,
	      void *arg);
void loop_disarm(struct loop *loop, struct loop_timer *timer);

/* Serve until loop_stop(). Fails with ERR_SYSTEM only. */
int loop_run(struct loop *loop, struct error *err);
void loop_stop(struct loop *loop);

#endif
