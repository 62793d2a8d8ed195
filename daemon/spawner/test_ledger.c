/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

#define UID 1000
#define ALL ((uid_t)-1)

/* Where the ledgers of these tests lie: in memory if possible, since some sync thousands of times. */
static char dir[64];

static char *in_dir(const char *name)
{
	static char paths[4][128];
	static size_t next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/fsbox-test-XXXXXX");
	if (mkdtemp(dir))
		return 0;
	(void)snprintf(dir, sizeof(dir), "/tmp/fsbox-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "ledger", "ledger.new", "ledger.damaged",
					     "ledger.lock" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)remove(in_dir(names[i]));
	return rmdir(dir);
}

static struct ledger *open_ledger(void)
{
	struct ledger *ledger = NULL;
	struct error err = ERROR_INIT;

	if (ledger_open(&ledger, dir, ALL, &err) < 0)
		fail_msg("%s", err.message);
	return ledger;
}

static bool lives_if_equal(uint64_t job, void *arg)
{
	return job == *(const uint64_t *)arg;
}

/* As after fsboxd was killed; @living: the only job that still runs. */
static struct ledger *restart(struct ledger *ledger, uint64_t living)
{
	ledger_free(ledger);
	ledger = open_ledger();
	ledger_settle(ledger, lives_if_equal, &living);
	return ledger;
}

static struct identity identity_of(uid_t uid)
{
	return (struct identity){ .uid = uid, .gid = uid };
}

static struct report_placeholder placeholder(const char *path, uint64_t ino)
{
	struct report_placeholder what = { .parent = { .ino = 2 }, .node = { .ino = ino } };

	(void)snprintf(what.path, sizeof(what.path), "%s", path);
	return what;
}

static int intend_as(struct ledger *ledger, uint64_t job, uid_t uid, const char *path,
		     struct error *err)
{
	struct report_placeholder what = placeholder(path, 0);
	struct identity identity = identity_of(uid);

	return ledger_intend(ledger, job, &identity, &what, err);
}

static int intend(struct ledger *ledger, uint64_t job, const char *path)
{
	return intend_as(ledger, job, UID, path, NULL);
}

static int tell_made(struct ledger *ledger, uint64_t job, const char *path, uint64_t ino)
{
	struct report_placeholder what = placeholder(path, ino);

	return ledger_made(ledger, job, UID, &what, NULL);
}

static void make(struct ledger *ledger, uint64_t job, const char *path, uint64_t ino)
{
	assert_int_equal(intend(ledger, job, path), 0);
	assert_int_equal(tell_made(ledger, job, path, ino), 0);
}

static int share(struct ledger *ledger, uint64_t job, const char *path)
{
	return ledger_share(ledger, job, UID, path, NULL);
}

/* What nobody of UID's needs, taken and removed: paths between blanks. Static. */
static const char *sweep_as(struct ledger *ledger, uid_t uid)
{
	static char text[3 * LIMIT_PATH_BYTES];
	struct placeholder *taken = NULL;
	struct identity identity;
	size_t count = 0;

	text[0] = '\0';
	assert_int_equal(ledger_take(ledger, uid, false, 1000, &identity, &taken, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			       i > 0 ? " " : "", taken[i].what.path);
		assert_int_equal(identity.uid, uid);
	}
	for (size_t i = 0; i < count; i++)
		ledger_settled(ledger, uid, taken[i].what.path, true);
	ledger_taken_free(taken, count);
	return text;
}

static const char *release(struct ledger *ledger, uint64_t job)
{
	(void)ledger_release(ledger, job);
	return sweep_as(ledger, UID);
}

static void R26_intent_made_release(void **state)
{
	struct placeholder *taken = NULL;
	struct ledger *ledger = open_ledger();
	struct identity identity;
	size_t count = 0;

	(void)state;
	assert_int_equal(ledger_replayed(ledger)->entries, 0);
	make(ledger, 1, "/w/a", 10);
	make(ledger, 1, "/w/a/b", 11);
	assert_int_equal(ledger_count(ledger), 2);
	assert_true(ledger_has_job(ledger, 1));
	assert_false(ledger_has_job(ledger, 2));
	assert_string_equal(release(ledger, 2), "");
	assert_true(ledger_release(ledger, 1));
	assert_int_equal(ledger_unneeded(ledger, UID, false), 2);
	assert_int_equal(ledger_unneeded(ledger, UID + 1, false), 0);
	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_string_equal(taken[0].what.path, "/w/a/b"); /* deepest first */
	assert_int_equal(taken[0].what.node.ino, 11);
	assert_int_equal(taken[0].what.parent.ino, 2);
	assert_int_equal(taken[0].since_sec, 0);
	assert_int_equal(identity.gid, UID);
	ledger_taken_free(taken, count);
	assert_int_equal(ledger_unneeded(ledger, UID, false), 0);
	assert_string_equal(sweep_as(ledger, UID), "");
	ledger_settled(ledger, UID, "/w/a/b", true);
	ledger_settled(ledger, UID, "/w/a", true);
	assert_int_equal(ledger_count(ledger), 0);
	ledger_free(ledger);
}

static void B13_shared_placeholders_stay(void **state)
{
	struct ledger *ledger = open_ledger();

	(void)state;
	make(ledger, 1, "/w/a", 10);
	make(ledger, 1, "/w/a/b", 11);
	make(ledger, 1, "/w/x", 12);
	/* Sharing a level shares what it stands on. */
	assert_int_equal(share(ledger, 2, "/w/a/b"), 0);
	assert_int_equal(share(ledger, 2, "/somewhere/else"), 0);
	assert_string_equal(release(ledger, 1), "/w/x");
	assert_int_equal(ledger_count(ledger), 2);
	/* A third makes one below the same level. */
	make(ledger, 3, "/w/a/c", 13);
	assert_string_equal(release(ledger, 2), "/w/a/b");
	assert_string_equal(release(ledger, 3), "/w/a/c /w/a");
	assert_int_equal(ledger_count(ledger), 0);
	ledger_free(ledger);
}

/* In a tree of both, what one made the other stands on; it is removed as the one who made it. */
static void B13_users_share_a_tree(void **state)
{
	struct ledger *ledger = open_ledger();
	uid_t uid = 0;
	size_t from = 0;

	(void)state;
	make(ledger, 1, "/w/a", 10);
	assert_int_equal(ledger_share(ledger, 2, UID + 1, "/w/a", NULL), 0);
	assert_string_equal(release(ledger, 1), "");
	assert_true(ledger_release(ledger, 2));
	assert_string_equal(sweep_as(ledger, UID + 1), "");
	assert_true(ledger_next_unneeded(ledger, &from, false, &uid));
	assert_int_equal(uid, UID);
	assert_false(ledger_next_unneeded(ledger, &from, false, &uid));
	assert_string_equal(sweep_as(ledger, UID), "/w/a");

	/* Both are about to make the same one: each has an entry, one of them comes true. */
	assert_int_equal(intend_as(ledger, 3, UID, "/w/b", NULL), 0);
	assert_int_equal(intend_as(ledger, 4, UID + 1, "/w/b", NULL), 0);
	assert_int_equal(ledger_count(ledger), 2);
	/* Its guard saw it before its maker said so. */
	assert_int_equal(ledger_share(ledger, 3, LEDGER_ANY_UID, "/w/b", NULL), 0);
	assert_int_equal(tell_made(ledger, 3, "/w/b", 11), 0);
	assert_int_equal(ledger_share(ledger, 4, UID + 1, "/w/b", NULL), 0);
	assert_int_equal(ledger_count(ledger), 1);
	assert_string_equal(release(ledger, 3), "");
	assert_string_equal(release(ledger, 4), "/w/b");
	ledger_free(ledger);
}

static void unannounced_is_refused(void **state)
{
	struct ledger *ledger = open_ledger();

	(void)state;
	assert_int_equal(tell_made(ledger, 1, "/w/a", 10), -ERR_BAD_FRAME);
	make(ledger, 2, "/w/a", 10);
	assert_int_equal(tell_made(ledger, 1, "/w/a", 10), -ERR_BAD_FRAME);
	/* Once for each time that it was announced, and never without identity. */
	assert_int_equal(tell_made(ledger, 2, "/w/a", 12), -ERR_BAD_FRAME);
	assert_int_equal(intend(ledger, 2, "/w/b"), 0);
	assert_int_equal(tell_made(ledger, 2, "/w/b", 0), -ERR_BAD_FRAME);
	ledger_free(ledger);
}

static void R26_an_intent_alone_has_its_time(void **state)
{
	struct placeholder *taken = NULL;
	struct ledger *ledger = open_ledger();
	struct identity identity;
	size_t count = 0;

	(void)state;
	assert_int_equal(intend(ledger, 1, "/w/a"), 0);
	for (int round = 0; round < 2; round++) {
		ledger = restart(ledger, 0);
		assert_int_equal(ledger_replayed(ledger)->entries, 1);
	}
	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(taken[0].what.node.ino, 0);
	assert_int_equal(taken[0].what.parent.ino, 2);
	assert_true(taken[0].since_sec > 1600000000);
	ledger_taken_free(taken, count);
	ledger_settled(ledger, UID, "/w/a", true);

	/* Skipped: nothing was made, nothing is to be removed; a successor knows it too. */
	assert_int_equal(intend(ledger, 1, "/w/a"), 0);
	assert_int_equal(share(ledger, 1, "/w/a"), 0);
	assert_string_equal(release(ledger, 1), "");
	assert_int_equal(ledger_count(ledger), 0);
	ledger = restart(ledger, 0);
	assert_int_equal(ledger_count(ledger), 0);
	ledger_free(ledger);
}

static void two_jobs_race_for_one_path(void **state)
{
	struct placeholder *taken = NULL;
	struct ledger *ledger = open_ledger();
	struct identity identity;
	size_t count = 0;

	(void)state;
	assert_int_equal(intend(ledger, 1, "/w/a"), 0);
	assert_int_equal(intend(ledger, 2, "/w/a"), 0);
	assert_int_equal(tell_made(ledger, 1, "/w/a", 10), 0);
	assert_int_equal(share(ledger, 2, "/w/a"), 0);
	assert_string_equal(release(ledger, 1), "");
	assert_string_equal(release(ledger, 2), "/w/a");

	/* Neither made it: a third did, which is not ours to remove. */
	assert_int_equal(intend(ledger, 1, "/w/a"), 0);
	assert_int_equal(intend(ledger, 2, "/w/a"), 0);
	assert_int_equal(share(ledger, 1, "/w/a"), 0);
	assert_int_equal(share(ledger, 2, "/w/a"), 0);
	assert_int_equal(ledger_count(ledger), 0);

	/*
	 * The second intends after the first has made it, having looked before: while nobody knows what
	 * came of it, what is there may be either's.
	 */
	make(ledger, 1, "/w/a", 10);
	assert_int_equal(intend(ledger, 2, "/w/a"), 0);
	ledger = restart(ledger, 2);
	ledger = restart(ledger, 0);
	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(taken[0].what.node.ino, 10);
	assert_true(taken[0].since_sec > 1600000000);
	ledger_taken_free(taken, count);
	ledger_settled(ledger, UID, "/w/a", true);

	make(ledger, 1, "/w/a", 10);
	assert_int_equal(intend(ledger, 2, "/w/a"), 0);
	assert_int_equal(share(ledger, 2, "/w/a"), 0);
	assert_string_equal(release(ledger, 2), "");
	assert_string_equal(release(ledger, 1), "/w/a");
	ledger_free(ledger);
}

/* What a child is removing, nobody comes to stand on. */
static struct placeholder take_one(struct ledger *ledger)
{
	struct placeholder *taken = NULL;
	struct placeholder result;
	struct identity identity;
	size_t count = 0;

	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	assert_int_equal(count, 1);
	result = taken[0];
	ledger_taken_free(taken, count);
	ledger_settled(ledger, UID, result.what.path, true);
	return result;
}

/* A builder dies when it has made what another one then finds there: that may be the dead one's. */
static void R26_who_died_may_have_made_it(void **state)
{
	struct ledger *ledger = open_ledger();

	(void)state;
	for (int again = 0; again < 2; again++) {
		assert_int_equal(intend(ledger, 1, "/w/a"), 0);
		assert_int_equal(intend(ledger, 2, "/w/a"), 0);
		assert_false(ledger_release(ledger, 1));
		assert_int_equal(share(ledger, 2, "/w/a"), 0);
		if (again) /* also when a successor is told so */
			ledger = restart(ledger, 2);
		assert_int_equal(intend(ledger, 3, "/w/a"), 0);
		assert_int_equal(share(ledger, 3, "/w/a"), 0);
		assert_string_equal(release(ledger, 3), "");
		(void)ledger_release(ledger, 2);
		assert_true(take_one(ledger).since_sec > 1600000000);
		assert_int_equal(ledger_count(ledger), 0);
	}
	ledger_free(ledger);
}

/* The directory above was moved away, with what was made in it, and there is a new one of that name. */
static void R26_another_parent_of_the_same_name(void **state)
{
	struct report_placeholder what = placeholder("/w/a", 0);
	struct identity identity = identity_of(UID);
	struct ledger *ledger = open_ledger();
	struct placeholder found;

	(void)state;
	for (int restarts = 0; restarts < 2; restarts++) {
		make(ledger, 1, "/w/a", 10);
		what.parent.ino = 3;
		assert_int_equal(ledger_intend(ledger, 2, &identity, &what, NULL), 0);
		if (restarts)
			ledger = restart(ledger, 0);
		(void)ledger_release(ledger, 1);
		(void)ledger_release(ledger, 2);
		found = take_one(ledger);
		assert_int_equal(found.what.parent.ino, 3);
		assert_int_equal(found.what.node.ino, 0);
		assert_true(found.since_sec > 1600000000);
	}
	ledger_free(ledger);
}

static void B13_what_is_being_removed_is_busy(void **state)
{
	struct placeholder *taken = NULL;
	struct ledger *ledger = open_ledger();
	struct identity identity;
	size_t count = 0;

	(void)state;
	make(ledger, 1, "/w/a", 10);
	make(ledger, 1, "/w/a/b", 11);
	assert_true(ledger_release(ledger, 1));
	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	ledger_taken_free(taken, count);
	assert_int_equal(share(ledger, 2, "/w/a/b"), LEDGER_BUSY);
	assert_int_equal(share(ledger, 2, "/w/a/x"), LEDGER_BUSY);
	assert_int_equal(share(ledger, 2, "/w/c"), 0);
	assert_int_equal(intend(ledger, 2, "/w/a/b"), LEDGER_BUSY);
	assert_int_equal(intend(ledger, 2, "/w/a/b/c"), LEDGER_BUSY);
	assert_int_equal(ledger_share(ledger, 2, UID + 1, "/w/a", NULL), LEDGER_BUSY);
	assert_false(ledger_release(ledger, 2));
	ledger_settled(ledger, UID, "/w/a/b", false);
	ledger_settled(ledger, UID, "/w/a", false);
	assert_true(ledger_has_below(ledger, "/w/a"));
	assert_false(ledger_has_below(ledger, "/w/a/b"));
	assert_true(ledger_has_kept(ledger));
	assert_int_equal(share(ledger, 3, "/w/a/b"), 0);
	assert_false(ledger_has_kept(ledger));
	assert_string_equal(release(ledger, 3), "/w/a/b /w/a");
	ledger_free(ledger);
}

static void R26_kept_ones_are_tried_again(void **state)
{
	struct placeholder *taken = NULL;
	struct placeholder *again = NULL;
	struct ledger *ledger = open_ledger();
	struct identity identity;
	size_t count = 0;

	(void)state;
	make(ledger, 1, "/mnt/a", 10);
	assert_true(ledger_release(ledger, 1));
	assert_int_equal(ledger_take(ledger, UID, false, 9, &identity, &taken, &count, NULL), 0);
	assert_int_equal(count, 1);
	ledger_taken_free(taken, count);
	ledger_settled(ledger, UID, "/mnt/a", false);
	make(ledger, 5, "/w/b", 11);
	assert_string_equal(release(ledger, 5), "/w/b"); /* not each time */
	assert_int_equal(ledger_unneeded(ledger, UID, true), 1);
	assert_int_equal(ledger_take(ledger, UID, true, 9, &identity, &again, &count, NULL), 0);
	assert_int_equal(count, 1);
	ledger_taken_free(again, count);
	ledger_settled(ledger, UID, "/mnt/a", false);
	/* By a successor as well. */
	ledger = restart(ledger, 0);
	assert_string_equal(sweep_as(ledger, UID), "/mnt/a /w/b");
	ledger_free(ledger);
}

/* R26, and a kill of fsboxd: whoever still runs keeps what it stands on. */
static void R26_replayed_at_the_start(void **state)
{
	struct ledger *ledger = open_ledger();

	(void)state;
	make(ledger, 7, "/w/a", 10);
	make(ledger, 7, "/w/a/b", 11);
	make(ledger, 9, "/w/x", 12);
	assert_int_equal(share(ledger, 8, "/w/a"), 0);
	ledger = restart(ledger, 8);
	assert_int_equal(ledger_replayed(ledger)->entries, 3);
	assert_int_equal(ledger_replayed(ledger)->damaged, 0);
	assert_int_equal(ledger_last_job(ledger), 9);
	assert_string_equal(sweep_as(ledger, UID), "/w/a/b /w/x");
	/* Written anew at each start: what was said then is still known. */
	ledger = restart(ledger, 8);
	ledger = restart(ledger, 8);
	assert_string_equal(sweep_as(ledger, UID), "/w/a/b /w/x");
	assert_string_equal(release(ledger, 8), "/w/a");
	ledger_free(ledger);
}

static void R26_forgotten_on_disk_after_a_while(void **state)
{
	struct ledger *ledger = open_ledger();
	struct stat about;

	(void)state;
	assert_false(ledger_is_untidy(ledger));
	make(ledger, 1, "/w/a", 10);
	make(ledger, 2, "/w/b", 11);
	assert_false(ledger_is_untidy(ledger));
	assert_string_equal(release(ledger, 1), "/w/a");
	assert_true(ledger_is_untidy(ledger));
	/* Until then a successor looks, and finds that it is gone. */
	ledger = restart(ledger, 2);
	assert_string_equal(sweep_as(ledger, UID), "/w/a");
	assert_true(ledger_tidy(ledger));
	assert_false(ledger_is_untidy(ledger));
	ledger = restart(ledger, 2);
	assert_string_equal(sweep_as(ledger, UID), "");
	assert_string_equal(release(ledger, 2), "/w/b");
	assert_true(ledger_tidy(ledger));
	assert_int_equal(stat(in_dir("ledger"), &about), 0);
	assert_int_equal(about.st_size, strlen("fsbox ledger 1\n"));
	ledger_free(ledger);
}

/* Others' entries are not of a user's own daemon's making. */
static void R26_entries_of_others_are_not_ours(void **state)
{
	struct ledger *ledger = open_ledger();

	(void)state;
	make(ledger, 1, "/w/a", 10);
	assert_int_equal(intend_as(ledger, 2, UID + 1, "/w/b", NULL), 0);
	ledger_free(ledger);
	assert_int_equal(ledger_open(&ledger, dir, UID, NULL), 0);
	assert_int_equal(ledger_replayed(ledger)->entries, 1);
	assert_int_equal(ledger_replayed(ledger)->damaged, 1);
	ledger_free(ledger);
}

static void R26_damaged_lines_are_set_aside(void **state)
{
	struct ledger *ledger = open_ledger();
	uint64_t living = 1;
	FILE *file = NULL;

	(void)state;
	make(ledger, 1, "/w/a", 10);
	file = fopen(in_dir("ledger"), "ae");
	assert_non_null(file);
	assert_true(fputs("made 1 0 0 - nonsense\nhalf a l", file) >= 0);
	assert_int_equal(fclose(file), 0);
	ledger_free(ledger);
	ledger = open_ledger();
	assert_int_equal(ledger_replayed(ledger)->damaged, 2);
	ledger_settle(ledger, lives_if_equal, &living);
	assert_int_equal(access(in_dir("ledger.damaged"), R_OK), 0);
	ledger = restart(ledger, 1);
	assert_int_equal(ledger_replayed(ledger)->damaged, 0);
	assert_int_equal(ledger_count(ledger), 1);
	ledger_free(ledger);
}

static void R13_placeholders_are_bounded(void **state)
{
	struct ledger *ledger = open_ledger();
	struct error err;
	char path[32];

	(void)state;
	for (int i = 0; i < LIMIT_PLACEHOLDERS_PER_UID; i++) {
		(void)snprintf(path, sizeof(path), "/w/%d", i);
		assert_int_equal(intend(ledger, 1, path), 0);
	}
	assert_int_equal(intend_as(ledger, 1, UID, "/w/one-more", &err), -ERR_QUOTA_EXCEEDED);
	assert_int_equal(intend_as(ledger, 2, UID + 1, "/w/one-more", &err), 0);
	assert_int_equal(intend(ledger, 3, "/w/5"), 0);
	ledger_free(ledger);
	assert_null(ledger_free(NULL));
}

/* Removed ones are on the disk for a while: they must not take the room of those that are there. */
static void R26_all_that_lives_is_replayed(void **state)
{
	struct ledger *ledger = open_ledger();
	char path[32];

	(void)state;
	for (int i = 0; i < LIMIT_PLACEHOLDERS_PER_UID; i++) {
		(void)snprintf(path, sizeof(path), "/w/%d", i);
		make(ledger, 1, path, 3);
		if (i % 256 == 255 && ledger_release(ledger, 1))
			(void)sweep_as(ledger, UID);
	}
	make(ledger, 2, "/w/lives", 4);
	ledger = restart(ledger, 2);
	assert_int_equal(ledger_replayed(ledger)->damaged, 0);
	assert_true(ledger_has_job(ledger, 2));
	ledger_free(ledger);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(R26_intent_made_release),
		TEST(B13_shared_placeholders_stay),
		TEST(B13_users_share_a_tree),
		TEST(unannounced_is_refused),
		TEST(R26_an_intent_alone_has_its_time),
		TEST(two_jobs_race_for_one_path),
		TEST(R26_who_died_may_have_made_it),
		TEST(R26_another_parent_of_the_same_name),
		TEST(B13_what_is_being_removed_is_busy),
		TEST(R26_kept_ones_are_tried_again),
		TEST(R26_replayed_at_the_start),
		TEST(R26_forgotten_on_disk_after_a_while),
		TEST(R26_entries_of_others_are_not_ours),
		TEST(R26_damaged_lines_are_set_aside),
		TEST(R13_placeholders_are_bounded),
		TEST(R26_all_that_lives_is_replayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
