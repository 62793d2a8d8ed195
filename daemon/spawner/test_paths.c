/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static char top[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/fsbox-paths.XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];
	pid_t pid = fork();

	(void)state;
	(void)snprintf(command, sizeof(command), "%s", top);
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", command, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
	return 0;
}

static void clear_environment(void)
{
	(void)unsetenv("XDG_RUNTIME_DIR");
	(void)unsetenv("XDG_STATE_HOME");
	(void)unsetenv("XDG_CONFIG_HOME");
	(void)unsetenv("XDG_CACHE_HOME");
	(void)setenv("HOME", top, 1);
}

static void fixed_places_of_root(void **state)
{
	struct options options = { .ready_fd = -1 };
	struct paths paths;

	(void)state;
	clear_environment();
	assert_int_equal(paths_choose(&paths, &options, MODE_SYSTEM, 0, NULL), 0);
	assert_string_equal(paths.socket, "/run/fsbox/fsbox.sock");
	assert_string_equal(paths.state_dir, "/var/lib/fsbox");
	assert_string_equal(paths.log_dir, "/var/log/fsbox");
	assert_string_equal(paths.config_dir, "/etc/fsbox");
	assert_string_equal(paths.mask_dir, "/run/fsbox/mask/dir");
	assert_string_equal(paths.user_config_dir, "");
	assert_int_equal(paths_choose(&paths, &options, MODE_ROOT, 0, NULL), 0);
	assert_string_equal(paths.socket, "/run/fsbox-root/fsbox.sock");
	assert_string_equal(paths.state_dir, "/var/lib/fsbox-root");
	assert_string_equal(paths.log_dir, "/var/lib/fsbox-root");
}

static void options_win(void **state)
{
	struct options options = { .run_dir = "/r", .state_dir = "/s", .exec_dir = "/e" };
	struct paths paths;

	(void)state;
	assert_int_equal(paths_choose(&paths, &options, MODE_SYSTEM, 0, NULL), 0);
	assert_string_equal(paths.socket, "/r/fsbox.sock");
	assert_string_equal(paths.log_dir, "/s");
	assert_string_equal(paths.exec_dir, "/e");
	options.socket = "/x.sock";
	options.log_dir = "/l";
	assert_int_equal(paths_choose(&paths, &options, MODE_SYSTEM, 0, NULL), 0);
	assert_string_equal(paths.socket, "/x.sock");
	assert_string_equal(paths.log_dir, "/l");
}

static void expect_user(const char *below_home, const char *found)
{
	char expected[PATHS_BYTES];

	(void)snprintf(expected, sizeof(expected), "%s%s", top, below_home);
	assert_string_equal(found, expected);
}

static void places_of_a_user(void **state)
{
	struct options options = { .ready_fd = -1 };
	struct paths paths;
	char runtime[128];

	(void)state;
	clear_environment();

	/* A user nobody has: there is no /run/user of his. */
	assert_int_equal(paths_choose(&paths, &options, MODE_USER, 3999999, NULL), 0);
	expect_user("/.local/state/fsbox/run", paths.run_dir);
	expect_user("/.local/state/fsbox", paths.state_dir);
	expect_user("/.local/state/fsbox", paths.log_dir);
	expect_user("/.config/fsbox", paths.user_config_dir);
	expect_user("/.cache/fsbox", paths.cache_dir);

	/* A runtime directory counts if it is one's own. */
	(void)snprintf(runtime, sizeof(runtime), "%s/runtime", top);
	assert_int_equal(mkdir(runtime, 0700), 0);
	(void)setenv("XDG_RUNTIME_DIR", runtime, 1);
	assert_int_equal(paths_choose(&paths, &options, MODE_USER, geteuid(), NULL), 0);
	expect_user("/runtime/fsbox", paths.run_dir);
	expect_user("/runtime/fsbox/fsbox.sock", paths.socket);
	assert_int_equal(paths_choose(&paths, &options, MODE_USER, 3999999, NULL), 0);
	expect_user("/.local/state/fsbox/run", paths.run_dir);

	/* Relative values are ignored, as the XDG rules want. */
	(void)setenv("XDG_STATE_HOME", "state", 1);
	(void)setenv("XDG_CACHE_HOME", "/c", 1);
	assert_int_equal(paths_choose(&paths, &options, MODE_USER, 3999999, NULL), 0);
	expect_user("/.local/state/fsbox", paths.state_dir);
	assert_string_equal(paths.cache_dir, "/c/fsbox");
	clear_environment();
	(void)unsetenv("HOME");
	assert_int_equal(paths_choose(&paths, &options, MODE_USER, 3999999, NULL), -ERR_INVALID);
}

static void long_sockets_are_a_clear_error(void **state)
{
	struct options options = { .ready_fd = -1 };
	struct error err = ERROR_INIT;
	struct paths paths;
	char path[120];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[108] = '\0';
	options.socket = path;
	assert_int_equal(paths_choose(&paths, &options, MODE_SYSTEM, 0, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "longer than 107 bytes"));
	path[107] = '\0';
	assert_int_equal(paths_choose(&paths, &options, MODE_SYSTEM, 0, NULL), 0);
}

static void below(char *to, const char *name)
{
	(void)snprintf(to, PATHS_BYTES, "%s/%s", top, name);
}

static void prepared_paths(struct paths *paths)
{
	memset(paths, 0, sizeof(*paths));
	below(paths->run_dir, "a/run");
	below(paths->state_dir, "a/state");
	below(paths->log_dir, "a/state");
	below(paths->mask_dir, "a/run/mask/dir");
	below(paths->mask_file, "a/run/mask/file");
}

static mode_t mode_of(const char *path)
{
	struct stat about;

	assert_int_equal(lstat(path, &about), 0);
	return about.st_mode & 07777;
}

static void directories_are_made_and_kept(void **state)
{
	struct paths paths;

	(void)state;
	prepared_paths(&paths);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, NULL), 0);
		assert_int_equal(mode_of(paths.run_dir), 0700);
		assert_int_equal(mode_of(paths.state_dir), 0700);
		assert_int_equal(mode_of(paths.mask_dir), 0000);
		assert_int_equal(mode_of(paths.mask_file), 0000);
	}
}

static void R25_what_others_could_change_is_refused(void **state)
{
	struct error err = ERROR_INIT;
	struct paths paths;
	char link[PATHS_BYTES];

	(void)state;
	prepared_paths(&paths);
	assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, NULL), 0);
	assert_int_equal(chmod(paths.state_dir, 0770), 0);
	assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "may be written by others"));
	assert_int_equal(chmod(paths.state_dir, 0700), 0);

	/* Mask sources that show something. */
	assert_int_equal(chmod(paths.mask_file, 0444), 0);
	assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, &err), -ERR_CONFIG);
	assert_int_equal(chmod(paths.mask_file, 0000), 0);

	/* A link in place of the directory. */
	below(link, "a/link");
	assert_int_equal(symlink(paths.state_dir, link), 0);
	below(paths.state_dir, "a/link");
	assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, &err), -ERR_CONFIG);

	if (geteuid() != 0)
		return;
	prepared_paths(&paths);
	assert_int_equal(chown(paths.run_dir, 1234, 0), 0);
	assert_int_equal(paths_prepare(&paths, MODE_USER, 0, 0, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.message, "belongs to user 1234"));
	assert_int_equal(chown(paths.run_dir, 0, 0), 0);
}

static void a_lock_is_held_by_one_process(void **state)
{
	char path[PATHS_BYTES];
	int status = 0;
	int fd = -1;
	pid_t pid = 0;

	(void)state;
	below(path, "lock");
	fd = paths_lock(path, NULL);
	assert_true(fd >= 0);
	pid = fork();
	if (pid == 0)
		_exit(paths_lock(path, NULL) == -ERR_CONFIG ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)close(fd);
	pid = fork();
	if (pid == 0)
		_exit(paths_lock(path, NULL) >= 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_places_of_root),
		cmocka_unit_test(options_win),
		cmocka_unit_test(places_of_a_user),
		cmocka_unit_test(long_sockets_are_a_clear_error),
		cmocka_unit_test(directories_are_made_and_kept),
		cmocka_unit_test(R25_what_others_could_change_is_refused),
		cmocka_unit_test(a_lock_is_held_by_one_process),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
