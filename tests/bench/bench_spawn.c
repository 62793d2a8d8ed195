/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a spawn costs, against bare fork+exec and bubblewrap with the same binds, interleaved in one run so
 * that other load on the machine hits all alike.
 *
 *	bench_spawn [--json] [--rounds N] [--rules N] [--engine E] [--mode NAME] [--ctl FSBOXCTL]
 *	            [--daemon FSBOXD] [--work DIR] [--no-bwrap] [--no-cold] [--peer NAME COMMAND]...
 *
 * Besides the whole spawn: the first one of a policy ("cold": nothing of it was made before), and how long
 * after the status has come there is still something of the job ("after status"). A peer's COMMAND is
 * cut at spaces and runs /usr/bin/true its own way; --mode is only repeated in what is printed.
 *
 * The policy: 3 system trees and a home of which most is readOnly, some readWrite, some denied; 43 rules
 * unless --rules says otherwise. DIR (default: a new directory below /tmp) holds that home; with rules below
 * /tmp it should lie elsewhere, as homes do.
 */

#include <fcntl.h>
#include <poll.h>
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
#define PEERS_MAX 8
#define PEER_WORDS 32
#define MODES_MAX (6 + PEERS_MAX)

extern char **environ;

struct peer {
	const char *name;
	char *argv[PEER_WORDS];
};

/*
 * @own_us  what the round that has just run measured by itself; below 0: the round as a whole counts
 * @cold    how many new policies there were
 */
struct bench {
	const char *work;
	const char *mode;
	const char *engine;
	const char *ctl;
	const char *profile;
	const char *daemon; /* to start where none serves; NULL: the library looks */
	bool json;
	bool no_bwrap;
	bool no_cold;
	double own_us;
	size_t cold;
	struct peer peers[PEERS_MAX];
	size_t peer_count;
	const struct peer *peer;
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

	/* One more, for cold ones. */
	bench->rule = calloc(bench->rules + 1, sizeof(*bench->rule));
	bench->paths = calloc(bench->rules + 1, PATH_BYTES);
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

static bool run_peer(struct bench *bench)
{
	return run_argv(bench->peer->argv);
}

static _Noreturn void refused(const struct fsbox_error *err)
{
	(void)fprintf(stderr, "bench_spawn: %s: %s\n", err->kind, err->message);
	exit(1);
}

static struct fsbox_spawn request(const struct bench *bench, const char *const *argv)
{
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;

	spawn.argv = argv;
	spawn.cwd = "/usr";
	spawn.profile = bench->profile;
	spawn.rules = bench->rule;
	spawn.rule_count = bench->rules;
	spawn.engine = bench->engine;
	return spawn;
}

static const char *const true_argv[] = { "/usr/bin/true", NULL };

static bool run_request(struct bench *bench, const struct fsbox_spawn *spawn)
{
	struct fsbox_error err;
	struct fsbox_exit *end = NULL;
	bool good = false;

	if (fsbox_run(bench->box, spawn, &end, &err) < 0)
		refused(&err);
	good = fsbox_exit_status(end) == 0;
	(void)fsbox_exit_free(end);
	return good;
}

static bool run_library(struct bench *bench)
{
	struct fsbox_spawn spawn = request(bench, true_argv);

	return run_request(bench, &spawn);
}

/* With a rule that no spawn before had: no policy, no template. */
static bool run_cold(struct bench *bench)
{
	struct fsbox_spawn spawn = request(bench, true_argv);
	double begin = 0;
	bool good = false;

	(void)snprintf(bench->paths[bench->rules], PATH_BYTES, "%s/cold%zu", bench->work,
		       bench->cold++);
	if (mkdir(bench->paths[bench->rules], 0700) < 0)
		die(bench->paths[bench->rules]);
	add_rule(bench, bench->rules, FSBOX_READ_ONLY);
	spawn.rule_count = bench->rules + 1;
	begin = now_us();
	good = run_request(bench, &spawn);
	bench->own_us = now_us() - begin;
	return good;
}

/* From the status to the end of the job's pid 1 with all its namespaces. */
static bool run_after(struct bench *bench)
{
	struct fsbox_spawn spawn = request(bench, true_argv);
	struct pollfd gone = { .events = POLLIN };
	struct fsbox_job *job = NULL;
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	double begin = 0;
	bool good = false;

	if (fsbox_spawn(bench->box, &spawn, &job, &err) < 0 ||
	    fsbox_wait(bench->box, job->id, job->cookie, -1, &end, &err) < 0)
		refused(&err);
	begin = now_us();
	gone.fd = job->pidfd;
	good = poll(&gone, 1, 10000) == 1 && fsbox_exit_status(end) == 0;
	bench->own_us = now_us() - begin;
	(void)fsbox_exit_free(end);
	(void)fsbox_job_free(job);
	return good;
}

/* ---- measuring ------------------------------------------------------------------------- */

struct mode {
	const char *name;
	bool (*run)(struct bench *bench);
	double *us;
	const struct peer *peer;
};

static double run_once(struct bench *bench, const struct mode *mode)
{
	double begin = now_us();

	bench->own_us = -1;
	bench->peer = mode->peer;
	if (!mode->run(bench)) {
		(void)fprintf(stderr, "bench_spawn: %s does not run\n", mode->name);
		exit(1);
	}
	return bench->own_us >= 0 ? bench->own_us : now_us() - begin;
}

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
		if (!modes[m].us)
			die("calloc");
		for (size_t i = 0; i < 3; i++)
			(void)run_once(bench, &modes[m]);
	}
	for (size_t done = 0; done < bench->rounds; done += BLOCK)
		for (size_t m = 0; m < mode_count; m++)
			for (size_t i = done; i < done + BLOCK && i < bench->rounds; i++)
				modes[m].us[i] = run_once(bench, &modes[m]);
	for (size_t m = 0; m < mode_count; m++)
		qsort(modes[m].us, bench->rounds, sizeof(double), compare_doubles);
}

static void report(const struct bench *bench, const struct mode *modes, size_t mode_count)
{
	double bare = modes[0].us[bench->rounds / 2];
	double bwrap = bench->no_bwrap ? 0 : modes[1].us[bench->rounds / 2];

	if (!bench->json)
		printf("%-22s %9s %9s %9s %8s %8s   (%zu rules, engine %s)\n", "", "p50 us",
		       "p10 us", "p99 us", "x bare", "x bwrap", bench->rules, bench->engine);
	for (size_t m = 0; m < mode_count; m++) {
		double p50 = modes[m].us[bench->rounds / 2];
		double p10 = modes[m].us[bench->rounds / 10];
		double p99 = modes[m].us[bench->rounds * 99 / 100];

		if (bench->json)
			printf("{\"bench\":\"spawn\",\"mode\":\"%s\",\"what\":\"%s\","
			       "\"engine\":\"%s\",\"rules\":%zu,\"p50_us\":%.0f,\"p10_us\":%.0f,"
			       "\"p99_us\":%.0f,\"x_bare\":%.3f,\"x_bwrap\":%.3f}\n",
			       bench->mode, modes[m].name, bench->engine, bench->rules, p50, p10,
			       p99, p50 / bare, bwrap > 0 ? p50 / bwrap : 0);
		else
			printf("%-22s %9.0f %9.0f %9.0f %8.2f %8.3f\n", modes[m].name, p50, p10,
			       p99, p50 / bare, bwrap > 0 ? p50 / bwrap : 0);
	}
}

static void add_peer(struct bench *bench, const char *name, char *command)
{
	struct peer *peer = &bench->peers[bench->peer_count];
	size_t words = 0;

	if (bench->peer_count++ == PEERS_MAX)
		exit(2);
	peer->name = name;
	for (char *word = strtok_r(command, " ", &command); word && words < PEER_WORDS - 1;
	     word = strtok_r(NULL, " ", &command))
		peer->argv[words++] = word;
}

static bool parse_flag(struct bench *bench, const char *option)
{
	bool *flag = strcmp(option, "--json") == 0       ? &bench->json
		     : strcmp(option, "--no-bwrap") == 0 ? &bench->no_bwrap
		     : strcmp(option, "--no-cold") == 0  ? &bench->no_cold
							 : NULL;

	if (flag)
		*flag = true;
	return flag != NULL;
}

static void parse(struct bench *bench, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (parse_flag(bench, argv[i]))
			continue;
		if (strcmp(argv[i], "--peer") == 0 && i + 2 < argc) {
			add_peer(bench, argv[i + 1], argv[i + 2]);
			i += 2;
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
		else if (strcmp(argv[i], "--mode") == 0)
			bench->mode = value;
		else if (strcmp(argv[i], "--work") == 0)
			bench->work = value;
		else if (strcmp(argv[i], "--daemon") == 0)
			bench->daemon = value;
		else
			exit(2);
		i++;
	}
}

static size_t list_modes(const struct bench *bench, struct mode modes[MODES_MAX])
{
	size_t count = 0;

	modes[count++] = (struct mode){ .name = "fork+exec", .run = run_bare };
	if (!bench->no_bwrap)
		modes[count++] = (struct mode){ .name = "bwrap", .run = run_bwrap };
	modes[count++] = (struct mode){ .name = "fsbox library", .run = run_library };
	modes[count++] = (struct mode){ .name = "fsbox after status", .run = run_after };
	if (!bench->no_cold)
		modes[count++] = (struct mode){ .name = "fsbox cold", .run = run_cold };
	if (bench->ctl)
		modes[count++] = (struct mode){ .name = "fsboxctl spawn", .run = run_ctl };
	for (size_t i = 0; i < bench->peer_count; i++)
		modes[count++] = (struct mode){ .name = bench->peers[i].name,
						.run = run_peer,
						.peer = &bench->peers[i] };
	return count;
}

static void write_profile(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs("{\"description\":\"nothing\",\"protect\":false}\n", file) < 0 ||
	    fclose(file) != 0)
		die(path);
}

int main(int argc, char **argv)
{
	char work[] = "/tmp/fsbox-bench-XXXXXX";
	char profile[PATH_BYTES];
	struct bench bench = { .engine = "native", .mode = "", .rounds = 200, .rules = 43 };
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_error err;
	struct mode modes[MODES_MAX];
	size_t mode_count = 0;

	parse(&bench, argc, argv);
	if (bench.rules < 4 || bench.rounds < 1)
		exit(2);
	if (!bench.work && !(bench.work = mkdtemp(work)))
		die("mkdtemp");
	(void)snprintf(profile, sizeof(profile), "%s/profile.json", bench.work);
	bench.profile = profile;
	write_profile(profile);
	make_policy(&bench);
	if (!bench.no_bwrap)
		make_bwrap(&bench);
	if (bench.ctl)
		make_ctl(&bench);
	options.daemon = bench.daemon;
	if (fsbox_open(&bench.box, &options, &err) < 0)
		refused(&err);
	mode_count = list_modes(&bench, modes);
	measure(&bench, modes, mode_count);
	report(&bench, modes, mode_count);
	bench.box = fsbox_close(bench.box);
	return 0;
}
