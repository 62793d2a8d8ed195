/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/adopted.h"

#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"
#include "daemon/broker/handler.h"

static void on_found(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		     const struct error *why)
{
	struct call *call = arg;
	struct error err = ERROR_INIT;
	int r = 0;

	(void)fds;
	if (why != NULL) {
		err = *why;
		r = -(int)err.kind;
	} else if (message->kind != LINK_JOB_FOUND) {
		r = error_set(&err, ERR_SYSTEM, 0, "fsboxd answers something else");
	} else if (!call_connected(call)) {
		r = error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	} else if (jobs_find(call->broker, message->job) == NULL) {
		r = jobs_adopt(call->broker, message->job, &message->u.found, &err);
	}
	if (r < 0)
		call_error(call, &err);
	else
		handler_run(call);
}

void adopted_ask(struct call *call, uint64_t job)
{
	struct error err = ERROR_INIT;
	struct op_message op;

	spawnlink_op_init(&op, OP_JOB_FIND);
	op.conn = call->client->number;
	op.job = job;
	if (spawnlink_ask(&call->broker->link, &op, on_found, call, NULL, &err) < 0)
		call_error(call, &err);
}
