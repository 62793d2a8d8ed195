/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/loop.h"

#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

int loop_init(struct loop *loop, struct error *err)
{
	*loop = (struct loop)LOOP_INIT;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "epoll_create1");
	return 0;
}

void loop_deinit(struct loop *loop)
{
	if (loop->epoll_fd >= 0)
		(void)close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

uint64_t loop_now_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int loop_add(struct loop *loop, struct loop_source *source, int fd, uint32_t events,
	     loop_source_fn *fn, void *arg, struct error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return error_set(err, ERR_SYSTEM, errno, "epoll_ctl");
	*source = (struct loop_source){ .fd = fd, .events = events, .fn = fn, .arg = arg };
	return 0;
}

int loop_change(struct loop *loop, struct loop_source *source, uint32_t events, struct error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (source->events == events)
		return 0;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) < 0)
		return error_set(err, ERR_SYSTEM, errno, "epoll_ctl");
	source->events = events;
	return 0;
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (source->fd < 0)
		return;

	/* By hand: closing alone would not do while a child still holds a copy of the descriptor. */
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
	for (int i = 0; i < loop->round_count; i++)
		if (loop->round[i].data.ptr == source)
			loop->round[i].data.ptr = NULL;
}

void loop_arm(struct loop *loop, struct loop_timer *timer, uint64_t after_ms, loop_timer_fn *fn,
	      void *arg)
{
	struct loop_timer *before = NULL;

	loop_disarm(loop, timer);
	if (__builtin_add_overflow(loop_now_ms(), after_ms, &timer->due_ms))
		timer->due_ms = UINT64_MAX;
	timer->fn = fn;
	timer->arg = arg;
	timer->armed = true;

	/* From the end: most timers are armed with one of a few lengths, so later is later. */
	before = loop->last_timer;
	while (before && before->due_ms > timer->due_ms)
		before = before->prev;

	timer->prev = before;
	timer->next = before ? before->next : loop->timers;
	if (timer->next)
		timer->next->prev = timer;
	else
		loop->last_timer = timer;
	if (before)
		before->next = timer;
	else
		loop->timers = timer;
}

void loop_disarm(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->armed)
		return;

	if (timer->prev)
		timer->prev->next = timer->next;
	else
		loop->timers = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
	else
		loop->last_timer = timer->prev;
	timer->prev = NULL;
	timer->next = NULL;
	timer->armed = false;
}

/* How long epoll may sleep; -1: without limit. */
static int sleep_ms(const struct loop *loop)
{
	uint64_t now = 0;

	if (!loop->timers)
		return -1;
	now = loop_now_ms();
	if (loop->timers->due_ms <= now)
		return 0;
	if (loop->timers->due_ms - now > INT_MAX)
		return INT_MAX;
	return (int)(loop->timers->due_ms - now);
}

/* At most as many as one round has sources, so that timers which re-arm starve nobody. */
static void run_timers(struct loop *loop)
{
	uint64_t now = loop_now_ms();

	for (int i = 0; i < LOOP_ROUND; i++) {
		struct loop_timer *timer = loop->timers;

		if (loop->stop || !timer || timer->due_ms > now)
			return;
		loop_disarm(loop, timer);
		timer->fn(timer->arg);
	}
}

static void run_sources(struct loop *loop)
{
	for (int i = 0; i < loop->round_count && !loop->stop; i++) {
		struct loop_source *source = loop->round[i].data.ptr;

		if (source)
			source->fn(loop->round[i].events, source->arg);
	}
	loop->round_count = 0;
}

int loop_run(struct loop *loop, struct error *err)
{
	while (!loop->stop) {
		loop->round_count =
			epoll_wait(loop->epoll_fd, loop->round, LOOP_ROUND, sleep_ms(loop));
		if (loop->round_count < 0) {
			loop->round_count = 0;
			if (errno != EINTR)
				return error_set(err, ERR_SYSTEM, errno, "epoll_wait");
		}
		run_sources(loop);
		run_timers(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}
