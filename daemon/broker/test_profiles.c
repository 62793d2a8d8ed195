/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/profiles.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

struct room {
	char dir[64];
	char user[80];
	char host[80];
	struct resolver_pool pool;
	struct event_base *base;
	struct profile_load load;
	bool done;
	struct error err;
};

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	char made[] = "/tmp/fsbox-profile.XXXXXX";

	assert_non_null(room);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_non_null(mkdtemp(made));
	(void)snprintf(room->dir, sizeof(room->dir), "%s", made);
	(void)snprintf(room->user, sizeof(room->user), "%s/user", made);
	(void)snprintf(room->host, sizeof(room->host), "%s/host", made);
	assert_int_equal(mkdir(room->user, 0755), 0);
	assert_int_equal(mkdir(room->host, 0755), 0);
	assert_int_equal(resolver_pool_init(&room->pool, NULL), 0);
	room->base = event_base_new();
	assert_int_equal(resolver_pool_attach(&room->pool, room->base, NULL), 0);
	*state = room;
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
	struct room *room = *state;

	profiles_deinit(&room->load);
	resolver_pool_deinit(&room->pool);
	event_base_free(room->base);
	(void)nftw(room->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(room);
	return 0;
}

static void put(const struct room *room, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void on_done(void *arg, const struct error *err)
{
	struct room *room = arg;

	assert_false(room->done);
	room->done = true;
	if (err != NULL)
		room->err = *err;
	(void)event_base_loopbreak(room->base);
}

/* 0, or -kind, however it came. */
static int load(struct room *room, const char *name)
{
	const struct profile_dirs dirs = { { room->user, NULL, room->host } };
	int r;

	profiles_deinit(&room->load);
	memset(&room->load, 0, sizeof(room->load));
	room->done = false;
	error_clear(&room->err);
	r = profiles_load(&room->load, &room->pool, &dirs, name, on_done, room, &room->err);
	if (r != 0)
		return r < 0 ? r : 0;
	while (!room->done)
		assert_int_equal(event_base_dispatch(room->base), 0);
	return -(int)room->err.kind;
}

static void test_built_in(void **state)
{
	struct room *room = *state;

	put(room, "user/generic.json", "{\"description\": \"not this one\"}");
	assert_int_equal(load(room, "generic"), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_GENERIC);
	assert_null(room->load.profile.description);
	assert_int_equal(load(room, "host"), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_HOST);
	assert_int_equal(load(room, "botmux"), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_BOTMUX);
}

static void test_search_order(void **state)
{
	struct room *room = *state;

	put(room, "host/a.json", "{\"description\": \"host\"}");
	assert_int_equal(load(room, "a"), 0);
	assert_string_equal(room->load.profile.description, "host");
	put(room, "user/a.json", "{\"description\": \"user\"}");
	assert_int_equal(load(room, "a"), 0);
	assert_string_equal(room->load.profile.description, "user");
	assert_int_equal(room->load.base, PROFILE_BASE_NONE);
	assert_int_equal(load(room, "b"), -ERR_CONFIG);
	assert_non_null(strstr(room->err.message, "'b'"));
}

static void test_by_path(void **state)
{
	struct room *room = *state;
	char path[128];

	put(room, "mine", "{\"extends\": \"generic\", \"description\": \"by path\"}");
	(void)snprintf(path, sizeof(path), "%s/mine", room->dir);
	assert_int_equal(load(room, path), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_GENERIC);
	assert_string_equal(room->load.profile.description, "by path");
	(void)snprintf(path, sizeof(path), "%s/none", room->dir);
	assert_int_equal(load(room, path), -ERR_CONFIG);
	assert_int_equal(load(room, room->dir), -ERR_CONFIG);
}

static void test_names_that_are_none(void **state)
{
	static const char *const names[] = { "", "../a", "a/b", ".hidden", "a b", "relative/x" };
	char longest[LIMIT_NAME_BYTES + 1];
	struct room *room = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(load(room, names[i]), -ERR_INVALID);
	memset(longest, 'a', LIMIT_NAME_BYTES);
	longest[LIMIT_NAME_BYTES] = '\0';
	assert_int_equal(load(room, longest), -ERR_INVALID);
	longest[LIMIT_NAME_BYTES - 1] = '\0';
	assert_int_equal(load(room, longest), -ERR_CONFIG); /* a name, but of nothing */
	put(room, "host/a.json", "{\"extends\": \"../b\"}");
	assert_int_equal(load(room, "a"), -ERR_CONFIG);
}

static void test_extends(void **state)
{
	struct room *room = *state;

	put(room, "host/base.json",
	    "{\"extends\": \"host\", \"paths\": {\"deny\": [\"/b\", \"/both\"]}, \"net\": \"host\"}");
	put(room, "user/mine.json",
	    "{\"extends\": \"base\", \"paths\": {\"readOnly\": [\"/both\"], \"deny\": [\"/m\"]}}");
	assert_int_equal(load(room, "mine"), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_HOST);
	assert_int_equal(room->load.profile.net.mode, NET_CHOICE_HOST);
	assert_int_equal(room->load.profile.paths.deny.count, 2);
	assert_int_equal(room->load.profile.paths.read_only.count, 1);
}

static void test_loops(void **state)
{
	struct room *room = *state;

	put(room, "host/self.json", "{\"extends\": \"self\"}");
	assert_int_equal(load(room, "self"), -ERR_CONFIG);
	assert_non_null(strstr(room->err.message, "extends itself"));
	put(room, "host/one.json", "{\"extends\": \"two\"}");
	put(room, "host/two.json", "{\"extends\": \"one\"}");
	assert_int_equal(load(room, "one"), -ERR_CONFIG);
}

/* At the bound and one past it. */
static void test_depth_R13(void **state)
{
	struct room *room = *state;

	for (int i = 1; i <= PROFILE_DEPTH_MAX + 1; i++) {
		char name[32];
		char text[64];

		(void)snprintf(name, sizeof(name), "host/d%d.json", i);
		if (i == 1)
			(void)snprintf(text, sizeof(text), "{\"extends\": \"generic\"}");
		else
			(void)snprintf(text, sizeof(text), "{\"extends\": \"d%d\"}", i - 1);
		put(room, name, text);
	}
	assert_int_equal(load(room, "d8"), 0);
	assert_int_equal(room->load.base, PROFILE_BASE_GENERIC);
	assert_int_equal(load(room, "d9"), -ERR_CONFIG);
}

static void test_not_a_profile(void **state)
{
	struct room *room = *state;

	put(room, "host/bad.json", "{\"paths\": {\"deny\": [\"/a/*\"]}}");
	assert_int_equal(load(room, "bad"), -ERR_CONFIG);
	assert_non_null(strstr(room->err.message, "bad.json"));
	put(room, "host/bad.json", "{\"nonsense\": 1}");
	assert_int_equal(load(room, "bad"), -ERR_CONFIG);
	put(room, "host/bad.json", "{");
	assert_int_equal(load(room, "bad"), -ERR_CONFIG);
}

/* A file that is too large, and one that hangs: a FIFO. */
static void test_odd_files_R13(void **state)
{
	struct room *room = *state;
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/fifo", room->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(room, path), -ERR_CONFIG);
	(void)snprintf(path, sizeof(path), "%s/big", room->dir);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs("{}", file) >= 0);
	for (size_t i = 2; i < LIMIT_PROFILE_BYTES; i++)
		(void)fputc(' ', file);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(load(room, path), 0);
	(void)fputc(' ', file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(load(room, path), -ERR_CONFIG);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_built_in),      T(test_search_order),
		T(test_by_path),       T(test_names_that_are_none),
		T(test_extends),       T(test_loops),
		T(test_depth_R13),     T(test_not_a_profile),
		T(test_odd_files_R13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
