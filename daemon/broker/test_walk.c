/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* Each test has a directory of its own, which is the working directory. */
struct room {
	char dir[64];
	struct walk walk;
};

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	char made[] = "/tmp/fsbox-walk.XXXXXX";
	char *real;

	assert_non_null(room);
	assert_non_null(mkdtemp(made));
	real = realpath(made, NULL);
	assert_non_null(real);
	(void)snprintf(room->dir, sizeof(room->dir), "%s", real);
	free(real);
	assert_int_equal(chdir(room->dir), 0);
	*state = room;
	return 0;
}

static int tear_down(void **state)
{
	struct room *room = *state;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", "--", room->dir, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	walk_deinit(&room->walk);
	free(room);
	return 0;
}

static const struct walk *look(struct room *room, const char *name)
{
	char path[LIMIT_PATH_BYTES + 128];
	struct error err = ERROR_INIT;

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	assert_int_equal(walk_path(&room->walk, path, &err), 0);
	return &room->walk;
}

static void assert_real(const struct room *room, const char *name)
{
	char path[LIMIT_PATH_BYTES + 128];

	(void)snprintf(path, sizeof(path), "%s%s%s", room->dir, name[0] != '\0' ? "/" : "", name);
	assert_string_equal(room->walk.real, path);
}

static void touch(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void test_types(void **state)
{
	struct room *room = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "s" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	touch("f");
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(mkfifo("p", 0600), 0);
	assert_int_equal(look(room, "f")->type, NODE_FILE);
	assert_int_equal(look(room, "d")->type, NODE_DIRECTORY);
	assert_int_equal(look(room, "s")->type, NODE_SOCKET);
	assert_int_equal(look(room, "p")->type, NODE_OTHER);
	assert_int_equal(look(room, "d")->links.count, 0);
	assert_int_equal(room->walk.existing_bytes, strlen(room->walk.real));
	assert_true(room->walk.ino != 0);
	(void)close(fd);
}

static void test_root(void **state)
{
	struct room *room = *state;

	assert_int_equal(walk_path(&room->walk, "/", NULL), 0);
	assert_string_equal(room->walk.real, "/");
	assert_int_equal(room->walk.type, NODE_DIRECTORY);
	assert_int_equal(walk_path(&room->walk, "//./", NULL), 0);
	assert_string_equal(room->walk.real, "/");
	assert_int_equal(room->walk.type, NODE_DIRECTORY);
	assert_int_equal(walk_path(&room->walk, "relative", NULL), -ERR_INVALID);
	assert_int_equal(walk_path(&room->walk, "", NULL), -ERR_INVALID);
}

/* Every link that was gone through is told, relative and absolute ones. */
static void test_links_R10(void **state)
{
	struct room *room = *state;
	char absolute[128];
	char expected[128];

	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(mkdir("a/b", 0700), 0);
	touch("a/b/f");
	assert_int_equal(symlink("a", "l1"), 0);
	assert_int_equal(symlink("../l1/b", "a/l2"), 0);
	(void)snprintf(absolute, sizeof(absolute), "%s/a/l2/f", room->dir);
	assert_int_equal(symlink(absolute, "l3"), 0);
	assert_int_equal(look(room, "l3")->type, NODE_FILE);
	assert_real(room, "a/b/f");
	assert_int_equal(room->walk.links.count, 3);
	(void)snprintf(expected, sizeof(expected), "%s/l3", room->dir);
	assert_string_equal(room->walk.links.items[0], expected);
	(void)snprintf(expected, sizeof(expected), "%s/a/l2", room->dir);
	assert_string_equal(room->walk.links.items[1], expected);
	(void)snprintf(expected, sizeof(expected), "%s/l1", room->dir);
	assert_string_equal(room->walk.links.items[2], expected);
}

/* Where the path's own last component is a link, whatever links come before and behind it. */
static void test_last_link_R10(void **state)
{
	struct room *room = *state;
	char expected[128];

	assert_int_equal(mkdir("d", 0700), 0);
	touch("d/f");
	assert_int_equal(symlink("f", "d/l1"), 0);
	assert_int_equal(symlink("l1", "d/l2"), 0);
	assert_int_equal(symlink("d", "dl"), 0);
	assert_null(look(room, "dl/f")->link);
	assert_null(look(room, "d/f")->link);
	(void)snprintf(expected, sizeof(expected), "%s/d/l2", room->dir);
	assert_string_equal(look(room, "dl/l2")->link, expected);
	assert_real(room, "d/f");
	(void)snprintf(expected, sizeof(expected), "%s/dl", room->dir);
	assert_string_equal(look(room, "dl")->link, expected);
	assert_string_equal(look(room, "dl/")->link, expected);
	assert_int_equal(symlink("none", "dangling"), 0);
	(void)snprintf(expected, sizeof(expected), "%s/dangling", room->dir);
	assert_string_equal(look(room, "dangling")->link, expected);
	assert_int_equal(room->walk.type, NODE_ABSENT);
}

static void test_dotdot_is_where_the_kernel_goes(void **state)
{
	struct room *room = *state;

	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(mkdir("a/b", 0700), 0);
	touch("a/x");
	assert_int_equal(symlink("a/b", "l"), 0);
	assert_int_equal(look(room, "l/../x")->type, NODE_FILE);
	assert_real(room, "a/x");
	assert_int_equal(look(room, "./a//b/./../x")->type, NODE_FILE);
	assert_real(room, "a/x");
	assert_int_equal(look(room, "a/../../../../../../../etc/passwd")->type, NODE_FILE);
	assert_string_equal(room->walk.real, "/etc/passwd");
}

static void test_loops_R10(void **state)
{
	struct room *room = *state;

	assert_int_equal(symlink("self", "self"), 0);
	assert_int_equal(look(room, "self")->errnum, ELOOP);
	assert_int_equal(room->walk.type, NODE_UNKNOWN);
	assert_int_equal(symlink("two", "one"), 0);
	assert_int_equal(symlink("one", "two"), 0);
	assert_int_equal(look(room, "one/below")->errnum, ELOOP);
	assert_int_equal(room->walk.links.count, WALK_LINKS_MAX + 1);
}

/* At the kernel's bound and one past it. */
static void test_link_count_R13(void **state)
{
	struct room *room = *state;

	touch("end");
	assert_int_equal(symlink("end", "n1"), 0);
	for (int i = 2; i <= WALK_LINKS_MAX + 1; i++) {
		char from[16];
		char to[16];

		(void)snprintf(from, sizeof(from), "n%d", i);
		(void)snprintf(to, sizeof(to), "n%d", i - 1);
		assert_int_equal(symlink(to, from), 0);
	}
	assert_int_equal(look(room, "n40")->type, NODE_FILE);
	assert_int_equal(access("n40", F_OK), 0);
	assert_int_equal(look(room, "n41")->errnum, ELOOP);
	assert_int_equal(access("n41", F_OK), -1);
}

static void test_absent(void **state)
{
	struct room *room = *state;

	assert_int_equal(mkdir("d", 0700), 0);
	touch("d/f");
	assert_int_equal(symlink("d/none", "dangling"), 0);
	assert_int_equal(look(room, "d/x/y/z")->type, NODE_ABSENT);
	assert_int_equal(room->walk.errnum, ENOENT);
	assert_real(room, "d/x/y/z");
	assert_int_equal(room->walk.existing_bytes, strlen(room->dir) + 2);

	/* What is behind a link is anchored where it really is. */
	assert_int_equal(look(room, "dangling/more")->type, NODE_ABSENT);
	assert_real(room, "d/none/more");
	assert_int_equal(room->walk.links.count, 1);
	assert_int_equal(room->walk.existing_bytes, strlen(room->dir) + 2);

	/* Below a file there is nothing either. */
	assert_int_equal(look(room, "d/f/below")->type, NODE_ABSENT);
	assert_int_equal(room->walk.errnum, ENOTDIR);
	assert_int_equal(room->walk.existing_bytes, strlen(room->dir) + 4);
}

static void test_absent_and_up_again(void **state)
{
	struct room *room = *state;

	assert_int_equal(symlink("none/../../x", "l"), 0);
	assert_int_equal(look(room, "l")->type, NODE_ABSENT);
	assert_string_equal(room->walk.real, "/tmp/x");
	assert_true(room->walk.existing_bytes <= strlen("/tmp"));
}

static void test_odd_names(void **state)
{
	struct room *room = *state;

	assert_int_equal(mkdir("new\nline", 0700), 0);
	touch("new\nline/\xff\xfe");
	assert_int_equal(symlink("new\nline", "l \\x"), 0);
	assert_int_equal(look(room, "l \\x/\xff\xfe")->type, NODE_FILE);
	assert_real(room, "new\nline/\xff\xfe");
}

static void test_long_paths_R13(void **state)
{
	struct room *room = *state;
	char path[LIMIT_PATH_BYTES + 2];
	size_t length = strlen(room->dir);

	/* Directories of 200 bytes as deep as one path can name. */
	memset(path, 'p', sizeof(path));
	memcpy(path, room->dir, length);
	for (size_t i = length; i < LIMIT_PATH_BYTES; i += 200)
		path[i] = '/';
	path[LIMIT_PATH_BYTES] = '\0';
	if (path[LIMIT_PATH_BYTES - 1] == '/')
		path[LIMIT_PATH_BYTES - 1] = 'p';
	for (size_t i = length + 200; i < LIMIT_PATH_BYTES; i += 200) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		assert_int_equal(mkdir(path, 0700), 0);
		path[i] = '/';
	}
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(strlen(path), LIMIT_PATH_BYTES);
	assert_int_equal(walk_path(&room->walk, path, NULL), 0);
	assert_int_equal(room->walk.type, NODE_DIRECTORY);
	assert_string_equal(room->walk.real, path);

	/* One byte more is no path. */
	path[LIMIT_PATH_BYTES] = 'p';
	path[LIMIT_PATH_BYTES + 1] = '\0';
	assert_int_equal(walk_path(&room->walk, path, NULL), -ERR_INVALID);
}

static void test_long_name_and_long_link(void **state)
{
	struct room *room = *state;
	char name[LIMIT_PATH_BYTES + 1];
	char target[4001];

	memset(name, 'n', 256);
	name[256] = '\0';
	assert_int_equal(look(room, name)->errnum, ENAMETOOLONG);

	/* What a link leads to may be longer than any path: an error, no overflow. */
	memset(target, 't', sizeof(target));
	for (size_t i = 0; i < sizeof(target); i += 100)
		target[i] = '/';
	target[4000] = '\0';
	assert_int_equal(symlink(target + 1, "long"), 0);
	(void)snprintf(name, sizeof(name), "%s/long/%s", room->dir, target + 3000);
	assert_true(walk_path(&room->walk, name, NULL) <= 0);
	(void)snprintf(name, sizeof(name), "%s/long/%s/%s", room->dir, target + 2100,
		       target + 2100);
	assert_int_equal(walk_path(&room->walk, name, NULL), -ERR_INVALID);
}

/* As an ordinary user, who has closed a directory of his own. */
static int look_into_closed(const char *dir)
{
	char path[128];
	struct walk walk = { 0 };

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 10;
	(void)snprintf(path, sizeof(path), "%s/closed/f", dir);
	if (mkdir("closed", 0700) < 0 || mkdir("closed/f", 0700) < 0 || chmod("closed", 0) < 0)
		return 11;
	if (walk_path(&walk, path, NULL) < 0 || walk.errnum != EACCES || walk.type != NODE_UNKNOWN)
		return 12;
	if (walk.existing_bytes != strlen(path) - 2 || strcmp(walk.real, path) != 0)
		return 13;
	return 0;
}

/* What cannot be reached is unknown, never absent. */
static void test_own_closed_directory(void **state)
{
	struct room *room = *state;
	int status;
	pid_t pid;

	assert_int_equal(chmod(room->dir, 0777), 0);
	pid = fork();
	if (pid == 0)
		_exit(look_into_closed(room->dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(chmod("closed", 0700), 0);
}

/* Nor what somebody else closed. */
static void test_no_permission(void **state)
{
	struct room *room = *state;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip(); /* needs a second user */
	assert_int_equal(chmod(room->dir, 0755), 0);
	assert_int_equal(mkdir("closed", 0700), 0);
	touch("closed/f");
	pid = fork();
	if (pid == 0) {
		char path[128];
		struct walk walk = { 0 };

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(10);
		(void)snprintf(path, sizeof(path), "%s/closed/f", room->dir);
		if (walk_path(&walk, path, NULL) < 0)
			_exit(11);
		if (walk.errnum != EACCES || walk.type != NODE_UNKNOWN)
			_exit(12);
		if (strcmp(walk.real, path) != 0 || walk.existing_bytes != strlen(path) - 2)
			_exit(13);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The links of /proc mean the looking process: they are not followed. */
static void test_proc_is_not_followed(void **state)
{
	struct room *room = *state;

	assert_int_equal(walk_path(&room->walk, "/proc/self/root/etc", NULL), 0);
	assert_string_equal(room->walk.real, "/proc/self/root/etc");
	assert_int_equal(room->walk.type, NODE_UNKNOWN);
	assert_int_equal(walk_path(&room->walk, "/proc/meminfo", NULL), 0);
	assert_int_equal(room->walk.type, NODE_FILE);
}

static void test_open_refuses_links_R10(void **state)
{
	struct room *room = *state;
	char path[128];
	int fd;

	assert_int_equal(mkdir("d", 0700), 0);
	touch("d/f");
	assert_int_equal(symlink("d", "l"), 0);
	assert_int_equal(symlink("f", "d/lf"), 0);
	(void)snprintf(path, sizeof(path), "%s/d/f", room->dir);
	fd = walk_open(path, O_RDONLY);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/l/f", room->dir);
	assert_int_equal(walk_open(path, O_PATH), -1);
	assert_int_equal(errno, ELOOP);
	(void)snprintf(path, sizeof(path), "%s/d/lf", room->dir);
	assert_int_equal(walk_open(path, O_PATH), -1);
	assert_int_equal(errno, ELOOP);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_types),
		T(test_root),
		T(test_links_R10),
		T(test_last_link_R10),
		T(test_dotdot_is_where_the_kernel_goes),
		T(test_loops_R10),
		T(test_link_count_R13),
		T(test_absent),
		T(test_absent_and_up_again),
		T(test_odd_names),
		T(test_long_paths_R13),
		T(test_long_name_and_long_link),
		T(test_own_closed_directory),
		T(test_no_permission),
		T(test_proc_is_not_followed),
		T(test_open_refuses_links_R10),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
