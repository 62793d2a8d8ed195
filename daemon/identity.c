/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/identity.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->group_count == b->group_count &&
	       memcmp(a->groups, b->groups, a->group_count * sizeof(a->groups[0])) == 0;
}

static int compare_gids(const void *left, const void *right)
{
	gid_t a = *(const gid_t *)left;
	gid_t b = *(const gid_t *)right;

	return (a > b) - (a < b);
}

void identity_normalise(struct identity *identity)
{
	size_t kept = 0;

	qsort(identity->groups, identity->group_count, sizeof(identity->groups[0]), compare_gids);
	for (size_t i = 0; i < identity->group_count; i++)
		if (kept == 0 || identity->groups[kept - 1] != identity->groups[i])
			identity->groups[kept++] = identity->groups[i];
	identity->group_count = kept;
}

static bool gid_listed(gid_t gid, const gid_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == gid)
			return true;
	return false;
}

void identity_drop_groups(struct identity *identity, const gid_t *drop, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < identity->group_count; i++)
		if (!gid_listed(identity->groups[i], drop, count))
			identity->groups[kept++] = identity->groups[i];
	identity->group_count = kept;
}

/* Whether this process is IDENTITY now, in every id the kernel lets us read. */
static bool identity_holds(const struct identity *identity)
{
	uid_t ruid = 0;
	uid_t euid = 0;
	uid_t suid = 0;
	gid_t rgid = 0;
	gid_t egid = 0;
	gid_t sgid = 0;

	if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0)
		return false;
	return ruid == identity->uid && euid == identity->uid && suid == identity->uid &&
	       rgid == identity->gid && egid == identity->gid && sgid == identity->gid;
}

/* Whether the supplementary groups are exactly IDENTITY's. */
static bool groups_hold(const struct identity *identity)
{
	struct identity now = { .uid = identity->uid, .gid = identity->gid };
	int count = getgroups(LIMIT_GROUPS, now.groups);

	if (count < 0)
		return false;
	now.group_count = (size_t)count;
	identity_normalise(&now);
	return identity_equal(&now, identity);
}

int identity_become(const struct identity *identity, struct error *err)
{
	/* A user's own daemon cannot change its groups, and need not. */
	if (geteuid() != 0 && identity_holds(identity))
		return 0;

	/* Groups first: afterwards we may not. Each call sets all ids of its kind, the ones for files
	 * follow the effective ones. */
	if (setgroups(identity->group_count, identity->groups) < 0)
		return error_set(err, ERR_SYSTEM, errno, "setgroups");
	if (setresgid(identity->gid, identity->gid, identity->gid) < 0)
		return error_set(err, ERR_SYSTEM, errno, "setresgid to %u", identity->gid);
	if (setresuid(identity->uid, identity->uid, identity->uid) < 0)
		return error_set(err, ERR_SYSTEM, errno, "setresuid to %u", identity->uid);

	if (!identity_holds(identity) || !groups_hold(identity))
		return error_set(err, ERR_SYSTEM, 0, "the kernel did not make us user %u",
				 identity->uid);
	if (identity->uid != 0 && setresuid(0, 0, 0) == 0)
		return error_set(err, ERR_SYSTEM, 0, "user %u can become root again",
				 identity->uid);
	return 0;
}
