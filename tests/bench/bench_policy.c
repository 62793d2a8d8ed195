/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_policy [--json]
 *
 * What a policy costs by its number of rules: merging and indexing the candidates, the plan and the
 * argument vector, and look-ups, through the index and through the flat reference. Rules look like a
 * development machine's: home and project trees, packages in them, a deny here and there.
 *
 * Each time is the best of several runs, so that what else the machine does counts little.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bwrap.h"
#include "common/plan.h"
#include "common/policy.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "tests/flat.h"
#include "tests/gen_policy.h"

#define ROUNDS 5
#define PROBES 4096
#define LOOKUP_NS 200000000
#define PATH_ROOM 256

static const size_t sizes[] = { 10, 100, 1000, 10000, 100000 };

struct result {
	size_t rules; /* after merging */
	double merge_ms;
	double index_ms;
	double plan_ms;
	double bwrap_ms;
	double seatbelt_ms;
	double lookups; /* each second */
	double flat_lookups;
};

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "bench_policy: %s\n", what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void keep_best(double *best_ms, int64_t since_ns)
{
	double ms = (double)(now_ns() - since_ns) / 1e6;

	if (*best_ms == 0 || ms < *best_ms)
		*best_ms = ms;
}

/* A path by number: the same one again now and then, mostly below others. */
static void make_path(char *path, size_t index, size_t count, struct gen *gen)
{
	static const char *const dirs[] = {
		"src", "node_modules", ".git", "build", "tests", "docs"
	};
	size_t project = gen_below(gen, (uint32_t)(count / 20 + 1));

	if (index % 20 == 0)
		(void)snprintf(path, PATH_ROOM, "/home/user/work/project-%zu", project);
	else
		(void)snprintf(path, PATH_ROOM, "/home/user/work/project-%zu/%s/%x/pkg%u.d",
			       project, dirs[gen_below(gen, 6)], gen_below(gen, 64),
			       gen_below(gen, (uint32_t)count));
}

static void make_candidates(struct rule_list *list, size_t count)
{
	struct gen gen = gen_start(count);
	char path[PATH_ROOM];

	for (size_t i = 0; i < count; i++) {
		enum access access = gen_below(&gen, 5) == 0 ? ACCESS_DENY : ACCESS_READ_WRITE;

		if (gen_below(&gen, 2) == 0)
			access = ACCESS_READ_ONLY;
		make_path(path, i, count, &gen);
		if (rule_list_append(list, path, access, RULE_USER, NULL, NULL) < 0)
			give_up("no memory");
	}
}

static void build(struct policy *policy, const struct rule_list *candidates, struct result *result)
{
	int64_t since = now_ns();

	if (rule_list_merge(&policy->rules, candidates, NULL) < 0)
		give_up("merge failed");
	keep_best(&result->merge_ms, since);
	since = now_ns();
	if (policy_index(policy, NULL) < 0)
		give_up("index failed");
	keep_best(&result->index_ms, since);
	result->rules = policy->rules.count;
}

static void compile(const struct policy *policy, struct result *result)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(bwrap_plain_deinit) struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	AUTO(buf_deinit) struct buf profile = BUF_INIT(256u << 20);
	const struct plan_options options = { .chdir = "/home/user/work" };
	const struct bwrap_plain_options names = { .empty_dir = "/e", .empties_dir = "/es" };
	int64_t since = now_ns();

	if (plan_build(&plan, policy, &options, NULL) < 0)
		give_up("plan failed");
	keep_best(&result->plan_ms, since);
	since = now_ns();
	if (bwrap_compile_plain(&plan, &names, &plain, NULL) < 0)
		give_up("bwrap failed");
	keep_best(&result->bwrap_ms, since);
	since = now_ns();
	if (seatbelt_compile(&profile, policy, 0, NULL) < 0)
		give_up("seatbelt failed");
	keep_best(&result->seatbelt_ms, since);
}

/* Paths to ask about, a page each apart so that they are not all in the nearest cache. */
static char *make_probes(const struct policy *policy)
{
	char *probes = calloc(PROBES, PATH_ROOM);
	struct gen gen = gen_start(7);

	for (size_t i = 0; probes && i < PROBES; i++) {
		uint32_t rule = gen_below(&gen, (uint32_t)policy->rules.count);

		(void)snprintf(probes + i * PATH_ROOM, PATH_ROOM, "%s%s",
			       policy->rules.rules[rule].path, i % 2 ? "/lib/index.js" : "");
	}
	if (!probes)
		give_up("no memory");
	return probes;
}

static double measure_lookups(const struct policy *policy, const char *probes, bool flat)
{
	int64_t since = now_ns();
	int64_t spent = 0;
	uint64_t done = 0;
	unsigned int sum = 0;

	while (spent < LOOKUP_NS) {
		for (size_t i = 0; i < (flat ? 16 : PROBES); i++) {
			const char *path = probes + (done + i) % PROBES * PATH_ROOM;
			const struct rule *rule = flat ? flat_access(&policy->rules, path)
						       : policy_access(policy, path).rule;

			sum += rule ? rule->access : 0;
		}
		done += flat ? 16 : PROBES;
		spent = now_ns() - since;
	}
	if (sum == 0)
		give_up("no path is covered");
	return (double)done * 1e9 / (double)spent;
}

static struct result measure(size_t count)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct result result = { 0 };

	make_candidates(&candidates, count);
	for (int round = 0; round < ROUNDS; round++) {
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;

		build(&policy, &candidates, &result);
		compile(&policy, &result);
		if (round == 0) {
			AUTO(auto_free) char *probes = make_probes(&policy);

			result.lookups = measure_lookups(&policy, probes, false);
			result.flat_lookups = measure_lookups(&policy, probes, true);
		}
	}
	return result;
}

static double total_ms(const struct result *result)
{
	return result->merge_ms + result->index_ms + result->plan_ms + result->bwrap_ms;
}

static void print_json(size_t count, const struct result *result)
{
	(void)printf("{\"bench\":\"policy\",\"candidates\":%zu,\"rules\":%zu,\"mergeMs\":%.4f,"
		     "\"indexMs\":%.4f,\"planMs\":%.4f,\"bwrapMs\":%.4f,\"seatbeltMs\":%.4f,"
		     "\"totalMs\":%.4f,\"lookupsPerSecond\":%.0f,\"flatLookupsPerSecond\":%.0f}\n",
		     count, result->rules, result->merge_ms, result->index_ms, result->plan_ms,
		     result->bwrap_ms, result->seatbelt_ms, total_ms(result), result->lookups,
		     result->flat_lookups);
}

/* GROWTH is how much the total grew since the row above, where the rules grew tenfold. */
static void print_row(size_t count, const struct result *result, double growth)
{
	(void)printf("%9zu %8zu %9.3f %9.3f %9.3f %9.3f %10.3f", count, result->rules,
		     result->merge_ms, result->index_ms, result->plan_ms, result->bwrap_ms,
		     total_ms(result));
	if (growth > 0)
		(void)printf(" %6.1fx", growth);
	else
		(void)printf("       -");
	(void)printf(" %10.3f %9.2f %12.4f %9.0fx\n", result->seatbelt_ms, result->lookups / 1e6,
		     result->flat_lookups / 1e6, result->lookups / result->flat_lookups);
}

int main(int argc, char **argv)
{
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	double before = 0;

	if (argc > 2 || (argc == 2 && !json)) {
		(void)fputs("usage: bench_policy [--json]\n", stderr);
		return 2;
	}
	if (!json)
		(void)printf(
			"policy: times in ms; total = merge + index + plan + bwrap; look-ups in "
			"millions a second\n"
			"candidate    rules     merge     index      plan     bwrap      total  "
			"growth   seatbelt   look-up         flat    faster\n");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct result result = measure(sizes[i]);

		if (json)
			print_json(sizes[i], &result);
		else
			print_row(sizes[i], &result, before > 0 ? total_ms(&result) / before : 0);
		before = total_ms(&result);
		(void)fflush(stdout);
	}
	return 0;
}
