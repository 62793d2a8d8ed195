/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/ledgerfile.h"
#include "daemon/spawner/ledgerline.h"
#include "daemon/spawner/ledgertable.h"
#include "daemon/spawner/unshared.h"

/* A file beyond this, and many times what is worth keeping, is written anew at once. */
#define FILE_SPARE_BYTES (4 << 20)
#define ENTRY_BYTES 1024

/* More jobs than these stand on nothing: a file that says so is not ours. */
#define CLAIMS_MOST ((size_t)LIMIT_JOBS * 2)

/*
 * @line        scratch: a line is too large for the stack
 * @uid         whose entries are ours; (uid_t)-1: everybody's
 * @last_job    highest number in the file
 * @untidy      the file says more than the table
 */
struct ledger {
	struct ledger_table table;
	struct ledger_file file;
	struct ledger_line line;
	struct ledger_replay replay;
	uid_t uid;
	uint64_t last_job;
	bool untidy;
};

/* ---- the file --------------------------------------------------------------------------- */

static void begin_line(struct ledger *ledger, enum ledger_act act, uint64_t job,
		       const struct ledger_entry *entry)
{
	struct ledger_line *line = &ledger->line;

	line->act = act;
	line->job = job;
	line->identity = entry->identity->identity;
	line->parent = entry->parent;
	line->node = entry->node;
	if (act == LEDGER_INTENT)
		line->node = (struct node_identity){ .btime_sec = entry->since_sec,
						     .btime_nsec = entry->since_nsec };
	(void)snprintf(line->path, sizeof(line->path), "%s", entry->path);
}

/* Everything worth keeping: of each entry what it is, and who stands on it. */
static bool write_entry(struct buf *out, size_t index, void *arg)
{
	struct ledger *ledger = arg;
	const struct ledger_entry *entry = NULL;
	bool made = false;

	if (index >= ledger->table.count)
		return false;
	entry = ledger->table.entries[index];
	made = entry->made;
	for (size_t i = 0; i < entry->claim_count || i == 0; i++) {
		uint64_t job = entry->claim_count > 0 ? entry->claims[i].job : 0;

		if (i == 0 && made) {
			begin_line(ledger, LEDGER_MADE, job, entry);
			ledger_line_write(&ledger->line, out);
		}
		if (i == 0 && (entry->since_sec != 0 || !made)) {
			begin_line(ledger, LEDGER_INTENT, job, entry);
			ledger_line_write(&ledger->line, out);
		} else if (i > 0) {
			begin_line(ledger, LEDGER_SHARE, job, entry);
			ledger_line_write(&ledger->line, out);
		}
	}
	return true;
}

static int append(struct ledger *ledger, enum ledger_act act, uint64_t job,
		  const struct ledger_entry *entry, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);
	int r = 0;

	begin_line(ledger, act, job, entry);
	ledger_line_write(&ledger->line, &text);
	r = buf_check(&text, "a line of the ledger", err);
	/*
	 * Only what is about to be made must be on the disk first. What it became a power cut may lose: then it is
	 * known by its marks and the time of its birth. Claims are for a successor of ours; a machine that goes down
	 * takes their jobs with it.
	 */
	if (r == 0)
		r = ledger_file_append(&ledger->file, text.data, text.size, act == LEDGER_INTENT,
				       err);
	if (r == 0 &&
	    ledger->file.size > FILE_SPARE_BYTES + (off_t)ledger->table.count * 8 * ENTRY_BYTES &&
	    ledger_file_replace(&ledger->file, false, NULL) == 0)
		ledger->untidy = false;
	return r;
}

/* ---- reading it at the start ---------------------------------------------------------------- */

static bool replay_share(struct ledger *ledger, const struct ledger_line *line)
{
	struct ledger_table *table = &ledger->table;

	for (size_t i = ledger_table_at(table, line->path, 0);
	     i < table->count && strcmp(table->entries[i]->path, line->path) == 0; i++)
		if (table->entries[i]->claim_count > CLAIMS_MOST ||
		    !ledger_entry_add(table->entries[i], line->job))
			return false;
	return true;
}

static void cancel(struct ledger *ledger, struct ledger_entry *entry)
{
	entry->since_sec = 0;
	if (!entry->made)
		ledger_table_remove(&ledger->table, entry);
}

static bool replay_line(struct ledger *ledger, const struct ledger_line *line)
{
	struct ledger_entry *entry = NULL;

	if (ledger->uid != (uid_t)-1 && line->identity.uid != ledger->uid)
		return false;
	if (line->job > ledger->last_job)
		ledger->last_job = line->job;
	switch (line->act) {
	case LEDGER_SHARE:
		return replay_share(ledger, line);
	case LEDGER_CANCEL:
		entry = ledger_table_find(&ledger->table, line->path, line->identity.uid);
		if (entry)
			cancel(ledger, entry);
		return true;
	case LEDGER_INTENT:
	case LEDGER_MADE:
		break;
	}
	if (ledger_table_obtain(&ledger->table, line->path, &line->identity, &entry, NULL) < 0)
		return false;
	if (line->act == LEDGER_MADE) {
		entry->parent = line->parent;
		entry->node = line->node;
		entry->made = true;
		entry->since_sec = 0;
	} else {
		ledger_entry_enter(entry, &line->parent);
		entry->since_sec = line->node.btime_sec;
		entry->since_nsec = line->node.btime_nsec;
	}
	return line->job == 0 ||
	       (entry->claim_count <= CLAIMS_MOST && ledger_entry_add(entry, line->job));
}

static void on_line(const char *text, size_t size, void *arg)
{
	struct ledger *ledger = arg;

	if (!ledger_line_read(&ledger->line, text, size) || !replay_line(ledger, &ledger->line))
		ledger->replay.damaged++;
}

static int replay(struct ledger *ledger, struct error *err)
{
	size_t bad = 0;
	int r = 0;

	ledger->table.replaying = true;
	r = ledger_file_read(&ledger->file, on_line, ledger, &bad, err);
	ledger->table.replaying = false;
	ledger->replay.damaged += bad;
	ledger->replay.entries = ledger->table.count;
	return r;
}

int ledger_open(struct ledger **ret_ledger, const char *dir, uid_t uid, struct error *err)
{
	/* With the last line written, which is of one user. */
	struct ledger *ledger = unshared_new(sizeof(*ledger));
	struct error why = ERROR_INIT;
	int r = 0;

	if (!ledger)
		return error_set(err, ERR_NOMEM, 0, "ledger");
	ledger->uid = uid;
	ledger->file = (struct ledger_file)LEDGER_FILE_INIT;
	if ((r = ledger_file_open(&ledger->file, dir, write_entry, ledger, &why, err)) < 0 ||
	    (r = replay(ledger, err)) < 0) {
		ledger_free(ledger);
		return r;
	}
	if (why.kind != ERR_NONE)
		(void)snprintf(ledger->replay.why, sizeof(ledger->replay.why), "%.127s",
			       why.message);
	*ret_ledger = ledger;
	return 0;
}

struct ledger *ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return NULL;
	ledger_file_close(&ledger->file);
	ledger_table_deinit(&ledger->table);
	unshared_free(ledger, sizeof(*ledger));
	return NULL;
}

void ledger_settle(struct ledger *ledger, ledger_lives_fn *lives, void *arg)
{
	struct error err = ERROR_INIT;
	bool anything = ledger->replay.entries > 0 || ledger->replay.damaged > 0;

	for (size_t i = 0; i < ledger->table.count; i++) {
		struct ledger_entry *entry = ledger->table.entries[i];

		entry->orphaned = entry->since_sec != 0; /* builders are not taken over */
		for (size_t j = entry->claim_count; j-- > 0;)
			if (!lives(entry->claims[j].job, arg))
				entry->claims[j] = entry->claims[--entry->claim_count];
	}
	if (anything && ledger_file_replace(&ledger->file, ledger->replay.damaged > 0, &err) < 0)
		log_failure(&err, "what it says stays as it is");
}

const struct ledger_replay *ledger_replayed(const struct ledger *ledger)
{
	return &ledger->replay;
}

uint64_t ledger_last_job(const struct ledger *ledger)
{
	return ledger->last_job;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* JOB's claim on what is exactly at PATH, whoever made it. */
static int claim_at(struct ledger *ledger, uint64_t job, const char *path, struct error *err)
{
	struct ledger_table *table = &ledger->table;
	int busy = 0;

	for (size_t i = ledger_table_at(table, path, 0);
	     i < table->count && strcmp(table->entries[i]->path, path) == 0; i++) {
		struct ledger_entry *entry = table->entries[i];
		int r = 0;

		if (entry->in_flight)
			busy = LEDGER_BUSY;
		if (entry->in_flight || ledger_entry_claim(entry, job))
			continue;
		if (!ledger_entry_add(entry, job))
			return error_set(err, ERR_NOMEM, 0, "ledger");
		entry->kept = false;
		r = append(ledger, LEDGER_SHARE, job, entry, err);
		if (r < 0) {
			(void)ledger_entry_drop(entry, job);
			return r;
		}
	}
	return busy;
}

static int claim_above(struct ledger *ledger, uint64_t job, const char *path, struct error *err)
{
	char above[LIMIT_PATH_BYTES + 1];
	int busy = 0;

	(void)snprintf(above, sizeof(above), "%s", path);
	for (char *slash = strrchr(above, '/'); slash && slash != above;
	     slash = strrchr(above, '/')) {
		int r = 0;

		*slash = '\0';
		r = claim_at(ledger, job, above, err);
		if (r < 0)
			return r;
		busy |= r;
	}
	return busy;
}

static bool is_busy(const struct ledger *ledger, const char *path)
{
	const struct ledger_table *table = &ledger->table;

	for (size_t i = ledger_table_at(table, path, 0);
	     i < table->count && strcmp(table->entries[i]->path, path) == 0; i++)
		if (table->entries[i]->in_flight)
			return true;
	return false;
}

int ledger_intend(struct ledger *ledger, uint64_t job, const struct identity *identity,
		  const struct report_placeholder *what, struct error *err)
{
	struct ledger_entry *entry = NULL;
	struct ledger_entry before;
	struct ledger_claim *claim = NULL;
	int r = 0;

	if (is_busy(ledger, what->path))
		return LEDGER_BUSY;
	/* Before the entry is there, so that a failure leaves nothing that nobody made. */
	if ((r = claim_above(ledger, job, what->path, err)) != 0 ||
	    (r = ledger_table_obtain(&ledger->table, what->path, identity, &entry, err)) < 0)
		return r;
	claim = ledger_entry_add(entry, job);
	if (!claim) {
		if (entry->claim_count == 0 && !entry->made && entry->since_sec == 0)
			ledger_table_remove(&ledger->table, entry);
		return error_set(err, ERR_NOMEM, 0, "ledger");
	}
	before = *entry;
	ledger_entry_begin(entry);
	claim->intends = true;
	ledger_entry_enter(entry, &what->parent);
	r = append(ledger, LEDGER_INTENT, job, entry, err);
	if (r == 0)
		return 0;
	claim->intends = false;
	entry->parent = before.parent;
	entry->node = before.node;
	entry->made = before.made;
	entry->since_sec = before.since_sec;
	entry->since_nsec = before.since_nsec;
	entry->orphaned = before.orphaned;
	(void)ledger_entry_drop(entry, job);
	if (entry->claim_count == 0 && !entry->made && entry->since_sec == 0)
		ledger_table_remove(&ledger->table, entry);
	return r;
}

int ledger_made(struct ledger *ledger, uint64_t job, uid_t uid,
		const struct report_placeholder *what, struct error *err)
{
	struct ledger_entry *entry = ledger_table_find(&ledger->table, what->path, uid);
	struct ledger_claim *claim = entry ? ledger_entry_claim(entry, job) : NULL;

	if (what->node.ino == 0)
		return error_set(err, ERR_BAD_FRAME, 0, "a placeholder without identity");
	if (!claim || !claim->intends)
		return error_set(err, ERR_BAD_FRAME, 0, "a placeholder that was not announced");
	claim->intends = false;
	entry->made = true;
	entry->parent = what->parent;
	entry->node = what->node;
	entry->since_sec = 0;
	entry->orphaned = false;
	return append(ledger, LEDGER_MADE, job, entry, err);
}

/* JOB did not make what it said it would. */
static void forget_intent(struct ledger *ledger, uint64_t job, uid_t uid, const char *path)
{
	struct ledger_entry *entry = ledger_table_find(&ledger->table, path, uid);
	struct ledger_claim *claim = entry ? ledger_entry_claim(entry, job) : NULL;

	if (!claim || !claim->intends)
		return;
	claim->intends = false;
	for (size_t i = 0; i < entry->claim_count; i++)
		if (entry->claims[i].intends)
			return;
	/* Who died before he could say so may have made what JOB found there. */
	if (entry->orphaned)
		return;
	/* Lost, it is only a successor that might take the user's own directory of this moment for ours. */
	(void)append(ledger, LEDGER_CANCEL, job, entry, NULL);
	cancel(ledger, entry);
	ledger->untidy = true;
}

int ledger_share(struct ledger *ledger, uint64_t job, uid_t uid, const char *path,
		 struct error *err)
{
	int above = 0;
	int at = 0;

	forget_intent(ledger, job, uid, path);
	at = claim_at(ledger, job, path, err);
	if (at < 0)
		return at;
	above = claim_above(ledger, job, path, err);
	return above < 0 ? above : at | above;
}

bool ledger_has_job(const struct ledger *ledger, uint64_t job)
{
	for (size_t i = 0; i < ledger->table.count; i++)
		if (ledger_entry_claim(ledger->table.entries[i], job))
			return true;
	return false;
}

bool ledger_release(struct ledger *ledger, uint64_t job)
{
	bool unneeded = false;

	for (size_t i = 0; i < ledger->table.count; i++) {
		struct ledger_entry *entry = ledger->table.entries[i];

		if (ledger_entry_drop(entry, job) && entry->claim_count == 0)
			unneeded = true;
	}
	return unneeded;
}

/* ---- removing ---------------------------------------------------------------------------------- */

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

static int compare_deepest_first(const void *a, const void *b)
{
	const struct ledger_entry *const *left = a;
	const struct ledger_entry *const *right = b;
	unsigned left_depth = depth_of((*left)->path);
	unsigned right_depth = depth_of((*right)->path);

	if (left_depth != right_depth)
		return left_depth > right_depth ? -1 : 1;
	return strcmp((*left)->path, (*right)->path);
}

static bool is_unneeded(const struct ledger_entry *entry, bool again)
{
	return entry->claim_count == 0 && !entry->in_flight && (again || !entry->kept);
}

static struct placeholder placeholder_of(const struct ledger_entry *entry)
{
	struct placeholder result = {
		.what = { .parent = entry->parent, .node = entry->node },
		.since_sec = entry->since_sec,
		.since_nsec = entry->since_nsec,
	};

	(void)snprintf(result.what.path, sizeof(result.what.path), "%s", entry->path);
	return result;
}

size_t ledger_unneeded(const struct ledger *ledger, uid_t uid, bool again)
{
	size_t count = 0;

	for (size_t i = 0; i < ledger->table.count; i++) {
		const struct ledger_entry *entry = ledger->table.entries[i];

		count += is_unneeded(entry, again) && entry->identity->identity.uid == uid;
	}
	return count;
}

bool ledger_next_unneeded(const struct ledger *ledger, size_t *from, bool again, uid_t *ret_uid)
{
	while (*from < ledger->table.count) {
		const struct ledger_entry *entry = ledger->table.entries[(*from)++];

		if (!is_unneeded(entry, again))
			continue;
		*ret_uid = entry->identity->identity.uid;
		return true;
	}
	return false;
}

int ledger_take(struct ledger *ledger, uid_t uid, bool again, size_t most,
		struct identity *ret_identity, struct placeholder **ret_taken, size_t *ret_count,
		struct error *err)
{
	AUTO(auto_free) struct ledger_entry **found = NULL;
	struct placeholder *taken = NULL;
	const struct ledger_identity *identity = NULL;
	size_t count = 0;

	*ret_taken = NULL;
	*ret_count = 0;
	found = calloc(ledger->table.count + 1, sizeof(struct ledger_entry *));
	if (!found)
		return error_set(err, ERR_NOMEM, 0, "ledger");
	for (size_t i = 0; i < ledger->table.count; i++) {
		struct ledger_entry *entry = ledger->table.entries[i];

		if (!is_unneeded(entry, again) || entry->identity->identity.uid != uid ||
		    (identity && entry->identity != identity))
			continue;
		identity = entry->identity;
		found[count++] = entry;
	}
	if (count == 0)
		return 0;
	qsort(found, count, sizeof(struct ledger_entry *), compare_deepest_first);
	count = count < most ? count : most;
	taken = unshared_new(count * sizeof(*taken));
	if (!taken)
		return error_set(err, ERR_NOMEM, 0, "ledger");
	for (size_t i = 0; i < count; i++) {
		found[i]->in_flight = true;
		taken[i] = placeholder_of(found[i]);
	}
	*ret_identity = identity->identity;
	*ret_taken = taken;
	*ret_count = count;
	return 0;
}

void ledger_taken_free(struct placeholder *taken, size_t count)
{
	unshared_free(taken, count * sizeof(*taken));
}

void ledger_settled(struct ledger *ledger, uid_t uid, const char *path, bool gone)
{
	struct ledger_entry *entry = ledger_table_find(&ledger->table, path, uid);

	if (!entry || !entry->in_flight)
		return;
	entry->in_flight = false;
	entry->kept = !gone;
	if (gone) {
		ledger_table_remove(&ledger->table, entry);
		ledger->untidy = true;
	}
}

bool ledger_has_kept(const struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->table.count; i++)
		if (ledger->table.entries[i]->kept && ledger->table.entries[i]->claim_count == 0)
			return true;
	return false;
}

bool ledger_has_below(const struct ledger *ledger, const char *path)
{
	return ledger_table_has_below(&ledger->table, path);
}

bool ledger_tidy(struct ledger *ledger)
{
	struct error err = ERROR_INIT;

	if (!ledger->untidy)
		return true;
	if (ledger->table.count == 0) {
		ledger_file_clear(&ledger->file);
	} else if (ledger_file_replace(&ledger->file, false, &err) < 0) {
		log_failure(&err, "it is tried again later");
		return false;
	}
	ledger->untidy = false;
	return true;
}

bool ledger_is_untidy(const struct ledger *ledger)
{
	return ledger->untidy;
}

size_t ledger_count(const struct ledger *ledger)
{
	return ledger->table.count;
}

struct ledger_view ledger_view(const struct ledger *ledger, size_t index)
{
	const struct ledger_entry *entry = ledger->table.entries[index];

	return (struct ledger_view){
		.uid = entry->identity->identity.uid,
		.path = entry->path,
		.node = &entry->node,
		.made = entry->made,
		.kept = entry->kept,
		.jobs = entry->claim_count,
	};
}
