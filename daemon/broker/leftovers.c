/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/leftovers.h"

#include <errno.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"
#include "proto/json/message.h"

/* One request under way. @result: the first failure of ours */
struct leftovers {
	struct call *call;
	union method_result answer;
	struct error err;
	int result;
};

static void leftovers_free(struct leftovers *leftovers)
{
	method_result_deinit(METHOD_LEDGER, &leftovers->answer);
	free(leftovers);
}

static int add_placeholder(struct msg_placeholder_list *list, const struct link_ledger_entry *entry,
			   struct error *err)
{
	struct msg_placeholder *placeholder;

	if (list->items == NULL)
		list->items = calloc(LIMIT_LEDGER_SHOWN, sizeof(*list->items));
	if (list->items == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "the list of placeholders");
	list->capacity = LIMIT_LEDGER_SHOWN;
	if (list->count == list->capacity)
		return 0;
	placeholder = &list->items[list->count];
	*placeholder = (struct msg_placeholder){
		.path = strdup(entry->path),
		.uid = entry->uid,
		.made = entry->made != 0,
		.left = entry->kept != 0,
		.jobs = entry->jobs,
	};
	if (placeholder->path == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "the list of placeholders");
	list->count++;
	return 0;
}

static int take_summary(struct ledger_result *result, const struct link_ledger *ledger,
			struct error *err)
{
	result->entries = ledger->entries;
	result->replayed = ledger->replayed;
	result->damaged = ledger->damaged;
	if (ledger->why[0] == '\0')
		return 0;
	result->unwritable = strdup(ledger->why);
	return result->unwritable != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "the answer");
}

static void on_answer(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct leftovers *leftovers = arg;
	struct ledger_result *result = &leftovers->answer.ledger;

	(void)fds;
	if (message != NULL && message->kind == LINK_LEDGER_ENTRY) {
		if (leftovers->result == 0)
			leftovers->result =
				add_placeholder(&result->placeholders, &message->u.placeholder,
						&leftovers->err);
		return;
	}
	if (why == NULL && leftovers->result == 0 && message->kind == LINK_LEDGER)
		leftovers->result = take_summary(result, &message->u.ledger, &leftovers->err);
	if (why != NULL)
		call_error(leftovers->call, why);
	else if (leftovers->result < 0)
		call_error(leftovers->call, &leftovers->err);
	else
		call_result(leftovers->call, &leftovers->answer);
	leftovers_free(leftovers);
}

void leftovers_begin(struct call *call)
{
	struct leftovers *leftovers = calloc(1, sizeof(*leftovers));
	struct error err = ERROR_INIT;
	struct op_message op;
	int r = 0;

	if (leftovers == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "the list of placeholders");
		call_error(call, &err);
		return;
	}
	leftovers->call = call;
	method_result_init(METHOD_LEDGER, &leftovers->answer);
	spawnlink_op_init(&op, OP_LEDGER);
	op.conn = call->client->number;
	op.u.ledger.repair = call->params.ledger.repair;
	op.u.ledger.all = call->params.ledger.all;
	r = spawnlink_ask(&call->broker->link, &op, on_answer, leftovers, NULL, &err);
	if (r < 0) {
		call_error(call, &err);
		leftovers_free(leftovers);
	}
}
