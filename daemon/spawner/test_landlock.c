/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/confine.h"
#include "tests/ordinary.h"
#include "tests/test.h"

/* base/rw is writable, base/ro is not. */
static char base[64];
static char rw[128];
static char ro[128];
static char rw_file[128]; /* a single file below base/ro */
static int outside_dir = -1;

static const char *at(const char *dir, const char *name)
{
	static char paths[8][256];
	static size_t next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* Run CHECK confined; it returns 0, or the number of the step that went wrong. */
static void confined(int (*check)(void))
{
	const char *const writable[] = { rw, rw_file, "/no/such/path", "/dev", "/proc" };
	int status = 0;
	pid_t pid = 0;

	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	pid = fork();
	if (pid == 0) {
		struct error err = ERROR_INIT;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 ||
		    landlock_enter(writable, ARRAY_SIZE(writable), -1, &err) != 1) {
			print_message("%s\n", err.message);
			_exit(255);
		}
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	return close(fd);
}

#define STEP(condition)              \
	do {                         \
		step++;              \
		if (!(condition))    \
			return step; \
	} while (0)
#define REFUSED(call, code) ((call) < 0 && errno == (code))

static int check_writing(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int step = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* What every tool does in a writable tree (R22). */
	STEP(touch(at(rw, "a")) == 0);
	STEP(mkdir(at(rw, "d"), 0700) == 0 && mkdir(at(rw, "e"), 0700) == 0);
	STEP(rename(at(rw, "a"), at(rw, "d/a")) == 0);
	STEP(link(at(rw, "d/a"), at(rw, "e/a")) == 0);
	STEP(rename(at(rw, "d"), at(rw, "e/d")) == 0);
	STEP(touch(at(rw, "new")) == 0 && rename(at(rw, "new"), at(rw, "e/a")) == 0);
	STEP(truncate(at(rw, "e/a"), 5) == 0);
	STEP(symlink("x", at(rw, "l")) == 0);
	STEP(mkfifo(at(rw, "p"), 0600) == 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", at(rw, "s"));
	STEP(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	STEP(unlink(at(rw, "e/d/a")) == 0 && rmdir(at(rw, "e/d")) == 0);
	STEP(touch("/dev/null") == 0);

	/* And nothing of it elsewhere. */
	STEP(REFUSED(touch(at(ro, "a")), EACCES));
	STEP(REFUSED(touch(at(ro, "file")), EACCES));
	STEP(REFUSED(truncate(at(ro, "file"), 0), EACCES));
	STEP(REFUSED(mkdir(at(ro, "d"), 0700), EACCES));
	STEP(REFUSED(unlink(at(ro, "file")), EACCES));
	STEP(REFUSED(rename(at(ro, "file"), at(rw, "f")), EXDEV) || errno == EACCES);
	STEP(REFUSED(link(at(ro, "file"), at(rw, "f")), EXDEV) || errno == EACCES);
	STEP(REFUSED(symlink("x", at(ro, "l")), EACCES));
	/* The single file may be written, not removed. */
	STEP(touch(rw_file) == 0);
	STEP(REFUSED(unlink(rw_file), EACCES));
	return 0;
}

static void R22_writing_only_where_granted(void **state)
{
	(void)state;
	confined(check_writing);
}

static int check_reading(void)
{
	int step = 0;
	char byte = 0;
	int fd = open(at(ro, "file"), O_RDONLY | O_CLOEXEC);

	STEP(fd >= 0 && read(fd, &byte, 1) == 1);
	STEP(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0);
	STEP(access("/bin/true", X_OK) == 0);
	(void)execl("/bin/true", "true", NULL);
	return 200;
}

static void reading_and_executing_go_on(void **state)
{
	(void)state;
	confined(check_reading);
}

/* A directory of another tree that was open already: here one that was moved out of ours. */
static int check_leaked(void)
{
	int step = 0;
	int fds[2];

	STEP(REFUSED(openat(outside_dir, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), EACCES));
	STEP(REFUSED(mkdirat(outside_dir, "y", 0700), EACCES));
	STEP(pipe2(fds, O_CLOEXEC) == 0 && open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC) >= 0);
	return 0;
}

static void R16_leaked_directories_are_dead(void **state)
{
	(void)state;
	outside_dir = open(ro, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	confined(check_leaked);
	(void)close(outside_dir);
}

static const struct sockaddr_un abstract_name = { .sun_family = AF_UNIX,
						  .sun_path = "\0fsbox-test-landlock" };
static pid_t outsider;

static int check_scopes(void)
{
	int step = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t child = 0;

	STEP(REFUSED(connect(fd, (const struct sockaddr *)&abstract_name, sizeof(abstract_name)),
		     EPERM));
	STEP(REFUSED(kill(outsider, SIGTERM), EPERM));
	child = fork();
	if (child == 0)
		(void)pause();
	STEP(kill(child, SIGKILL) == 0); /* our own */
	(void)waitpid(child, NULL, 0);
	return 0;
}

static void R22_scopes_where_the_kernel_has_them(void **state)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_SCOPES)
		skip();
	outsider = getpid();
	assert_int_equal(
		bind(listener, (const struct sockaddr *)&abstract_name, sizeof(abstract_name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	confined(check_scopes);
	(void)close(listener);
}

static void without_no_new_privs_it_fails(void **state)
{
	struct error err = ERROR_INIT;
	bool was_root = false;
	int r = 0;

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	was_root = ordinary_begin();
	r = landlock_enter(NULL, 0, -1, &err);
	ordinary_end(was_root);
	assert_int_equal(r, -ERR_SETUP_FAILED);
}

/* Of a rule for a directory nothing is left once something is mounted on it: why landlock_apply() takes one more. */
static int check_hidden(const char *fresh)
{
	const char *const writable[] = { rw };
	int step = 0;
	int fd = -1;

	STEP(landlock_prepare(writable, 1, -1, &fd, NULL) == 1);
	if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("fresh", rw, "tmpfs", 0, "mode=0777") < 0)
		return 100; /* none of our own here */
	STEP(prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0);
	STEP(landlock_apply(fd, fresh, NULL) == 0);
	STEP(fresh ? touch(at(rw, "new")) == 0 : REFUSED(touch(at(rw, "new")), EACCES));
	return 0;
}

static void R22_a_mount_hides_the_rule_of_its_place(void **state)
{
	int status = 0;

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	for (int given = 0; given < 2; given++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(check_hidden(given ? rw : NULL));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 100)
			skip();
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static int set_up(void **state)
{
	int fd = -1;

	(void)state;
	memcpy(base, "/tmp/fsbox-test-XXXXXX", sizeof("/tmp/fsbox-test-XXXXXX"));
	assert_non_null(mkdtemp(base));
	(void)snprintf(rw, sizeof(rw), "%s/rw", base);
	(void)snprintf(ro, sizeof(ro), "%s/ro", base);
	(void)snprintf(rw_file, sizeof(rw_file), "%s/ro/single", base);
	assert_int_equal(mkdir(rw, 0700), 0);
	assert_int_equal(mkdir(ro, 0700), 0);
	assert_int_equal(touch(rw_file), 0);
	fd = open(at(ro, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	return close(fd);
}

static int tear_down(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(execl("/bin/rm", "rm", "-rf", base, NULL));
	(void)waitpid(pid, &status, 0);
	return status;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R22_writing_only_where_granted),
		cmocka_unit_test(reading_and_executing_go_on),
		cmocka_unit_test(R16_leaked_directories_are_dead),
		cmocka_unit_test(R22_scopes_where_the_kernel_has_them),
		cmocka_unit_test(without_no_new_privs_it_fails),
		cmocka_unit_test(R22_a_mount_hides_the_rule_of_its_place),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
