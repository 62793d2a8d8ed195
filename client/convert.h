/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CONVERT_H
#define FSBOX_CLIENT_CONVERT_H

/*
 * Between the public structs of fsbox.h and the messages of the protocol.
 */

#include "client/conn.h"
#include "client/fsbox.h"
#include "proto/json/message.h"

/*
 * The message for SPAWN, whose descriptors are duplicated. RET_PARAMS is the caller's to deinit, also
 * after a failure. The lifeline is not made here.
 *
 * @argv_needed  false for requests about a policy, where no command need be given
 */
int convert_spawn(struct spawn_params *ret_params, const struct fsbox_spawn *spawn,
		  bool argv_needed, struct fsbox_error *err);

/* Objects that own EVENT, which is consumed in any case; NULL when memory is short (ERR filled). */
struct fsbox_job *convert_job_take(struct conn_event *event, struct fsbox_error *err);
struct fsbox_exit *convert_exit_take(struct conn_event *event, struct fsbox_error *err);
struct fsbox_job_list *convert_list_take(struct conn_event *event, struct fsbox_error *err);
struct fsbox_why *convert_why_take(struct conn_event *event, struct fsbox_error *err);

/* The connection below BOX, for fsboxctl, which shows more than the library's structs. */
struct conn *fsbox_conn(struct fsbox *box);

/* "No memory" in public form; returns -1. */
int convert_no_memory(struct fsbox_error *err);

#endif
