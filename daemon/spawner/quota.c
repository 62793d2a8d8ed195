/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/quota.h"

#include <stdlib.h>

/*
 * One user that holds something or spawned lately.
 *
 * @milli_tokens  spawns that may follow at once, in thousandths
 * @filled_ms     when @milli_tokens was true
 */
struct quota_user {
	uid_t uid;
	uint32_t held[QUOTA_KIND_COUNT];
	uint64_t milli_tokens;
	uint64_t filled_ms;
	struct quota_user *next; /* quota.users */
};

static const char *const kind_names[QUOTA_KIND_COUNT] = {
	[QUOTA_JOBS] = "jobs",
	[QUOTA_CONNECTIONS] = "connections",
	[QUOTA_BROKERS] = "sets of groups",
	[QUOTA_STUCK] = "helpers that hang",
	[QUOTA_CLOSERS] = "closing helpers",
};

void quota_init(struct quota *quota, const struct quota_limits *limits)
{
	*quota = (struct quota){ .limits = *limits };
}

void quota_deinit(struct quota *quota)
{
	while (quota->users) {
		struct quota_user *user = quota->users;

		quota->users = user->next;
		free(user);
	}
}

void quota_set_limits(struct quota *quota, const struct quota_limits *limits)
{
	quota->limits = *limits;
}

static struct quota_user *find_user(const struct quota *quota, uid_t uid)
{
	for (struct quota_user *user = quota->users; user; user = user->next)
		if (user->uid == uid)
			return user;
	return NULL;
}

static uint64_t bucket_size(const struct quota *quota)
{
	return (uint64_t)quota->limits.spawns_per_second * 1000;
}

static struct quota_user *have_user(struct quota *quota, uid_t uid, struct error *err)
{
	struct quota_user *user = find_user(quota, uid);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user) {
		(void)error_set(err, ERR_NOMEM, 0, "count what user %u has", uid);
		return NULL;
	}
	user->uid = uid;
	user->milli_tokens = bucket_size(quota);
	user->next = quota->users;
	quota->users = user;
	return user;
}

/* One that holds nothing is forgotten with its last thing: the number of users stays bounded. */
static void drop_idle(struct quota *quota, uid_t uid)
{
	struct quota_user **link = &quota->users;
	struct quota_user *user = NULL;

	while (*link && (*link)->uid != uid)
		link = &(*link)->next;
	user = *link;
	if (!user)
		return;
	for (size_t i = 0; i < QUOTA_KIND_COUNT; i++)
		if (user->held[i] > 0)
			return;
	*link = user->next;
	free(user);
}

int quota_note(struct quota *quota, uid_t uid, enum quota_kind kind, struct error *err)
{
	struct quota_user *user = have_user(quota, uid, err);

	if (!user)
		return -ERR_NOMEM;
	user->held[kind]++;
	quota->totals[kind]++;
	return 0;
}

int quota_take(struct quota *quota, uid_t uid, enum quota_kind kind, struct error *err)
{
	const struct quota_limit *limit = &quota->limits.kinds[kind];

	if (quota_held(quota, uid, kind) >= limit->uid)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "%u %s of user %u are the most",
				 limit->uid, kind_names[kind], uid);
	if (quota->totals[kind] >= limit->total)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "%u %s of all users are the most",
				 limit->total, kind_names[kind]);
	return quota_note(quota, uid, kind, err);
}

void quota_give(struct quota *quota, uid_t uid, enum quota_kind kind)
{
	struct quota_user *user = find_user(quota, uid);

	if (!user || user->held[kind] == 0)
		return;
	user->held[kind]--;
	quota->totals[kind]--;
	drop_idle(quota, uid);
}

uint32_t quota_held(const struct quota *quota, uid_t uid, enum quota_kind kind)
{
	const struct quota_user *user = find_user(quota, uid);

	return user ? user->held[kind] : 0;
}

static void refill(const struct quota *quota, struct quota_user *user, uint64_t now_ms)
{
	uint64_t full = bucket_size(quota);
	uint64_t passed = now_ms > user->filled_ms ? now_ms - user->filled_ms : 0;

	/* A second fills it entirely; beyond that there is nothing to multiply. */
	if (passed >= 1000)
		user->milli_tokens = full;
	else
		user->milli_tokens += passed * quota->limits.spawns_per_second;
	if (user->milli_tokens > full)
		user->milli_tokens = full;
	user->filled_ms = now_ms;
}

int quota_spawn(struct quota *quota, uid_t uid, uint64_t now_ms, struct error *err)
{
	struct quota_user *user = have_user(quota, uid, err);

	if (!user)
		return -ERR_NOMEM;
	refill(quota, user, now_ms);
	if (user->milli_tokens < 1000)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "%u spawns a second are the most",
				 quota->limits.spawns_per_second);
	user->milli_tokens -= 1000;
	return 0;
}
