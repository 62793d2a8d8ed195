/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

/* A file system of a few names, and links among them. */
static enum path_kind kind_of(void *arg, const char *path)
{
	(void)arg;
	if (strcmp(path, "/w") == 0 || strcmp(path, "/bin") == 0)
		return PATH_KIND_DIRECTORY;
	if (strcmp(path, "/bin/tool") == 0 || strcmp(path, "/w/bin/tool") == 0)
		return PATH_KIND_EXECUTABLE;
	return strcmp(path, "/w/data") == 0 ? PATH_KIND_OTHER : PATH_KIND_ABSENT;
}

static char *real_of(void *arg, const char *path)
{
	(void)arg;
	if (strcmp(path, "/link") == 0)
		return strdup("/real");
	if (strcmp(path, "/link/short") == 0) {
		errno = ENOMEM;
		return NULL;
	}
	errno = ENOENT;
	return strcmp(path, "/w") == 0 || strcmp(path, "/") == 0 ? strdup(path) : NULL;
}

static const struct path_view view = { .cwd = "/w", .kind = kind_of, .real = real_of };

static void check_executable(const char *command, const char *search, const char *want)
{
	AUTO(auto_free) char *found = NULL;

	assert_int_equal(path_find_executable(&view, command, search, &found, NULL), 0);
	if (want)
		assert_string_equal(found, want);
	else
		assert_null(found);
}

static void executables(void **state)
{
	(void)state;
	check_executable("tool", "/nope:/bin", "/bin/tool");
	check_executable("tool", "bin:/bin", "/w/bin/tool");
	check_executable("tool", "/bin/../bin//", "/bin/tool");
	check_executable("tool", ":", NULL);
	check_executable("tool", NULL, NULL);
	check_executable("data", "/w", NULL);
	check_executable("bin/tool", NULL, "bin/tool");
	check_executable("./data", "/bin", NULL);
	check_executable("", "/bin", NULL);
}

static void check_resolved(const char *path, const char *want)
{
	AUTO(auto_free) char *resolved = NULL;

	assert_int_equal(path_resolve_for_profile(&view, path, &resolved, NULL), 0);
	assert_string_equal(resolved, want);
}

static void resolved_for_a_profile(void **state)
{
	char *resolved = NULL;

	(void)state;
	check_resolved("/link", "/real");
	check_resolved("/link/", "/real");
	check_resolved("/link/new/", "/real/new");
	check_resolved("/link/../link", "/real");
	check_resolved("/gone/x", "/gone/x");
	check_resolved("/new", "/new");
	check_resolved("new", "/w/new");
	check_resolved("", "/w");
	check_resolved(".", "/w");
	assert_int_equal(path_resolve_for_profile(&view, "/link/short", &resolved, NULL),
			 -ERR_NOMEM);
}

static void check_credentials(const char *log_path, const char *vault)
{
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };

	assert_int_equal(path_credentials_of_log(log_path, &paths, NULL), 0);
	assert_int_equal(paths.count, 3);
	assert_string_equal(paths.items[0], vault);
}

static void credentials_beside_a_log(void **state)
{
	(void)state;
	check_credentials("/h/log/e", "/h/vault.enc");
	check_credentials("/h/logs/e", "/h/logs/vault.enc");
	check_credentials("/h/xlog/e", "/h/xlog/vault.enc");
	check_credentials("/log", "/vault.enc");
	check_credentials("log/e", "vault.enc");
	check_credentials("../log/e", "../vault.enc");
	check_credentials("", "vault.enc");
	check_credentials("///", "/vault.enc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executables),
		cmocka_unit_test(resolved_for_a_profile),
		cmocka_unit_test(credentials_beside_a_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
