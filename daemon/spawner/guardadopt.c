/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardadopt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/guardfile.h"
#include "daemon/spawner/guardlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/procfs.h"
#include "daemon/spawner/spawner.h"

/*
 * A guard of a fsboxd before us.
 *
 * @replaced  a new one has some job of its identity
 * @ending    it was told to end; by @timer it is killed
 */
struct old_guard {
	struct spawner *spawner;
	pid_t pid;
	int pidfd;
	struct identity identity;
	bool replaced;
	bool ending;
	struct loop_source source;
	struct loop_timer timer;
	struct old_guard *next; /* guardlinks.old */
};

/* ---- old guards ----------------------------------------------------------------------- */

static void free_old(struct old_guard *old)
{
	struct old_guard **at = &old->spawner->guards.old;

	while (*at != old)
		at = &(*at)->next;
	*at = old->next;
	loop_remove(&old->spawner->loop, &old->source);
	loop_disarm(&old->spawner->loop, &old->timer);
	auto_close(&old->pidfd);
	free(old);
}

static bool needs_old(const struct job *job, const struct identity *identity)
{
	return job->guarded.by_old && identity_equal(&job->identity, identity);
}

static bool is_any_needing(const struct spawner *spawner, const struct identity *identity)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++)
		for (const struct job *job = spawner->jobs[i]; job; job = job->next)
			if (needs_old(job, identity))
				return true;
	return false;
}

static const struct old_guard *find_old(const struct spawner *spawner,
					const struct identity *identity)
{
	const struct old_guard *old = spawner->guards.old;

	while (old && !identity_equal(&old->identity, identity))
		old = old->next;
	return old;
}

/* Those that no new guard could take had this one alone. */
static void give_up_all(struct spawner *spawner, const struct identity *identity)
{
	if (find_old(spawner, identity))
		return;
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		struct job *next = NULL;

		for (struct job *job = spawner->jobs[i]; job; job = next) {
			next = job->next;
			if (needs_old(job, identity) && !job->guarded.plan && job->started)
				guardlink_give_up(job);
		}
	}
}

static void on_old_end(uint32_t events, void *arg)
{
	struct old_guard *old = arg;
	struct spawner *spawner = old->spawner;
	const struct identity identity = old->identity;

	(void)events;
	guardfile_forget(&spawner->jobfiles, old->pid);
	free_old(old);
	give_up_all(spawner, &identity);
}

static void on_old_hangs(void *arg)
{
	const struct old_guard *old = arg;

	(void)pidfd_signal(old->pidfd, SIGKILL);
}

void guardadopt_check(struct spawner *spawner)
{
	if (spawner->ending)
		return;
	for (struct old_guard *old = spawner->guards.old; old; old = old->next) {
		if (old->ending || !old->replaced || is_any_needing(spawner, &old->identity))
			continue;
		/* It looks a last time at what it has. */
		old->ending = true;
		(void)pidfd_signal(old->pidfd, SIGTERM);
		loop_arm(&spawner->loop, &old->timer, LIMIT_GUARD_ANSWER_MS, on_old_hangs, old);
	}
}

void guardadopt_held(struct job *job)
{
	struct spawner *spawner = job->spawner;

	job->guarded.by_old = false;
	for (struct old_guard *old = spawner->guards.old; old; old = old->next)
		old->replaced |= identity_equal(&old->identity, &job->identity);
	guardadopt_check(spawner);
}

static void on_found(pid_t pid, int *pidfd, const struct identity *identity, void *arg)
{
	struct spawner *spawner = arg;
	struct old_guard *old = calloc(1, sizeof(*old));
	struct error err = ERROR_INIT;

	/* Then it ends by itself, with its jobs. */
	if (!old) {
		log_write(LOG_WARNING, "guard (process %d) is not taken over", (int)pid);
		return;
	}
	*old = (struct old_guard){
		.spawner = spawner,
		.pid = pid,
		.pidfd = steal_fd(pidfd),
		.identity = *identity,
		.source = LOOP_SOURCE_INIT,
		.next = spawner->guards.old,
	};
	spawner->guards.old = old;
	if (loop_add(&spawner->loop, &old->source, old->pidfd, EPOLLIN, on_old_end, old, &err) < 0)
		log_failure(&err, "guard (process %d)", (int)pid);
}

int guardadopt_begin(struct spawner *spawner, struct error *err)
{
	const struct guardfile_found found = { .guard = on_found, .arg = spawner };

	return guardfiles_scan(&spawner->jobfiles, &found, err);
}

/* Numbers of plans go on above what is there. */
static bool is_named(uint64_t id, void *arg)
{
	struct spawner *spawner = arg;

	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		for (const struct job *job = spawner->jobs[i]; job; job = job->next) {
			if (job->guarded.plan_id != id)
				continue;
			if (id > spawner->guards.last_plan)
				spawner->guards.last_plan = id;
			return true;
		}
	}
	return false;
}

int guardadopt_end(struct spawner *spawner, struct error *err)
{
	const struct guardfile_found found = { .plan = is_named, .arg = spawner };

	spawner->guards.found_all = true;

	return guardfiles_scan(&spawner->jobfiles, &found, err);
}

void guardadopt_deinit(struct spawner *spawner)
{
	while (spawner->guards.old)
		free_old(spawner->guards.old);
}

/* ---- the job's namespaces ------------------------------------------------------------- */

/* FD, unless it is that of a namespace of ours; then -1 with ESRCH. */
static int not_ours(int *fd, const char *own)
{
	struct stat theirs;
	struct stat ours;

	if (*fd < 0)
		return -1;
	if (fstat(*fd, &theirs) < 0 || stat(own, &ours) < 0)
		return -1;
	if (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev) {
		errno = ESRCH;
		return -1;
	}
	return steal_fd(fd);
}

static pid_t parent_of(const struct job *job)
{
	AUTO(auto_close) int proc_fd = proc_open(job->pid1);
	struct proc_status status;

	/* Alive afterwards: so it was this process that we read about. */
	if (proc_fd < 0 || proc_status_read(proc_fd, &status, NULL) < 0 ||
	    !pidfd_alive(job->pid1_fd))
		return -1;
	return status.parent;
}

/* User mode: pid 1 lets nobody look in; its parent stands in the same namespaces. */
static int open_of_parent(const struct job *job, enum nsfd_kind kind)
{
	pid_t parent = parent_of(job);
	AUTO(auto_close) int pidfd = parent > 1 ? pidfd_open_pid(parent) : -1;
	AUTO(auto_close) int fd = -1;

	if (pidfd < 0) {
		errno = ESRCH;
		return -1;
	}
	fd = nsfd_open(pidfd, parent, kind);
	/* Still the parent, and no other process had its number. */
	if (fd < 0 || parent_of(job) != parent || !pidfd_alive(pidfd)) {
		errno = fd < 0 ? errno : ESRCH;
		return -1;
	}
	return steal_fd(&fd);
}

int guardadopt_open(const struct job *job, enum nsfd_kind kind)
{
	AUTO(auto_close)
	int fd = job->spawner->mode == MODE_USER ? open_of_parent(job, kind)
						 : nsfd_open(job->pid1_fd, job->pid1, kind);

	return not_ours(&fd, kind == NSFD_USER ? "/proc/self/ns/user" : "/proc/self/ns/mnt");
}

/* ---- jobs ----------------------------------------------------------------------------- */

void guardadopt_note(struct job *job, uint64_t plan_id, uint64_t begun_ms, uint32_t repaired)
{
	job->guarded = (struct guard_share){
		.plan_id = plan_id,
		.by_old = plan_id != 0,
		.begun_ms = begun_ms,
		.repaired = repaired,
	};
}

static int find_guard(struct job *job, struct guardlink **ret_link, struct error *err)
{
	AUTO(auto_close) int user_ns_fd = -1;
	struct stat st = { .st_ino = 0 };

	if (job->spawner->mode == MODE_USER) {
		user_ns_fd = guardadopt_open(job, NSFD_USER);
		if (user_ns_fd < 0 || fstat(user_ns_fd, &st) < 0)
			return error_set(err, ERR_SYSTEM, errno, "open its user namespace");
	}
	return guardlink_get(job->spawner, &job->identity, &user_ns_fd, st.st_ino, ret_link, err);
}

static struct guard_plan *find_plan(const struct spawner *spawner, uint64_t id)
{
	struct guard_plan *plan = spawner->guards.plans;

	while (plan && plan->id != id)
		plan = plan->next;
	return plan;
}

void guardadopt_forget_plan(struct spawner *spawner, uint64_t plan_id)
{
	/* While jobs are found, one that is not found yet may name it. */
	if (plan_id == 0 || spawner->ending || !spawner->guards.found_all ||
	    find_plan(spawner, plan_id) || is_named(plan_id, spawner))
		return;
	guardfile_remove_plan(&spawner->jobfiles, plan_id);
}

/* A reference to its plan; a guard that has it runs. */
static int take_plan(struct job *job, struct guard_plan **ret_plan, struct error *err)
{
	struct spawner *spawner = job->spawner;
	struct guardlink *link = NULL;
	AUTO(auto_close) int fd = -1;
	size_t bytes = 0;
	int r = 0;

	*ret_plan = find_plan(spawner, job->guarded.plan_id);
	if (*ret_plan) {
		(*ret_plan)->refs++;
		return 0;
	}
	r = guardfile_read_plan(&spawner->jobfiles, job->guarded.plan_id, job->identity.uid, &fd,
				&bytes, err);
	if (r < 0 || (r = find_guard(job, &link, err)) < 0)
		return r;
	return guardlink_add_plan(link, job->guarded.plan_id, &fd, bytes, ret_plan, err);
}

static int guard(struct job *job, struct error *err)
{
	struct guard_plan *plan = NULL;
	int r = take_plan(job, &plan, err);

	if (r < 0)
		return r;
	job->guarded.plan = plan;
	r = guardlink_hand(job, err);
	if (r == 0)
		return 0;
	job->guarded.plan = NULL;
	guardlink_plan_release(plan);
	return r;
}

void guardadopt_job(struct job *job)
{
	struct error err = ERROR_INIT;

	if (job->guarded.plan_id == 0 || job->guarded.plan || guard(job, &err) == 0)
		return;
	log_failure(&err, "job %llu gets no guard", (unsigned long long)job->id);
	if (!find_old(job->spawner, &job->identity))
		guardlink_give_up(job);
}
