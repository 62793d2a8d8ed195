/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/test.h"

static bool is_closed(int fd)
{
	for (int i = 0; i < 500; i++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			return true;
		(void)usleep(2000);
	}
	return false;
}

static void test_pipes_at_once(void **state)
{
	static struct closer closer;
	int pair[2];

	(void)state;
	assert_int_equal(closer_init(&closer, NULL), 0);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	closer_take(&closer, pair[0]);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	closer_take(&closer, pair[1]);
	assert_int_equal(fcntl(pair[1], F_GETFD), -1);
	closer_take(&closer, -1);
	assert_int_equal(closer.threads, 0); /* none was needed */
	closer_deinit(&closer);
}

/* Files go to a thread, which frees their numbers soon. */
static void test_files_by_thread_R7(void **state)
{
	static struct closer closer;
	struct fdset set = FDSET_INIT;
	int fds[8];

	(void)state;
	assert_int_equal(closer_init(&closer, NULL), 0);
	for (int i = 0; i < 8; i++) {
		fds[i] = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
		assert_int_equal(fdset_add_take(&set, fds[i], NULL), 0);
	}
	closer_take_set(&closer, &set);
	assert_int_equal(set.count, 0);
	for (int i = 0; i < 8; i++)
		assert_true(is_closed(fds[i]));
	assert_true(closer.threads >= 1);
	assert_true(closer_ready(&closer));
	closer_deinit(&closer);
}

/* All threads hang: what comes then is queued, and from half of the queue on no more is accepted. */
static void test_all_hang_R13(void **state)
{
	static struct closer closer;
	int first = -1;

	(void)state;
	assert_int_equal(closer_init(&closer, NULL), 0);
	closer.threads = LIMIT_STUCK_PER_UID; /* none of them will ever come back */
	for (int i = 0; i < CLOSER_QUEUE / 2; i++) {
		int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

		if (first < 0)
			first = fd;
		assert_true(fd >= 0);
		assert_true(closer_ready(&closer));
		closer_take(&closer, fd);
	}
	assert_false(closer_ready(&closer));
	assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
	for (size_t i = 0; i < closer.count; i++)
		(void)close(closer.queue[(closer.first + i) % CLOSER_QUEUE]);
	closer_deinit(&closer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipes_at_once),
		cmocka_unit_test(test_files_by_thread_R7),
		cmocka_unit_test(test_all_hang_R13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
