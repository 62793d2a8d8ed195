/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/wrapper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

static void profile_is_private_and_goes_with_the_child(void **state)
{
	char base[] = "/tmp/fsbox-test-wrapper.XXXXXX";
	struct wrapper wrapper = WRAPPER_INIT;
	AUTO(auto_free) char *dir = NULL;
	char text[32] = "";
	struct stat st;
	mode_t mask = 0;
	int fd = -1;

	(void)state;
	assert_non_null(mkdtemp(base));
	/* Whatever the umask is. */
	mask = umask(0277);
	assert_int_equal(wrapper_init(&wrapper, base, "(version 1)\n", 12, NULL), 0);
	(void)umask(mask);
	assert_int_equal(strncmp(wrapper.dir, base, strlen(base)), 0);
	assert_int_equal(strncmp(wrapper.profile, wrapper.dir, strlen(wrapper.dir)), 0);
	assert_int_equal(stat(wrapper.profile, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_size, 12);
	assert_int_equal(stat(wrapper.dir, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	fd = open(wrapper.profile, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 12);
	(void)close(fd);
	assert_string_equal(text, "(version 1)\n");

	dir = strdup(wrapper.dir);
	wrapper_deinit(&wrapper);
	assert_int_equal(stat(dir, &st), -1);
	assert_int_equal(errno, ENOENT);
	assert_null(wrapper.dir);
	wrapper_deinit(&wrapper); /* again is fine */
	assert_int_equal(rmdir(base), 0);
}

static void two_commands_have_two_profiles(void **state)
{
	char base[] = "/tmp/fsbox-test-wrapper.XXXXXX";
	struct wrapper one = WRAPPER_INIT;
	struct wrapper two = WRAPPER_INIT;

	(void)state;
	assert_non_null(mkdtemp(base));
	assert_int_equal(wrapper_init(&one, base, "1", 1, NULL), 0);
	assert_int_equal(wrapper_init(&two, base, "2", 1, NULL), 0);
	assert_string_not_equal(one.profile, two.profile);
	wrapper_deinit(&one);
	assert_int_equal(access(two.profile, F_OK), 0);
	wrapper_deinit(&two);
	assert_int_equal(rmdir(base), 0);
}

static void failing_leaves_nothing(void **state)
{
	struct wrapper wrapper = WRAPPER_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(wrapper_init(&wrapper, "/nonexistent/dir", "x", 1, &err), -ERR_SYSTEM);
	assert_int_equal(err.errnum, ENOENT);
	assert_null(wrapper.dir);
	assert_null(wrapper.profile);
}

static void command_follows_the_profile(void **state)
{
	char profile[] = "/d/p";
	struct wrapper wrapper = { NULL, profile };
	char first[] = "-x";
	char *items[] = { first };
	struct string_list args = { .items = items, .count = 1 };
	AUTO(string_list_deinit) struct string_list argv = { .items = NULL };

	(void)state;
	assert_int_equal(wrapper_argv(&wrapper, "/bin/echo", &args, &argv, NULL), 0);
	assert_int_equal(argv.count, 5);
	assert_string_equal(argv.items[0], "/usr/bin/sandbox-exec");
	assert_string_equal(argv.items[1], "-f");
	assert_string_equal(argv.items[2], "/d/p");
	assert_string_equal(argv.items[3], "/bin/echo");
	assert_string_equal(argv.items[4], "-x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_is_private_and_goes_with_the_child),
		cmocka_unit_test(two_commands_have_two_profiles),
		cmocka_unit_test(failing_leaves_nothing),
		cmocka_unit_test(command_follows_the_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
