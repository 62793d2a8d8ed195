/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/notify.h"
#include "daemon/spawner/spawner.h"

#define FIRST_FD 3
#define JOB_PREFIX "job-"

static void name_of(uint64_t job, char ret_name[32])
{
	(void)snprintf(ret_name, 32, JOB_PREFIX "%llu", (unsigned long long)job);
}

/* The number in NAME, of LENGTH bytes; 0: it is no job's. */
static uint64_t job_of(const char *name, size_t length)
{
	char text[32];
	char again[32];
	uint64_t job = 0;

	if (length >= sizeof(text) || length <= strlen(JOB_PREFIX))
		return 0;
	memcpy(text, name, length);
	text[length] = '\0';
	job = strtoull(text + strlen(JOB_PREFIX), NULL, 10);
	name_of(job, again);
	return strcmp(text, again) == 0 ? job : 0;
}

int fdstore_take(struct fdstore *store, int *count, struct error *err)
{
	const char *name = getenv("LISTEN_FDNAMES");
	int kept = 0;

	if (*count == 0 || !name)
		return 0;
	store->items = calloc((size_t)*count, sizeof(*store->items));
	if (!store->items)
		return error_set(err, ERR_NOMEM, 0, "what the service manager kept");
	for (int fd = FIRST_FD; fd < FIRST_FD + *count; fd++) {
		size_t length = strcspn(name, ":");
		uint64_t job = job_of(name, length);

		bool is_listen = length == strlen(FDSTORE_LISTEN) &&
				 strncmp(name, FDSTORE_LISTEN, length) == 0;

		name += length + (name[length] == ':');
		if (is_listen && store->had_listen) {
			(void)close(fd); /* the same once more */
			continue;
		}
		store->had_listen |= is_listen;
		if (job != 0) {
			store->items[store->count++] = (struct fdstore_item){ job, fd };
			continue;
		}
		if (fd != FIRST_FD + kept) {
			/* Out of the way: that number may be a job's. */
			for (size_t i = 0; i < store->count; i++) {
				struct fdstore_item *item = &store->items[i];

				if (item->fd == FIRST_FD + kept)
					item->fd = fcntl(item->fd, F_DUPFD_CLOEXEC, FIRST_FD);
			}
			if (dup3(fd, FIRST_FD + kept, O_CLOEXEC) < 0)
				return error_set(err, ERR_SYSTEM, errno, "dup");
			(void)close(fd);
		}
		kept++;
	}
	*count = kept;
	return 0;
}

static void take_out(const char *name)
{
	char state[96];

	(void)snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	(void)notify_send(state, NULL);
}

static void forget(uint64_t job)
{
	char name[32];

	name_of(job, name);
	take_out(name);
}

int fdstore_claim(struct fdstore *store, uint64_t job)
{
	for (size_t i = 0; i < store->count; i++) {
		struct fdstore_item *item = &store->items[i];
		int fd = item->fd;

		if (item->job != job || fd < 0)
			continue;
		item->fd = -1;
		/* In case that the manager kept it: it may be over already. */
		forget(job);
		return fd;
	}
	return -1;
}

void fdstore_drop_rest(struct fdstore *store)
{
	for (size_t i = 0; i < store->count; i++) {
		if (store->items[i].fd < 0)
			continue;
		(void)close(store->items[i].fd);
		forget(store->items[i].job);
	}
	free(store->items);
	store->items = NULL;
	store->count = 0;
}

static void put(const char *name, int fd)
{
	struct error err = ERROR_INIT;
	char state[96];

	/* What it passed it may have kept as well: under each name there shall be one. */
	take_out(name);
	/* FDPOLL: a pidfd of a process that ended is as good; it would be thrown out for that. */
	(void)snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	if (notify_send_fd(state, fd, &err) < 0)
		log_failure(&err, "keep a descriptor with the service manager");
}

static bool is_due(const struct job *job, bool all)
{
	return job->started && !job->over && !job->stored && job->pid1_fd >= 0 &&
	       (all || loop_now_ms() - job->begun_ms >= FDSTORE_AFTER_MS);
}

/* True: some that run are not old enough. */
static bool store_jobs(struct spawner *spawner, bool all)
{
	bool more = false;
	char name[32];

	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		for (struct job *job = spawner->jobs[i]; job; job = job->next) {
			if (is_due(job, all)) {
				name_of(job->id, name);
				put(name, job->pid1_fd);
				job->stored = true;
			} else if (is_due(job, true)) {
				more = true;
			}
		}
	}
	return more;
}

static void on_time(void *arg)
{
	struct spawner *spawner = arg;

	if (store_jobs(spawner, false))
		loop_arm(&spawner->loop, &spawner->fdstore.timer, FDSTORE_AFTER_MS, on_time,
			 spawner);
}

void fdstore_job_runs(struct job *job)
{
	struct spawner *spawner = job->spawner;

	if (notify_is_there() && !spawner->fdstore.timer.armed)
		loop_arm(&spawner->loop, &spawner->fdstore.timer, FDSTORE_AFTER_MS, on_time,
			 spawner);
}

void fdstore_job_over(struct job *job)
{
	if (job->stored && !job->spawner->ending)
		forget(job->id);
	job->stored = false;
}

void fdstore_all(struct spawner *spawner)
{
	if (!notify_is_there())
		return;
	if (spawner->socket_made && !spawner->fdstore.listen_stored)
		put(FDSTORE_LISTEN, spawner->listen_fd);
	spawner->fdstore.listen_stored = true;
	(void)store_jobs(spawner, true);
}
