/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/plan_op.h"
#include "common/scope.h"

static void put_u32(struct buf *out, uint32_t value)
{
	uint8_t bytes[4];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	(void)buf_add(out, bytes, sizeof(bytes));
}

/* A text that may be NULL, which no text inside a plan that is empty stands for. */
static void put_text(struct buf *out, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	put_u32(out, (uint32_t)size);
	(void)buf_add(out, text ? text : "", size);
}

int plan_encode(const struct plan *plan, struct buf *out, struct error *err)
{
	size_t start = out->size;

	(void)buf_add_string(out, PLAN_MAGIC);
	put_u32(out, plan->unshare);
	put_u32(out, plan->net);
	put_u32(out, (uint32_t)plan->count);
	put_text(out, plan->chdir);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		put_u32(out, op->kind);
		put_u32(out, op->flags);
		put_u32(out, (uint32_t)op->rule);
		put_text(out, op->path);
		put_text(out, op->source);
	}
	if (out->size - start > LIMIT_PLAN_BYTES)
		out->failed = true;
	return buf_check(out, "the plan", err);
}

/* What is left of the bytes; every take fails for good once one did. */
struct reader {
	const uint8_t *data;
	size_t size;
	const char *failure;  /* NULL while all is well */
	enum error_kind kind; /* of the failure, when it is not ERR_BAD_FRAME */
};

static int fail(const struct reader *reader, struct error *err)
{
	enum error_kind kind = reader->kind == ERR_NONE ? ERR_BAD_FRAME : reader->kind;

	return error_set(err, kind, 0, "the plan: %s", reader->failure);
}

static uint32_t take_u32(struct reader *reader)
{
	uint32_t value = 0;

	if (reader->size < 4)
		reader->failure = "the bytes end early";
	if (reader->failure)
		return 0;
	for (size_t i = 0; i < 4; i++)
		value |= (uint32_t)reader->data[i] << (8 * i);
	reader->data += 4;
	reader->size -= 4;
	return value;
}

/* A copy on the heap, NULL for a text of no bytes or after a failure. */
static char *take_text(struct reader *reader)
{
	uint32_t size = take_u32(reader);
	char *text = NULL;

	if (reader->failure || size == 0)
		return NULL;
	if (size > LIMIT_PATH_BYTES)
		reader->failure = "a path is too long";
	else if (size > reader->size)
		reader->failure = "the bytes end early";
	else if (memchr(reader->data, '\0', size))
		reader->failure = "a path has a NUL byte";
	if (reader->failure)
		return NULL;

	text = strndup((const char *)reader->data, size);
	if (!text) {
		reader->failure = "no memory";
		reader->kind = ERR_NOMEM;
	}
	reader->data += size;
	reader->size -= size;
	return text;
}

/* What the kind demands of the texts. */
static const char *op_refusal(const struct plan_op *op)
{
	if (op->kind >= PLAN_OP_KIND_COUNT)
		return "an operation of unknown kind";
	if (op->flags & ~(uint32_t)PLAN_FLAGS_ALL)
		return "an operation with unknown flags";
	if (op->rule < -1 || op->rule >= LIMIT_RULES)
		return "an operation of no rule";
	if (!op->path || !plan_path_is_canonical(op->path))
		return "a path that is not canonical";
	if ((op->kind == PLAN_BIND || op->kind == PLAN_PIN) &&
	    (!op->source || !plan_path_is_canonical(op->source)))
		return "a source that is not canonical";
	if (op->kind == PLAN_SYMLINK && !op->source)
		return "a link without text";
	if (op->kind != PLAN_BIND && op->kind != PLAN_SYMLINK && op->kind != PLAN_PIN && op->source)
		return "a source where there is none";
	return NULL;
}

static int decode_op(struct plan *plan, struct reader *reader, struct error *err)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *source = NULL;
	struct plan_op op = { .kind = PLAN_ROOT };

	op.kind = (enum plan_op_kind)take_u32(reader);
	op.flags = take_u32(reader);
	op.rule = (int32_t)take_u32(reader);
	path = op.path = take_text(reader);
	source = op.source = take_text(reader);
	if (!reader->failure)
		reader->failure = op_refusal(&op);
	if (reader->failure)
		return fail(reader, err);
	return plan_add(plan, &op, err);
}

static int decode_header(struct plan *plan, struct reader *reader, uint32_t *ret_count,
			 struct error *err)
{
	size_t magic = strlen(PLAN_MAGIC);
	uint32_t net = 0;

	if (reader->size < magic || memcmp(reader->data, PLAN_MAGIC, magic) != 0) {
		reader->failure = "not a plan";
		return fail(reader, err);
	}
	reader->data += magic;
	reader->size -= magic;

	plan->unshare = take_u32(reader);
	net = take_u32(reader);
	*ret_count = take_u32(reader);
	plan->chdir = take_text(reader);
	plan->net = (enum net_mode)net;
	if (!reader->failure && plan->unshare & ~(uint32_t)PLAN_UNSHARE_ALL)
		reader->failure = "unknown namespaces";
	if (!reader->failure && net > NET_HOST)
		reader->failure = "unknown network";
	if (!reader->failure && *ret_count > LIMIT_RULES)
		reader->failure = "too many operations";
	if (!reader->failure && (!plan->chdir || !plan_path_is_canonical(plan->chdir)))
		reader->failure = "the working directory is not canonical";
	return reader->failure ? fail(reader, err) : 0;
}

int plan_decode(struct plan *ret_plan, const void *data, size_t size, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct reader reader = { .data = data, .size = size };
	uint32_t count = 0;
	int r = 0;

	if (size > LIMIT_PLAN_BYTES)
		return error_set(err, ERR_BAD_FRAME, 0, "the plan: longer than %u bytes",
				 LIMIT_PLAN_BYTES);
	r = decode_header(&plan, &reader, &count, err);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = decode_op(&plan, &reader, err);
	if (r < 0)
		return r;
	if (reader.size > 0) {
		reader.failure = "bytes after the end";
		return fail(&reader, err);
	}
	*ret_plan = plan;
	plan = (struct plan)PLAN_INIT;
	return 0;
}
