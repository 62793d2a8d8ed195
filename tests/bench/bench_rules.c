/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Words besides those of the rules, with room to spare. */
#define OTHER_WORDS 48

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0700) < 0)
		die(path);
}

static void write_profile(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs("{\"description\":\"nothing\",\"protect\":false}\n", file) < 0 ||
	    fclose(file) != 0)
		die(path);
}

static enum fsbox_access access_of(size_t index)
{
	if (index <= 3)
		return FSBOX_READ_ONLY;
	if (index % 8 == 0)
		return FSBOX_READ_WRITE;
	return index % 4 == 1 ? FSBOX_DENY : FSBOX_READ_ONLY;
}

void bench_rules_make(struct bench_rules *rules, const char *work, size_t count)
{
	static const char *const system_trees[] = { "/usr", "/etc", "/opt" };

	rules->count = count;
	rules->rule = calloc(count + 1, sizeof(*rules->rule));
	rules->paths = calloc(count + 1, BENCH_PATH_BYTES);
	if (!rules->rule || !rules->paths)
		die("calloc");
	(void)snprintf(rules->home, sizeof(rules->home), "%s/home%zu", work, count);
	(void)snprintf(rules->profile, sizeof(rules->profile), "%s/profile%zu.json", work, count);
	make_directory(rules->home);
	write_profile(rules->profile);
	for (size_t i = 0; i < count; i++) {
		if (i < 3)
			(void)snprintf(rules->paths[i], BENCH_PATH_BYTES, "%s", system_trees[i]);
		else if (i == 3)
			(void)snprintf(rules->paths[i], BENCH_PATH_BYTES, "%s", rules->home);
		else
			(void)snprintf(rules->paths[i], BENCH_PATH_BYTES, "%.400s/d%zu",
				       rules->home, i);
		if (i > 3)
			make_directory(rules->paths[i]);
		rules->rule[i] =
			(struct fsbox_rule){ .path = rules->paths[i], .access = access_of(i) };
	}
}

struct bench_rules bench_rules_unguarded(const struct bench_rules *rules)
{
	struct bench_rules copy = *rules;

	copy.rule = calloc(rules->count + 1, sizeof(*copy.rule));
	if (!copy.rule)
		die("calloc");
	for (size_t i = 0; i < rules->count; i++) {
		copy.rule[i] = rules->rule[i];
		if (copy.rule[i].access == FSBOX_DENY)
			copy.rule[i].access = FSBOX_READ_ONLY;
	}
	return copy;
}

struct fsbox_spawn bench_rules_request(const struct bench_rules *rules, const char *engine,
				       const char *const *argv)
{
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;

	spawn.argv = argv;
	spawn.cwd = "/usr";
	spawn.profile = rules->profile;
	spawn.rules = rules->rule;
	spawn.rule_count = rules->count;
	spawn.engine = engine;
	return spawn;
}

/* ---- command lines --------------------------------------------------------------------- */

struct line {
	char **argv;
	size_t count;
};

static struct line line_new(const struct bench_rules *rules)
{
	struct line line = { .argv = calloc(OTHER_WORDS + 3 * rules->count, sizeof(char *)) };

	if (!line.argv)
		die("calloc");
	return line;
}

static void line_add(struct line *line, const char *word)
{
	line->argv[line->count++] = (char *)word;
}

/* WORDS cut at spaces. */
static void line_add_words(struct line *line, const char *words)
{
	char *copy = strdup(words);

	if (!copy)
		die("strdup");
	for (char *word = strtok_r(copy, " ", &copy); word; word = strtok_r(NULL, " ", &copy))
		line_add(line, word);
}

static void line_add_joined(struct line *line, const char *option, const char *path)
{
	char *word = malloc(strlen(option) + strlen(path) + 1);

	if (!word)
		die("malloc");
	(void)stpcpy(stpcpy(word, option), path);
	line_add(line, word);
}

char **bench_rules_bwrap(const struct bench_rules *rules)
{
	struct line line = line_new(rules);

	line_add_words(&line, "bwrap --unshare-all --die-with-parent --tmpfs / --proc /proc "
			      "--dev /dev --tmpfs /tmp --tmpfs /run --symlink usr/bin /bin "
			      "--symlink usr/lib /lib --symlink usr/lib64 /lib64");
	for (size_t i = 0; i < rules->count; i++) {
		switch (rules->rule[i].access) {
		case FSBOX_DENY:
			line_add(&line, "--tmpfs");
			break;
		case FSBOX_READ_WRITE:
			line_add(&line, "--bind");
			line_add(&line, rules->paths[i]);
			break;
		case FSBOX_READ_ONLY:
			line_add(&line, "--ro-bind");
			line_add(&line, rules->paths[i]);
			break;
		}
		line_add(&line, rules->paths[i]);
	}
	line_add(&line, "/usr/bin/true");
	return line.argv;
}

/* It shows all that is not forbidden: the readOnly and denied of our rules, and what it has besides. */
char **bench_rules_firejail(const struct bench_rules *rules)
{
	struct line line = line_new(rules);

	line_add_words(&line, "firejail --quiet --noprofile --net=none --caps.drop=all "
			      "--nonewprivs --seccomp --private-dev --private-tmp");
	for (size_t i = 0; i < rules->count; i++)
		line_add_joined(&line,
				rules->rule[i].access == FSBOX_DENY         ? "--blacklist="
				: rules->rule[i].access == FSBOX_READ_WRITE ? "--read-write="
									    : "--read-only=",
				rules->paths[i]);
	line_add_words(&line, "-- /usr/bin/true");
	return line.argv;
}

char **bench_rules_fsboxctl(const struct bench_rules *rules, const char *ctl, const char *engine)
{
	struct line line = line_new(rules);

	line_add(&line, ctl);
	line_add_words(&line, "-q spawn --cwd /usr --profile");
	line_add(&line, rules->profile);
	line_add(&line, "--engine");
	line_add(&line, engine);
	for (size_t i = 0; i < rules->count; i++) {
		line_add(&line, rules->rule[i].access == FSBOX_DENY         ? "--deny"
				: rules->rule[i].access == FSBOX_READ_WRITE ? "--rw"
									    : "--ro");
		line_add(&line, rules->paths[i]);
	}
	line_add_words(&line, "-- /usr/bin/true");
	return line.argv;
}
