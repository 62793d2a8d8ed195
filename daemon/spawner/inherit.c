/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"

#define IOPRIO_WHO_PROCESS 1
#define OOM_SCORE_MIN (-1000)
#define OOM_SCORE_MAX 1000

/* sched_attr.sched_flags */
#define FLAG_RESET_ON_FORK 0x01u

/* A limit of 0 does not keep a piped core handler from running; a limit of 1 does (core(5)). */
#define CORE_BYTES 1

/* Of the names in /proc/PID/limits. */
#define LIMITS_NAME_WIDTH 26

/* ---- reading ------------------------------------------------------------------------- */

/* "unlimited" or a number; the rest of the line in *CURSOR. */
static bool parse_limit(char **cursor, rlim_t *ret_limit)
{
	static const char unlimited[] = "unlimited";
	char *start = *cursor + strspn(*cursor, " ");
	unsigned long long number = 0;

	if (strncmp(start, unlimited, sizeof(unlimited) - 1) == 0) {
		*cursor = start + sizeof(unlimited) - 1;
		*ret_limit = RLIM_INFINITY;
		return true;
	}
	errno = 0;
	number = strtoull(start, cursor, 10);
	*ret_limit = number;
	return errno == 0 && *cursor != start;
}

/* False: it is a process of somebody else, and we have no CAP_SYS_RESOURCE, which not every root has. */
static bool ask_limits(pid_t pid, struct inherit *inherit)
{
	for (int which = 0; which < RLIM_NLIMITS; which++)
		if (prlimit(pid, (enum __rlimit_resource)which, NULL, &inherit->limits[which]) < 0)
			return false;
	return true;
}

/* From /proc/PID/limits: one line for each resource in the order of their numbers, after a headline. */
static int parse_limits(pid_t pid, struct inherit *inherit, struct error *err)
{
	char path[64];
	char line[256];
	FILE *file = NULL;
	int which = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return error_set(err, ERR_SETUP_FAILED, errno, "read limits of the client");
	for (; which < RLIM_NLIMITS && fgets(line, sizeof(line), file); which++) {
		char *cursor = line + LIMITS_NAME_WIDTH;

		if (which >= 0 && (strlen(line) < LIMITS_NAME_WIDTH ||
				   !parse_limit(&cursor, &inherit->limits[which].rlim_cur) ||
				   !parse_limit(&cursor, &inherit->limits[which].rlim_max)))
			break;
	}
	(void)fclose(file);
	if (which != RLIM_NLIMITS)
		return error_set(err, ERR_SETUP_FAILED, 0, "limit %d of the client is not readable",
				 which);
	return 0;
}

static int read_limits(pid_t pid, struct inherit *inherit, struct error *err)
{
	int r = ask_limits(pid, inherit) ? 0 : parse_limits(pid, inherit, err);

	inherit->limits[RLIMIT_CORE].rlim_cur = CORE_BYTES;
	inherit->limits[RLIMIT_CORE].rlim_max = CORE_BYTES;
	return r;
}

static int read_oom_score(pid_t pid, int *ret_score, struct error *err)
{
	char path[64];
	char text[32] = "";
	AUTO(auto_close) int fd = -1;
	ssize_t n = 0;
	long score = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "read oom_score_adj of the client");
	score = strtol(text, NULL, 10);
	if (score < OOM_SCORE_MIN || score > OOM_SCORE_MAX)
		return error_set(err, ERR_SETUP_FAILED, 0, "oom_score_adj of the client is %ld",
				 score);
	*ret_score = (int)score;
	return 0;
}

/* What a child of the client would have started with. */
static void reset_on_fork(struct inherit_scheduling *scheduling)
{
	if (scheduling->policy == SCHED_DEADLINE) /* cannot fork without it, and is not handed on */
		scheduling->flags |= FLAG_RESET_ON_FORK;
	if (!(scheduling->flags & FLAG_RESET_ON_FORK))
		return;
	if (scheduling->policy != SCHED_OTHER && scheduling->policy != SCHED_BATCH &&
	    scheduling->policy != SCHED_IDLE) {
		scheduling->policy = SCHED_OTHER;
		scheduling->priority = 0;
		scheduling->nice = 0;
	}
	if (scheduling->nice < 0)
		scheduling->nice = 0;
	scheduling->flags = 0;
	scheduling->runtime_ns = 0;
	scheduling->deadline_ns = 0;
	scheduling->period_ns = 0;
}

int inherit_read(pid_t pid, int pidfd, struct inherit *ret_inherit, struct error *err)
{
	struct inherit inherit = { 0 };
	struct pollfd alive = { .fd = pidfd, .events = POLLIN };
	long n = 0;
	int r = read_limits(pid, &inherit, err);

	if (r < 0)
		return r;
	r = read_oom_score(pid, &inherit.oom_score_adj, err);
	if (r < 0)
		return r;
	if (syscall(SYS_sched_getattr, pid, &inherit.scheduling, sizeof(inherit.scheduling), 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "read scheduling of the client");
	reset_on_fork(&inherit.scheduling);
	n = syscall(SYS_sched_getaffinity, pid, sizeof(inherit.cpus), inherit.cpus);
	if (n < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "read processors of the client");
	inherit.cpu_bytes = (size_t)n;
	inherit.io_priority = (int)syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid);
	if (inherit.io_priority < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "read I/O priority of the client");

	/* The number meant this process all the time if the process is still there now. */
	if (poll(&alive, 1, 0) != 0)
		return error_set(err, ERR_SETUP_FAILED, 0, "the client is gone");
	*ret_inherit = inherit;
	return 0;
}

/* ---- applying ------------------------------------------------------------------------ */

static int apply_limit(enum __rlimit_resource which, struct rlimit limit, struct error *err)
{
	struct rlimit own;

	if (setrlimit(which, &limit) == 0)
		return 0;
	/* Not privileged, and the client may have more than we: then ours stays the ceiling. */
	if (errno == EPERM && getrlimit(which, &own) == 0) {
		if (limit.rlim_max > own.rlim_max)
			limit.rlim_max = own.rlim_max;
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		if (setrlimit(which, &limit) == 0)
			return 0;
	}
	return error_set(err, ERR_SETUP_FAILED, errno, "set limit %d", (int)which);
}

/*
 * Make room above for what apply_limit() will ask for; without privilege that takes what there is. True: it is
 * WANTED already.
 */
static bool raise_limit(enum __rlimit_resource which, const struct rlimit *wanted)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) < 0)
		return false;
	if (wanted->rlim_max > limit.rlim_max) {
		limit.rlim_max = wanted->rlim_max;
		(void)setrlimit(which, &limit);
		return false;
	}
	return limit.rlim_max == wanted->rlim_max && limit.rlim_cur == wanted->rlim_cur;
}

static int apply_oom_score(int score, struct error *err)
{
	AUTO(auto_close) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score);

	/* EACCES: lower than ours without privilege. Ours, being higher, is not more. */
	if (fd < 0 || (write(fd, text, (size_t)n) < 0 && errno != EACCES))
		return error_set(err, ERR_SETUP_FAILED, errno, "set oom_score_adj");
	return 0;
}

static int apply_scheduling(const struct inherit_scheduling *scheduling, struct error *err)
{
	struct inherit_scheduling wanted = *scheduling;
	struct inherit_scheduling plain = { .size = sizeof(plain), .policy = SCHED_OTHER };

	wanted.size = sizeof(wanted);
	if (syscall(SYS_sched_setattr, 0, &wanted, 0) == 0)
		return 0;
	/* Real-time or a better niceness without privilege: the ordinary class is not more. */
	if (errno == EPERM || errno == EBUSY || errno == EINVAL) {
		int own_nice = getpriority(PRIO_PROCESS, 0);

		plain.nice = wanted.nice > own_nice ? wanted.nice : own_nice;
		if (syscall(SYS_sched_setattr, 0, &plain, 0) == 0 || errno == EPERM)
			return 0; /* EPERM: what we have is less than that */
	}
	return error_set(err, ERR_SETUP_FAILED, errno, "set scheduling");
}

int inherit_raise(struct inherit *inherit, struct error *err)
{
	int r = apply_oom_score(inherit->oom_score_adj, err);

	if (r < 0)
		return r;
	r = apply_scheduling(&inherit->scheduling, err);
	if (r < 0)
		return r;
	/* EPERM and EINVAL: a class that needs privilege, or a control group with fewer processors. */
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, inherit->io_priority) < 0 &&
	    errno != EPERM)
		return error_set(err, ERR_SETUP_FAILED, errno, "set I/O priority");
	if (syscall(SYS_sched_setaffinity, 0, inherit->cpu_bytes, inherit->cpus) < 0 &&
	    errno != EINVAL)
		return error_set(err, ERR_SETUP_FAILED, errno, "set processors");
	for (int which = 0; which < RLIM_NLIMITS; which++)
		inherit->has[which] =
			raise_limit((enum __rlimit_resource)which, &inherit->limits[which]);
	return 0;
}

int inherit_limit(const struct inherit *inherit, struct error *err)
{
	int r = 0;

	for (int which = 0; r == 0 && which < RLIM_NLIMITS; which++)
		r = inherit->has[which] ? 0
					: apply_limit((enum __rlimit_resource)which,
						      inherit->limits[which], err);
	return r;
}

bool inherit_equal(const struct inherit *one, const struct inherit *other)
{
	const struct inherit_scheduling *a = &one->scheduling;
	const struct inherit_scheduling *b = &other->scheduling;

	for (int which = 0; which < RLIM_NLIMITS; which++)
		if (one->limits[which].rlim_cur != other->limits[which].rlim_cur ||
		    one->limits[which].rlim_max != other->limits[which].rlim_max)
			return false;
	return a->policy == b->policy && a->flags == b->flags && a->nice == b->nice &&
	       a->priority == b->priority && a->runtime_ns == b->runtime_ns &&
	       a->deadline_ns == b->deadline_ns && a->period_ns == b->period_ns &&
	       one->io_priority == other->io_priority &&
	       one->oom_score_adj == other->oom_score_adj && one->cpu_bytes == other->cpu_bytes &&
	       memcmp(one->cpus, other->cpus, one->cpu_bytes) == 0;
}
