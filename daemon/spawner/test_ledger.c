/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "tests/test.h"

#define UID 1000

static struct report_placeholder placeholder(const char *path, uint64_t ino)
{
	struct report_placeholder what = { .parent = { .ino = 2 }, .node = { .ino = ino } };

	(void)snprintf(what.path, sizeof(what.path), "%s", path);
	return what;
}

static void make(struct ledger *ledger, uint64_t job, const char *path, uint64_t ino)
{
	struct report_placeholder what = placeholder(path, 0);
	struct error err;

	assert_int_equal(ledger_intend(ledger, job, UID, &what, &err), 0);
	what.node.ino = ino;
	assert_int_equal(ledger_made(ledger, job, &what, &err), 0);
}

/* The paths that JOB's end frees, separated by blanks. Static. */
static const char *release(struct ledger *ledger, uint64_t job)
{
	static char text[4096];
	struct report_placeholder *gone = NULL;
	size_t count = 0;
	size_t used = 0;

	text[0] = '\0';
	assert_int_equal(ledger_release(ledger, job, &gone, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(gone[i].path);

		assert_true(used + length + 2 < sizeof(text));
		if (used > 0)
			text[used++] = ' ';
		memcpy(text + used, gone[i].path, length + 1);
		used += length;
	}
	free(gone);
	return text;
}

static void R26_intent_made_release(void **state)
{
	struct report_placeholder *gone = NULL;
	struct ledger *ledger = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	make(ledger, 1, "/w/a", 10);
	make(ledger, 1, "/w/a/b", 11);
	make(ledger, 1, "/w/a/b/c", 12);
	assert_int_equal(ledger_count(ledger), 3);
	assert_int_equal(ledger_release(ledger, 1, &gone, &count, NULL), 0);
	assert_int_equal(count, 3);
	assert_string_equal(gone[0].path, "/w/a/b/c");
	assert_int_equal(gone[0].node.ino, 12);
	assert_int_equal(gone[0].parent.ino, 2);
	assert_string_equal(gone[1].path, "/w/a/b");
	assert_string_equal(gone[2].path, "/w/a");
	free(gone);
	assert_int_equal(ledger_count(ledger), 0);
	assert_string_equal(release(ledger, 1), "");
	ledger_free(ledger);
}

static void B13_shared_placeholders_stay(void **state)
{
	struct ledger *ledger = NULL;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	make(ledger, 1, "/w/a", 10);
	make(ledger, 1, "/w/a/b", 11);
	make(ledger, 1, "/w/x", 12);
	/* Sharing a level shares what it stands on. */
	ledger_share(ledger, 2, UID, "/w/a/b");
	ledger_share(ledger, 2, UID, "/somewhere/else");
	assert_string_equal(release(ledger, 1), "/w/x");
	assert_int_equal(ledger_count(ledger), 2);
	/* A third makes one below the same level. */
	make(ledger, 3, "/w/a/c", 13);
	assert_string_equal(release(ledger, 2), "/w/a/b");
	assert_string_equal(release(ledger, 3), "/w/a/c /w/a");
	assert_int_equal(ledger_count(ledger), 0);
	ledger_free(ledger);
}

static void other_users_do_not_share(void **state)
{
	struct ledger *ledger = NULL;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	make(ledger, 1, "/w/a", 10);
	ledger_share(ledger, 2, UID + 1, "/w/a");
	assert_string_equal(release(ledger, 2), "");
	assert_string_equal(release(ledger, 1), "/w/a");
	ledger_free(ledger);
}

static void unannounced_is_refused(void **state)
{
	struct report_placeholder what = placeholder("/w/a", 10);
	struct ledger *ledger = NULL;
	struct error err;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	assert_int_equal(ledger_made(ledger, 1, &what, &err), -ERR_BAD_FRAME);
	make(ledger, 2, "/w/a", 10);
	assert_int_equal(ledger_made(ledger, 1, &what, &err), -ERR_BAD_FRAME);
	/* Made, but by nobody who can be told again. */
	what.node.ino = 0;
	assert_int_equal(ledger_made(ledger, 2, &what, &err), -ERR_BAD_FRAME);
	ledger_free(ledger);
}

static void an_intent_alone_comes_back_with_its_time(void **state)
{
	struct report_placeholder what = placeholder("/w/a", 0);
	struct report_placeholder *gone = NULL;
	struct ledger *ledger = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	assert_int_equal(ledger_intend(ledger, 1, UID, &what, NULL), 0);
	assert_int_equal(ledger_release(ledger, 1, &gone, &count, NULL), 0);
	assert_int_equal(count, 1);
	assert_int_equal(gone[0].node.ino, 0);
	assert_true(gone[0].node.btime_sec > 1600000000);
	free(gone);

	/* Skipped: nothing was made, nothing is to be removed. */
	assert_int_equal(ledger_intend(ledger, 1, UID, &what, NULL), 0);
	ledger_share(ledger, 1, UID, "/w/a");
	assert_string_equal(release(ledger, 1), "");
	assert_int_equal(ledger_count(ledger), 0);
	ledger_free(ledger);
}

static void two_jobs_race_for_one_path(void **state)
{
	struct report_placeholder what = placeholder("/w/a", 0);
	struct ledger *ledger = NULL;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	assert_int_equal(ledger_intend(ledger, 1, UID, &what, NULL), 0);
	assert_int_equal(ledger_intend(ledger, 2, UID, &what, NULL), 0);
	what.node.ino = 10;
	assert_int_equal(ledger_made(ledger, 1, &what, NULL), 0);
	ledger_share(ledger, 2, UID, "/w/a");
	assert_string_equal(release(ledger, 1), "");
	assert_string_equal(release(ledger, 2), "/w/a");

	/* The second intends after the first has made it, having looked before. */
	make(ledger, 1, "/w/a", 10);
	what.node.ino = 0;
	assert_int_equal(ledger_intend(ledger, 2, UID, &what, NULL), 0);
	ledger_share(ledger, 2, UID, "/w/a");
	assert_string_equal(release(ledger, 2), "");
	assert_string_equal(release(ledger, 1), "/w/a");
	ledger_free(ledger);
}

static void kept_ones_are_tried_again(void **state)
{
	struct report_placeholder what = placeholder("/mnt/a", 10);
	struct ledger *ledger = NULL;

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	assert_int_equal(ledger_keep(ledger, UID, &what, NULL), 0);
	assert_int_equal(ledger_keep(ledger, UID, &what, NULL), 0);
	assert_int_equal(ledger_count(ledger), 1);
	make(ledger, 5, "/w/b", 11);
	assert_string_equal(release(ledger, 5), "/mnt/a /w/b");
	/* Taken over by a job of today instead. */
	assert_int_equal(ledger_keep(ledger, UID, &what, NULL), 0);
	ledger_share(ledger, 6, UID, "/mnt/a");
	make(ledger, 7, "/w/b", 11);
	assert_string_equal(release(ledger, 7), "/w/b");
	assert_string_equal(release(ledger, 6), "/mnt/a");
	ledger_free(ledger);
}

static void R13_placeholders_are_bounded(void **state)
{
	struct ledger *ledger = NULL;
	struct report_placeholder what;
	struct error err;
	char path[32];

	(void)state;
	assert_int_equal(ledger_new(&ledger, NULL), 0);
	for (int i = 0; i < LIMIT_PLACEHOLDERS_PER_UID; i++) {
		(void)snprintf(path, sizeof(path), "/w/%d", i);
		what = placeholder(path, 0);
		assert_int_equal(ledger_intend(ledger, 1, UID, &what, &err), 0);
	}
	what = placeholder("/w/one-more", 0);
	assert_int_equal(ledger_intend(ledger, 1, UID, &what, &err), -ERR_QUOTA_EXCEEDED);
	assert_int_equal(ledger_intend(ledger, 2, UID + 1, &what, &err), 0);
	what = placeholder("/w/5", 0);
	assert_int_equal(ledger_intend(ledger, 1, UID, &what, &err), 0);
	ledger_free(ledger);
	assert_null(ledger_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R26_intent_made_release),
		cmocka_unit_test(B13_shared_placeholders_stay),
		cmocka_unit_test(other_users_do_not_share),
		cmocka_unit_test(unannounced_is_refused),
		cmocka_unit_test(an_intent_alone_comes_back_with_its_time),
		cmocka_unit_test(two_jobs_race_for_one_path),
		cmocka_unit_test(kept_ones_are_tried_again),
		cmocka_unit_test(R13_placeholders_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
