/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/unshared.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

#define BYTES 10000

/* Forks a child that reads the byte at AT and then adds one to it; its wait status. */
static int touched_by_child(volatile char *at)
{
	struct rlimit none = { 0, 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGSEGV, SIG_DFL);
		*at = (char)(*at + 1);
		_exit(*at);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void R15_children_do_not_get_it(void **state)
{
	char *memory = unshared_new(BYTES);

	(void)state;
	assert_non_null(memory);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(memory[i], 0);
	memset(memory, 7, BYTES);
	for (size_t at = 0; at < BYTES; at += BYTES - 1) {
		int status = touched_by_child(memory + at);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSEGV);
	}
	unshared_free(memory, BYTES);
	unshared_free(NULL, BYTES);
}

static void what_is_lent_is_seen_for_as_long_as_it_is(void **state)
{
	char *memory = unshared_new(BYTES);

	(void)state;
	assert_non_null(memory);
	memory[BYTES - 1] = 41;
	assert_true(unshared_lend(memory, BYTES, true));
	assert_int_equal(touched_by_child(memory + BYTES - 1), 42 << 8);
	assert_int_equal(memory[BYTES - 1], 41);
	assert_true(unshared_lend(memory, BYTES, false));
	assert_true(WIFSIGNALED(touched_by_child(memory + BYTES - 1)));
	unshared_free(memory, BYTES);
}

static void pieces_are_apart_and_come_back_wiped(void **state)
{
	struct unshared_pool pool = { .chunks = NULL };
	char *pieces[600];
	static const size_t sizes[] = { 1, 128, 129, 4096 };

	(void)state;
	assert_null(unshared_pool_new(&pool, 0));
	assert_null(unshared_pool_new(&pool, UNSHARED_PIECE_MAX + 1));
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t i = 0; i < 600; i++) {
			pieces[i] = unshared_pool_new(&pool, sizes[s]);
			assert_non_null(pieces[i]);
			assert_int_equal((uintptr_t)pieces[i] % 16, 0);
			for (size_t at = 0; at < sizes[s]; at++)
				assert_int_equal(pieces[i][at], 0);
			memset(pieces[i], (int)(i % 100) + 1, sizes[s]);
		}
		for (size_t i = 0; i < 600; i++) {
			assert_int_equal(pieces[i][0], i % 100 + 1);
			assert_int_equal(pieces[i][sizes[s] - 1], i % 100 + 1);
		}
		assert_true(WIFSIGNALED(touched_by_child(pieces[599])));
		for (size_t i = 0; i < 600; i++)
			unshared_pool_free(&pool, pieces[i], sizes[s]);
		/* The last one given back is the first one given out. */
		assert_ptr_equal(unshared_pool_new(&pool, sizes[s]), pieces[599]);
		for (size_t at = 0; at < sizes[s]; at++)
			assert_int_equal(pieces[599][at], 0);
	}
	unshared_pool_free(&pool, NULL, 5);
	unshared_pool_deinit(&pool);
	unshared_pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R15_children_do_not_get_it),
		cmocka_unit_test(what_is_lent_is_seen_for_as_long_as_it_is),
		cmocka_unit_test(pieces_are_apart_and_come_back_wiped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
