/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/fdset.h"

#include "tests/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/fdcount.h"

static int open_null(void)
{
	/* Without O_CLOEXEC on purpose: taking it sets that. NOLINTNEXTLINE(android-cloexec-open) */
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd >= 0);
	return fd;
}

static void add_takes_and_deinit_closes(void **state)
{
	struct fdset set = FDSET_INIT;
	size_t before = fd_count();
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < LIMIT_FRAME_FDS; i++) {
		fd = open_null();
		assert_int_equal(fdset_add_take(&set, fd, NULL), 0);
		assert_int_equal(set.fds[i], fd);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(fdset_unclaimed(&set), LIMIT_FRAME_FDS);
	fdset_deinit(&set);
	assert_int_equal(set.count, 0);
	assert_int_equal(fd_count(), before);
	fdset_deinit(&set);
	fdset_deinit(NULL);
}

static void one_too_many_is_closed(void **state)
{
	struct fdset set = FDSET_INIT;
	struct error err = ERROR_INIT;
	size_t before = fd_count();

	(void)state;
	for (size_t i = 0; i < LIMIT_FRAME_FDS; i++)
		assert_int_equal(fdset_add_dup(&set, 0, NULL), 0);
	assert_int_equal(fdset_add_take(&set, open_null(), &err), -ERR_BAD_FRAME);
	assert_int_equal(fdset_add_dup(&set, 0, &err), -ERR_BAD_FRAME);
	assert_int_equal(set.count, LIMIT_FRAME_FDS);
	assert_int_equal(fd_count(), before + LIMIT_FRAME_FDS);
	fdset_deinit(&set);
	assert_int_equal(fd_count(), before);
}

static void what_is_no_descriptor_is_refused(void **state)
{
	struct fdset set = FDSET_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(fdset_add_take(&set, -1, &err), -ERR_BAD_FRAME);
	assert_int_equal(fdset_add_take(&set, 999999, &err), -ERR_BAD_FRAME);
	assert_int_equal(fdset_add_dup(&set, 999999, &err), -ERR_SYSTEM);
	assert_int_equal(set.count, 0);
}

static void claim_gives_once(void **state)
{
	struct fdset set = FDSET_INIT;
	struct error err = ERROR_INIT;
	size_t before = fd_count();
	int fd = -1;
	int kept = -1;

	(void)state;
	assert_int_equal(fdset_add_dup(&set, 0, NULL), 0);
	assert_int_equal(fdset_add_dup(&set, 0, NULL), 0);
	assert_true(set.fds[0] > 2);
	assert_int_equal(fdset_claim(&set, 1, &kept, &err), 0);
	assert_int_equal(fdset_claim(&set, 1, &fd, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "descriptor index 1 is used twice");
	assert_int_equal(fdset_claim(&set, 2, &fd, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "descriptor index 2, but 2 came with the frame");
	assert_int_equal(fd, -1);
	assert_int_equal(fdset_unclaimed(&set), 1);
	fdset_deinit(&set);
	assert_true(fcntl(kept, F_GETFD) >= 0);
	(void)close(kept);
	assert_int_equal(fd_count(), before);
}

static void move_empties_the_source(void **state)
{
	struct fdset from = FDSET_INIT;
	struct fdset to = FDSET_INIT;
	size_t before = fd_count();

	(void)state;
	assert_int_equal(fdset_add_dup(&from, 0, NULL), 0);
	assert_int_equal(fdset_add_dup(&to, 0, NULL), 0);
	fdset_move(&to, &from);
	assert_int_equal(from.count, 0);
	assert_int_equal(to.count, 1);
	assert_int_equal(fd_count(), before + 1);
	fdset_deinit(&from);
	fdset_deinit(&to);
	assert_int_equal(fd_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_takes_and_deinit_closes),
		cmocka_unit_test(one_too_many_is_closed),
		cmocka_unit_test(what_is_no_descriptor_is_refused),
		cmocka_unit_test(claim_gives_once),
		cmocka_unit_test(move_empties_the_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
