/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_BENCH_BENCH_RULES_H
#define FSBOX_TESTS_BENCH_BENCH_RULES_H

/*
 * The policy of the benchmarks, for everybody who is measured: three system trees, and a home of which most
 * is readOnly, some readWrite, some denied. All of it exists.
 *
 * A benchmark has nothing to do when it cannot prepare: these functions say why and end the process.
 */

#include <stddef.h>

#include "client/fsbox.h"

#define BENCH_PATH_BYTES 512
#define BENCH_RULES_LEAST 4

/* More than this, in binds, is not for bubblewrap: "Exceeded maximum number of arguments 9000". */
#define BENCH_RULES_BWRAP 2900

/*
 * @count    of rules; there is room for one more, for policies that nobody has seen
 * @home     the directory all but the system trees lie in
 * @profile  a file: a profile that adds nothing of its own
 */
struct bench_rules {
	size_t count;
	struct fsbox_rule *rule;
	char (*paths)[BENCH_PATH_BYTES];
	char home[BENCH_PATH_BYTES];
	char profile[BENCH_PATH_BYTES];
};

/* Rules and their directories in a new directory of WORK, which exists. */
void bench_rules_make(struct bench_rules *rules, const char *work, size_t count);

/*
 * The same with readOnly in place of denied: as many mounts, but none that somebody outside could undo, so
 * that jobs need no guard. Shares the paths of RULES.
 */
struct bench_rules bench_rules_unguarded(const struct bench_rules *rules);

/* What the library is asked for. Borrows RULES, ENGINE and ARGV. */
struct fsbox_spawn bench_rules_request(const struct bench_rules *rules, const char *engine,
				       const char *const *argv);

/* Command lines that run /usr/bin/true under these rules; they live as long as RULES. */
char **bench_rules_bwrap(const struct bench_rules *rules);
char **bench_rules_firejail(const struct bench_rules *rules);
char **bench_rules_fsboxctl(const struct bench_rules *rules, const char *ctl, const char *engine);

#endif
