/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/templatemem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static void plan_of(struct plan *plan, size_t count)
{
	*plan = (struct plan)PLAN_INIT;
	plan->net = NET_HOST;
	plan->chdir = strdup("/work");
	for (size_t i = 0; i < count; i++) {
		char path[64];
		struct plan_op op = { .kind = i % 2 ? PLAN_BIND : PLAN_MASK_FILE,
				      .flags = PLAN_READ_ONLY,
				      .path = path,
				      .source = i % 2 ? path : NULL,
				      .rule = (int32_t)i };

		(void)snprintf(path, sizeof(path), "/path/%zu", i);
		assert_int_equal(plan_add(plan, &op, NULL), 0);
	}
}

static void assert_same(const struct plan *found, const struct plan *wanted)
{
	assert_int_equal(found->count, wanted->count);
	assert_int_equal(found->net, wanted->net);
	assert_string_equal(found->chdir, wanted->chdir);
	for (size_t i = 0; i < wanted->count; i++) {
		assert_int_equal(found->ops[i].kind, wanted->ops[i].kind);
		assert_int_equal(found->ops[i].flags, wanted->ops[i].flags);
		assert_int_equal(found->ops[i].rule, wanted->ops[i].rule);
		assert_string_equal(found->ops[i].path, wanted->ops[i].path);
		if (wanted->ops[i].source)
			assert_string_equal(found->ops[i].source, wanted->ops[i].source);
		else
			assert_null(found->ops[i].source);
	}
}

static void the_copy_is_whole_and_its_own(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct templatemem mem;
		struct plan plan;
		struct plan again;

		plan_of(&plan, counts[i]);
		plan_of(&again, counts[i]);
		assert_int_equal(templatemem_init(&mem, "bytes", counts[i] ? 5 : 0, &plan, NULL),
				 0);
		plan_deinit(&plan);
		assert_same(&mem.plan, &again);
		assert_int_equal(mem.byte_count, counts[i] ? 5 : 0);
		assert_memory_equal(mem.bytes, "bytes", mem.byte_count);
		assert_int_equal(lseek(mem.shared_fd, 0, SEEK_END), native_shared_bytes(&again));
		/* Shorter under somebody who reads it: SIGBUS. */
		assert_int_equal(ftruncate(mem.shared_fd, 0), -1);
		plan_deinit(&again);
		templatemem_deinit(&mem);
		templatemem_deinit(&mem);
	}
}

static int child_ends_with(const struct templatemem *mem)
{
	struct rlimit none = { 0, 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGSEGV, SIG_DFL);
		_exit(mem->plan.ops[0].path[0]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void R15_only_who_it_is_lent_to_has_it(void **state)
{
	struct templatemem mem;
	struct plan plan;

	(void)state;
	plan_of(&plan, 3);
	assert_int_equal(templatemem_init(&mem, "bytes", 5, &plan, NULL), 0);
	plan_deinit(&plan);
	for (int round = 0; round < 2; round++) {
		assert_true(WIFSIGNALED(child_ends_with(&mem)));
		assert_int_equal(templatemem_lend(&mem, true, NULL), 0);
		assert_int_equal(child_ends_with(&mem), '/' << 8);
		assert_int_equal(templatemem_lend(&mem, false, NULL), 0);
	}
	templatemem_deinit(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_copy_is_whole_and_its_own),
		cmocka_unit_test(R15_only_who_it_is_lent_to_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
