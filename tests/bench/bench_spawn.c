/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a spawn costs, against bare fork+exec and bubblewrap with the same binds, interleaved in one run so
 * that other load on the machine hits all alike.
 *
 *	bench_spawn [--json] [--rounds N] [--rules N] [--engine E] [--ctl FSBOXCTL] [--daemon FSBOXD]
 *	            [--work DIR]
 *
 * The policy: 3 system trees and a home of which most is readOnly, some readWrite, some denied; 43 rules
 * unless --rules says otherwise. DIR (default: a new directory below /tmp) holds that home; with rules below
 * /tmp it should lie elsewhere, as homes do.
 */

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/fsbox.h"

#define BLOCK 10
#define PATH_BYTES 512

extern char **environ;

struct bench {
	const char *work;
	const char *engine;
	const char *ctl;
	const char *profile;
	const char *daemon; /* to start where none serves; NULL: the library looks */
	bool json;
	size_t rounds;
	size_t rules;
	struct fsbox_rule *rule;
	char (*paths)[PATH_BYTES];
	char **bwrap_argv;
	char **ctl_argv;
	struct fsbox *box;
};

static double now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the policy ------------------------------------------------------------------------ */

static void add_rule(struct bench *bench, size_t index, enum fsbox_access access)
{
	bench->rule[index] = (struct fsbox_rule){ .path = bench->paths[index], .access = access };
}

static void make_policy(struct bench *bench)
{
	static const char *const system_trees[] = { "/usr", "/etc", "/opt" };
	size_t index = 0;

	bench->rule = calloc(bench->rules, sizeof(*bench->rule));
	bench->paths = calloc(bench->rules, PATH_BYTES);
	if (!bench->rule || !bench->paths)
		die("calloc");
	for (; index < 3; index++) {
		(void)snprintf(bench->paths[index], PATH_BYTES, "%s", system_trees[index]);
		add_rule(bench, index, FSBOX_READ_ONLY);
	}
	(void)snprintf(bench->paths[index], PATH_BYTES, "%s", bench->work);
	add_rule(bench, index++, FSBOX_READ_ONLY);
	for (; index < bench->rules; index++) {
		enum fsbox_access access = index % 8 == 0   ? FSBOX_READ_WRITE
					   : index % 4 == 1 ? FSBOX_DENY
							    : FSBOX_READ_ONLY;

		(void)snprintf(bench->paths[index], PATH_BYTES, "%s/d%zu", bench->work, index);
		if (mkdir(bench->paths[index], 0700) < 0)
			die(bench->paths[index]);
		add_rule(bench, index, access);
	}
}

static void make_bwrap(struct bench *bench)
{
	size_t at = 0;
	char **argv = calloc(40 + 3 * bench->rules, sizeof(char *));
	static const char *const head[] = { "bwrap",
					    "--unshare-all",
					    "--die-with-parent",
					    "--tmpfs",
					    "/",
					    "--proc",
					    "/proc",
					    "--dev",
					    "/dev",
					    "--tmpfs",
					    "/tmp",
					    "--tmpfs",
					    "/run",
					    "--symlink",
					    "usr/bin",
					    "/bin",
					    "--symlink",
					    "usr/lib",
					    "/lib",
					    "--symlink",
					    "usr/lib64",
					    "/lib64" };

	if (!argv)
		die("calloc");
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		argv[at++] = (char *)head[i];
	for (size_t i = 0; i < bench->rules; i++) {
		bool deny = bench->rule[i].access == FSBOX_DENY;

		argv[at++] = (char *)(deny                                        ? "--tmpfs"
				      : bench->rule[i].access == FSBOX_READ_WRITE ? "--bind"
										  : "--ro-bind");
		if (!deny)
			argv[at++] = bench->paths[i];
		argv[at++] = bench->paths[i];
	}
	argv[at++] = (char *)"/usr/bin/true";
	bench->bwrap_argv = argv;
}

static void make_ctl(struct bench *bench)
{
	size_t at = 0;
	char **argv = calloc(16 + 2 * bench->rules, sizeof(char *));

	if (!argv)
		die("calloc");
	argv[at++] = (char *)bench->ctl;
	argv[at++] = (char *)"-q";
	argv[at++] = (char *)"spawn";
	argv[at++] = (char *)"--profile";
	argv[at++] = (char *)bench->profile;
	argv[at++] = (char *)"--cwd";
	argv[at++] = (char *)"/usr";
	argv[at++] = (char *)"--engine";
	argv[at++] = (char *)bench->engine;
	for (size_t i = 0; i < bench->rules; i++) {
		argv[at++] = (char *)(bench->rule[i].access == FSBOX_DENY         ? "--deny"
				      : bench->rule[i].access == FSBOX_READ_WRITE ? "--rw"
										  : "--ro");
		argv[at++] = bench->paths[i];
	}
	argv[at++] = (char *)"--";
	argv[at++] = (char *)"/usr/bin/true";
	bench->ctl_argv = argv;
}

/* ---- ways to run /usr/bin/true -------------------------------------------------------- */

static bool run_argv(char *const argv[])
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool run_bare(struct bench *bench)
{
	char *argv[] = { (char *)"/usr/bin/true", NULL };

	(void)bench;
	return run_argv(argv);
}

static bool run_bwrap(struct bench *bench)
{
	return run_argv(bench->bwrap_argv);
}

static bool run_ctl(struct bench *bench)
{
	return run_argv(bench->ctl_argv);
}

static bool run_library(struct bench *bench)
{
	const char *const argv[] = { "/usr/bin/true", NULL };
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct fsbox_error err;
	struct fsbox_exit *end = NULL;
	bool good = false;

	spawn.argv = argv;
	spawn.cwd = "/usr";
	spawn.profile = bench->profile;
	spawn.rules = bench->rule;
	spawn.rule_count = bench->rules;
	spawn.engine = bench->engine;
	if (fsbox_run(bench->box, &spawn, &end, &err) < 0) {
		(void)fprintf(stderr, "bench_spawn: %s: %s\n", err.kind, err.message);
		exit(1);
	}
	good = fsbox_exit_status(end) == 0;
	(void)fsbox_exit_free(end);
	return good;
}

/* ---- measuring ------------------------------------------------------------------------- */

struct mode {
	const char *name;
	bool (*run)(struct bench *bench);
	double *us;
};

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static void measure(struct bench *bench, struct mode *modes, size_t mode_count)
{
	for (size_t m = 0; m < mode_count; m++) {
		modes[m].us = calloc(bench->rounds, sizeof(double));
		for (size_t i = 0; i < 3; i++)
			if (!modes[m].us || !modes[m].run(bench)) {
				(void)fprintf(stderr, "bench_spawn: %s does not run\n",
					      modes[m].name);
				exit(1);
			}
	}
	for (size_t done = 0; done < bench->rounds; done += BLOCK)
		for (size_t m = 0; m < mode_count; m++)
			for (size_t i = done; i < done + BLOCK && i < bench->rounds; i++) {
				double begin = now_us();

				(void)modes[m].run(bench);
				modes[m].us[i] = now_us() - begin;
			}
	for (size_t m = 0; m < mode_count; m++)
		qsort(modes[m].us, bench->rounds, sizeof(double), compare_doubles);
}

static void report(const struct bench *bench, const struct mode *modes, size_t mode_count)
{
	double bare = modes[0].us[bench->rounds / 2];
	double bwrap = modes[1].us[bench->rounds / 2];

	if (!bench->json)
		printf("%-22s %9s %9s %9s %8s %8s   (%zu rules, engine %s)\n", "", "p50 us",
		       "p10 us", "p99 us", "x bare", "x bwrap", bench->rules, bench->engine);
	for (size_t m = 0; m < mode_count; m++) {
		double p50 = modes[m].us[bench->rounds / 2];
		double p10 = modes[m].us[bench->rounds / 10];
		double p99 = modes[m].us[bench->rounds * 99 / 100];

		if (bench->json)
			printf("{\"bench\":\"spawn\",\"mode\":\"%s\",\"engine\":\"%s\","
			       "\"rules\":%zu,\"p50_us\":%.0f,\"p99_us\":%.0f,\"x_bare\":%.3f,"
			       "\"x_bwrap\":%.3f}\n",
			       modes[m].name, bench->engine, bench->rules, p50, p99, p50 / bare,
			       p50 / bwrap);
		else
			printf("%-22s %9.0f %9.0f %9.0f %8.2f %8.3f\n", modes[m].name, p50, p10,
			       p99, p50 / bare, p50 / bwrap);
	}
}

static void parse(struct bench *bench, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--json") == 0) {
			bench->json = true;
			continue;
		}
		if (strcmp(argv[i], "--rounds") == 0)
			bench->rounds = strtoul(value, NULL, 10);
		else if (strcmp(argv[i], "--rules") == 0)
			bench->rules = strtoul(value, NULL, 10);
		else if (strcmp(argv[i], "--engine") == 0)
			bench->engine = value;
		else if (strcmp(argv[i], "--ctl") == 0)
			bench->ctl = value;
		else if (strcmp(argv[i], "--work") == 0)
			bench->work = value;
		else if (strcmp(argv[i], "--daemon") == 0)
			bench->daemon = value;
		else
			exit(2);
		i++;
	}
}

int main(int argc, char **argv)
{
	char work[] = "/tmp/fsbox-bench-XXXXXX";
	char profile[PATH_BYTES];
	struct bench bench = { .engine = "native", .rounds = 200, .rules = 43 };
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_error err;
	struct mode modes[] = { { "fork+exec", run_bare, NULL },
				{ "bwrap", run_bwrap, NULL },
				{ "fsbox library", run_library, NULL },
				{ "fsboxctl spawn", run_ctl, NULL } };
	size_t mode_count = 4;
	FILE *file = NULL;

	parse(&bench, argc, argv);
	if (!bench.work && !(bench.work = mkdtemp(work)))
		die("mkdtemp");
	if (!bench.ctl)
		mode_count--;
	(void)snprintf(profile, sizeof(profile), "%s/profile.json", bench.work);
	bench.profile = profile;
	file = fopen(profile, "we");
	if (!file || fputs("{\"description\":\"nothing\",\"protect\":false}\n", file) < 0 ||
	    fclose(file) != 0)
		die(profile);
	make_policy(&bench);
	make_bwrap(&bench);
	if (bench.ctl)
		make_ctl(&bench);
	options.daemon = bench.daemon;
	if (fsbox_open(&bench.box, &options, &err) < 0) {
		(void)fprintf(stderr, "bench_spawn: %s: %s\n", err.kind, err.message);
		return 1;
	}
	measure(&bench, modes, mode_count);
	report(&bench, modes, mode_count);
	bench.box = fsbox_close(bench.box);
	return 0;
}
