/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

#define PATH_ROOM 1024
#define SEGMENT_ROOM 32 /* longer than any name below with its separators */

/* Short names that are prefixes of each other, so that textual and component order differ. */
static const char *const plain_names[] = {
	"a",   "b", "c",   "ab",       "a-b",          "a.b",
	"abc", "A", ".a",  "..a",      "...",          "10",
	"9",   "_", "d e", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80",
};

static const char *const byte_names[] = {
	"n\nl", "\xff", "q\"", "b\\", "\xc3", "t\t", "'", "*", "(x)", ";", "$", "\x7f",
};

static const char *const odd_names[] = { "", "", ".", ".." };

static _Noreturn void out_of_memory(void)
{
	(void)fputs("gen_policy: out of memory\n", stderr);
	abort();
}

static char *checked(char *text)
{
	if (!text)
		out_of_memory();
	return text;
}

struct gen gen_start(uint64_t seed)
{
	return (struct gen){ .state = seed };
}

/* splitmix64: every seed is a good one. */
static uint64_t gen_next(struct gen *gen)
{
	uint64_t z = (gen->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint32_t gen_below(struct gen *gen, uint32_t bound)
{
	return (uint32_t)(gen_next(gen) % bound);
}

static bool gen_one_in(struct gen *gen, uint32_t bound)
{
	return gen_below(gen, bound) == 0;
}

#define PICK(gen, array) ((array)[gen_below((gen), (uint32_t)ARRAY_SIZE(array))])

static const char *gen_name(struct gen *gen, const struct gen_options *options)
{
	if (options->odd && gen_one_in(gen, 12))
		return PICK(gen, odd_names);
	if (options->bytes && gen_one_in(gen, 4))
		return PICK(gen, byte_names);
	/* Mostly the first few, so that paths meet each other. */
	return gen_one_in(gen, 3) ? PICK(gen, plain_names) : plain_names[gen_below(gen, 5)];
}

/* Append between 1 and MOST components to the path in TEXT (PATH_ROOM bytes). */
static void add_components(struct gen *gen, char *text, uint32_t most,
			   const struct gen_options *options)
{
	uint32_t count = 1 + gen_below(gen, most);
	size_t used = strlen(text);

	for (uint32_t i = 0; i < count && used + SEGMENT_ROOM < PATH_ROOM; i++)
		used += (size_t)snprintf(text + used, PATH_ROOM - used, "/%s",
					 gen_name(gen, options));
	if (options->odd && gen_one_in(gen, 10))
		(void)snprintf(text + used, PATH_ROOM - used, "%s",
			       gen_one_in(gen, 2) ? "/" : "//");
}

char *gen_path(struct gen *gen, const struct gen_options *options)
{
	char text[PATH_ROOM] = "";

	if (options->odd && gen_one_in(gen, 40))
		return checked(strdup(gen_one_in(gen, 2) ? "" : "a/b"));
	if (options->root && gen_one_in(gen, 25))
		return checked(strdup("/"));
	add_components(gen, text, options->max_depth, options);
	return checked(strdup(text));
}

char *gen_probe(struct gen *gen, const struct rule_list *rules, const struct gen_options *options)
{
	char text[PATH_ROOM] = "";
	const char *path = NULL;
	size_t size = 0;

	if (rules->count == 0 || gen_one_in(gen, 5))
		return gen_path(gen, options);
	path = rules->rules[gen_below(gen, (uint32_t)rules->count)].path;
	size = strlen(path);
	if (size + SEGMENT_ROOM >= PATH_ROOM)
		return checked(strdup(path));
	memcpy(text, path, size + 1);
	if (strcmp(text, "/") == 0)
		text[0] = '\0';

	switch (gen_below(gen, 4)) {
	case 0:
		break;
	case 1:
		add_components(gen, text, 3, options);
		break;
	case 2: /* no component border */
		(void)snprintf(text + strlen(text), PATH_ROOM - strlen(text), "%s%s",
			       text[0] ? "" : "/", gen_one_in(gen, 2) ? "b" : "-b/a");
		break;
	default:
		text[path_parent_length(text, strlen(text))] = '\0';
		break;
	}
	return checked(strdup(text[0] ? text : "/"));
}

static enum access gen_access(struct gen *gen)
{
	static const enum access kinds[] = { ACCESS_READ_WRITE, ACCESS_READ_ONLY, ACCESS_DENY };

	return PICK(gen, kinds);
}

static enum rule_source gen_source(struct gen *gen)
{
	static const enum rule_source kinds[] = { RULE_BASELINE, RULE_ADAPTER, RULE_INTERNAL,
						  RULE_USER, RULE_MANDATORY };

	return PICK(gen, kinds);
}

/* A path for the next rule: often below one that is there, so that rules nest deeply. */
static char *gen_rule_path(struct gen *gen, const struct rule_list *list,
			   const struct gen_options *options)
{
	char text[PATH_ROOM] = "";
	const char *above = NULL;

	if (list->count == 0 || gen_one_in(gen, 2))
		return gen_path(gen, options);
	above = list->rules[gen_below(gen, (uint32_t)list->count)].path;
	if (gen_one_in(gen, 8))
		return checked(strdup(above));
	if (above[0] != '/' || path_depth(above) >= options->max_depth ||
	    strlen(above) + SEGMENT_ROOM >= PATH_ROOM)
		return gen_path(gen, options);
	memcpy(text, above, strlen(above) + 1);
	if (strcmp(text, "/") == 0)
		text[0] = '\0';
	add_components(gen, text, options->max_depth - (uint32_t)path_depth(above), options);
	return checked(strdup(text));
}

void gen_candidates(struct gen *gen, struct rule_list *list, const struct gen_options *options)
{
	uint32_t count = 1 + gen_below(gen, options->max_rules);

	for (uint32_t i = 0; i < count; i++) {
		AUTO(auto_free) char *path = gen_rule_path(gen, list, options);

		if (!rule_list_add(list, path, gen_access(gen), gen_source(gen), NULL, NULL))
			out_of_memory();
	}
}

/* A rule with another one below it stands on a directory; of the others every fourth on a file. */
static void choose_types(struct gen *gen, struct rule_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct rule *rule = &list->rules[i];
		bool leaf = true;

		for (size_t other = 0; leaf && other < list->count; other++)
			leaf = other == i || !path_covers(rule->path, list->rules[other].path);
		rule->type = leaf && gen_one_in(gen, 4) ? NODE_FILE : NODE_DIRECTORY;
	}
}

void gen_rules(struct gen *gen, struct rule_list *list, const struct gen_options *options)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;

	gen_candidates(gen, &candidates, options);
	if (rule_list_merge(list, &candidates, NULL) < 0)
		out_of_memory();
	if (options->files)
		choose_types(gen, list);
}
