/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_RESULT_H
#define FSBOX_DAEMON_SPAWNER_RESULT_H

/*
 * The page on which a job's init writes how far the job came and how it ended, so that this is known
 * exactly although nobody listened at that moment: a fsboxd that is started later reads it.
 *
 * It is one page of a file of fsboxd's (jobfile.h). Init has a mapping of that page and no descriptor:
 * it can neither reach the rest of the file nor make it longer. In engine bwrap, where init is executed
 * and cannot keep a mapping, a process beside bwrap keeps it (the scribe), and init tells that one.
 *
 * For fsboxd the page is hostile: what is there is the job's own word on the job, checked like a report.
 */

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

/* Of the mapping, and of what is written to the file in advance so that no store can fail. */
#define RESULT_PAGE_BYTES 4096

enum result_state { RESULT_NONE = 0, RESULT_STARTED, RESULT_EXITED, RESULT_FAILED };

/*
 * @state       enum result_state; written last
 * @error_kind  RESULT_FAILED: enum error_kind
 * @started_ms  CLOCK_MONOTONIC
 * @record      RESULT_EXITED
 */
struct result_page {
	uint32_t version; /* RESULT_VERSION, once there is anything */
	uint32_t state;
	uint32_t error_kind;
	uint32_t reserved;
	uint64_t started_ms;
	struct exit_record record;
};

#define RESULT_VERSION 1

/* Where in the file the page begins: pages differ in size between machines, not within one boot. */
off_t result_offset(void);

/* The page of the file FD, mapped for writing, for good. Fails with ERR_SYSTEM. */
int result_map(int fd, struct result_page **ret_page, struct error *err);

/* ---- init's side --------------------------------------------------------------------- */

/* @page  NULL: none; @scribe_fd  -1: none. With neither, nothing is written. */
struct result_to {
	struct result_page *page;
	int scribe_fd;
};

/* The exec succeeded at STARTED_MS. */
void result_started(const struct result_to *to, uint64_t started_ms);

/* Nothing runs any more. Returns when it is written, or cannot be. */
void result_exited(const struct result_to *to, const struct exit_record *record);

/* Nothing was run. */
void result_failed(const struct result_to *to, enum error_kind kind);

/*
 * The scribe's whole life: put into PAGE what comes over FD, until its other end closes. The process holds
 * nothing else and has the ids of the job's user.
 */
void result_scribe(int fd, struct result_page *page);

/* ---- fsboxd's side ------------------------------------------------------------------- */

/* What the page of FD says; a page that makes no sense says RESULT_NONE. */
void result_read(int fd, struct result_page *ret_result);

#endif
