/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_HANDOVER_H
#define FSBOX_DAEMON_BROKER_HANDOVER_H

/*
 * What a job gets from the broker: its plan, its arguments and environment, the client's descriptors.
 * Each goes by a memfd that is sealed before anybody else acts on it, or over the job channel.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/plan.h"
#include "common/policy.h"
#include "common/sha256.h"
#include "daemon/broker/client.h"
#include "daemon/broker/closer.h"
#include "proto/json/message.h"

/*
 * Encode PLAN into PLAN_FD, which fsboxd made, and seal it. PLAN_FD is borrowed.
 * Fails with ERR_POLICY_INVALID (a plan larger than LIMIT_PLAN_BYTES), ERR_SYSTEM.
 */
int handover_plan(const struct buf *plan, int plan_fd, struct error *err);

/*
 * A sealed memfd with CWD, ARGV and ENV; the caller closes it.
 *
 * @ret_hash  SHA-256 over the arguments, each with its NUL
 *
 * Fails with ERR_INVALID (more than LIMIT_ARGS_BYTES), ERR_SYSTEM.
 */
int handover_args(const char *cwd, const struct string_list *argv, const struct string_list *env,
		  int *ret_fd, uint8_t ret_hash[SHA256_BYTES], struct error *err);

/*
 * Which of the standard descriptors are regular files outside what the job may write (R8): their
 * positions in the frame are appended to RET_INDEXES, whose items the caller frees. Never blocks.
 */
int handover_check_stdio(const struct call *call, const struct policy *policy,
			 struct index_list *ret_indexes, struct error *err);

/*
 * Send START over CHANNEL with ARGS_FD and the descriptors of PARAMS, where init will find it. The
 * client's descriptors are given to CLOSER, whatever happens.
 * Fails with ERR_SYSTEM.
 */
int handover_start(int channel, struct spawn_params *params, int args_fd, struct closer *closer,
		   struct error *err);

#endif
