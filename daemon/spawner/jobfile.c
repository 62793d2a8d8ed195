/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/paths.h"
#include "daemon/spawner/result.h"

#define RECORD_MAGIC 0x4a4f4246u /* "FBOJ" */
#define BROKER_MAGIC 0x4b524246u /* "FBRK" */
#define RECORD_VERSION 3

/* How many numbers are noted at once. */
#define NUMBERS_AHEAD 256

#define NAME_MAX_BYTES 24

_Static_assert(sizeof(struct jobfile_record) < 4096, "a record lies below the page of the result");

struct broker_record {
	uint32_t magic;
	int32_t pid;
	char boot_id[40];
	struct birth birth;
};

static void name_of_job(uint64_t job, char ret_name[NAME_MAX_BYTES])
{
	(void)snprintf(ret_name, NAME_MAX_BYTES, "%llu", (unsigned long long)job);
}

static void name_of_broker(pid_t pid, char ret_name[NAME_MAX_BYTES])
{
	(void)snprintf(ret_name, NAME_MAX_BYTES, "b%d", (int)pid);
}

/* ---- the folder ---------------------------------------------------------------------- */

static int read_boot_id(char ret_id[40], struct error *err)
{
	AUTO(auto_close) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret_id, 36);

	if (length != 36)
		return error_set(err, ERR_SYSTEM, errno, "read the boot id");
	memset(ret_id + 36, 0, 4);
	return 0;
}

int jobfiles_open(struct jobfiles *files, const char *run_dir, struct error *err)
{
	char path[PATHS_BYTES + 8];
	int r = read_boot_id(files->boot_id, err);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/jobs", run_dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return error_set(err, ERR_SYSTEM, errno, "mkdir '%s'", path);
	files->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (files->dir_fd < 0)
		return error_set(err, ERR_CONFIG, errno, "open directory '%s'", path);
	if ((r = paths_check_dir(files->dir_fd, path, geteuid(), err)) < 0)
		return r;
	files->last_fd =
		openat(files->dir_fd, "last", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (files->last_fd < 0)
		return error_set(err, ERR_CONFIG, errno, "open '%s/last'", path);
	if (pread(files->last_fd, &files->last, sizeof(files->last), 0) !=
		    (ssize_t)sizeof(files->last) ||
	    files->last > UINT64_MAX / 2)
		files->last = 0;
	files->noted = files->last;
	return 0;
}

void jobfiles_close(struct jobfiles *files)
{
	auto_close(&files->dir_fd);
	auto_close(&files->last_fd);
	files->dir_fd = -1;
	files->last_fd = -1;
}

int jobfiles_number(struct jobfiles *files, uint64_t *ret_job, struct error *err)
{
	uint64_t noted = files->last + NUMBERS_AHEAD;

	if (files->last == files->noted) {
		if (pwrite(files->last_fd, &noted, sizeof(noted), 0) != (ssize_t)sizeof(noted))
			return error_set(err, ERR_SYSTEM, errno, "note the numbers of jobs");
		files->noted = noted;
	}
	*ret_job = ++files->last;
	return 0;
}

void jobfiles_go_above(struct jobfiles *files, uint64_t job)
{
	if (job <= files->last)
		return;
	files->last = job;
	files->noted = job;
}

/* ---- one job's ----------------------------------------------------------------------- */

int jobfile_write(const struct jobfiles *files, int fd, struct jobfile_record *record,
		  struct error *err)
{
	record->magic = RECORD_MAGIC;
	record->version = RECORD_VERSION;
	memcpy(record->boot_id, files->boot_id, sizeof(record->boot_id));
	if (pwrite(fd, record, sizeof(*record), 0) != (ssize_t)sizeof(*record))
		return error_set(err, ERR_SYSTEM, errno, "keep a record of job %llu",
				 (unsigned long long)record->job);
	return 0;
}

static int fill(const struct jobfiles *files, int fd, struct jobfile_record *record,
		struct error *err)
{
	static const char page[RESULT_PAGE_BYTES];
	int r = jobfile_write(files, fd, record, err);

	if (r == 0 && pwrite(fd, page, sizeof(page), result_offset()) != (ssize_t)sizeof(page))
		r = error_set(err, ERR_SYSTEM, errno, "make room for the result of job %llu",
			      (unsigned long long)record->job);
	return r;
}

int jobfile_make(const struct jobfiles *files, struct jobfile_record *record, int *ret_fd,
		 struct error *err)
{
	AUTO(auto_close) int fd = -1;
	char name[NAME_MAX_BYTES];
	int r = 0;

	name_of_job(record->job, name);
	fd = openat(files->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "keep a record of job %s", name);
	r = fill(files, fd, record, err);
	if (r < 0) {
		jobfile_remove(files, record->job);
		return r;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int jobfile_prepare(const struct jobfiles *files, struct jobfile_record *record, int *ret_fd,
		    struct error *err)
{
	AUTO(auto_close) int fd = openat(files->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	int r = 0;

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare a record");
	r = fill(files, fd, record, err);
	if (r == 0)
		*ret_fd = steal_fd(&fd);
	return r;
}

int jobfile_name(const struct jobfiles *files, uint64_t job, int fd)
{
	char name[NAME_MAX_BYTES];
	char self[64];

	name_of_job(job, name);
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, files->dir_fd, name, AT_SYMLINK_FOLLOW);
}

void jobfile_remove(const struct jobfiles *files, uint64_t job)
{
	char name[NAME_MAX_BYTES];

	name_of_job(job, name);
	(void)unlinkat(files->dir_fd, name, 0);
}

/* ---- finding them again -------------------------------------------------------------- */

/* As the broker's message was checked when it came. */
static bool start_is_sound(const struct op_start *start)
{
	struct op_message message = {
		.size = (uint32_t)op_message_size(OP_JOB_START),
		.kind = OP_JOB_START,
		.u.start = *start,
	};

	return op_message_check(&message, message.size, NULL) == 0;
}

static bool identity_is_sound(const struct identity *identity)
{
	if (identity->group_count > LIMIT_GROUPS)
		return false;
	for (size_t i = 1; i < identity->group_count; i++)
		if (identity->groups[i - 1] >= identity->groups[i])
			return false;
	/* A user's own daemon has jobs of that user alone. */
	return geteuid() == 0 || identity->uid == geteuid();
}

static bool record_is_sound(const struct jobfile_record *record, uint64_t job)
{
	struct report_message report = {
		.size = (uint32_t)report_message_size(REPORT_EXITED),
		.kind = REPORT_EXITED,
		.u.exited = record->ended,
	};

	if (record->magic != RECORD_MAGIC || record->version != RECORD_VERSION ||
	    record->job != job || record->state < JOBFILE_MADE || record->state > JOBFILE_ENDED ||
	    record->timed_out > 1 || record->killed > 1 || !identity_is_sound(&record->broker))
		return false;
	/* Perhaps before anybody said what is to be started. */
	if (record->state == JOBFILE_MADE)
		return true;
	if (!start_is_sound(&record->start))
		return false;
	if (record->state == JOBFILE_ENDED)
		return report_message_check(&report, report.size, NULL) == 0;
	return record->pid > 1;
}

bool jobfile_is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == 0600 && st.st_nlink == 1;
}

/* 1: it is in RET_RECORD; 0: of another boot, or not as we make it. */
static int read_record(const struct jobfiles *files, const char *name, uint64_t job,
		       struct jobfile_record *ret_record, int *ret_fd)
{
	AUTO(auto_close)
	int fd = openat(files->dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || !jobfile_is_ours(fd) ||
	    pread(fd, ret_record, sizeof(*ret_record), 0) != (ssize_t)sizeof(*ret_record) ||
	    ret_record->magic != RECORD_MAGIC) {
		log_write(LOG_WARNING, "the record of job %s is none, and is removed", name);
		return 0;
	}
	if (memcmp(ret_record->boot_id, files->boot_id, sizeof(files->boot_id)) != 0)
		return 0;
	if (!record_is_sound(ret_record, job)) {
		log_write(LOG_WARNING, "the record of job %s makes no sense, and is removed", name);
		return 0;
	}
	*ret_fd = steal_fd(&fd);
	return 1;
}

/* NAME as a number that jobs have; 0: it is none. */
static uint64_t number_of(const char *name)
{
	char *end = NULL;
	char again[NAME_MAX_BYTES];
	uint64_t job = 0;

	errno = 0;
	job = strtoull(name, &end, 10);
	name_of_job(job, again);
	return errno == 0 && strcmp(name, again) == 0 && job <= UINT64_MAX / 2 ? job : 0;
}

static void take_name(struct jobfiles *files, const char *name, jobfiles_found_fn *found, void *arg)
{
	struct jobfile_record record;
	uint64_t job = number_of(name);
	int fd = -1;

	if (strchr(".begp", name[0]) || strcmp(name, "last") == 0)
		return;
	if (job == 0 || read_record(files, name, job, &record, &fd) == 0) {
		if (unlinkat(files->dir_fd, name, 0) < 0)
			log_write(LOG_WARNING, "something in the folder of jobs cannot be removed");
		return;
	}
	jobfiles_go_above(files, job);
	found(&record, &fd, arg);
	auto_close(&fd);
}

int jobfiles_each_name(const struct jobfiles *files, struct error *err,
		       void (*take)(const char *name, void *arg), void *arg)
{
	int fd = openat(files->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry = NULL;

	if (!dir) {
		(void)error_set(err, ERR_SYSTEM, errno, "list the jobs there were");
		if (fd >= 0)
			(void)close(fd);
		return -(int)ERR_SYSTEM;
	}
	while ((entry = readdir(dir)))
		take(entry->d_name, arg);
	(void)closedir(dir);
	return 0;
}

struct scan {
	struct jobfiles *files;
	jobfiles_found_fn *found;
	void *arg;
};

static void scan_name(const char *name, void *arg)
{
	const struct scan *scan = arg;

	take_name(scan->files, name, scan->found, scan->arg);
}

int jobfiles_scan(struct jobfiles *files, jobfiles_found_fn *found, void *arg, struct error *err)
{
	struct scan scan = { .files = files, .found = found, .arg = arg };

	return jobfiles_each_name(files, err, scan_name, &scan);
}

/* ---- brokers ------------------------------------------------------------------------- */

void jobfiles_note_broker(const struct jobfiles *files, pid_t pid, int pidfd)
{
	struct broker_record record = { .magic = BROKER_MAGIC, .pid = pid };
	char name[NAME_MAX_BYTES];
	AUTO(auto_close) int fd = -1;

	memcpy(record.boot_id, files->boot_id, sizeof(record.boot_id));
	name_of_broker(pid, name);
	if (birth_read(pid, pidfd, &record.birth, NULL) == 0)
		fd = openat(files->dir_fd, name,
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || pwrite(fd, &record, sizeof(record), 0) != (ssize_t)sizeof(record))
		log_write(LOG_WARNING, "fsbox-broker (process %d) has no record", (int)pid);
}

void jobfiles_forget_broker(const struct jobfiles *files, pid_t pid)
{
	char name[NAME_MAX_BYTES];

	name_of_broker(pid, name);
	if (pid > 0 && files->dir_fd >= 0)
		(void)unlinkat(files->dir_fd, name, 0);
}

static void end_broker(const char *name, void *arg)
{
	const struct jobfiles *files = arg;
	struct broker_record record;
	AUTO(auto_close) int fd = -1;
	AUTO(auto_close) int pidfd = -1;

	if (name[0] != 'b')
		return;
	fd = openat(files->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && jobfile_is_ours(fd) &&
	    read(fd, &record, sizeof(record)) == (ssize_t)sizeof(record) &&
	    record.magic == BROKER_MAGIC &&
	    memcmp(record.boot_id, files->boot_id, sizeof(files->boot_id)) == 0)
		pidfd = birth_open(record.pid, &record.birth);
	if (pidfd >= 0)
		(void)pidfd_signal(pidfd, SIGTERM);
	(void)unlinkat(files->dir_fd, name, 0);
}

void jobfiles_end_brokers(const struct jobfiles *files)
{
	struct error err = ERROR_INIT;

	if (jobfiles_each_name(files, &err, end_broker, (void *)(uintptr_t)files) < 0)
		log_failure(&err, "brokers of before");
}
