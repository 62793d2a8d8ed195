/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/dircache.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char room[64];

static void put(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static int set_up(void **state)
{
	char made[] = "/tmp/fsbox-dircache.XXXXXX";
	char *real;

	(void)state;
	assert_non_null(mkdtemp(made));
	real = realpath(made, NULL);
	assert_non_null(real);
	(void)snprintf(room, sizeof(room), "%s", real);
	free(real);
	assert_int_equal(chdir(room), 0);
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(mkdir("d/e", 0755), 0);
	assert_int_equal(mkdir("closed", 0000), 0);
	put("d/f");
	assert_int_equal(symlink("d", "l"), 0);
	assert_int_equal(symlink("f", "d/lf"), 0);
	assert_int_equal(symlink("none", "d/dangling"), 0);
	assert_int_equal(symlink("loop", "d/loop"), 0);
	assert_int_equal(mkfifo("d/fifo", 0600), 0);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(chdir("/"), 0);
	(void)nftw(room, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* Whatever is asked, the answer is walk_path()'s. */
static void assert_same(struct dircache *cache, const char *path)
{
	struct walk plain = { 0 };
	struct walk cached = { 0 };
	int r = walk_path(&plain, path, NULL);

	assert_int_equal(dircache_walk(cache, &cached, path, NULL), r);
	if (r == 0) {
		assert_string_equal(cached.real, plain.real);
		assert_int_equal(cached.type, plain.type);
		assert_int_equal(cached.errnum, plain.errnum);
		assert_int_equal(cached.existing_bytes, plain.existing_bytes);
		assert_int_equal(cached.links.count, plain.links.count);
		assert_string_equal(cached.link != NULL ? cached.link : "",
				    plain.link != NULL ? plain.link : "");
	}
	walk_deinit(&plain);
	walk_deinit(&cached);
}

static void test_same_answers(void **state)
{
	static const char *const names[] = {
		"d",      "d/f",         "d/f/below", "d/e",      "d/e/none",   "d/none/x/y",
		"none/x", "none",        "l",         "l/f",      "l/none",     "l/lf",
		"d/lf",   "d/lf/x",      "d/loop",    "d/loop/x", "d/dangling", "d/dangling/x",
		"d/fifo", "closed",      "closed/x",  "d/../d/f", "d//f",       "./d/f",
		"d/f/",   "d/e/../../d", "",
	};
	struct dircache *cache = dircache_new();

	(void)state;
	assert_non_null(cache);
	/* Twice: with the directories known, too. */
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			char path[128];

			(void)snprintf(path, sizeof(path), "%s/%s", room, names[i]);
			assert_same(cache, path);
		}
		assert_same(cache, "/");
		assert_same(cache, "/usr");
		assert_same(cache, "/none");
		assert_same(cache, "/none/below");
		assert_same(cache, "relative");
		assert_same(cache, "");
		assert_same(cache, "/proc/self/environ");
		assert_same(cache, "/proc/meminfo");
	}
	(void)dircache_free(cache);
	assert_null(dircache_free(NULL));
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

/* Up to the bound and past it: the same answers, no more descriptors. */
static void test_many_R13(void **state)
{
	struct dircache *cache = dircache_new();
	unsigned before = open_descriptors();

	(void)state;
	for (int i = 0; i < DIRCACHE_MAX + 50; i++) {
		char name[32];
		char path[128];

		(void)snprintf(name, sizeof(name), "d/e/%d", i);
		assert_int_equal(mkdir(name, 0755), 0);
		(void)snprintf(path, sizeof(path), "%s/%s/x", room, name);
		assert_same(cache, path);
	}
	assert_int_equal(cache->count, DIRCACHE_MAX);
	assert_true(open_descriptors() - before <= DIRCACHE_MAX);
	(void)dircache_free(cache);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_same_answers),
		T(test_many_R13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
