/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a spawn costs, against bare fork+exec and bubblewrap with the same binds, in turns in one run so
 * that other load on the machine hits all alike.
 *
 *	bench_spawn --work DIR [--json] [--rules N[,N...]] [--rounds N] [--seconds S] [--engine E]
 *	            [--mode NAME] [--name NAME] [--ctl FSBOXCTL] [--daemon FSBOXD] [--no-bwrap]
 *	            [--no-cold] [--firejail] [--nets] [--unguarded] [--absent] [--peer NAME COMMAND]...
 *
 * Every way to run /usr/bin/true has its turns, ten rounds at a time, until each has had N rounds or S
 * seconds (but five rounds at least). The ways, for each number of rules: the client library, the same with
 * a policy that nothing was made for ("cold"), bubblewrap (not above 2,900). For the first number also:
 * how long after the status there is still something of the job ("after status"), with --nets the networks
 * host and proxy beside none, with --unguarded rules that need no guard ("no guard"), with --absent one more rule, of an absent
 * path ("absent deny"), fsboxctl, firejail, and peers, whose COMMAND is cut at spaces and runs true its own way. --mode and --name are only repeated in what is printed. Below DIR the home of bench_rules.h is
 * made; it should lie where homes do.
 */

#include <poll.h>
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
#include "tests/bench/bench_rules.h"

#define TURN 10
#define ROUNDS_LEAST 5
#define WARM_UP_ROUNDS 3
#define WARM_UP_US 500000
#define SIZES_MAX 8
#define PEERS_MAX 8
#define PEER_WORDS 32
#define WAYS_MAX (8 + 3 * SIZES_MAX + PEERS_MAX)

struct bench;

/*
 * @rules  the number printed; 0: it knows no rules
 * @argv   for run_command()
 * @net    the network of run_request(); NULL: none
 * @cold   how many new policies there were
 * @us     of each round that was run
 */
struct way {
	const char *name;
	double (*run)(struct bench *bench, struct way *way);
	struct bench_rules *policy;
	size_t rules;
	char **argv;
	const char *net;
	size_t cold;
	double *us;
	size_t done;
	double spent_us;
};

struct bench {
	const char *work;
	const char *mode;
	const char *name;
	const char *engine;
	const char *ctl;
	const char *daemon; /* to start where none serves; NULL: the library looks */
	bool json;
	bool no_bwrap;
	bool no_cold;
	bool firejail;
	bool nets;
	bool unguarded;
	bool absent;
	struct {
		const char *name;
		char *argv[PEER_WORDS];
	} peers[PEERS_MAX];
	size_t peer_count;
	size_t rounds;
	double budget_us;
	struct bench_rules policies[SIZES_MAX];
	struct bench_rules open_policy; /* with @unguarded */
	size_t policy_count;
	struct way ways[WAYS_MAX];
	size_t way_count;
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

static _Noreturn void does_not_run(const struct way *way, const char *why)
{
	(void)fprintf(stderr, "bench_spawn: %s does not run: %s\n", way->name, why);
	exit(1);
}

/* ---- ways to run /usr/bin/true; each gives its time ------------------------------------ */

static double run_command(struct bench *bench, struct way *way)
{
	double begin = now_us();
	int status = 0;
	pid_t pid = fork();

	(void)bench;
	if (pid == 0) {
		(void)execvp(way->argv[0], way->argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		does_not_run(way, way->argv[0]);
	return now_us() - begin;
}

static const char *const true_argv[] = { "/usr/bin/true", NULL };

static double run_request(struct bench *bench, struct way *way)
{
	struct fsbox_spawn spawn = bench_rules_request(way->policy, bench->engine, true_argv);
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	double begin = now_us();

	spawn.net = way->net ? way->net : spawn.net;
	if (fsbox_run(bench->box, &spawn, &end, &err) < 0)
		does_not_run(way, err.message);
	if (fsbox_exit_status(end) != 0)
		does_not_run(way, "its status is not 0");
	(void)fsbox_exit_free(end);
	return now_us() - begin;
}

/* With a denied path that is absent in a writable tree: something is made there first, and removed after. */
static double run_absent(struct bench *bench, struct way *way)
{
	struct bench_rules *policy = way->policy;
	char *path = policy->paths[policy->count];
	double us = 0;

	(void)snprintf(path, BENCH_PATH_BYTES, "%.400s/d8/absent", policy->home);
	policy->rule[policy->count] = (struct fsbox_rule){ .path = path, .access = FSBOX_DENY };
	policy->count++;
	us = run_request(bench, way);
	policy->count--;
	return us;
}

/* With a rule that no spawn before had: no policy, no template. */
static double run_cold(struct bench *bench, struct way *way)
{
	struct bench_rules *policy = way->policy;
	char *path = policy->paths[policy->count];
	double us = 0;

	(void)snprintf(path, BENCH_PATH_BYTES, "%.400s/cold%zu", policy->home, way->cold++);
	if (mkdir(path, 0700) < 0)
		die(path);
	policy->rule[policy->count] =
		(struct fsbox_rule){ .path = path, .access = FSBOX_READ_ONLY };
	policy->count++;
	us = run_request(bench, way);
	policy->count--;
	return us;
}

/* From the status to the end of the job's pid 1 with all its namespaces. */
static double run_after(struct bench *bench, struct way *way)
{
	struct fsbox_spawn spawn = bench_rules_request(way->policy, bench->engine, true_argv);
	struct pollfd gone = { .events = POLLIN };
	struct fsbox_job *job = NULL;
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	double begin = 0;
	double us = 0;

	if (fsbox_spawn(bench->box, &spawn, &job, &err) < 0 ||
	    fsbox_wait(bench->box, job->id, job->cookie, -1, &end, &err) < 0)
		does_not_run(way, err.message);
	begin = now_us();
	gone.fd = job->pidfd;
	if (poll(&gone, 1, 10000) != 1 || fsbox_exit_status(end) != 0)
		does_not_run(way, "it does not end");
	us = now_us() - begin;
	(void)fsbox_exit_free(end);
	(void)fsbox_job_free(job);
	return us;
}

/* ---- measuring ------------------------------------------------------------------------- */

static struct way *add_way(struct bench *bench, const char *name,
			   double (*run)(struct bench *bench, struct way *way),
			   struct bench_rules *policy)
{
	struct way *way = &bench->ways[bench->way_count++];

	*way = (struct way){ .name = name, .run = run, .policy = policy };
	way->rules = policy ? policy->count : 0;
	way->us = calloc(bench->rounds, sizeof(double));
	if (!way->us)
		die("calloc");
	return way;
}

static void add_command(struct bench *bench, const char *name, char **argv,
			struct bench_rules *policy)
{
	add_way(bench, name, run_command, policy)->argv = argv;
}

static void add_ways(struct bench *bench)
{
	static char *bare[] = { (char *)"/usr/bin/true", NULL };
	struct bench_rules *first = &bench->policies[0];

	add_command(bench, "fork+exec", bare, NULL);
	for (size_t i = 0; i < bench->policy_count; i++) {
		struct bench_rules *policy = &bench->policies[i];

		if (!bench->no_bwrap && policy->count <= BENCH_RULES_BWRAP)
			add_command(bench, "bwrap", bench_rules_bwrap(policy), policy);
		(void)add_way(bench, "library", run_request, policy);
		if (!bench->no_cold)
			(void)add_way(bench, "library, cold", run_cold, policy);
	}
	(void)add_way(bench, "after status", run_after, first);
	if (bench->nets) {
		add_way(bench, "network host", run_request, first)->net = "host";
		add_way(bench, "network proxy", run_request, first)->net = "proxy";
	}
	if (bench->absent)
		(void)add_way(bench, "absent deny", run_absent, first);
	if (bench->unguarded) {
		bench->open_policy = bench_rules_unguarded(first);
		(void)add_way(bench, "no guard", run_request, &bench->open_policy);
	}
	if (bench->ctl)
		add_command(bench, "fsboxctl",
			    bench_rules_fsboxctl(first, bench->ctl, bench->engine), first);
	if (bench->firejail)
		add_command(bench, "firejail", bench_rules_firejail(first), first);
	for (size_t i = 0; i < bench->peer_count; i++)
		add_command(bench, bench->peers[i].name, bench->peers[i].argv, NULL);
}

static void warm_up(struct bench *bench, struct way *way)
{
	double spent_us = 0;

	for (size_t i = 0; i < WARM_UP_ROUNDS && spent_us < WARM_UP_US; i++)
		spent_us += way->run(bench, way);
}

static bool is_through(const struct bench *bench, const struct way *way)
{
	return way->done == bench->rounds ||
	       (way->done >= ROUNDS_LEAST && way->spent_us >= bench->budget_us);
}

/* What the kernel still does after the one before (a thousand mounts to let go) is not this one's. */
static void begin_turn(struct bench *bench, struct way *way)
{
	const struct timespec pause = { .tv_nsec = 50000000 };

	(void)nanosleep(&pause, NULL);
	(void)way->run(bench, way);
}

/* Whether anybody still has rounds to run. */
static bool take_turns(struct bench *bench)
{
	bool more = false;

	for (size_t w = 0; w < bench->way_count; w++) {
		struct way *way = &bench->ways[w];

		if (!is_through(bench, way))
			begin_turn(bench, way);
		for (size_t i = 0; i < TURN && !is_through(bench, way); i++) {
			double us = way->run(bench, way);

			way->us[way->done++] = us;
			way->spent_us += us;
		}
		more = more || !is_through(bench, way);
	}
	return more;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static void measure(struct bench *bench)
{
	for (size_t w = 0; w < bench->way_count; w++)
		warm_up(bench, &bench->ways[w]);
	while (take_turns(bench))
		;
	for (size_t w = 0; w < bench->way_count; w++)
		qsort(bench->ways[w].us, bench->ways[w].done, sizeof(double), compare_doubles);
}

static void report(const struct bench *bench)
{
	if (!bench->json)
		printf("%-16s %6s %7s %9s %9s %9s %8s\n", "", "rules", "rounds", "p50 us", "p10 us",
		       "p99 us", "x bare");
	for (size_t w = 0; w < bench->way_count; w++) {
		const struct way *way = &bench->ways[w];
		double p50 = way->us[way->done / 2];
		double p10 = way->us[way->done / 10];
		double p99 = way->us[way->done * 99 / 100];
		double bare = bench->ways[0].us[bench->ways[0].done / 2];

		if (bench->json)
			printf("{\"bench\":\"%s\",\"mode\":\"%s\",\"what\":\"%s\",\"engine\":\"%s\","
			       "\"rules\":%zu,\"rounds\":%zu,\"p50_us\":%.0f,\"p10_us\":%.0f,"
			       "\"p99_us\":%.0f,\"x_bare\":%.3f}\n",
			       bench->name, bench->mode, way->name, bench->engine, way->rules,
			       way->done, p50, p10, p99, p50 / bare);
		else
			printf("%-16s %6zu %7zu %9.0f %9.0f %9.0f %8.2f\n", way->name, way->rules,
			       way->done, p50, p10, p99, p50 / bare);
	}
}

/* ---- options --------------------------------------------------------------------------- */

static void add_peer(struct bench *bench, const char *name, char *command)
{
	size_t words = 0;

	if (bench->peer_count == PEERS_MAX)
		exit(2);
	bench->peers[bench->peer_count].name = name;
	for (char *word = strtok_r(command, " ", &command); word && words < PEER_WORDS - 1;
	     word = strtok_r(NULL, " ", &command))
		bench->peers[bench->peer_count].argv[words++] = word;
	bench->peer_count++;
}

/* Their directories are made when all options are known. */
static void add_sizes(struct bench *bench, const char *list)
{
	char *end = NULL;

	for (; *list; list = *end == ',' ? end + 1 : end) {
		size_t count = strtoul(list, &end, 10);

		if (count < BENCH_RULES_LEAST || bench->policy_count == SIZES_MAX ||
		    (*end && *end != ','))
			exit(2);
		bench->policies[bench->policy_count++].count = count;
	}
}

static bool parse_flag(struct bench *bench, const char *option)
{
	bool *flag = strcmp(option, "--json") == 0        ? &bench->json
		     : strcmp(option, "--no-bwrap") == 0  ? &bench->no_bwrap
		     : strcmp(option, "--no-cold") == 0   ? &bench->no_cold
		     : strcmp(option, "--firejail") == 0  ? &bench->firejail
		     : strcmp(option, "--nets") == 0      ? &bench->nets
		     : strcmp(option, "--unguarded") == 0 ? &bench->unguarded
		     : strcmp(option, "--absent") == 0    ? &bench->absent
							  : NULL;

	if (flag)
		*flag = true;
	return flag != NULL;
}

static bool parse_text(struct bench *bench, const char *option, const char *value)
{
	const char **text = strcmp(option, "--engine") == 0   ? &bench->engine
			    : strcmp(option, "--ctl") == 0    ? &bench->ctl
			    : strcmp(option, "--mode") == 0   ? &bench->mode
			    : strcmp(option, "--name") == 0   ? &bench->name
			    : strcmp(option, "--work") == 0   ? &bench->work
			    : strcmp(option, "--daemon") == 0 ? &bench->daemon
							      : NULL;

	if (text)
		*text = value;
	return text != NULL;
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
		else if (strcmp(argv[i], "--seconds") == 0)
			bench->budget_us = strtod(value, NULL) * 1e6;
		else if (strcmp(argv[i], "--rules") == 0)
			add_sizes(bench, value);
		else if (!parse_text(bench, argv[i], value))
			exit(2);
		i++;
	}
	if (bench->policy_count == 0)
		add_sizes(bench, "43");
	if (!bench->work || bench->rounds < ROUNDS_LEAST)
		exit(2);
}

int main(int argc, char **argv)
{
	static struct bench bench = {
		.engine = "native", .mode = "", .name = "spawn", .rounds = 200, .budget_us = 20e6
	};
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_error err;

	parse(&bench, argc, argv);
	for (size_t i = 0; i < bench.policy_count; i++)
		bench_rules_make(&bench.policies[i], bench.work, bench.policies[i].count);
	options.daemon = bench.daemon;
	if (fsbox_open(&bench.box, &options, &err) < 0) {
		(void)fprintf(stderr, "bench_spawn: %s: %s\n", err.kind, err.message);
		return 1;
	}
	add_ways(&bench);
	measure(&bench);
	report(&bench);
	bench.box = fsbox_close(bench.box);
	return 0;
}
