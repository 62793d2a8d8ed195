/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hostview.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

static void kinds_and_real_paths(void **state)
{
	char base[] = "/tmp/fsbox-test-hostview.XXXXXX";
	struct path_view view = hostview(base);
	enum path_kind kind = PATH_KIND_OTHER;
	AUTO(auto_free) char *real = NULL;
	char link[64];
	char file[64];

	(void)state;
	assert_non_null(mkdtemp(base));
	(void)snprintf(link, sizeof(link), "%s/l", base);
	(void)snprintf(file, sizeof(file), "%s/f", base);
	assert_int_equal(symlink("f", link), 0);
	assert_int_equal(path_view_kind(&view, "l", &kind, NULL), 0);
	assert_int_equal(kind, PATH_KIND_ABSENT);
	assert_null(view.real(view.arg, link));
	assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
	assert_int_equal(path_view_kind(&view, "l", &kind, NULL), 0);
	assert_int_equal(kind, PATH_KIND_OTHER);
	assert_int_equal(chmod(file, 0610), 0);
	assert_int_equal(path_view_kind(&view, "l", &kind, NULL), 0);
	assert_int_equal(kind, PATH_KIND_EXECUTABLE);
	assert_int_equal(path_view_kind(&view, "", &kind, NULL), 0);
	assert_int_equal(kind, PATH_KIND_DIRECTORY);
	real = view.real(view.arg, link);
	assert_string_equal(real, file);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(base), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(kinds_and_real_paths) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
