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

void ended_add(struct brokerlink *link, uint64_t job, const uint8_t cookie_hash[32],
	       const struct exit_record *record, uint32_t repaired)
{
	struct spawner *spawner = link->spawner;
	struct ended_list *list = &link->ended;
	/* Of one user, so not for processes of others (R15). */
	struct ended *ended = unshared_pool_new(&spawner->ended_pool, sizeof(*ended));

	if (!ended) {
		jobfile_remove(&spawner->jobfiles, job);
		return;
	}
	ended->job = job;
	memcpy(ended->cookie_hash, cookie_hash, sizeof(ended->cookie_hash));
	ended->record = *record;
	ended->repaired = repaired;
	ended->until_ms = loop_now_ms() + LIMIT_RESULT_KEPT_MS;
	if (list->last)
		list->last->next = ended;
	else
		list->first = ended;
	list->last = ended;
	if (++list->count > LIMIT_RESULTS_PER_BROKER)
		forget_oldest(link);
	if (!list->timer.armed)
		loop_arm(&spawner->loop, &list->timer, LIMIT_RESULT_KEPT_MS, on_time, link);
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
