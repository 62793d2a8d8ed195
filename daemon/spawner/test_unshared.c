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
	char *memory = unshared_new(BYTES, false);

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
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		char *memory = unshared_new(BYTES, shared);

		assert_non_null(memory);
		memory[BYTES - 1] = 41;
		assert_true(unshared_lend(memory, BYTES, true));
		assert_int_equal(touched_by_child(memory + BYTES - 1), 42 << 8);
		assert_int_equal(memory[BYTES - 1], shared ? 42 : 41);
		assert_true(unshared_lend(memory, BYTES, false));
		assert_true(WIFSIGNALED(touched_by_child(memory + BYTES - 1)));
		unshared_free(memory, BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R15_children_do_not_get_it),
		cmocka_unit_test(what_is_lent_is_seen_for_as_long_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
