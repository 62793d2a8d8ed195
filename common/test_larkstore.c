/* SPDX-License-Identifier: Apache-2.0 */
#include "common/larkstore.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/test.h"

static void check(char *got, const char *want)
{
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else {
		assert_null(got);
		assert_int_not_equal(errno, ENOMEM);
	}
	free(got);
}

static void store_to_protect(void **state)
{
	(void)state;
	check(lark_store_path("/home/u", NULL), "/home/u/.local/share/lark-cli");
	check(lark_store_path("/home/u", ""), "/home/u/.local/share/lark-cli");
	check(lark_store_path("/home/u", "/srv/keys/"), "/srv/keys");
	check(lark_store_path("/home/u", "/srv/../keys"), NULL); /* and not the default */
	check(lark_store_path("/home/u", "keys"), NULL);
	check(lark_store_path("home", NULL), NULL);
}

static void data_root_for_the_child(void **state)
{
	(void)state;
	check(lark_child_data_root(NULL), NULL);
	check(lark_child_data_root(""), NULL);
	check(lark_child_data_root("/"), NULL);
	check(lark_child_data_root("/lark-cli/"), "/");
	check(lark_child_data_root("/a/lark-cli"), "/a");
	check(lark_child_data_root("/a/lark-clix"), NULL);
	check(lark_child_data_root("/a/xlark-cli"), NULL);
	check(lark_child_data_root("/a/../lark-cli"), NULL);
}

static void store_as_the_program_resolves_it(void **state)
{
	(void)state;
	check(lark_store_dir(NULL, "/home/u"), "/home/u/.local/share/lark-cli");
	check(lark_store_dir("", "/home/u"), "/home/u/.local/share/lark-cli");
	check(lark_store_dir("rel", "/home/u"), "/home/u/.local/share/lark-cli");
	check(lark_store_dir("/a\n", "/home/u"), "/home/u/.local/share/lark-cli");
	check(lark_store_dir("/a/../b//", "/home/u"), "/b/lark-cli");
	check(lark_store_dir("/..", "/home/u"), "/lark-cli");
	check(lark_store_dir(NULL, "u/"), "u//.local/share/lark-cli");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_to_protect),
		cmocka_unit_test(data_root_for_the_child),
		cmocka_unit_test(store_as_the_program_resolves_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
