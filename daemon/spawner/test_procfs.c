/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/procfs.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static const char good_status[] = "Name:\tx\nUmask:\t0022\nPPid:\t12\nUid:\t1\t2\t3\t4\n"
				  "NSpid:\t900\t17\t1\nNoNewPrivs:\t1\nSeccomp:\t2\n"
				  "Seccomp_filters:\t1\n";

static void status_has_what_is_asked_for(void **state)
{
	struct proc_status status;

	(void)state;
	assert_true(proc_status_parse(good_status, &status));
	assert_int_equal(status.parent, 12);
	assert_int_equal(status.uids[0], 1);
	assert_int_equal(status.uids[3], 4);
	assert_true(status.no_new_privs);
	assert_int_equal(status.seccomp, 2);
	assert_int_equal(status.ns_depth, 3);
	assert_int_equal(status.ns_pid, 1);
}

static void R6_a_status_that_lacks_a_field_is_none(void **state)
{
	static const char *const keys[] = { "PPid", "Uid", "NSpid", "NoNewPrivs", "Seccomp" };
	struct proc_status status;
	char text[sizeof(good_status)];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		memcpy(text, good_status, sizeof(text));
		*strstr(text, keys[i]) = 'x';
		assert_false(proc_status_parse(text, &status));
	}
	assert_false(proc_status_parse("", &status));
	assert_false(proc_status_parse("NoNewPrivs:", &status));
}

/* The name is the process's own choice; the kernel escapes newlines in it, but not other things. */
static void R6_a_name_cannot_pass_for_a_field(void **state)
{
	struct proc_status status;

	(void)state;
	assert_true(proc_status_parse("Name:\tNoNewPrivs:\t0 Seccomp:\t0\nPPid:\t1\n"
				      "Uid:\t1\t1\t1\t1\nNSpid:\t9\nNoNewPrivs:\t1\nSeccomp:\t2\n",
				      &status));
	assert_true(status.no_new_privs);
	assert_int_equal(status.seccomp, 2);
}

static void stat_is_read_behind_the_name(void **state)
{
	pid_t parent = 0;
	uint64_t start = 0;

	(void)state;
	assert_true(proc_stat_parse("7 (a) R 1 (b) S 42 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 "
				    "987654321012 0 0",
				    &parent, &start));
	assert_int_equal(parent, 42);
	assert_true(start == 987654321012u);
	assert_false(proc_stat_parse("7 (a) S 42 7", &parent, &start));
	assert_false(proc_stat_parse("7 (a", &parent, &start));
	assert_false(proc_stat_parse("7 (a)", &parent, &start));
	assert_false(proc_stat_parse("", &parent, &start));
}

static void own_children_are_found(void **state)
{
	pid_t found[8] = { 0 };
	struct proc_status status;
	uint64_t start = 0;
	pid_t child = fork();
	int fd = -1;

	(void)state;
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(proc_children(getpid(), found, 8), 1);
	assert_int_equal(found[0], child);
	fd = proc_open(child);
	assert_true(fd >= 0);
	assert_int_equal(proc_status_read(fd, &status, NULL), 0);
	assert_int_equal(status.parent, getpid());
	assert_int_equal(proc_start_time(fd, &start, NULL), 0);
	assert_true(start > 0);

	/* The directory stays that of the process that is gone. */
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_status_read(fd, &status, NULL), -ERR_SYSTEM);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_has_what_is_asked_for),
		cmocka_unit_test(R6_a_status_that_lacks_a_field_is_none),
		cmocka_unit_test(R6_a_name_cannot_pass_for_a_field),
		cmocka_unit_test(stat_is_read_behind_the_name),
		cmocka_unit_test(own_children_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
