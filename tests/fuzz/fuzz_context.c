/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A botmux context as JSON, with all its keys. What is taken is written and read again to the same
 * text, and the policy is built of it.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json/contextjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int rewrite(const char *text, size_t size, struct buf *out, struct policy_context *ret)
{
	struct json_writer writer;

	if (context_parse(ret, text, size, CONTEXT_FULL, NULL) < 0)
		return 0;
	json_writer_init(&writer, out);
	if (context_to_json(ret, CONTEXT_FULL, &writer, NULL) < 0 ||
	    json_writer_check(&writer, NULL) < 0)
		abort();
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf once = BUF_INIT(64u << 20);
	struct buf twice = BUF_INIT(64u << 20);
	struct policy policy = POLICY_INIT;
	struct policy_context context;
	struct policy_context again;

	if (rewrite((const char *)data, size, &once, &context)) {
		if (!rewrite(buf_text(&once), once.size, &twice, &again) ||
		    strcmp(buf_text(&once), buf_text(&twice)) != 0)
			abort();
		policy_context_deinit(&again);
		if (policy_context_build(&policy, &context, NULL) == 0)
			policy_deinit(&policy);
		policy_context_deinit(&context);
	}
	buf_deinit(&once);
	buf_deinit(&twice);
	return 0;
}
