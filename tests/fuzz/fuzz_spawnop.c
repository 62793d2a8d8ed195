/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as each of the fixed-layout messages; the first byte says which. What passes its check is then
 * read to the end as its receiver reads it.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "proto/wire/eventop.h"
#include "proto/wire/spawnop.h"
#include "proto/wire/zygoteop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Strings that were checked end inside their message. */
static void read_text(const char *text, size_t room)
{
	if (strlen(text) >= room)
		abort();
}

#define READ_TEXT(field) read_text(field, sizeof(field))

static void read_op(const struct op_message *message)
{
	if (message->kind == OP_GRANT_CREATE)
		READ_TEXT(message->u.grant.command);
	if (message->kind != OP_JOB_START)
		return;
	READ_TEXT(message->u.start.profile);
	READ_TEXT(message->u.start.command);
	READ_TEXT(message->u.start.label);
}

static void read_link(const struct link_message *message)
{
	struct error err = ERROR_INIT;
	const char *text = message->u.config.text;

	if (message->kind == LINK_ERROR && failure_to_error(&message->u.failure, &err) >= 0)
		abort();
	if (message->kind == LINK_GRANT_ENTRY) {
		READ_TEXT(message->u.grant_entry.terms.command);
		if (strlen(grant_state_name((enum grant_state)message->u.grant_entry.state)) == 0)
			abort();
	}
	if (message->kind != LINK_CONFIG)
		return;
	READ_TEXT(message->u.config.run_dir);
	READ_TEXT(message->u.config.engine_reason);
	while (*text)
		text += strlen(text) + 1;
	if (text >= message->u.config.text + LINK_TEXT_BYTES)
		abort();
}

static void read_report(const struct report_message *message)
{
	if (message->kind <= REPORT_PLACEHOLDER_SKIPPED)
		READ_TEXT(message->u.placeholder.path);
	if (message->kind == REPORT_EXITED)
		(void)exit_reason_name((enum exit_reason)message->u.exited.reason);
}

static void read_args(const void *data)
{
	AUTO(auto_free) char **argv = NULL;
	AUTO(auto_free) char **envp = NULL;
	const char *cwd = NULL;
	size_t total = 0;

	if (args_split(data, &cwd, &argv, &envp, NULL) < 0)
		return;
	if (cwd[0] != '/' || !argv[0])
		abort();
	for (size_t i = 0; argv[i]; i++)
		total += strlen(argv[i]);
	for (size_t i = 0; envp[i]; i++)
		if (!strchr(envp[i], '='))
			abort();
	if (total > LIMIT_ARGS_BYTES)
		abort();
}

/* Memory of exactly this size and aligned for every message. */
static void check_one(uint8_t which, const void *bytes, size_t size)
{
	switch (which % 7) {
	case 0:
		if (op_message_check(bytes, size, NULL) == 0)
			read_op(bytes);
		break;
	case 1:
		if (link_message_check(bytes, size, NULL) == 0)
			read_link(bytes);
		break;
	case 2:
		if (report_message_check(bytes, size, NULL) == 0)
			read_report(bytes);
		break;
	case 3:
		(void)start_message_check(bytes, size, which / 7, NULL);
		break;
	case 4:
		if (args_check(bytes, size, NULL) == 0)
			read_args(bytes);
		break;
	case 5:
		(void)setup_check(bytes, size, NULL);
		break;
	default:
		if (which < 7)
			(void)event_message_check(bytes, size, NULL);
		else
			(void)zygote_message_check(bytes, size, which / 7, NULL);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) void *bytes = NULL;

	if (size < 1)
		return 0;
	bytes = malloc(size > 1 ? size - 1 : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	check_one(data[0], bytes, size - 1);
	return 0;
}
