/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/profile.h"

#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

static const struct profile_facts facts = { .home = "/home/u", .cwd = "/srv/p" };

static int parse(struct profile *profile, const char *text, struct error *err)
{
	return profile_parse(profile, text, strlen(text), "test.json", err);
}

static void parse_good(struct profile *profile, const char *text)
{
	struct error err = ERROR_INIT;

	if (parse(profile, text, &err) < 0)
		fail_msg("%s", err.message);
}

static const char full_text[] =
	"// a profile\n"
	"{\n"
	"	\"extends\": \"generic\", // not \"host\"\n"
	"	\"description\": \"with // in it, and \\\" too // not a comment\",\n"
	"	\"paths\": {\n"
	"		\"readWrite\": [\"${cwd}\", {\"path\": \"~/.cargo\", \"optional\": true}],\n"
	"		\"readOnly\": [\"${home}/x//y/./z/\", \"~\", \"/opt\"],\n"
	"		\"deny\": [{\"path\": \"${cwd}/.env\", \"absent\": \"watch\"}]\n"
	"	},\n"
	"	\"net\": {\"mode\": \"proxy\", \"allow\": [\"*.example.org\"], \"deny\": [\"a\"]},\n"
	"	\"env\": {\"pass\": [\"LANG\"], \"set\": {\"CI\": \"1\"}, \"withhold\": [\"T\"]},\n"
	"	\"limits\": {\"memoryBytes\": 1, \"pids\": 2, \"cpus\": \"0.5\", \"wallMs\": 3},\n"
	"	\"cache\": [\"~/.cache\"],\n"
	"	\"sockets\": [\"/run/bus\"],\n"
	"	\"protect\": false\n"
	"}\n"
	"// the end";

static void everything(void **state)
{
	struct error err = ERROR_INIT;
	struct profile profile;

	(void)state;
	parse_good(&profile, full_text);
	assert_string_equal(profile.extends, "generic");
	assert_string_equal(profile.description, "with // in it, and \" too // not a comment");
	assert_int_equal(profile.net.mode, NET_CHOICE_PROXY);
	assert_int_equal(profile.protect, TRISTATE_FALSE);
	assert_int_equal(profile.limits.cpus_milli, 500);
	assert_int_equal(profile_expand(&profile, &facts, &err), 0);
	assert_string_equal(profile.paths.read_write.items[0].path, "/srv/p");
	assert_string_equal(profile.paths.read_write.items[1].path, "/home/u/.cargo");
	assert_true(profile.paths.read_write.items[1].optional);
	assert_string_equal(profile.paths.read_only.items[0].path, "/home/u/x/y/z");
	assert_string_equal(profile.paths.read_only.items[1].path, "/home/u");
	assert_string_equal(profile.paths.deny.items[0].path, "/srv/p/.env");
	assert_int_equal(profile.paths.deny.items[0].absent, ABSENT_WATCH);
	assert_string_equal(profile.cache.items[0], "/home/u/.cache");
	assert_string_equal(profile.sockets.items[0], "/run/bus");
	profile_deinit(&profile);
	profile_deinit(&profile);
	profile_deinit(NULL);
}

static void nothing(void **state)
{
	struct profile profile;

	(void)state;
	parse_good(&profile, "{}");
	assert_int_equal(profile.protect, TRISTATE_UNSET);
	assert_int_equal(profile.net.mode, NET_CHOICE_UNSET);
	profile_deinit(&profile);
	parse_good(&profile, "{\"net\":\"host\",\"protect\":true}//");
	assert_int_equal(profile.net.mode, NET_CHOICE_HOST);
	assert_int_equal(profile.protect, TRISTATE_TRUE);
	profile_deinit(&profile);
}

static void refusals_with_their_place(void **state)
{
	static const char *const cases[][2] = {
		{ "", "test.json: line 1, column 1: parse error: premature EOF" },
		{ "// only\n", "test.json: line 2, column 1: parse error: premature EOF" },
		{ "{\n// x\n\"a\": 1.5\n}",
		  "test.json: line 3, column 7: numbers must be integers" },
		{ "{/* x */}", "test.json: line 1, column 2: comments are not allowed" },
		{ "{\"path\":{}}", "test.json: profile.path: unknown key" },
		{ "{\"paths\":{\"rw\":[]}}", "test.json: profile.paths.rw: unknown key" },
		{ "{\"net\":\"all\"}",
		  "test.json: profile.net: is 'all', must be one of: none proxy host" },
		{ "{\"net\":{\"forward\":[1]}}", "test.json: profile.net.forward: unknown key" },
		{ "{\"protect\":1}",
		  "test.json: profile.protect: must be true or false, is an integer" },
		{ "{\"paths\":{\"deny\":[\"/a\",\"/b*\"]}}",
		  "test.json: paths.deny[1]: '/b*': globs are not supported" },
		{ "{\"paths\":{\"readWrite\":[\"/a?\"]}}",
		  "test.json: paths.readWrite[0]: '/a?': globs are not supported" },
		{ "{\"paths\":{\"readOnly\":[{\"path\":\"/[ab]\"}]}}",
		  "test.json: paths.readOnly[0]: '/[ab]': globs are not supported" },
		{ "{\"cache\":[\"x\"]}",
		  "test.json: cache[0]: 'x': must begin with /, ~, ${cwd} or ${home}" },
		{ "{\"sockets\":[\"~root/x\"]}",
		  "test.json: sockets[0]: '~root/x': only ~ itself stands for a home directory" },
		{ "{\"paths\":{\"deny\":[\"${HOME}/x\"]}}",
		  "test.json: paths.deny[0]: '${HOME}/x': only ${cwd} and ${home}, and only at the "
		  "start" },
		{ "{\"paths\":{\"deny\":[\"/a/${cwd}\"]}}",
		  "test.json: paths.deny[0]: '/a/${cwd}': only ${cwd} and ${home}, and only at the "
		  "start" },
		{ "{\"paths\":{\"deny\":[\"${cwd}x\"]}}",
		  "test.json: paths.deny[0]: '${cwd}x': only ${cwd} and ${home}, and only at the "
		  "start" },
		{ "{\"paths\":{\"deny\":[\"\"]}}", "test.json: profile.paths.deny[0]: is empty" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		struct profile profile;

		assert_int_equal(parse(&profile, cases[i][0], &err), -ERR_CONFIG);
		assert_string_equal(err.message, cases[i][1]);
	}
}

static void dots_are_refused(void **state)
{
	struct error err = ERROR_INIT;
	char *path = NULL;

	(void)state;
	assert_int_equal(profile_expand_path("~/../x", &facts, &path, &err), -ERR_CONFIG);
	assert_int_equal(profile_expand_path("/a/..", &facts, &path, &err), -ERR_CONFIG);
	assert_null(path);
}

static void expanding_at_the_root(void **state)
{
	static const struct profile_facts root = { .home = "/", .cwd = "/" };
	static const char *const cases[][2] = {
		{ "~", "/" },       { "~/", "/" }, { "~/x", "/x" },         { "${cwd}/x", "/x" },
		{ "${home}", "/" }, { "/", "/" },  { "//a///b//", "/a/b" }, { "/a/${x", NULL },
		{ "/~", "/~" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		char *path = NULL;
		int r = profile_expand_path(cases[i][0], &root, &path, &err);

		if (!cases[i][1]) {
			assert_int_equal(r, -ERR_CONFIG);
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(path, cases[i][1]);
		free(path);
	}
}

/* One past the longest path and the most entries. */
static void ceilings(void **state)
{
	struct buf text = BUF_INIT(4u << 20);
	struct error err = ERROR_INIT;
	struct profile profile;
	char *path = NULL;
	char longest[LIMIT_PATH_BYTES + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[LIMIT_PATH_BYTES] = '\0';
	assert_int_equal(profile_expand_path(longest, &facts, &path, &err), 0);
	free(path);
	longest[LIMIT_PATH_BYTES] = 'x';
	longest[LIMIT_PATH_BYTES + 1] = '\0';
	assert_int_equal(profile_expand_path(longest, &facts, &path, &err), -ERR_CONFIG);

	for (size_t extra = 0; extra < 2; extra++) {
		buf_clear(&text);
		assert_int_equal(buf_add_string(&text, "{\"paths\":{\"deny\":[\"/0\""), 0);
		for (size_t i = 1; i < LIMIT_PROFILE_PATHS + extra; i++)
			assert_int_equal(buf_printf(&text, ",\"/%zu\"", i), 0);
		assert_int_equal(buf_add_string(&text, "]}}"), 0);
		assert_int_equal(profile_parse(&profile, buf_text(&text), text.size, "test.json",
					       &err),
				 extra ? -ERR_CONFIG : 0);
		profile_deinit(&profile);
	}
	buf_clear(&text);
	while (text.size < LIMIT_PROFILE_BYTES - 2)
		assert_int_equal(buf_add_byte(&text, ' '), 0);
	assert_int_equal(buf_add_string(&text, "{}"), 0);
	assert_int_equal(profile_parse(&profile, buf_text(&text), text.size, "test.json", &err), 0);
	assert_int_equal(buf_add_byte(&text, ' '), 0);
	assert_int_equal(profile_parse(&profile, buf_text(&text), text.size, "test\n.json", &err),
			 -ERR_CONFIG);
	assert_string_equal(err.message, "test\\x0a.json: longer than 1048576 bytes");
	buf_deinit(&text);
}

static void merging(void **state)
{
	struct error err = ERROR_INIT;
	struct profile profile;
	struct profile base;

	(void)state;
	parse_good(&profile,
		   "{\"extends\":\"b\",\"paths\":{\"readWrite\":[\"/both\"],"
		   "\"deny\":[\"/own\"]},\"net\":\"none\",\"env\":{\"set\":{\"A\":\"own\"}},"
		   "\"limits\":{\"pids\":7}}");
	parse_good(&base,
		   "{\"extends\":\"c\",\"description\":\"base\",\"paths\":{"
		   "\"readWrite\":[\"/base\"],\"readOnly\":[\"/both\",\"/r\"],"
		   "\"deny\":[\"/both\",\"/d\"]},\"net\":{\"mode\":\"proxy\",\"allow\":[\"h\"]},"
		   "\"env\":{\"pass\":[\"P\"],\"set\":{\"A\":\"base\",\"B\":\"b\"},"
		   "\"withhold\":[\"W\"]},\"limits\":{\"pids\":1,\"wallMs\":2,"
		   "\"memoryBytes\":3,\"cpus\":4},\"cache\":[\"/c\"],\"sockets\":[\"/s\"],"
		   "\"protect\":true}");
	assert_int_equal(profile_merge_take(&profile, &base, &err), 0);
	assert_string_equal(profile.extends, "c");
	assert_string_equal(profile.description, "base");
	assert_int_equal(profile.paths.read_write.count, 2);
	assert_string_equal(profile.paths.read_write.items[0].path, "/base");
	assert_string_equal(profile.paths.read_write.items[1].path, "/both");
	assert_int_equal(profile.paths.read_only.count, 1);
	assert_string_equal(profile.paths.read_only.items[0].path, "/r");
	assert_int_equal(profile.paths.deny.count, 2);
	assert_string_equal(profile.paths.deny.items[0].path, "/d");
	assert_int_equal(profile.net.mode, NET_CHOICE_NONE);
	assert_int_equal(profile.net.allow.count, 1);
	assert_string_equal(env_list_get(&profile.env_set, "A"), "own");
	assert_string_equal(env_list_get(&profile.env_set, "B"), "b");
	assert_int_equal(profile.limits.pids, 7);
	assert_int_equal(profile.limits.wall_ms, 2);
	assert_int_equal(profile.limits.memory_bytes, 3);
	assert_int_equal(profile.limits.cpus_milli, 4000);
	assert_int_equal(profile.protect, TRISTATE_TRUE);
	assert_int_equal(profile.cache.count, 1);
	assert_null(base.extends);
	assert_int_equal(base.paths.read_write.count, 0);
	profile_deinit(&base);

	/* The end of a chain. */
	parse_good(&base, "{\"description\":\"root\",\"protect\":false}");
	assert_int_equal(profile_merge_take(&profile, &base, &err), 0);
	assert_null(profile.extends);
	assert_string_equal(profile.description, "base");
	assert_int_equal(profile.protect, TRISTATE_TRUE);
	profile_deinit(&profile);
}

static void merging_into_nothing(void **state)
{
	struct error err = ERROR_INIT;
	struct profile profile;
	struct profile base;

	(void)state;
	parse_good(&profile, "{}");
	parse_good(&base, full_text);
	assert_int_equal(profile_merge_take(&profile, &base, &err), 0);
	assert_int_equal(profile.paths.read_only.count, 3);
	assert_int_equal(profile.net.mode, NET_CHOICE_PROXY);
	assert_int_equal(profile.protect, TRISTATE_FALSE);
	assert_int_equal(profile_expand(&profile, &facts, &err), 0);
	profile_deinit(&profile);
}

static void random_mutations(void **state)
{
	unsigned seed = 3;
	size_t taken = 0;

	(void)state;
	for (int round = 0; round < 10000; round++) {
		char text[sizeof(full_text)];
		struct error err = ERROR_INIT;
		struct profile profile;

		memcpy(text, full_text, sizeof(text));
		for (int n = rand_r(&seed) % 3; n >= 0; n--)
			text[(size_t)rand_r(&seed) % (sizeof(text) - 1)] =
				rand_r(&seed) % 2
					? (char)rand_r(&seed)
					: text[(size_t)rand_r(&seed) % (sizeof(text) - 1)];
		if (profile_parse(&profile, text, sizeof(text) - 1, "x", &err) == 0) {
			taken++;
			(void)profile_expand(&profile, &facts, &err);
			profile_deinit(&profile);
		}
	}
	assert_true(taken > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(nothing),
		cmocka_unit_test(refusals_with_their_place),
		cmocka_unit_test(dots_are_refused),
		cmocka_unit_test(expanding_at_the_root),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(merging),
		cmocka_unit_test(merging_into_nothing),
		cmocka_unit_test(random_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
