/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/message.h"

/* Envelopes: which message a frame holds, and how one is put together. */

#include <stdio.h>
#include <string.h>

#include "common/context.h"
#include "common/scope.h"
#include "proto/json/bulk.h"
#include "proto/json/json.h"
#include "proto/json/tables.h"
#include "proto/json/utf8.h"

/* What an envelope adds to its params or result: names, a method, an id of which each byte is escaped. */
#define ENVELOPE_BYTES (256 + 6 * MESSAGE_ID_BYTES)

static const char *const notification_exited = "exited";

/* ---- methods ------------------------------------------------------------------------- */

#define X(symbol, name, member, text) [symbol] = { name, text },
static const struct {
	const char *name;
	const char *meaning;
} methods[METHOD_COUNT] = { [METHOD_NONE] = { "", "" }, METHODS(X) };
#undef X

const char *method_name(enum method method)
{
	return (size_t)method < METHOD_COUNT ? methods[method].name : "";
}

const char *method_meaning(enum method method)
{
	return (size_t)method < METHOD_COUNT ? methods[method].meaning : "";
}

enum method method_from_name(const char *name)
{
	for (size_t i = METHOD_NONE + 1; i < METHOD_COUNT; i++)
		if (strcmp(methods[i].name, name) == 0)
			return (enum method)i;
	return METHOD_NONE;
}

void method_params_init(enum method method, union method_params *params)
{
	const struct table *table = method_params_table(method);

	if (table)
		codec_init(table, params);
}

void method_params_deinit(enum method method, union method_params *params)
{
	const struct table *table = method_params_table(method);

	if (table)
		codec_deinit(table, params);
}

void method_result_init(enum method method, union method_result *result)
{
	const struct table *table = method_result_table(method);

	if (table)
		codec_init(table, result);
}

void method_result_deinit(enum method method, union method_result *result)
{
	const struct table *table = method_result_table(method);

	if (table)
		codec_deinit(table, result);
}

void wait_result_deinit(struct wait_result *result)
{
	codec_deinit(&exited_table, result);
}

void wait_result_from_record(struct wait_result *ret_result, uint64_t job,
			     const struct exit_record *record)
{
	*ret_result = (struct wait_result){
		.job = job,
		.reason = (enum exit_reason)record->reason,
		.code = (uint32_t)record->code,
		.signal = (uint32_t)record->signal,
		.core_dumped = record->core_dumped != 0,
		.wall_ms = record->wall_ms,
		.usage = { .user_ms = record->user_ms,
			   .sys_ms = record->sys_ms,
			   .max_rss_kib = record->max_rss_kib },
	};
}

/* ---- ids ----------------------------------------------------------------------------- */

bool message_id_equal(const struct message_id *a, const struct message_id *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == MESSAGE_ID_NUMBER)
		return a->number == b->number;
	return a->kind == MESSAGE_ID_NONE || strcmp(a->text, b->text) == 0;
}

static int id_decode(struct message_id *id, const struct json_value *value, struct error *err)
{
	if (value->type == JSON_INT) {
		*id = (struct message_id)MESSAGE_ID(value->u.number);
		return 0;
	}
	if (value->type != JSON_STRING || value->size > MESSAGE_ID_BYTES)
		return error_set(err, ERR_INVALID, 0,
				 "id: must be an integer or a string of at most %d bytes",
				 MESSAGE_ID_BYTES);
	id->kind = MESSAGE_ID_STRING;
	memcpy(id->text, value->u.text, value->size + 1);
	return 0;
}

static void id_encode(struct json_writer *writer, const struct message_id *id)
{
	json_write_key(writer, "id");
	switch (id->kind) {
	case MESSAGE_ID_NONE:
		json_write_null(writer);
		break;
	case MESSAGE_ID_NUMBER:
		json_write_int(writer, id->number);
		break;
	case MESSAGE_ID_STRING:
		json_write_text(writer, id->text);
		break;
	}
}

/* ---- parsing ------------------------------------------------------------------------- */

/* The members of an envelope, each NULL when it is not there. */
struct envelope {
	const struct json_value *jsonrpc;
	const struct json_value *id;
	const struct json_value *method;
	const struct json_value *params;
	const struct json_value *params_fd;
	const struct json_value *result;
	const struct json_value *result_fd;
	const struct json_value *error;
};

static int envelope_split(struct envelope *ret, const struct json_value *root, struct error *err)
{
	struct envelope envelope = { .id = NULL };
	const struct {
		const char *name;
		const struct json_value **slot;
	} slots[] = {
		{ "jsonrpc", &envelope.jsonrpc },    { "id", &envelope.id },
		{ "method", &envelope.method },      { "params", &envelope.params },
		{ "paramsFd", &envelope.params_fd }, { "result", &envelope.result },
		{ "resultFd", &envelope.result_fd }, { "error", &envelope.error },
	};
	char shown[PRINTABLE_BYTES];

	if (root->type != JSON_OBJECT)
		return error_set(err, ERR_INVALID, 0, "a message must be an object, not %s",
				 json_type_name(root->type));
	for (const struct json_value *item = root->u.first; item; item = item->next) {
		size_t i = 0;

		while (i < ARRAY_SIZE(slots) && strcmp(slots[i].name, item->key) != 0)
			i++;
		if (i == ARRAY_SIZE(slots))
			return error_set(err, ERR_INVALID, 0, "%s: unknown key",
					 text_printable(shown, item->key));
		*slots[i].slot = item;
	}
	*ret = envelope;
	return 0;
}

/* Make VALUE, or the document in the memfd that FD names, the message's body. */
static int body_take(struct message *message, const struct json_value *value,
		     const struct json_value *fd, const char *name, struct error *err)
{
	AUTO(auto_close) int bulk_fd = -1;
	struct json_doc *doc = NULL;
	int r = 0;

	message->body = value;
	if (!fd)
		return 0;
	if (value)
		return error_set(err, ERR_INVALID, 0, "%s and %sFd exclude each other", name, name);
	if (fd->type != JSON_INT || fd->u.number < 0 || fd->u.number >= LIMIT_FRAME_FDS)
		return error_set(err, ERR_INVALID, 0, "%sFd: must be the index of a descriptor",
				 name);
	r = fdset_claim(&message->fds, (size_t)fd->u.number, &bulk_fd, err);
	if (r == 0)
		r = bulk_read(bulk_fd, &doc, err);
	if (r < 0) {
		error_prefix(err, "%sFd", name);
		return r;
	}
	/* The envelope is not needed any more: id and method have been copied. */
	json_doc_free(message->doc);
	message->doc = doc;
	message->body = json_root(doc);
	return 0;
}

static int request_parse(struct message *message, const struct envelope *envelope,
			 struct error *err)
{
	char shown[PRINTABLE_BYTES];

	message->kind = MESSAGE_REQUEST;
	if (envelope->result || envelope->result_fd || envelope->error)
		return error_set(err, ERR_INVALID, 0, "a message has either method or result");
	if (envelope->method->type != JSON_STRING)
		return error_set(err, ERR_INVALID, 0, "method: must be a string");
	if (!envelope->id && strcmp(envelope->method->u.text, notification_exited) == 0) {
		message->kind = MESSAGE_EXITED;
		return body_take(message, envelope->params, envelope->params_fd, "params", err);
	}
	if (!envelope->id)
		return error_set(err, ERR_INVALID, 0, "id: is missing");
	message->method = method_from_name(envelope->method->u.text);
	if (message->method == METHOD_NONE)
		return error_set(err, ERR_UNKNOWN_METHOD, 0, "no method '%s'",
				 text_printable(shown, envelope->method->u.text));
	return body_take(message, envelope->params, envelope->params_fd, "params", err);
}

static int reply_parse(struct message *message, const struct envelope *envelope, struct error *err)
{
	bool result = envelope->result || envelope->result_fd;

	if (envelope->params || envelope->params_fd || result == (envelope->error != NULL))
		return error_set(err, ERR_INVALID, 0,
				 "a message has method and params, or result, or error");
	if (!envelope->id)
		return error_set(err, ERR_INVALID, 0, "id: is missing");
	if (result) {
		message->kind = MESSAGE_RESULT;
		return body_take(message, envelope->result, envelope->result_fd, "result", err);
	}
	message->kind = MESSAGE_ERROR;
	return codec_decode(&error_table, envelope->error, "error", NULL, &message->error, err);
}

/* The id is null in an error about a request that could not be read, and nowhere else. */
static int envelope_id(struct message *message, const struct envelope *envelope, struct error *err)
{
	if (!envelope->id || (envelope->error && envelope->id->type == JSON_NULL))
		return 0;
	return id_decode(&message->id, envelope->id, err);
}

int message_parse(struct message *ret_message, const char *text, size_t size, struct fdset *fds,
		  struct error *err)
{
	struct message *message = ret_message;
	struct envelope envelope = { .id = NULL };
	int r = 0;

	*message = (struct message){ .method = METHOD_NONE };
	if (fds)
		fdset_move(&message->fds, fds);
	r = json_parse(&message->doc, text, size, NULL, err);
	if (r < 0)
		return r;
	r = envelope_split(&envelope, json_root(message->doc), err);
	if (r < 0)
		return r;
	r = envelope_id(message, &envelope, err);
	if (r < 0)
		return r;
	if (!envelope.jsonrpc || envelope.jsonrpc->type != JSON_STRING ||
	    strcmp(envelope.jsonrpc->u.text, "2.0") != 0)
		return error_set(err, ERR_INVALID, 0, "jsonrpc: must be \"2.0\"");
	if (envelope.method)
		return request_parse(message, &envelope, err);
	return reply_parse(message, &envelope, err);
}

void message_deinit(struct message *message)
{
	if (!message)
		return;
	message->doc = json_doc_free(message->doc);
	message->body = NULL;
	fdset_deinit(&message->fds);
	error_reply_deinit(&message->error);
}

/* ---- decoding ------------------------------------------------------------------------ */

static int body_decode(struct message *message, const struct table *table, const char *where,
		       void *object, struct error *err)
{
	static const struct json_value empty = { .type = JSON_OBJECT };
	size_t left = 0;
	int r = codec_decode(table, message->body ? message->body : &empty, where, &message->fds,
			     object, err);

	if (r < 0)
		return r;
	left = fdset_unclaimed(&message->fds);
	if (left > 0) {
		codec_deinit(table, object);
		return error_set(err, ERR_BAD_FRAME, 0,
				 "%zu descriptors came with the frame that nothing names", left);
	}
	return 0;
}

/* What a table cannot say. */
static int params_check(enum method method, const union method_params *params, struct error *err)
{
	const struct string_list *argv = NULL;

	if (method == METHOD_WHY && (params->why.path == NULL) == (params->why.host == NULL))
		return error_set(err, ERR_INVALID, 0, "params: either path or host is needed");
	if (method == METHOD_SPAWN)
		argv = &params->spawn.argv;
	if (argv && (argv->count == 0 || argv->items[0][0] == '\0'))
		return error_set(err, ERR_INVALID, 0, "params.argv: names no command");
	return 0;
}

int message_decode_params(struct message *message, union method_params *ret_params,
			  struct error *err)
{
	const struct table *table = method_params_table(message->method);
	int r = 0;

	if (message->kind != MESSAGE_REQUEST || !table)
		return error_set(err, ERR_INVALID, 0, "not a request");
	r = body_decode(message, table, "params", ret_params, err);
	if (r < 0)
		return r;
	r = params_check(message->method, ret_params, err);
	if (r < 0)
		codec_deinit(table, ret_params);
	return r;
}

int message_decode_result(struct message *message, enum method method,
			  union method_result *ret_result, struct error *err)
{
	const struct table *table = method_result_table(method);

	if (message->kind != MESSAGE_RESULT || !table)
		return error_set(err, ERR_INVALID, 0, "not a result");
	return body_decode(message, table, "result", ret_result, err);
}

int message_decode_exited(struct message *message, struct wait_result *ret_exited,
			  struct error *err)
{
	if (message->kind != MESSAGE_EXITED)
		return error_set(err, ERR_INVALID, 0, "not a notification");
	return body_decode(message, &exited_table, "params", ret_exited, err);
}

/* ---- encoding ------------------------------------------------------------------------ */

static void envelope_begin(struct json_writer *writer)
{
	json_write_object(writer);
	json_write_key(writer, "jsonrpc");
	json_write_text(writer, "2.0");
}

/*
 * The member NAME with BODY, or where that is too long for a frame NAMEFd with the index of a sealed
 * memfd that holds it.
 */
static int body_write(struct json_writer *writer, struct fdset *fds, const char *name,
		      const struct buf *body, struct error *err)
{
	char fd_name[16];
	int fd = -1;
	int r = 0;

	if (body->size + ENVELOPE_BYTES <= LIMIT_FRAME_BYTES) {
		json_write_key(writer, name);
		json_write_raw(writer, buf_text(body), body->size);
		return 0;
	}
	if (!fds)
		return error_set(err, ERR_INVALID, 0, "%s of %zu bytes", name, body->size);
	r = bulk_create(body->data, body->size, &fd, err);
	if (r < 0)
		return r;
	r = fdset_add_take(fds, fd, err);
	if (r < 0)
		return r;
	(void)snprintf(fd_name, sizeof(fd_name), "%sFd", name);
	json_write_key(writer, fd_name);
	json_write_uint(writer, fds->count - 1);
	return 0;
}

/* As body_write() for OBJECT by TABLE. */
static int object_write(struct json_writer *writer, struct fdset *fds, const char *name,
			const struct table *table, const void *object, struct error *err)
{
	struct buf body = BUF_INIT(LIMIT_PARAMS_BYTES);
	struct json_writer body_writer;
	int r = 0;

	json_writer_init(&body_writer, &body);
	r = codec_encode(table, object, name, &body_writer, fds, err);
	if (r == 0)
		r = json_writer_check(&body_writer, err);
	if (r == 0)
		r = body_write(writer, fds, name, &body, err);
	buf_deinit(&body);
	return r;
}

int message_encode_request(struct buf *out, struct fdset *fds, const struct message_id *id,
			   enum method method, const union method_params *params, struct error *err)
{
	const struct table *table = method_params_table(method);
	struct json_writer writer;
	int r = 0;

	if (!table)
		return error_set(err, ERR_INVALID, 0, "no such method");
	r = params_check(method, params, err);
	if (r < 0)
		return r;
	json_writer_init(&writer, out);
	envelope_begin(&writer);
	id_encode(&writer, id);
	json_write_key(&writer, "method");
	json_write_text(&writer, method_name(method));
	r = object_write(&writer, fds, "params", table, params, err);
	if (r < 0)
		return r;
	json_write_object_end(&writer);
	return json_writer_check(&writer, err);
}

int message_encode_result(struct buf *out, struct fdset *fds, const struct message_id *id,
			  enum method method, const union method_result *result, struct error *err)
{
	const struct table *table = method_result_table(method);
	struct json_writer writer;
	int r = 0;

	if (!table)
		return error_set(err, ERR_INVALID, 0, "no such method");
	json_writer_init(&writer, out);
	envelope_begin(&writer);
	id_encode(&writer, id);
	r = object_write(&writer, fds, "result", table, result, err);
	if (r < 0)
		return r;
	json_write_object_end(&writer);
	return json_writer_check(&writer, err);
}

int message_encode_error(struct buf *out, const struct message_id *id,
			 const struct error_reply *reply, struct error *err)
{
	struct json_writer writer;
	int r = 0;

	json_writer_init(&writer, out);
	envelope_begin(&writer);
	id_encode(&writer, id);
	r = object_write(&writer, NULL, "error", &error_table, reply, err);
	if (r < 0)
		return r;
	json_write_object_end(&writer);
	return json_writer_check(&writer, err);
}

int message_encode_exited(struct buf *out, const struct wait_result *exited, struct error *err)
{
	struct json_writer writer;
	int r = 0;

	json_writer_init(&writer, out);
	envelope_begin(&writer);
	json_write_key(&writer, "method");
	json_write_text(&writer, notification_exited);
	r = object_write(&writer, NULL, "params", &exited_table, exited, err);
	if (r < 0)
		return r;
	json_write_object_end(&writer);
	return json_writer_check(&writer, err);
}
