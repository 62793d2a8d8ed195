/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/grant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/policy.h"
#include "common/scope.h"
#include "tests/test.h"

#define NOW UINT64_C(1700000000000)

struct place {
	char dir[40];
	char file[64];
	struct grants grants;
	struct error err;
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	bool damaged = true;

	assert_non_null(place);
	(void)snprintf(place->dir, sizeof(place->dir), "/tmp/fsbox-test-grant.XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	(void)snprintf(place->file, sizeof(place->file), "%s/grants", place->dir);
	assert_int_equal(grants_open(&place->grants, place->dir, NOW, &damaged, NULL), 0);
	assert_false(damaged);
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;

	grants_close(&place->grants);
	(void)unlink(place->file);
	(void)rmdir(place->dir);
	free(place);
	return 0;
}

static struct grant_terms terms_for(uid_t uid)
{
	struct grant_terms terms = {
		.uid = uid,
		.net = NET_HOST,
		.expires_ms = NOW + 60000,
		.stdio = { STDIO_KIND_NULL, STDIO_KIND_PIPE, STDIO_KIND_ALL },
		.command = "make",
	};

	memset(terms.args_hash, 1, HASH_BYTES);
	memset(terms.env_hash, 2, HASH_BYTES);
	memset(terms.exec_hash, 3, HASH_BYTES);
	memset(terms.plan_hash, 4, HASH_BYTES);
	return terms;
}

static int create(struct place *place, uid_t creator, const struct grant_terms *terms,
		  struct link_grant *grant)
{
	return grants_create(&place->grants, creator, terms, NOW, grant, &place->err);
}

/* With the terms' own hashes, and CHANGE to one of them: 'u' user, 'n' network, 'a' 'e' 'p' hashes. */
static int reserve_with(struct place *place, const struct link_grant *made, char change,
			uint64_t now_ms)
{
	const struct grant_terms terms = terms_for(change == 'u' ? 8 : 7);
	struct op_start_grant claim = { .has_grant = 1 };
	uint8_t plan[HASH_BYTES];
	const struct grant_use use = {
		.uid = terms.uid,
		.job = 99,
		.now_ms = now_ms,
		.net = change == 'n' ? NET_PROXY : NET_HOST,
		.plan_hash = plan,
		.claim = &claim,
	};
	const struct grant *grant = NULL;

	memcpy(claim.token, made->token, GRANT_TOKEN_BYTES);
	memcpy(claim.args_hash, terms.args_hash, HASH_BYTES);
	memcpy(claim.env_hash, terms.env_hash, HASH_BYTES);
	memcpy(plan, terms.plan_hash, HASH_BYTES);
	claim.token[31] ^= change == 't';
	claim.args_hash[0] ^= change == 'a';
	claim.env_hash[31] ^= change == 'e';
	plan[5] ^= change == 'p';
	return grants_reserve(&place->grants, &use, &grant, &place->err);
}

static int reserve(struct place *place, const struct link_grant *made)
{
	return reserve_with(place, made, 0, NOW + 1);
}

/* As after a crash: nothing is written on the way. */
static bool reopen(struct place *place, uint64_t now_ms)
{
	bool damaged = false;

	(void)close(place->grants.fd);
	place->grants.fd = -1;
	grants_close(&place->grants);
	assert_int_equal(grants_open(&place->grants, place->dir, now_ms, &damaged, NULL), 0);
	return damaged;
}

static void R29_each_term_counts_and_misfits_spend_nothing(void **state)
{
	struct place *place = *state;
	const struct grant_terms terms = terms_for(7);
	struct link_grant made;

	assert_int_equal(create(place, 0, &terms, &made), 0);
	for (const char *change = "unaept"; *change; change++)
		assert_int_equal(reserve_with(place, &made, *change, NOW + 1), -ERR_GRANT_INVALID);
	assert_int_equal(reserve_with(place, &made, 0, NOW + 60000), -ERR_GRANT_INVALID);
	assert_non_null(strstr(place->err.message, "expired"));
	assert_int_equal(reserve(place, &made), 0);
	assert_int_equal(reserve(place, &made), -ERR_GRANT_INVALID);
	assert_non_null(strstr(place->err.message, "spent"));
}

static void R29_reservations_found_at_replay_are_spent(void **state)
{
	struct place *place = *state;
	const struct grant_terms terms = terms_for(7);
	struct link_grant one;
	struct link_grant two;
	struct link_grant three;

	assert_int_equal(create(place, 5, &terms, &one), 0);
	assert_int_equal(create(place, 5, &terms, &two), 0);
	assert_int_equal(create(place, 5, &terms, &three), 0);
	assert_true(one.id < two.id && two.id < three.id);
	assert_int_equal(reserve(place, &one), 0);
	assert_int_equal(grants_revoke(&place->grants, three.id, NOW, &(const struct grant *){ 0 },
				       NULL),
			 0);
	for (int i = 0; i < 2; i++) {
		assert_false(reopen(place, NOW));
		assert_int_equal(place->grants.count, 3);
		assert_int_equal(reserve(place, &one), -ERR_GRANT_INVALID);
		assert_int_equal(reserve(place, &three), -ERR_GRANT_INVALID);
	}
	assert_int_equal(reserve(place, &two), 0);
	assert_false(reopen(place, NOW));
	assert_int_equal(reserve(place, &two), -ERR_GRANT_INVALID);
	/* When all are over nothing is kept, but no number comes again. */
	assert_false(reopen(place, NOW + 60000));
	assert_int_equal(place->grants.count, 0);
	assert_true(place->grants.last_id >= NOW / 1000);
}

static off_t size_of(const struct place *place)
{
	struct stat st;

	assert_int_equal(stat(place->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	return st.st_size;
}

/* Every length that a cut off record can have: what was acknowledged before stays, what was not is gone. */
static void R29_a_cut_record_is_dropped(void **state)
{
	struct place *place = *state;
	const struct grant_terms terms = terms_for(7);
	struct link_grant one;
	struct link_grant two;
	off_t first = 0;
	off_t both = 0;

	assert_int_equal(create(place, 5, &terms, &one), 0);
	first = size_of(place);
	assert_int_equal(create(place, 5, &terms, &two), 0);
	both = size_of(place);
	assert_int_equal(truncate(place->file, both - 1), 0);
	assert_false(reopen(place, NOW));
	assert_int_equal(place->grants.count, 1);
	assert_int_equal(size_of(place), first);
	assert_int_equal(reserve(place, &two), -ERR_GRANT_INVALID);
	assert_int_equal(reserve(place, &one), 0);
	assert_int_equal(truncate(place->file, first + 1), 0);
	assert_false(reopen(place, NOW));
	assert_int_equal(reserve(place, &one), 0); /* that reservation was never durable */
}

/* What could hide that something was spent ends all that is open. */
static void R29_a_damaged_file_is_no_grant(void **state)
{
	struct place *place = *state;
	const struct grant_terms terms = terms_for(7);
	struct link_grant one;
	struct link_grant two;
	off_t record = 0;
	AUTO(auto_close) int fd = -1;

	assert_int_equal(create(place, 5, &terms, &one), 0);
	record = size_of(place);
	assert_int_equal(create(place, 5, &terms, &two), 0);
	assert_int_equal(reserve(place, &two), 0);
	/* One bit of the second of three records. */
	fd = open(place->file, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, record + 100), 1);
	assert_true(reopen(place, NOW));
	assert_int_equal(reserve(place, &one), -ERR_GRANT_INVALID);
	assert_int_equal(reserve(place, &two), -ERR_GRANT_INVALID);
	assert_false(reopen(place, NOW));
	assert_int_equal(reserve(place, &one), -ERR_GRANT_INVALID);
	assert_int_equal(create(place, 5, &terms, &one), 0);
	assert_int_equal(reserve(place, &one), 0);
}

static void R29_not_for_oneself_nor_for_ever(void **state)
{
	struct place *place = *state;
	struct grant_terms terms = terms_for(7);
	struct link_grant made;

	assert_int_equal(create(place, 7, &terms, &made), -ERR_NOT_AUTHORIZED);
	terms.uid = 0;
	assert_int_equal(create(place, 7, &terms, &made), -ERR_NOT_AUTHORIZED);
	terms = terms_for(7);
	terms.expires_ms = NOW;
	assert_int_equal(create(place, 5, &terms, &made), -ERR_INVALID);
	terms.expires_ms = NOW + LIMIT_GRANT_MS + 1;
	assert_int_equal(create(place, 5, &terms, &made), -ERR_INVALID);
	terms.expires_ms--;
	assert_int_equal(create(place, 5, &terms, &made), 0);
	assert_int_equal(grants_revoke(&place->grants, made.id + 1, NOW,
				       &(const struct grant *){ 0 }, NULL),
			 -ERR_GRANT_INVALID);
}

static void R13_grants_are_bounded(void **state)
{
	struct place *place = *state;
	struct grant_terms terms = terms_for(7);
	struct link_grant made;

	for (int i = 0; i < LIMIT_GRANTS; i++)
		assert_int_equal(create(place, 5, &terms, &made), 0);
	assert_int_equal(create(place, 5, &terms, &made), -ERR_QUOTA_EXCEEDED);
}

/* A disk that takes nothing: the grant is not made, or may be spent, but is never used. */
static void R29_what_cannot_be_written_does_not_happen(void **state)
{
	struct place *place = *state;
	const struct grant_terms terms = terms_for(7);
	struct link_grant made;
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	assert_true(full >= 0);
	assert_int_equal(create(place, 5, &terms, &made), 0);
	(void)dup2(full, place->grants.fd);
	(void)close(full);
	assert_int_equal(reserve(place, &made), -ERR_LEDGER_FAILED);
	assert_int_equal(reserve(place, &made), -ERR_GRANT_INVALID);
	assert_true(create(place, 5, &terms, &made) < 0);
}

static void R29_somebody_elses_file_is_not_read(void **state)
{
	struct place *place = *state;
	bool damaged = false;

	assert_int_equal(chmod(place->file, 0644), 0);
	grants_close(&place->grants);
	assert_int_equal(grants_open(&place->grants, place->dir, NOW, &damaged, NULL), -ERR_CONFIG);
	assert_int_equal(unlink(place->file), 0);
	assert_int_equal(symlink("/etc/passwd", place->file), 0);
	assert_true(grants_open(&place->grants, place->dir, NOW, &damaged, NULL) < 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
	const struct CMUnitTest tests[] = {
		CASE(R29_each_term_counts_and_misfits_spend_nothing),
		CASE(R29_reservations_found_at_replay_are_spent),
		CASE(R29_a_cut_record_is_dropped),
		CASE(R29_a_damaged_file_is_no_grant),
		CASE(R29_not_for_oneself_nor_for_ever),
		CASE(R13_grants_are_bounded),
		CASE(R29_what_cannot_be_written_does_not_happen),
		CASE(R29_somebody_elses_file_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
