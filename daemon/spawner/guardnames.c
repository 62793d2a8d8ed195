/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a guard that listens for names: directories of the host's are watched as the peer sees them;
 * an entry that matters makes jobs be looked at, or is itself what must not appear.
 */
#include "daemon/spawner/guardwork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/report.h"
#include "proto/wire/guardop.h"

#define WATCHED (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)

/* Names in quarantine begin with it; so many of one name at the same place. */
#define QUARANTINE_PREFIX "fsbox-quarantined."
#define QUARANTINE_MAX 100

/* Entries of one directory that are remembered: with more, all that is new counts as planted. */
#define ENTRIES_MAX 100000

/* ---- directories ---------------------------------------------------------------------- */

/* A dirfd with read access is needed for nothing but listing. */
static int open_dir(const char *path, bool list)
{
	return mountapi_open(AT_FDCWD, path, (list ? O_RDONLY | O_NONBLOCK : O_PATH) | O_DIRECTORY,
			     0);
}

/* What watch_dir() has instead of a number. */
enum { WATCH_FAILED = -1, WATCH_NOTHING_THERE = -2, WATCH_NOT_OURS = -3 };

/* Watch PATH. Only where that fails may somebody like this user change names without our knowing. */
static int watch_dir(const struct guard_state *state, const char *path)
{
	AUTO(auto_close) int fd = open_dir(path, false);
	char self[64];
	int wd = -1;

	if (fd < 0)
		return WATCH_NOTHING_THERE;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(state->inotify_fd, self, WATCHED);
	/* What this user may not even list he does not change. */
	if (wd < 0 && errno == EACCES && faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return WATCH_NOT_OURS;
	return wd;
}

static bool is_watched(const struct guard_state *state, int wd)
{
	for (const struct guarded_plan *plan = state->plans; plan; plan = plan->next)
		for (size_t i = 0; i < plan->points.dir_count; i++)
			if (plan->wds[i] == wd)
				return true;
	return false;
}

static void on_rescan(void *arg);

/* Open all directories again: those that are the same keep their numbers. */
static void watch_again(struct guard_state *state, struct guarded_plan *plan)
{
	const char *missing = NULL;

	plan->stale = false;
	plan->unwatched = false;
	for (size_t i = 0; i < plan->points.dir_count; i++) {
		const char *path = plan->points.dirs[i].path;
		int before = plan->wds[i];
		bool known = missing && path_covers(missing, path);
		int wd = known ? WATCH_NOTHING_THERE : watch_dir(state, path);

		/* Sorted: what lies below follows, and is not there either. */
		if (wd == WATCH_NOTHING_THERE && !known)
			missing = path;
		plan->unwatched |= wd == WATCH_FAILED;
		plan->wds[i] = wd < 0 ? -1 : wd;
		if (before >= 0 && before != plan->wds[i] && !is_watched(state, before))
			(void)inotify_rm_watch(state->inotify_fd, before);
	}
	if (plan->unwatched && !state->rescan.armed)
		loop_arm(&state->loop, &state->rescan, GUARD_RESCAN_MS, on_rescan, state);
}

/* ---- names that appear (R28) ---------------------------------------------------------- */

static bool is_entry(const struct guard_point *point)
{
	return (point->op->flags & PLAN_ENTRIES) != 0;
}

/* PATH, told to JOB's clients once for each point. */
static void tell_appeared(struct guarded_job *job, size_t point, const char *path,
			  enum guard_action action, const char *kept_as)
{
	struct report_message message;

	report_begin(&message, REPORT_NAME_APPEARED);
	message.u.guard.job = job->id;
	message.u.guard.action = action;
	(void)snprintf(message.u.guard.kept_as, sizeof(message.u.guard.kept_as), "%s", kept_as);
	(void)snprintf(message.u.guard.path, sizeof(message.u.guard.path), "%s", path);
	/* What was only seen stays there, and is seen again with the next event. */
	if (action == GUARD_REPORTED && job->told[point])
		return;
	job->told[point] = 1;
	guard_tell(job->state, &message);
}

/*
 * Rename NAME in DIR_FD to a name that says so in TO_FD. The new name is in KEPT_AS. -1 with errno where
 * that does not work.
 */
static int quarantine(int dir_fd, const char *name, int to_fd, const char *of, char *kept_as)
{
	for (int i = 0; i < QUARANTINE_MAX; i++) {
		char number[16] = "";

		if (i > 0)
			(void)snprintf(number, sizeof(number), ".%d", i);
		if (snprintf(kept_as, LIMIT_LEAF_BYTES + 1, "%s%.60s%s%.150s%s", QUARANTINE_PREFIX,
			     of, *of ? "." : "", name, number) > LIMIT_LEAF_BYTES)
			break;
		if (renameat2(dir_fd, name, to_fd, kept_as, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	errno = EEXIST;
	return -1;
}

/* Whether it has been like this since before any job of PLAN began: somebody else's. */
static bool is_older(const struct guarded_plan *plan, const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec <
	       plan->begun_ns;
}

/* What is done with the jobs that have PATH under notice, and with the name itself. */
static void handle(struct guard_state *state, const struct guard_point *point, const char *path,
		   int dir_fd, int to_fd)
{
	char kept_as[LIMIT_LEAF_BYTES + 1] = "";
	enum guard_action action = GUARD_REPORTED;
	bool taken = false;

	if (point->op->flags & PLAN_QUARANTINE) {
		taken = quarantine(dir_fd, path_leaf(path), to_fd,
				   is_entry(point) ? path_leaf(point->op->path) : "", kept_as) == 0;
		if (!taken && errno == ENOENT)
			return; /* gone, or another plan's turn was before */
		action = taken ? GUARD_QUARANTINED : GUARD_LEFT;
		if (!taken)
			kept_as[0] = '\0';
	}
	for (struct guarded_job *job = state->jobs; job; job = job->next) {
		const struct guard_points *points = &job->plan->points;

		for (size_t i = 0; i < points->count; i++) {
			enum guard_action done = action;

			if (points->points[i].kind != GUARD_POINT_NOTICE ||
			    strcmp(points->points[i].op->path, point->op->path) != 0)
				continue;
			if (taken && job->flags & GUARD_KILL_PLANTED)
				done = GUARD_KILLED;
			tell_appeared(job, i, path, done, kept_as);
			/* What was taken away does no more harm: fsboxd kills, in its own order. */
			if (done == GUARD_LEFT || (done == GUARD_KILLED && state->report_fd < 0))
				guard_kill(job);
		}
	}
}

static void look_for_name(struct guard_state *state, const struct guarded_plan *plan,
			  const struct guard_point *point)
{
	AUTO(auto_free) char *parent = path_parent(point->op->path);
	AUTO(auto_close) int dir_fd = parent ? open_dir(parent, false) : -1;
	struct stat st;

	if (dir_fd >= 0 &&
	    fstatat(dir_fd, path_leaf(point->op->path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !is_older(plan, &st))
		handle(state, point, point->op->path, dir_fd, dir_fd);
}

/*
 * The entries of POINT's directory: remember them (STATE is NULL), or handle those that are new.
 */
static void look_at_entries(struct guard_state *state, const struct guarded_plan *plan,
			    const struct guard_point *point, struct string_list *known)
{
	AUTO(auto_free) char *parent = path_parent(point->op->path);
	AUTO(auto_close) int to_fd = parent ? open_dir(parent, false) : -1;
	int fd = open_dir(point->op->path, true);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		auto_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(stream));) {
		char path[LIMIT_PATH_BYTES + 1];
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (state && (string_list_has(known, entry->d_name) || to_fd < 0 ||
			      fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0))
			continue;
		if (!state || is_older(plan, &st)) {
			if (known->count < ENTRIES_MAX)
				(void)string_list_add(known, entry->d_name, NULL);
			continue;
		}
		if (snprintf(path, sizeof(path), "%s/%s", point->op->path, entry->d_name) <
		    (int)sizeof(path))
			handle(state, point, path, dirfd(stream), to_fd);
	}
	(void)closedir(stream);
}

static void remember_entries(struct guarded_plan *plan)
{
	for (size_t i = 0; i < plan->points.count; i++) {
		const struct guard_point *point = &plan->points.points[i];

		if (point->kind != GUARD_POINT_NOTICE || !is_entry(point))
			continue;
		string_list_deinit(&plan->entries[i]);
		look_at_entries(NULL, plan, point, &plan->entries[i]);
	}
}

/* While jobs run, all that is new is theirs; meanwhile it is somebody else's. */
static void look(struct guard_state *state, struct guarded_plan *plan, bool all)
{
	plan->look = false;
	if (plan->jobs == 0) {
		remember_entries(plan);
		return;
	}
	for (size_t i = 0; i < plan->points.count; i++) {
		const struct guard_point *point = &plan->points.points[i];

		if (point->kind != GUARD_POINT_NOTICE ||
		    (!all && !(point->op->flags & PLAN_QUARANTINE)))
			continue;
		if (is_entry(point))
			look_at_entries(state, plan, point, &plan->entries[i]);
		else
			look_for_name(state, plan, point);
	}
}

void guard_look_last(struct guard_state *state, struct guarded_job *job)
{
	look(state, job->plan, false);
}

/* ---- events --------------------------------------------------------------------------- */

static void plan_hit(struct guarded_plan *plan)
{
	plan->hit = true;
	plan->look = true;
}

/* An entry NAME of the directory WD came to be; NULL: events were lost, or the directory is gone. */
static void take_name(struct guard_state *state, int wd, const char *name)
{
	for (struct guarded_plan *plan = state->plans; plan; plan = plan->next) {
		for (size_t i = 0; i < plan->points.dir_count; i++) {
			const struct guard_dir *dir = &plan->points.dirs[i];

			if (wd >= 0 && plan->wds[i] != wd)
				continue;
			if (name && !guard_points_matters(&plan->points, dir, name))
				continue;
			plan_hit(plan);
			if (!name || guard_points_is_dir(&plan->points, dir, name))
				plan->stale = true;
			if (!name && wd >= 0)
				plan->wds[i] = -1;
		}
	}
}

static void read_events(struct guard_state *state)
{
	_Alignas(struct inotify_event) char block[16384];
	ssize_t got = 0;

	while ((got = read(state->inotify_fd, block, sizeof(block))) > 0) {
		size_t at = 0;

		while (at + sizeof(struct inotify_event) <= (size_t)got) {
			const struct inotify_event *event =
				(const struct inotify_event *)(const void *)(block + at);

			if (event->mask & IN_Q_OVERFLOW)
				take_name(state, -1, NULL);
			else if (event->mask & IN_IGNORED)
				take_name(state, event->wd, NULL);
			else if (event->len > 0)
				take_name(state, event->wd, event->name);
			at += sizeof(*event) + event->len;
		}
	}
}

static void settle(struct guard_state *state)
{
	for (struct guarded_plan *plan = state->plans; plan; plan = plan->next) {
		/* First the directories, so that nothing that comes after the look is missed. */
		if (plan->stale)
			watch_again(state, plan);
		if (plan->look)
			look(state, plan, true);
	}
	for (struct guarded_job *job = state->jobs; job; job = job->next)
		if (job->plan->hit)
			guard_mark(job);
	for (struct guarded_plan *plan = state->plans; plan; plan = plan->next)
		plan->hit = false;
}

void guard_read_names(struct guard_state *state)
{
	read_events(state);
	/* A job that began before these events must be known as running. */
	guard_take_orders(state);
	settle(state);
}

static void on_rescan(void *arg)
{
	struct guard_state *state = arg;
	bool wanted = false;

	for (struct guarded_plan *plan = state->plans; plan; plan = plan->next) {
		if (!plan->unwatched || plan->jobs == 0)
			continue;
		plan_hit(plan);
		plan->stale = true;
		wanted = true;
	}
	settle(state);
	guard_repair(state);
	if (wanted && !state->rescan.armed)
		loop_arm(&state->loop, &state->rescan, GUARD_RESCAN_MS, on_rescan, state);
}

int guard_watch(struct guard_state *state, struct guarded_plan *plan, struct error *err)
{
	plan->wds = calloc(plan->points.dir_count + 1, sizeof(*plan->wds));
	plan->entries = calloc(plan->points.count + 1, sizeof(*plan->entries));
	if (!plan->wds || !plan->entries)
		return error_set(err, ERR_NOMEM, 0, "directories to watch");
	for (size_t i = 0; i < plan->points.dir_count; i++)
		plan->wds[i] = -1;
	watch_again(state, plan);
	remember_entries(plan);
	return 0;
}

void guard_unwatch(struct guard_state *state, struct guarded_plan *plan)
{
	for (size_t i = 0; plan->wds && i < plan->points.dir_count; i++)
		if (plan->wds[i] >= 0 && !is_watched(state, plan->wds[i]))
			(void)inotify_rm_watch(state->inotify_fd, plan->wds[i]);
}
