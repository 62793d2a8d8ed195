/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/plan_text.h"
#include "tests/test.h"

static void build(const char *rules, struct plan *ret_plan)
{
	AUTO(policy_deinit) struct policy policy = policy_of(rules);
	static const struct plan_symlink links[] = { { "/bin", "usr/bin" } };
	struct plan_options options = {
		.harden = PLAN_HARDEN_ALL, .symlinks = links, .symlink_count = 1, .chdir = "/p"
	};

	assert_int_equal(plan_build(ret_plan, &policy, &options, NULL), 0);
}

static void assert_same(const struct plan *a, const struct plan *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->unshare, b->unshare);
	assert_int_equal(a->net, b->net);
	assert_string_equal(a->chdir, b->chdir);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->ops[i].kind, b->ops[i].kind);
		assert_int_equal(a->ops[i].flags, b->ops[i].flags);
		assert_int_equal(a->ops[i].rule, b->ops[i].rule);
		assert_string_equal(a->ops[i].path, b->ops[i].path);
		if (a->ops[i].source)
			assert_string_equal(a->ops[i].source, b->ops[i].source);
		else
			assert_null(b->ops[i].source);
	}
}

static void there_and_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct gen gen = gen_start(seed);
		const struct gen_options options = {
			.max_rules = 40, .max_depth = 6, .bytes = true, .root = true, .files = true
		};
		struct plan_options plan_options = { .harden = PLAN_HARDEN_ALL, .chdir = "/w" };
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(plan_deinit) struct plan plan = PLAN_INIT;
		AUTO(plan_deinit) struct plan back = PLAN_INIT;
		AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);

		gen_rules(&gen, &policy.rules, &options);
		policy.net = (enum net_mode)gen_below(&gen, 3);
		assert_int_equal(plan_build(&plan, &policy, &plan_options, NULL), 0);
		assert_int_equal(plan_encode(&plan, &bytes, NULL), 0);
		assert_int_equal(plan_decode(&back, bytes.data, bytes.size, NULL), 0);
		assert_same(&plan, &back);
	}
}

/* Every shorter piece and every changed byte is refused or decodes to something well-formed. */
static void damaged_bytes(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);

	(void)state;
	build("rw:/p deny:/p/x ro:/p/x/y rw:/c@/priv/c", &plan);
	assert_int_equal(plan_encode(&plan, &bytes, NULL), 0);
	for (size_t size = 0; size < bytes.size; size++) {
		AUTO(plan_deinit) struct plan back = PLAN_INIT;
		AUTO(auto_free) char *piece = malloc(size + 1);

		/* A copy of just that size, so that a sanitizer sees every byte read beyond it. */
		piece = realloc(piece, size ? size : 1);
		memcpy(piece, bytes.data, size);
		assert_int_equal(plan_decode(&back, piece, size, NULL), -ERR_BAD_FRAME);
	}
	for (size_t i = 0; i < bytes.size; i++) {
		for (int bit = 0; bit < 8; bit++) {
			AUTO(plan_deinit) struct plan back = PLAN_INIT;

			bytes.data[i] = (char)(bytes.data[i] ^ (1 << bit));
			if (plan_decode(&back, bytes.data, bytes.size, NULL) == 0)
				for (size_t op = 0; op < back.count; op++)
					assert_true(plan_path_is_canonical(back.ops[op].path));
			bytes.data[i] = (char)(bytes.data[i] ^ (1 << bit));
		}
	}
}

/* A well-formed plan with one thing changed. */
static void refuse(void (*change)(struct plan *plan), const char *message)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan back = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);
	struct error err = ERROR_INIT;

	build("rw:/p", &plan);
	change(&plan);
	assert_int_equal(plan_encode(&plan, &bytes, NULL), 0);
	assert_int_equal(plan_decode(&back, bytes.data, bytes.size, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, message);
}

static void set(char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
}

static struct plan_op *last_bind(struct plan *plan)
{
	for (size_t i = plan->count; i-- > 0;)
		if (plan->ops[i].kind == PLAN_BIND)
			return &plan->ops[i];
	fail_msg("no bind");
	return NULL;
}

static void unknown_kind(struct plan *plan)
{
	plan->ops[1].kind = PLAN_OP_KIND_COUNT;
}
static void unknown_flag(struct plan *plan)
{
	plan->ops[1].flags = PLAN_FLAGS_ALL + 1;
}
static void rule_too_small(struct plan *plan)
{
	plan->ops[1].rule = -2;
}
static void rule_too_large(struct plan *plan)
{
	plan->ops[1].rule = LIMIT_RULES;
}
static void no_path(struct plan *plan)
{
	set(&plan->ops[1].path, "");
}
static void relative_path(struct plan *plan)
{
	set(&plan->ops[1].path, "a");
}
static void dotted_path(struct plan *plan)
{
	set(&plan->ops[1].path, "/a/./b");
}
static void doubled_slash(struct plan *plan)
{
	set(&plan->ops[1].path, "/a//b");
}
static void trailing_slash(struct plan *plan)
{
	set(&plan->ops[1].path, "/a/");
}
static void parent_path(struct plan *plan)
{
	set(&plan->ops[1].path, "/a/../b");
}
static void bind_from_nowhere(struct plan *plan)
{
	set(&last_bind(plan)->source, NULL);
}
static void bind_from_parent(struct plan *plan)
{
	set(&last_bind(plan)->source, "/a/..");
}
static void link_to_nothing(struct plan *plan)
{
	set(&plan->ops[1].source, NULL);
}
static void tmpfs_from_somewhere(struct plan *plan)
{
	set(&plan->ops[2].source, "/x");
}
static void relative_chdir(struct plan *plan)
{
	set(&plan->chdir, "p");
}
static void no_chdir(struct plan *plan)
{
	set(&plan->chdir, NULL);
}
static void unknown_namespace(struct plan *plan)
{
	plan->unshare = PLAN_UNSHARE_ALL + 1;
}
static void unknown_network(struct plan *plan)
{
	plan->net = (enum net_mode)(NET_HOST + 1);
}
static void long_path(struct plan *plan)
{
	static char text[LIMIT_PATH_BYTES + 2];

	memset(text, 'a', sizeof(text) - 1);
	text[0] = '/';
	set(&plan->ops[1].path, text);
}

static void wrong_fields_are_named(void **state)
{
	(void)state;
	refuse(unknown_kind, "the plan: an operation of unknown kind");
	refuse(unknown_flag, "the plan: an operation with unknown flags");
	refuse(rule_too_small, "the plan: an operation of no rule");
	refuse(rule_too_large, "the plan: an operation of no rule");
	refuse(no_path, "the plan: a path that is not canonical");
	refuse(relative_path, "the plan: a path that is not canonical");
	refuse(dotted_path, "the plan: a path that is not canonical");
	refuse(doubled_slash, "the plan: a path that is not canonical");
	refuse(trailing_slash, "the plan: a path that is not canonical");
	refuse(parent_path, "the plan: a path that is not canonical");
	refuse(bind_from_nowhere, "the plan: a source that is not canonical");
	refuse(bind_from_parent, "the plan: a source that is not canonical");
	refuse(link_to_nothing, "the plan: a link without text");
	refuse(tmpfs_from_somewhere, "the plan: a source where there is none");
	refuse(relative_chdir, "the plan: the working directory is not canonical");
	refuse(no_chdir, "the plan: the working directory is not canonical");
	refuse(unknown_namespace, "the plan: unknown namespaces");
	refuse(unknown_network, "the plan: unknown network");
	refuse(long_path, "the plan: a path is too long");
}

static void borders_of_the_bytes(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan back = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES + 16);
	AUTO(buf_deinit) struct buf small = BUF_INIT(64);
	struct error err = ERROR_INIT;

	(void)state;
	build("rw:/p", &plan);
	assert_int_equal(plan_encode(&plan, &small, &err), -ERR_NOMEM);
	assert_int_equal(plan_encode(&plan, &bytes, &err), 0);
	assert_int_equal(buf_add_byte(&bytes, 'x'), 0);
	assert_int_equal(plan_decode(&back, bytes.data, bytes.size, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "the plan: bytes after the end");
	bytes.data[8 + 2 * 4 + 3] = 0x7f; /* the highest byte of the count */
	assert_int_equal(plan_decode(&back, bytes.data, bytes.size, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "the plan: too many operations");
	assert_int_equal(plan_decode(&back, bytes.data, LIMIT_PLAN_BYTES + 1, &err),
			 -ERR_BAD_FRAME);
	assert_string_equal(err.message, "the plan: longer than 16777216 bytes");
	assert_int_equal(plan_decode(&back, "fsbxpln2", 8, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "the plan: not a plan");
}

static void a_nul_inside_a_path(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan back = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);
	struct error err = ERROR_INIT;
	char *found = NULL;

	(void)state;
	build("rw:/needle", &plan);
	assert_int_equal(plan_encode(&plan, &bytes, &err), 0);
	found = memmem(bytes.data, bytes.size, "/needle", 7);
	assert_non_null(found);
	found[3] = '\0';
	assert_int_equal(plan_decode(&back, bytes.data, bytes.size, &err), -ERR_BAD_FRAME);
	assert_string_equal(err.message, "the plan: a path has a NUL byte");
}

/* More than LIMIT_PLAN_BYTES is refused although the buffer has room. */
static void a_plan_that_is_too_long(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(2 * LIMIT_PLAN_BYTES);
	AUTO(auto_free) char *path = malloc(LIMIT_PATH_BYTES + 1);
	struct plan_op op = { .kind = PLAN_MASK_DIR, .rule = -1 };
	struct error err = ERROR_INIT;

	(void)state;
	assert_non_null(path);
	memset(path, 'a', LIMIT_PATH_BYTES);
	path[0] = '/';
	path[LIMIT_PATH_BYTES] = '\0';
	op.path = path;
	for (size_t i = 0; i < LIMIT_PLAN_BYTES / LIMIT_PATH_BYTES; i++)
		assert_int_equal(plan_add(&plan, &op, &err), 0);
	assert_int_equal(plan_encode(&plan, &bytes, &err), -ERR_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),         cmocka_unit_test(damaged_bytes),
		cmocka_unit_test(wrong_fields_are_named), cmocka_unit_test(borders_of_the_bytes),
		cmocka_unit_test(a_nul_inside_a_path),    cmocka_unit_test(a_plan_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
