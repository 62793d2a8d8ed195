/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_REQUEST_H
#define FSBOX_CLIENT_CTL_REQUEST_H

/* From the command line to the request of a spawn, also for commands that only ask about one. */

#include "client/ctl/output.h"
#include "client/fsbox.h"

/* What the request's pointers lead to; all owned. */
struct request {
	struct fsbox_spawn spawn;
	struct fsbox_rule *rules;
	char *context;
	char *pwd;
	uint32_t *forward;
	struct ctl_list env;
};

/*
 * Fill RET_REQUEST from ctl->args. Descriptors are not set. RET_REQUEST is to be deinited also after a
 * failure. Fails with ERR_INVALID (options that exclude each other) or as file_read() does.
 */
int request_fill(struct request *ret_request, struct ctl *ctl, struct error *err);
void request_deinit(struct request *request);

/*
 * The bytes of PATH ("-": standard input), terminated; at most LIMIT_PROFILE_BYTES. The caller frees
 * *ret_text. Fails with ERR_PATH_NOT_FOUND, ERR_SYSTEM or ERR_INVALID (too large).
 */
int file_read(const char *path, char **ret_text, size_t *ret_size, struct error *err);

/* WORD as a job's number. Fails with ERR_INVALID. */
int job_parse(const char *word, uint64_t *ret_job, struct error *err);

#endif
