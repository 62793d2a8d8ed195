/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_SHOW_H
#define FSBOX_CLIENT_CTL_SHOW_H

/* What people and supervising programs are told about jobs and policies. */

#include "client/ctl/output.h"
#include "client/ctl/request.h"
#include "client/fsbox.h"

struct json_writer;
struct policy_result;

/* A job has begun: what was left out of what was asked for, one note each. */
void show_started(const struct ctl *ctl, const struct fsbox_job *job);

/* --detach: the job's number on standard output. Returns the exit status. */
int show_detached(const struct ctl *ctl, const struct fsbox_job *job);

/* A job has ended: a note where a shell would say something, the line for --status-fd. Returns the exit
 * status. */
int show_end(const struct ctl *ctl, const struct fsbox_exit *end);

/* The daemon was lost while the job ran; JOB is over. The same. */
int show_lost(const struct ctl *ctl, const struct fsbox_job *job);

/* One line {"error": ...} on FD. */
void show_status_error(const struct ctl *ctl, int fd, const struct fsbox_error *err);

/* The protocol's `exited` object. */
void show_end_json(struct json_writer *writer, const struct fsbox_exit *end);

/* "exited with status 3", "killed by SIGTERM" ... in OUT. */
const char *show_end_text(char out[static 80], const struct fsbox_exit *end);

/* Ask the daemon what policy REQUEST would get, and print it. Returns the exit status. */
int show_policy_of(struct ctl *ctl, const struct request *request);

/* Ask only, for `policy check`: prints notes and warnings. Returns the exit status. */
int show_policy_check(struct ctl *ctl, const struct request *request);

#endif
