/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/identity.h"

#include <grp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static void groups_are_compared_as_sets(void **state)
{
	struct identity a = { .uid = 1, .gid = 2, .group_count = 4, .groups = { 9, 3, 9, 4 } };
	struct identity b = { .uid = 1, .gid = 2, .group_count = 3, .groups = { 4, 9, 3 } };

	(void)state;
	assert_false(identity_equal(&a, &b));
	identity_normalise(&a);
	identity_normalise(&b);
	assert_int_equal(a.group_count, 3);
	assert_true(identity_equal(&a, &b));
	b.gid = 3;
	assert_false(identity_equal(&a, &b));
}

static void R20_listed_groups_are_dropped(void **state)
{
	struct identity identity = { .group_count = 4, .groups = { 1, 5, 7, 9 } };
	const gid_t drop[] = { 5, 9, 100 };

	(void)state;
	identity_drop_groups(&identity, drop, 3);
	assert_int_equal(identity.group_count, 2);
	assert_int_equal(identity.groups[0], 1);
	assert_int_equal(identity.groups[1], 7);
}

static int become_and_look(const struct identity *identity)
{
	uid_t ids[3];
	gid_t groups[8];

	if (identity_become(identity, NULL) < 0)
		return 2;
	if (getresuid(&ids[0], &ids[1], &ids[2]) < 0 || ids[0] != identity->uid ||
	    ids[1] != identity->uid || ids[2] != identity->uid)
		return 3;
	if (getgroups(8, groups) != 2 || groups[0] != 4321 || groups[1] != 7654321)
		return 4;
	if (setuid(0) == 0 || setgroups(0, NULL) == 0)
		return 5;
	return 0;
}

static void R3_become_is_for_good(void **state)
{
	struct identity identity = {
		.uid = 1234567, .gid = 7654321, .group_count = 2, .groups = { 4321, 7654321 }
	};
	int status = 0;
	pid_t pid = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(become_and_look(&identity));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_user_cannot_become_another(void **state)
{
	struct identity first = { .uid = 1234567, .gid = 7654321 };
	struct identity second = { .uid = 1234568, .gid = 7654321 };
	int status = 0;
	pid_t pid = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(identity_become(&first, NULL) == 0 && identity_become(&first, NULL) == 0 &&
				      identity_become(&second, NULL) == -ERR_SYSTEM
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_compared_as_sets),
		cmocka_unit_test(R20_listed_groups_are_dropped),
		cmocka_unit_test(R3_become_is_for_good),
		cmocka_unit_test(a_user_cannot_become_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
