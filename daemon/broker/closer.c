/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int closer_init(struct closer *closer, struct error *err)
{
	int r;

	memset(closer, 0, sizeof(*closer));
	r = pthread_mutex_init(&closer->lock, NULL);
	if (r == 0)
		r = pthread_cond_init(&closer->more, NULL);
	return r == 0 ? 0 : error_set(err, ERR_SYSTEM, r, "prepare the closing thread");
}

void closer_deinit(struct closer *closer)
{
	if (closer == NULL)
		return;
	(void)pthread_mutex_lock(&closer->lock);
	closer->ended = true;
	(void)pthread_cond_broadcast(&closer->more);
	(void)pthread_mutex_unlock(&closer->lock);
}

static void *closer_main(void *arg)
{
	struct closer *closer = arg;

	(void)pthread_mutex_lock(&closer->lock);
	while (!closer->ended) {
		int fd;

		if (closer->count == 0) {
			closer->idle++;
			(void)pthread_cond_wait(&closer->more, &closer->lock);
			closer->idle--;
			continue;
		}
		fd = closer->queue[closer->first];
		closer->first = (closer->first + 1) % CLOSER_QUEUE;
		closer->count--;
		(void)pthread_mutex_unlock(&closer->lock);
		(void)close(fd); /* the number is free at once, the call may hang */
		(void)pthread_mutex_lock(&closer->lock);
	}
	closer->threads--;
	(void)pthread_mutex_unlock(&closer->lock);
	return NULL;
}

/* Signals are the main thread's. */
static bool start_thread(struct closer *closer)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	int r;

	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, 256u << 10);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, closer_main, closer);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return r == 0;
}

/* Whether close(2) on it may wait for a file system. Answered from what the kernel has at hand. */
static bool may_hang(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) < 0)
		return true;
	return S_ISREG(stx.stx_mode) || S_ISDIR(stx.stx_mode) || !(stx.stx_mask & STATX_TYPE);
}

void closer_take(struct closer *closer, int fd)
{
	bool queued = false;

	if (fd < 0)
		return;
	if (may_hang(fd)) {
		(void)pthread_mutex_lock(&closer->lock);
		if (closer->count < CLOSER_QUEUE) {
			closer->queue[(closer->first + closer->count++) % CLOSER_QUEUE] = fd;
			queued = true;
			if (closer->idle < closer->count && closer->threads < LIMIT_STUCK_PER_UID &&
			    start_thread(closer))
				closer->threads++;
			/* Without any thread nobody would ever close it. */
			if (closer->threads == 0) {
				closer->count--;
				queued = false;
			}
			(void)pthread_cond_signal(&closer->more);
		}
		(void)pthread_mutex_unlock(&closer->lock);
	}
	if (!queued)
		(void)close(fd);
}

void closer_take_set(struct closer *closer, struct fdset *set)
{
	for (size_t i = 0; i < set->count; i++) {
		int fd = set->fds[i];

		set->fds[i] = -1;
		closer_take(closer, fd);
	}
	fdset_deinit(set);
}

bool closer_ready(struct closer *closer)
{
	bool ready;

	(void)pthread_mutex_lock(&closer->lock);
	ready = closer->count < CLOSER_QUEUE / 2;
	(void)pthread_mutex_unlock(&closer->lock);
	return ready;
}
