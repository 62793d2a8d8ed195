/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledgertable.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/limits.h"
#include "daemon/spawner/placeholder.h"

/* ---- identities ----------------------------------------------------------------------- */

static struct ledger_identity *identity_take(struct ledger_table *table,
					     const struct identity *identity)
{
	struct ledger_identity *at = table->identities;

	while (at && !identity_equal(&at->identity, identity))
		at = at->next;
	if (!at) {
		at = calloc(1, sizeof(*at));
		if (!at)
			return NULL;
		at->identity = *identity;
		at->next = table->identities;
		table->identities = at;
	}
	at->users++;
	return at;
}

static void identity_give(struct ledger_table *table, struct ledger_identity *identity)
{
	struct ledger_identity **at = &table->identities;

	if (!identity || --identity->users > 0)
		return;
	while (*at != identity)
		at = &(*at)->next;
	*at = identity->next;
	free(identity);
}

static size_t count_of(const struct ledger_table *table, uid_t uid)
{
	size_t count = 0;

	for (const struct ledger_identity *at = table->identities; at; at = at->next)
		count += at->identity.uid == uid ? at->users : 0;
	return count;
}

/* ---- entries --------------------------------------------------------------------------- */

static void entry_free(struct ledger_table *table, struct ledger_entry *entry)
{
	if (!entry)
		return;
	if (entry->path)
		unshared_pool_free(&table->paths, entry->path, strlen(entry->path) + 1);
	identity_give(table, entry->identity);
	free(entry->claims);
	free(entry);
}

static int compare(const struct ledger_entry *entry, const char *path, uid_t uid)
{
	int order = strcmp(entry->path, path);

	if (order != 0 || entry->identity->identity.uid == uid)
		return order;
	return entry->identity->identity.uid < uid ? -1 : 1;
}

size_t ledger_table_at(const struct ledger_table *table, const char *path, uid_t uid)
{
	size_t low = 0;
	size_t high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(table->entries[middle], path, uid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct ledger_entry *ledger_table_find(const struct ledger_table *table, const char *path,
				       uid_t uid)
{
	size_t at = ledger_table_at(table, path, uid);

	return at < table->count && compare(table->entries[at], path, uid) == 0 ? table->entries[at]
										: NULL;
}

bool ledger_table_has_below(const struct ledger_table *table, const char *path)
{
	size_t length = strlen(path);

	/* Not right behind PATH: names with bytes before the slash come first. */
	for (size_t i = ledger_table_at(table, path, 0); i < table->count; i++) {
		const char *at = table->entries[i]->path;

		if (strncmp(at, path, length) != 0)
			return false;
		if (at[length] == '/')
			return true;
	}
	return false;
}

static bool make_room(struct ledger_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : 16;
	struct ledger_entry **entries = NULL;

	if (table->count < table->capacity)
		return true;
	entries = reallocarray(table->entries, capacity, sizeof(struct ledger_entry *));
	if (!entries)
		return false;
	table->entries = entries;
	table->capacity = capacity;
	return true;
}

static struct ledger_entry *entry_new(struct ledger_table *table, const char *path,
				      const struct identity *identity)
{
	struct ledger_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->path = unshared_pool_new(&table->paths, strlen(path) + 1);
	entry->identity = identity_take(table, identity);
	if (!entry->path || !entry->identity || !make_room(table)) {
		entry_free(table, entry);
		return NULL;
	}
	memcpy(entry->path, path, strlen(path) + 1);
	return entry;
}

int ledger_table_obtain(struct ledger_table *table, const char *path,
			const struct identity *identity, struct ledger_entry **ret_entry,
			struct error *err)
{
	struct ledger_entry *entry = ledger_table_find(table, path, identity->uid);
	size_t at = 0;

	if (entry) {
		*ret_entry = entry;
		return 0;
	}
	if (!table->replaying && count_of(table, identity->uid) >= LIMIT_PLACEHOLDERS_PER_UID)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "user %u has %d placeholders",
				 identity->uid, LIMIT_PLACEHOLDERS_PER_UID);
	if (table->count >= LIMIT_LEDGER_ENTRIES)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "there are %zu placeholders",
				 LIMIT_LEDGER_ENTRIES);
	entry = entry_new(table, path, identity);
	if (!entry)
		return error_set(err, ERR_NOMEM, 0, "ledger");
	at = ledger_table_at(table, path, identity->uid);
	memmove(&table->entries[at + 1], &table->entries[at],
		(table->count - at) * sizeof(struct ledger_entry *));
	table->entries[at] = entry;
	table->count++;
	*ret_entry = entry;
	return 0;
}

void ledger_table_remove(struct ledger_table *table, const struct ledger_entry *entry)
{
	size_t at = ledger_table_at(table, entry->path, entry->identity->identity.uid);

	entry_free(table, table->entries[at]);
	table->count--;
	memmove(&table->entries[at], &table->entries[at + 1],
		(table->count - at) * sizeof(struct ledger_entry *));
}

void ledger_table_deinit(struct ledger_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		entry_free(table, table->entries[i]);
	free(table->entries);
	unshared_pool_deinit(&table->paths);
	*table = (struct ledger_table){ .count = 0 };
}

/* ---- claims ----------------------------------------------------------------------------- */

struct ledger_claim *ledger_entry_claim(const struct ledger_entry *entry, uint64_t job)
{
	for (size_t i = 0; i < entry->claim_count; i++)
		if (entry->claims[i].job == job)
			return &entry->claims[i];
	return NULL;
}

struct ledger_claim *ledger_entry_add(struct ledger_entry *entry, uint64_t job)
{
	struct ledger_claim *claim = ledger_entry_claim(entry, job);

	if (claim)
		return claim;
	if (entry->claim_count == entry->claim_capacity) {
		size_t capacity = entry->claim_capacity ? entry->claim_capacity * 2 : 2;
		struct ledger_claim *claims =
			reallocarray(entry->claims, capacity, sizeof(*claims));

		if (!claims)
			return NULL;
		entry->claims = claims;
		entry->claim_capacity = capacity;
	}
	claim = &entry->claims[entry->claim_count++];
	*claim = (struct ledger_claim){ .job = job };
	return claim;
}

bool ledger_entry_drop(struct ledger_entry *entry, uint64_t job)
{
	struct ledger_claim *claim = ledger_entry_claim(entry, job);

	if (!claim)
		return false;
	entry->orphaned |= claim->intends;
	*claim = entry->claims[--entry->claim_count];
	return true;
}

void ledger_entry_begin(struct ledger_entry *entry)
{
	struct timespec now;
	bool waited_for = false;

	/* The clock that file systems stamp with, or one that is behind it. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	for (size_t i = 0; i < entry->claim_count; i++)
		waited_for |= entry->claims[i].intends;
	if (entry->since_sec != 0 &&
	    (waited_for || now.tv_sec - entry->since_sec <= LIMIT_SETUP_MS / 1000))
		return;
	entry->since_sec = now.tv_sec;
	entry->since_nsec = (uint32_t)now.tv_nsec;
	entry->orphaned = false;
}

void ledger_entry_enter(struct ledger_entry *entry, const struct node_identity *parent)
{
	if (!node_identity_equal(&entry->parent, parent)) {
		entry->made = false;
		entry->node = (struct node_identity){ 0 };
	}
	entry->parent = *parent;
}
