/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

#define OTHER_UID 1234568
#define ANNOUNCED_MAX 16

/* What announce() was told; @on_intent is called with the path before the level is made. */
struct told {
	struct report_placeholder made[ANNOUNCED_MAX];
	size_t made_count;
	size_t intent_count;
	size_t skipped_count;
	bool exists_at_intent;
	bool refuse;
	void (*on_intent)(const char *path);
};

static int announce(enum report_kind kind, const struct report_placeholder *what, void *arg,
		    struct error *err)
{
	struct told *told = arg;
	struct stat st;

	switch (kind) {
	case REPORT_PLACEHOLDER_INTENT:
		told->intent_count++;
		told->exists_at_intent |= lstat(what->path, &st) == 0;
		assert_int_equal(what->node.ino, 0);
		assert_int_not_equal(what->parent.ino, 0);
		if (told->on_intent)
			told->on_intent(what->path);
		return told->refuse ? error_set(err, ERR_LEDGER_FAILED, 0, "no") : 0;
	case REPORT_PLACEHOLDER_MADE:
		assert_true(told->made_count < ANNOUNCED_MAX);
		told->made[told->made_count++] = *what;
		return 0;
	case REPORT_PLACEHOLDER_SKIPPED:
		told->skipped_count++;
		return 0;
	case REPORT_PID1_UP:
	case REPORT_BUILT:
	case REPORT_STARTED:
	case REPORT_FAILED:
	case REPORT_EXITED:
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
	case REPORT_MASK_GONE:
	case REPORT_KIND_COUNT:
		break;
	}
	fail_msg("announced kind %d", kind);
	return -1;
}

/* Each case runs in an empty directory of an ordinary user, as that user, in a child. */
static char base[64];

static char *in_base(const char *name)
{
	static char paths[8][4200];
	static size_t next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
	return path;
}

static int remove_one(const struct report_placeholder *what)
{
	const struct placeholder placeholder = { .what = *what };

	return placeholder_remove(&placeholder, NULL);
}

static void make_ok(const char *path, struct told *told)
{
	struct error err = ERROR_INIT;
	int r = placeholder_make(path, announce, told, &err);

	if (r != 1)
		fail_msg("%d: %s", r, err.message);
}

static void R26_every_level_is_made_and_removed(void **state)
{
	struct told told = { .made_count = 0 };
	struct stat st;

	(void)state;
	make_ok(in_base("a/b\n/\xff\xfe"), &told);
	assert_int_equal(told.intent_count, 3);
	assert_int_equal(told.made_count, 3);
	assert_false(told.exists_at_intent); /* announced before it was made */
	assert_string_equal(told.made[0].path, in_base("a"));
	assert_string_equal(told.made[2].path, in_base("a/b\n/\xff\xfe"));
	assert_int_equal(lstat(in_base("a/b\n"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(st.st_uid, geteuid());

	/* Not from the top: the outer ones are not empty, and are forgotten. */
	for (size_t i = 3; i-- > 0;)
		assert_int_equal(remove_one(&told.made[i]), PLACEHOLDER_REMOVED);
	assert_int_equal(lstat(in_base("a"), &st), -1);
	assert_int_equal(remove_one(&told.made[2]), PLACEHOLDER_GONE);
}

static void existing_paths_are_left_alone(void **state)
{
	struct told told = { .made_count = 0 };

	(void)state;
	assert_int_equal(mkdir(in_base("d"), 0755), 0);
	assert_int_equal(mknod(in_base("f"), S_IFREG | 0644, 0), 0);
	make_ok(in_base("d"), &told);
	make_ok(in_base("f"), &told);
	make_ok("/", &told);
	make_ok("/usr", &told);
	assert_int_equal(told.intent_count, 0);
	/* Nothing can come to be below a file. */
	assert_int_equal(placeholder_make(in_base("f/x"), announce, &told, NULL), 0);
	assert_int_equal(told.intent_count, 0);
}

static void what_this_user_cannot_make(void **state)
{
	struct told told = { .made_count = 0 };
	char longest[300];

	(void)state;
	assert_int_equal(mkdir(in_base("closed"), 0500), 0);
	assert_int_equal(placeholder_make(in_base("closed/x"), announce, &told, NULL), 0);
	assert_int_equal(chmod(in_base("closed"), 0), 0);
	assert_int_equal(placeholder_make(in_base("closed/x"), announce, &told, NULL), 0);
	assert_int_equal(placeholder_make("/usr/fsbox-test-x", announce, &told, NULL), 0);
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(placeholder_make(in_base(longest), announce, &told, NULL), 0);
	assert_int_equal(told.made_count, 0);
	assert_int_equal(told.intent_count, told.skipped_count);
}

static void links_are_not_followed(void **state)
{
	struct told told = { .made_count = 0 };
	struct error err;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(in_base("target"), 0755), 0);
	assert_int_equal(symlink(in_base("target"), in_base("link")), 0);
	assert_int_equal(placeholder_make(in_base("link/x"), announce, &told, &err),
			 -ERR_SETUP_FAILED);
	assert_int_equal(lstat(in_base("target/x"), &st), -1);
	assert_int_equal(placeholder_make("relative", announce, &told, &err), -ERR_SETUP_FAILED);
	assert_int_equal(told.intent_count, 0);
}

static void R26_nothing_without_the_ledger(void **state)
{
	struct told told = { .refuse = true };
	struct error err;
	struct stat st;

	(void)state;
	assert_int_equal(placeholder_make(in_base("a/b"), announce, &told, &err),
			 -ERR_LEDGER_FAILED);
	assert_int_equal(lstat(in_base("a"), &st), -1);
}

/* ---- somebody else is faster --------------------------------------------------------- */

static void make_directory(const char *path)
{
	assert_int_equal(mkdir(path, 0755), 0);
}

static void make_link(const char *path)
{
	assert_int_equal(symlink(in_base("elsewhere"), path), 0);
}

static void remove_parent_once(const char *path)
{
	static bool done;

	if (!done && strstr(path, "/p/x")) {
		done = true;
		assert_int_equal(rmdir(in_base("p")), 0);
	}
}

static void races_while_making(void **state)
{
	struct told told = { .on_intent = make_directory };
	struct error err;
	struct stat st;

	(void)state;
	make_ok(in_base("a"), &told);
	assert_int_equal(told.made_count, 0); /* theirs: never to be removed by us */
	assert_int_equal(told.skipped_count, 1);
	make_ok(in_base("a/b/c"), &told);
	assert_int_equal(told.made_count, 0);

	told = (struct told){ .on_intent = make_link };
	assert_int_equal(mkdir(in_base("elsewhere"), 0755), 0);
	assert_int_equal(placeholder_make(in_base("l/x"), announce, &told, &err),
			 -ERR_SETUP_FAILED);
	assert_int_equal(lstat(in_base("elsewhere/x"), &st), -1);

	told = (struct told){ .on_intent = remove_parent_once };
	assert_int_equal(mkdir(in_base("p"), 0755), 0);
	make_ok(in_base("p/x"), &told);
	assert_int_equal(told.made_count, 2);
}

/* ---- removing only what is ours ------------------------------------------------------ */

static struct report_placeholder make_one(const char *path)
{
	struct told told = { .made_count = 0 };

	make_ok(path, &told);
	assert_int_equal(told.made_count, 1);
	return told.made[0];
}

/* Another builder goes on below the moment that it is there: it is what we made all the same. */
static void R26_made_though_others_build_in_it(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct told told = { .made_count = 0 };
		pid_t other = fork();

		if (other == 0) {
			while (mkdir(in_base("a/x"), 0700) < 0 && errno == ENOENT)
				;
			_exit(0);
		}
		assert_true(other > 0);
		make_ok(in_base("a"), &told);
		assert_int_equal(told.made_count, 1);
		assert_int_equal(told.skipped_count, 0);
		assert_int_equal(waitpid(other, NULL, 0), other);
		assert_int_equal(remove_one(&told.made[0]), PLACEHOLDER_LEFT);
		assert_int_equal(rmdir(in_base("a/x")), 0);
		assert_int_equal(remove_one(&told.made[0]), PLACEHOLDER_REMOVED);
	}
}

static void R26_only_the_very_object_is_removed(void **state)
{
	struct report_placeholder what = make_one(in_base("a"));
	struct stat st;

	(void)state;
	/* In use. */
	assert_int_equal(mknod(in_base("a/file"), S_IFREG | 0600, 0), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_LEFT);
	assert_int_equal(lstat(in_base("a/file"), &st), 0);
	assert_int_equal(unlink(in_base("a/file")), 0);

	/* Replaced by another empty directory, which may even get the same inode number. */
	assert_int_equal(rmdir(in_base("a")), 0);
	(void)usleep(20000);
	assert_int_equal(mkdir(in_base("a"), 0700), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_LEFT);
	assert_int_equal(lstat(in_base("a"), &st), 0);

	/* Replaced by a file; by a link to an empty directory. */
	what = make_one(in_base("b"));
	assert_int_equal(rmdir(in_base("b")), 0);
	assert_int_equal(mknod(in_base("b"), S_IFREG | 0600, 0), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_LEFT);
	assert_int_equal(lstat(in_base("b"), &st), 0);
	what = make_one(in_base("c"));
	assert_int_equal(rename(in_base("c"), in_base("c2")), 0);
	assert_int_equal(symlink("c2", in_base("c")), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_LEFT);
	assert_int_equal(lstat(in_base("c2"), &st), 0);
}

static void the_parent_must_be_the_same_too(void **state)
{
	struct report_placeholder what;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(in_base("p"), 0755), 0);
	assert_int_equal(mkdir(in_base("other"), 0755), 0);
	what = make_one(in_base("p/a"));
	/* Another one in its place, and ours elsewhere. */
	assert_int_equal(rename(in_base("p"), in_base("other/q")), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_GONE);
	assert_int_equal(mkdir(in_base("p"), 0755), 0);
	assert_int_equal(rename(in_base("other/q/a"), in_base("p/a")), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_GONE);
	assert_int_equal(lstat(in_base("p/a"), &st), 0);
	/* Through a link. */
	assert_int_equal(rename(in_base("p/a"), in_base("other/q/a")), 0);
	assert_int_equal(rmdir(in_base("p")), 0);
	assert_int_equal(symlink("other/q", in_base("p")), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_GONE);
	assert_int_equal(lstat(in_base("other/q/a"), &st), 0);
}

/* What is above it was renamed meanwhile: found, if it is not far. */
static void R26_renamed_above(void **state)
{
	struct report_placeholder what;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir(in_base("p"), 0755), 0);
	what = make_one(in_base("p/a"));
	assert_int_equal(rename(in_base("p"), in_base("q")), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_REMOVED);
	assert_int_equal(lstat(in_base("q"), &st), 0);

	/* Further up, with something like it in the old place. */
	assert_int_equal(mkdir(in_base("x"), 0755), 0);
	assert_int_equal(mkdir(in_base("x/y"), 0755), 0);
	what = make_one(in_base("x/y/a"));
	assert_int_equal(rename(in_base("x"), in_base("w")), 0);
	assert_int_equal(mkdir(in_base("x"), 0755), 0);
	assert_int_equal(mkdir(in_base("x/y"), 0755), 0);
	assert_int_equal(mkdir(in_base("x/y/a"), 0700), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_REMOVED);
	assert_int_equal(lstat(in_base("w/y/a"), &st), -1);
	assert_int_equal(lstat(in_base("x/y/a"), &st), 0);
	/* With something in it there. */
	what = make_one(in_base("w/y/b"));
	assert_int_equal(rename(in_base("w"), in_base("v")), 0);
	assert_int_equal(mknod(in_base("v/y/b/f"), S_IFREG | 0600, 0), 0);
	assert_int_equal(remove_one(&what), PLACEHOLDER_LEFT);
	assert_int_equal(lstat(in_base("v/y/b/f"), &st), 0);
}

static void an_intent_is_removed_by_its_marks(void **state)
{
	struct report_placeholder what = make_one(in_base("a"));
	struct placeholder intent = { .what = what };
	const struct node_identity made = what.node;
	struct stat st;

	(void)state;
	if (made.btime_sec == 0)
		skip(); /* without birth times such a one is left */
	intent.what.node = (struct node_identity){ .ino = 0 };
	assert_int_equal(placeholder_remove(&intent, NULL), PLACEHOLDER_LEFT); /* no intent */
	intent.since_sec = made.btime_sec + 1;
	assert_int_equal(placeholder_remove(&intent, NULL), PLACEHOLDER_LEFT); /* older than it */
	intent.since_sec = made.btime_sec - 3600;
	assert_int_equal(placeholder_remove(&intent, NULL),
			 PLACEHOLDER_LEFT); /* the user's, since */
	intent.since_sec = made.btime_sec - 1;
	assert_int_equal(chmod(in_base("a"), 0755), 0);
	assert_int_equal(placeholder_remove(&intent, NULL), PLACEHOLDER_LEFT); /* somebody's */
	assert_int_equal(chmod(in_base("a"), 0700), 0);
	assert_int_equal(lstat(in_base("a"), &st), 0);
	/* With the identity of one that went before as well. */
	intent.what.node = made;
	intent.what.node.ino++;
	assert_int_equal(placeholder_remove(&intent, NULL), PLACEHOLDER_REMOVED);
	assert_int_equal(placeholder_remove(&intent, NULL), PLACEHOLDER_GONE);
}

static void swapped_under_way(void **state)
{
	const char *path = in_base("x");
	pid_t swapper = 0;

	(void)state;
	/* The user's own empty directory and file change places with ours all the time. */
	assert_int_equal(mkdir(in_base("theirs"), 0755), 0);
	assert_int_equal(mknod(in_base("theirs/keep"), S_IFREG | 0600, 0), 0);
	swapper = fork();
	if (swapper == 0) {
		for (;;)
			(void)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, in_base("theirs"),
				      2 /* RENAME_EXCHANGE */);
	}
	for (int i = 0; i < 500; i++) {
		struct told told = { .made_count = 0 };

		if (placeholder_make(path, announce, &told, NULL) == 1 && told.made_count == 1)
			(void)remove_one(&told.made[0]);
	}
	(void)kill(swapper, SIGKILL);
	(void)waitpid(swapper, NULL, 0);
	assert_true(access(in_base("theirs/keep"), F_OK) == 0 ||
		    access(in_base("x/keep"), F_OK) == 0);
}

/* ---- file systems that come and go (root only) --------------------------------------- */

static void R26_unmounted_is_kept(void **state)
{
	struct placeholder kept = { .since_sec = 0 };
	struct error err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(in_base("m"), 0755), 0);
	assert_int_equal(mount("none", in_base("m"), "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir(in_base("m/d"), 0755), 0);
	kept.what = make_one(in_base("m/d/a"));
	assert_int_equal(mount("none", in_base("m"), "tmpfs", 0, NULL), 0); /* another on top */
	assert_int_equal(placeholder_remove(&kept, &err), -ERR_SYSTEM);
	assert_int_equal(mkdir(in_base("m/d"), 0755), 0);
	assert_int_equal(placeholder_remove(&kept, &err), -ERR_SYSTEM);
	assert_int_equal(umount(in_base("m")), 0);
	assert_int_equal(placeholder_remove(&kept, &err), PLACEHOLDER_REMOVED);
	assert_int_equal(umount(in_base("m")), 0);
}

/* ---- identity ------------------------------------------------------------------------ */

static void identities(void **state)
{
	struct node_identity a;
	struct node_identity b;
	int fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(node_identity_read(fd, &a, NULL), 0);
	assert_int_equal(node_identity_read(fd, &b, NULL), 0);
	(void)close(fd);
	assert_true(node_identity_equal(&a, &b));
	b.dev++; /* device numbers change across mounts */
	assert_int_equal(node_identity_equal(&a, &b), a.fsid != 0);
	b = a;
	b.ino++;
	assert_false(node_identity_equal(&a, &b));
	b = a;
	b.btime_nsec++;
	assert_false(node_identity_equal(&a, &b));
	b = a;
	b.handle_bytes = 0;
	assert_true(node_identity_equal(&a, &b));
	if (a.handle_bytes > 0) {
		b = a;
		b.handle[0] ^= 1;
		assert_false(node_identity_equal(&a, &b));
	}
	assert_int_equal(node_identity_read(-1, &a, NULL), -ERR_SYSTEM);
}

/* ---- frame --------------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	memcpy(base, "/tmp/fsbox-test-XXXXXX", sizeof("/tmp/fsbox-test-XXXXXX"));
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[256];
	pid_t pid = fork();
	int status = 0;

	(void)state;
	if (pid == 0) {
		(void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", base,
			       base);
		(void)execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest as_user[] = {
		CASE(R26_every_level_is_made_and_removed),
		CASE(existing_paths_are_left_alone),
		CASE(what_this_user_cannot_make),
		CASE(links_are_not_followed),
		CASE(R26_nothing_without_the_ledger),
		CASE(races_while_making),
		CASE(R26_made_though_others_build_in_it),
		CASE(R26_only_the_very_object_is_removed),
		CASE(the_parent_must_be_the_same_too),
		CASE(R26_renamed_above),
		CASE(an_intent_is_removed_by_its_marks),
		CASE(swapped_under_way),
		CASE(identities),
	};
	const struct CMUnitTest as_is[] = { CASE(R26_unmounted_is_kept) };
	int status = 0;
	pid_t pid = 0;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(OTHER_UID, OTHER_UID, OTHER_UID) < 0 ||
				       setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0))
			return 1;
		return cmocka_run_group_tests(as_user, NULL, NULL);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	return cmocka_run_group_tests(as_is, NULL, NULL);
}
