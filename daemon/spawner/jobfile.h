/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBFILE_H
#define FSBOX_DAEMON_SPAWNER_JOBFILE_H

/*
 * What the next fsboxd must know about the jobs of this one: a file for each job in RUNTIME/jobs, which
 * nobody else can open. First a record that fsboxd writes, then the page that the job's init writes
 * (result.h).
 *
 * Nothing is synced: a file that did not survive is one of a boot in which no job survived either. A
 * record is one write of less than a page, so a reader after a kill -9 sees it whole or not at all.
 *
 * The same folder has a file for each broker that runs, "b" and its process number, those of guards and
 * their plans (guardfile.h), those of fsbox-egress (egressfile.h), and "last", from which the numbers of jobs go on.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/birth.h"
#include "proto/wire/spawnop.h"

enum jobfile_state {
	JOBFILE_MADE =
		1,  /* nothing of it may go on without fsboxd: what there is of it ends by itself */
	JOBFILE_UP, /* pid 1 is known, and was told to go on */
	JOBFILE_STARTED, /* fsboxd knows that the command runs */
	JOBFILE_ENDED,   /* and how it ended */
};

/*
 * All integers in the machine's own order: writer and reader are on one machine.
 *
 * @boot_id   of /proc/sys/kernel/random/boot_id
 * @broker    whose job it is; as whom it runs follows from the configuration
 * @pid       of pid 1, @birth its
 * @timed_out, @killed  why it is ending, where fsboxd did that
 * @begun_ms  CLOCK_MONOTONIC, when the command started; before that, when pid 1 was told to go on
 * @guard_plan  by which it is guarded (guardfile.h), 0: it is not; @guard_begun_ms, @repaired  see struct
 *            guard_share
 * @ended     JOBFILE_ENDED: the result as it was told, @ended_ms  CLOCK_MONOTONIC, when that was
 */
struct jobfile_record {
	uint32_t magic;
	uint32_t version;
	char boot_id[40];
	uint64_t job;
	uint32_t state;
	int32_t pid;
	struct birth birth;
	uint32_t timed_out;
	uint32_t killed;
	uint64_t begun_ms;
	uint64_t started_real_ms;
	uint64_t guard_plan;
	uint64_t guard_begun_ms;
	uint32_t repaired;
	uint32_t reserved;
	uint64_t ended_ms;
	struct identity broker;
	struct op_start start;
	struct exit_record ended;
};

/*
 * @dir_fd     RUNTIME/jobs
 * @last_fd    its file "last"
 * @last       the newest number given out; @noted: none above this is given out before "last" says so
 */
struct jobfiles {
	int dir_fd;
	int last_fd;
	char boot_id[40];
	uint64_t last;
	uint64_t noted;
};

#define JOBFILES_INIT                       \
	{                                   \
		.dir_fd = -1, .last_fd = -1 \
	}

/* Make the folder if it is missing. The caller holds the runtime directory's lock. */
int jobfiles_open(struct jobfiles *files, const char *run_dir, struct error *err);
void jobfiles_close(struct jobfiles *files);

/* The next number: none that was used since the machine was started. Fails with ERR_SYSTEM. */
int jobfiles_number(struct jobfiles *files, uint64_t *ret_job, struct error *err);

/* Numbers go on above JOB, at least. */
void jobfiles_go_above(struct jobfiles *files, uint64_t job);

/*
 * A new file for RECORD->job; magic, version and boot id are filled in. With room for the result, so
 * that no later write can fail for want of it. *ret_fd is the caller's. Fails with ERR_SYSTEM.
 */
int jobfile_make(const struct jobfiles *files, struct jobfile_record *record, int *ret_fd,
		 struct error *err);

/*
 * The same, but without a name: nothing is left of it when it is closed. Fails with ERR_SYSTEM, also where
 * the file system has no such files (O_TMPFILE). jobfile_name() gives it its name, or -1 with errno set.
 */
int jobfile_prepare(const struct jobfiles *files, struct jobfile_record *record, int *ret_fd,
		    struct error *err);
int jobfile_name(const struct jobfiles *files, uint64_t job, int fd);

/* Replace the record. Fails with ERR_SYSTEM. */
int jobfile_write(const struct jobfiles *files, int fd, struct jobfile_record *record,
		  struct error *err);

void jobfile_remove(const struct jobfiles *files, uint64_t job);

/*
 * For each name in the folder that is a job's: its record and its descriptor (to be taken by setting *fd
 * to -1). What is not as jobfile_make() makes it, or is of another boot, is removed, and logged where it
 * should not be. Numbers go on above all of them.
 */
typedef void jobfiles_found_fn(const struct jobfile_record *record, int *fd, void *arg);
int jobfiles_scan(struct jobfiles *files, jobfiles_found_fn *found, void *arg, struct error *err);

/* Whether FD is a file as we make them, in every respect that the file system knows of. */
bool jobfile_is_ours(int fd);

/* Each name in the folder. Fails with ERR_SYSTEM. */
int jobfiles_each_name(const struct jobfiles *files, struct error *err,
		       void (*take)(const char *name, void *arg), void *arg);

/* ---- brokers ------------------------------------------------------------------------- */

/* A broker that runs; ended by the next fsboxd, since it can do nothing for that one. */
void jobfiles_note_broker(const struct jobfiles *files, pid_t pid, int pidfd);
void jobfiles_forget_broker(const struct jobfiles *files, pid_t pid);

/* Those of a fsboxd before us that still run: told to end (SIGTERM). All files of brokers are removed. */
void jobfiles_end_brokers(const struct jobfiles *files);

#endif
