/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ended.h"

#include <string.h>

#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/jobfile.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/unshared.h"

static void forget_oldest(struct brokerlink *link)
{
	struct ended_list *list = &link->ended;
	struct ended *ended = list->first;

	list->first = ended->next;
	if (!list->first)
		list->last = NULL;
	list->count--;
	if (!link->spawner->ending)
		jobfile_remove(&link->spawner->jobfiles, ended->job);
	unshared_pool_free(&link->spawner->ended_pool, ended, sizeof(*ended));
}

/* Those that ended earlier are kept no longer than later ones: the first goes first. */
static void on_time(void *arg)
{
	struct brokerlink *link = arg;
	uint64_t now_ms = loop_now_ms();

	while (link->ended.first && link->ended.first->until_ms <= now_ms)
		forget_oldest(link);
	if (link->ended.first)
		loop_arm(&link->spawner->loop, &link->ended.timer,
			 link->ended.first->until_ms - now_ms, on_time, link);
}

static uint64_t kept_until(uint64_t ended_ms)
{
	uint64_t until_ms = loop_now_ms() + LIMIT_RESULT_KEPT_MS;
	uint64_t longest_ms = ended_ms + LIMIT_RESULT_LONGEST_MS;

	return until_ms < longest_ms ? until_ms : longest_ms;
}

/* Files of before come in the order of a directory, which is none. */
static void insert(struct ended_list *list, struct ended *ended)
{
	struct ended **at = &list->first;

	if (list->last && list->last->ended_ms <= ended->ended_ms)
		at = &list->last->next;
	while (*at && (*at)->ended_ms <= ended->ended_ms)
		at = &(*at)->next;
	ended->next = *at;
	*at = ended;
	if (!ended->next)
		list->last = ended;
	list->count++;
}

void ended_add(struct brokerlink *link, const struct ended *what)
{
	struct spawner *spawner = link->spawner;
	struct ended_list *list = &link->ended;
	uint64_t now_ms = loop_now_ms();
	/* The file of another fsboxd: its clock is ours, but who knows what is in a file. */
	uint64_t ended_ms = what->ended_ms < now_ms ? what->ended_ms : now_ms;
	uint64_t until_ms = kept_until(ended_ms);
	/* Of one user, so not for processes of others (R15). */
	struct ended *ended =
		until_ms > now_ms ? unshared_pool_new(&spawner->ended_pool, sizeof(*ended)) : NULL;

	if (!ended) {
		jobfile_remove(&spawner->jobfiles, what->job);
		return;
	}
	*ended = *what;
	ended->ended_ms = ended_ms;
	ended->until_ms = until_ms;
	insert(list, ended);
	if (list->count > LIMIT_RESULTS_PER_BROKER)
		forget_oldest(link);
	loop_arm(&spawner->loop, &list->timer,
		 list->first->until_ms > now_ms ? list->first->until_ms - now_ms : 0, on_time,
		 link);
}

const struct ended *ended_find(const struct spawner *spawner, uid_t uid, uint64_t job)
{
	for (const struct brokerlink *link = spawner->brokers; link; link = link->next) {
		if (link->identity.uid != uid)
			continue;
		for (const struct ended *ended = link->ended.first; ended; ended = ended->next)
			if (ended->job == job)
				return ended;
	}
	return NULL;
}

void ended_deinit(struct brokerlink *link)
{
	loop_disarm(&link->spawner->loop, &link->ended.timer);
	while (link->ended.first)
		forget_oldest(link);
}
