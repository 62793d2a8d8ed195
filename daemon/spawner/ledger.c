/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledger.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/unshared.h"

/*
 * One level of a placeholder.
 *
 * @path    owned
 * @made    @node is known; until then node.btime_* is the time of the intent
 * @jobs    owned; who stands on it; none: it could not be removed when the last one ended
 */
struct entry {
	uid_t uid;
	char *path;
	struct node_identity parent;
	struct node_identity node;
	bool made;
	uint64_t *jobs;
	size_t job_count;
	size_t job_capacity;
};

/*
 * @entries  sorted by uid, then path; pointers, so that making room for one is cheap
 * @paths    of the entries: names of one user's files are nothing for processes of another (R15)
 */
struct ledger {
	struct unshared_pool paths;
	struct entry **entries;
	size_t count;
	size_t capacity;
};

static struct entry *entry_free(struct ledger *ledger, struct entry *entry)
{
	if (!entry)
		return NULL;
	if (entry->path)
		unshared_pool_free(&ledger->paths, entry->path, strlen(entry->path) + 1);
	free(entry->jobs);
	free(entry);
	return NULL;
}

static bool entry_has_job(const struct entry *entry, uint64_t job)
{
	for (size_t i = 0; i < entry->job_count; i++) {
		if (entry->jobs[i] == job)
			return true;
	}
	return false;
}

static void entry_drop_job(struct entry *entry, uint64_t job)
{
	for (size_t i = 0; i < entry->job_count; i++) {
		if (entry->jobs[i] == job)
			entry->jobs[i--] = entry->jobs[--entry->job_count];
	}
}

/* False when memory is short. */
static bool entry_add_job(struct entry *entry, uint64_t job)
{
	if (entry_has_job(entry, job))
		return true;
	if (entry->job_count == entry->job_capacity) {
		size_t capacity = entry->job_capacity ? entry->job_capacity * 2 : 2;
		uint64_t *jobs = reallocarray(entry->jobs, capacity, sizeof(*jobs));

		if (!jobs)
			return false;
		entry->jobs = jobs;
		entry->job_capacity = capacity;
	}
	entry->jobs[entry->job_count++] = job;
	return true;
}

static int entry_compare(const struct entry *entry, uid_t uid, const char *path)
{
	if (entry->uid != uid)
		return entry->uid < uid ? -1 : 1;
	return strcmp(entry->path, path);
}

/* Index of the first entry at or after UID, PATH; *ret_found: it is that one. */
static size_t find(const struct ledger *ledger, uid_t uid, const char *path, bool *ret_found)
{
	size_t low = 0;
	size_t high = ledger->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entry_compare(ledger->entries[middle], uid, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = low < ledger->count && entry_compare(ledger->entries[low], uid, path) == 0;
	return low;
}

/* Index behind the last entry of UID. */
static size_t end_of(const struct ledger *ledger, uid_t uid)
{
	bool found = false;

	/* UID + 1 is at worst the number that means no user. */
	return uid + 1 > uid ? find(ledger, uid + 1, "", &found) : ledger->count;
}

static size_t count_of(const struct ledger *ledger, uid_t uid)
{
	bool found = false;

	return end_of(ledger, uid) - find(ledger, uid, "", &found);
}

static void remove_at(struct ledger *ledger, size_t at)
{
	ledger->entries[at] = entry_free(ledger, ledger->entries[at]);
	ledger->count--;
	for (size_t i = at; i < ledger->count; i++)
		ledger->entries[i] = ledger->entries[i + 1];
}

static bool make_room(struct ledger *ledger)
{
	size_t capacity = ledger->capacity ? ledger->capacity * 2 : 16;
	struct entry **entries = NULL;

	if (ledger->count < ledger->capacity)
		return true;
	entries = reallocarray(ledger->entries, capacity, sizeof(struct entry *));
	if (!entries)
		return false;
	ledger->entries = entries;
	ledger->capacity = capacity;
	return true;
}

static char *path_keep(struct ledger *ledger, const char *path)
{
	char *kept = unshared_pool_new(&ledger->paths, strlen(path) + 1);

	if (kept)
		memcpy(kept, path, strlen(path) + 1);
	return kept;
}

/* The entry for UID and PATH, new and empty if there was none; its index in *ret_at. */
static int obtain(struct ledger *ledger, uid_t uid, const char *path, size_t *ret_at,
		  struct error *err)
{
	bool found = false;
	size_t at = find(ledger, uid, path, &found);
	struct entry *entry = NULL;

	*ret_at = at;
	if (found)
		return 0;
	if (count_of(ledger, uid) >= LIMIT_PLACEHOLDERS_PER_UID)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "user %u has %d placeholders", uid,
				 LIMIT_PLACEHOLDERS_PER_UID);
	entry = calloc(1, sizeof(*entry));
	if (!entry || !(entry->path = path_keep(ledger, path)) || !make_room(ledger)) {
		entry_free(ledger, entry);
		return error_set(err, ERR_NOMEM, 0, "ledger");
	}
	entry->uid = uid;
	for (size_t i = ledger->count; i > at; i--)
		ledger->entries[i] = ledger->entries[i - 1];
	ledger->entries[at] = entry;
	ledger->count++;
	return 0;
}

int ledger_new(struct ledger **ret_ledger, struct error *err)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	if (!ledger)
		return error_set(err, ERR_NOMEM, 0, "ledger");
	*ret_ledger = ledger;
	return 0;
}

struct ledger *ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return NULL;
	for (size_t i = 0; i < ledger->count; i++)
		entry_free(ledger, ledger->entries[i]);
	free(ledger->entries);
	unshared_pool_deinit(&ledger->paths);
	free(ledger);
	return NULL;
}

size_t ledger_count(const struct ledger *ledger)
{
	return ledger->count;
}

/* JOB stands on every level above PATH that is in the ledger. False when memory is short. */
static bool share_above(struct ledger *ledger, uint64_t job, uid_t uid, const char *path)
{
	AUTO(auto_free) char *above = strdup(path);
	bool complete = above != NULL;

	while (above) {
		char *slash = strrchr(above, '/');
		bool found = false;
		size_t at = 0;

		if (!slash || slash == above)
			break;
		*slash = '\0';
		at = find(ledger, uid, above, &found);
		if (found && !entry_add_job(ledger->entries[at], job))
			complete = false;
	}
	return complete;
}

int ledger_intend(struct ledger *ledger, uint64_t job, uid_t uid,
		  const struct report_placeholder *what, struct error *err)
{
	struct entry *entry = NULL;
	struct timespec now;
	size_t at = 0;
	int r = 0;

	/* Before the entry is there, so that a failure leaves nothing that nobody made. */
	if (!share_above(ledger, job, uid, what->path))
		return error_set(err, ERR_NOMEM, 0, "ledger");
	r = obtain(ledger, uid, what->path, &at, err);
	if (r < 0)
		return r;
	entry = ledger->entries[at];
	if (!entry_add_job(entry, job)) {
		if (entry->job_count == 0)
			remove_at(ledger, at);
		return error_set(err, ERR_NOMEM, 0, "ledger");
	}
	/* Another job was faster, or what it made is gone: then a new identity follows. */
	if (entry->made)
		return 0;
	/* The clock that file systems stamp with, or one that is behind it. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	entry->parent = what->parent;
	entry->node = (struct node_identity){ .btime_sec = now.tv_sec,
					      .btime_nsec = (uint32_t)now.tv_nsec };
	return 0;
}

int ledger_made(struct ledger *ledger, uint64_t job, const struct report_placeholder *what,
		struct error *err)
{
	size_t at = 0;

	if (what->node.ino == 0)
		return error_set(err, ERR_BAD_FRAME, 0, "a placeholder without identity");
	for (size_t i = 0; i < ledger->count; i = end_of(ledger, ledger->entries[i]->uid)) {
		struct entry *entry = NULL;
		bool found = false;

		at = find(ledger, ledger->entries[i]->uid, what->path, &found);
		entry = found ? ledger->entries[at] : NULL;
		if (!entry || !entry_has_job(entry, job))
			continue;
		entry->made = true;
		entry->parent = what->parent;
		entry->node = what->node;
		return 0;
	}
	return error_set(err, ERR_BAD_FRAME, 0, "a placeholder that was not announced");
}

void ledger_share(struct ledger *ledger, uint64_t job, uid_t uid, const char *path)
{
	bool found = false;
	size_t at = find(ledger, uid, path, &found);
	struct entry *entry = found ? ledger->entries[at] : NULL;

	if (entry && !entry->made && entry->job_count == 1 && entry->jobs[0] == job) {
		remove_at(ledger, at); /* its own intent, which it says now will not be fulfilled */
		entry = NULL;
	}
	/* Out of memory: the placeholder may go early, as it would had the job never asked. */
	if (entry)
		(void)entry_add_job(entry, job);
	(void)share_above(ledger, job, uid, path);
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

static int compare_deepest_first(const void *a, const void *b)
{
	const struct report_placeholder *left = a;
	const struct report_placeholder *right = b;
	unsigned left_depth = depth_of(left->path);
	unsigned right_depth = depth_of(right->path);

	if (left_depth != right_depth)
		return left_depth > right_depth ? -1 : 1;
	return strcmp(left->path, right->path);
}

/* Whose job it is, as far as the ledger knows. */
static bool uid_of_job(const struct ledger *ledger, uint64_t job, uid_t *ret_uid)
{
	for (size_t i = 0; i < ledger->count; i++) {
		if (entry_has_job(ledger->entries[i], job)) {
			*ret_uid = ledger->entries[i]->uid;
			return true;
		}
	}
	return false;
}

int ledger_release(struct ledger *ledger, uint64_t job, struct report_placeholder **ret_gone,
		   size_t *ret_count, struct error *err)
{
	AUTO(auto_free) struct report_placeholder *gone = NULL;
	size_t count = 0;
	size_t kept = 0;
	uid_t uid = 0;

	*ret_gone = NULL;
	*ret_count = 0;
	if (!uid_of_job(ledger, job, &uid))
		return 0;
	for (size_t i = 0; i < ledger->count; i++)
		entry_drop_job(ledger->entries[i], job);
	/* With those of this user that could not be removed earlier. */
	for (size_t i = 0; i < ledger->count; i++)
		count += ledger->entries[i]->uid == uid && ledger->entries[i]->job_count == 0;
	if (count == 0)
		return 0;
	gone = calloc(count, sizeof(*gone));
	if (!gone) /* they stay, without jobs, for the next release */
		return error_set(err, ERR_NOMEM, 0, "ledger");

	count = 0;
	for (size_t i = 0; i < ledger->count; i++) {
		struct entry *entry = ledger->entries[i];
		struct report_placeholder *what = &gone[count];

		if (entry->uid != uid || entry->job_count != 0) {
			ledger->entries[kept++] = entry;
			continue;
		}
		what->parent = entry->parent;
		what->node = entry->node;
		memcpy(what->path, entry->path, strlen(entry->path) + 1);
		entry_free(ledger, entry);
		count++;
	}
	ledger->count = kept;
	qsort(gone, count, sizeof(*gone), compare_deepest_first);
	*ret_gone = steal_ptr(&gone);
	*ret_count = count;
	return 0;
}

int ledger_keep(struct ledger *ledger, uid_t uid, const struct report_placeholder *what,
		struct error *err)
{
	bool found = false;
	struct entry *entry = NULL;
	size_t at = 0;
	int r = 0;

	(void)find(ledger, uid, what->path, &found);
	if (found)
		return 0; /* a job of today has made it anew, or is about to */
	r = obtain(ledger, uid, what->path, &at, err);
	if (r < 0)
		return r;
	entry = ledger->entries[at];
	entry->made = what->node.ino != 0;
	entry->parent = what->parent;
	entry->node = what->node;
	return 0;
}
