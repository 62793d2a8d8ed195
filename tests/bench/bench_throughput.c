/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many spawns a second, with so many at once.
 *
 *	bench_throughput --work DIR [--inflight N] [--seconds S] [--bwrap]
 *
 * N processes, each with a connection of its own, run /usr/bin/true one after the other for S seconds, all
 * under the same 43 rules (bench_rules.h): by the client library, or, with --bwrap, by bubblewrap. One line
 * of JSON.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/fsbox.h"
#include "tests/bench/bench_rules.h"

#define INFLIGHT_MAX 1024

struct options {
	const char *work;
	unsigned inflight;
	unsigned seconds;
	bool bwrap;
};

/* Shared by all processes. */
struct board {
	volatile bool go;
	volatile bool stop;
	unsigned done[INFLIGHT_MAX];
};

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool run_bwrap(char **argv)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool run_fsbox(struct fsbox *box, const struct bench_rules *rules)
{
	const char *const argv[] = { "/usr/bin/true", NULL };
	struct fsbox_spawn spawn = bench_rules_request(rules, "native", argv);
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	bool good = false;

	if (fsbox_run(box, &spawn, &end, &err) < 0) {
		(void)fprintf(stderr, "bench_throughput: %s: %s\n", err.kind, err.message);
		return false;
	}
	good = fsbox_exit_status(end) == 0;
	(void)fsbox_exit_free(end);
	return good;
}

static _Noreturn void worker(const struct options *options, const struct bench_rules *rules,
			     struct board *board, unsigned number)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	char **bwrap = options->bwrap ? bench_rules_bwrap(rules) : NULL;
	struct fsbox *box = NULL;
	struct fsbox_error err;

	if (!options->bwrap && fsbox_open(&box, NULL, &err) < 0) {
		(void)fprintf(stderr, "bench_throughput: %s: %s\n", err.kind, err.message);
		_exit(1);
	}
	while (!board->go)
		(void)nanosleep(&moment, NULL);
	while (!board->stop) {
		if (!(bwrap ? run_bwrap(bwrap) : run_fsbox(box, rules)))
			_exit(1);
		board->done[number]++;
	}
	(void)fsbox_close(box);
	_exit(0);
}

static void parse(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--bwrap") == 0) {
			options->bwrap = true;
			continue;
		}
		if (strcmp(argv[i], "--work") == 0)
			options->work = value;
		else if (strcmp(argv[i], "--inflight") == 0)
			options->inflight = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			options->seconds = (unsigned)strtoul(value, NULL, 10);
		else
			exit(2);
		i++;
	}
	if (!options->work || options->inflight < 1 || options->inflight > INFLIGHT_MAX)
		exit(2);
}

int main(int argc, char **argv)
{
	struct options options = { .inflight = 1, .seconds = 5 };
	struct bench_rules rules;
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned failed = 0;
	unsigned done = 0;
	double begin = 0;
	double seconds = 0;
	int status = 0;

	parse(&options, argc, argv);
	bench_rules_make(&rules, options.work, 43);
	if (board == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < options.inflight; i++)
		if (fork() == 0)
			worker(&options, &rules, board, i);
	(void)sleep(1); /* all connected by then */
	begin = now();
	board->go = true;
	(void)sleep(options.seconds);
	board->stop = true;
	for (unsigned i = 0; i < options.inflight; i++)
		done += board->done[i];
	seconds = now() - begin;
	while (wait(&status) > 0)
		failed += status != 0;
	(void)printf("{\"bench\":\"throughput\",\"what\":\"%s\",\"inflight\":%u,"
		     "\"spawns_per_second\":%.1f,\"failed\":%u}\n",
		     options.bwrap ? "bwrap" : "fsbox library", options.inflight, done / seconds,
		     failed);
	return failed > 0;
}
