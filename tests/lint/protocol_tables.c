/* SPDX-License-Identifier: Apache-2.0 */

/*
 * protocol_tables                     the field tables of the protocol, as JSON, for schema.py
 * protocol_tables reencode < MESSAGE  decode one message and write it again, by the same tables
 *
 * A message to be reencoded is {"method": M, "fds": N, "message": {...}}: N descriptors come with it,
 * and M says which result it is. What is refused is said on standard error, with exit status 1.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/json/tables.h"

static const char *const kind_names[] = {
	[FIELD_BOOL] = "bool",     [FIELD_U32] = "integer",         [FIELD_I32] = "integer",
	[FIELD_U64] = "integer",   [FIELD_MILLI] = "milli",         [FIELD_ENUM] = "enum",
	[FIELD_TEXT] = "text",     [FIELD_BYTES] = "bytes",         [FIELD_PATH] = "path",
	[FIELD_FD] = "fd",         [FIELD_FD_OR_NULL] = "fdOrNull", [FIELD_ENV] = "env",
	[FIELD_TRISTATE] = "bool", [FIELD_STRUCT] = "struct",
};

#define TABLES_MAX 128

struct known {
	const struct table *tables[TABLES_MAX];
	size_t count;
};

/* Remember TABLE and all that it is made of, each once. */
static void collect(struct known *known, const struct table *table)
{
	for (size_t i = 0; i < known->count; i++)
		if (known->tables[i] == table)
			return;
	if (known->count == TABLES_MAX)
		abort();
	known->tables[known->count++] = table;
	for (size_t i = 0; i < table->count; i++)
		if (table->fields[i].table)
			collect(known, table->fields[i].table);
}

static void member_text(struct json_writer *writer, const char *key, const char *text)
{
	json_write_key(writer, key);
	json_write_text(writer, text);
}

static void member_int(struct json_writer *writer, const char *key, int64_t number)
{
	json_write_key(writer, key);
	json_write_int(writer, number);
}

static void dump_field(struct json_writer *writer, const struct field *field)
{
	json_write_object(writer);
	member_text(writer, "name", field->name);
	member_text(writer, "kind", kind_names[field->kind]);
	json_write_key(writer, "required");
	json_write_bool(writer, (field->flags & REQUIRED) != 0);
	json_write_key(writer, "list");
	json_write_bool(writer, (field->flags & LIST) != 0);
	member_int(writer, "min", field->min);
	member_int(writer, "max", field->max);
	member_int(writer, "maxCount", (int64_t)field->max_count);
	if (field->names) {
		json_write_key(writer, "names");
		json_write_array(writer);
		for (size_t i = 0; i < field->names->count; i++)
			json_write_text(writer, field->names->names[i]);
		json_write_array_end(writer);
	}
	if (field->table)
		member_text(writer, "table", field->table->name);
	json_write_object_end(writer);
}

static void dump_table(struct json_writer *writer, const struct table *table)
{
	static const char *const forms[] = { "object", "objectOrFirst", "tuple" };

	json_write_key(writer, table->name);
	json_write_object(writer);
	member_text(writer, "form", forms[table->form]);
	member_int(writer, "tupleCount", (int64_t)table->tuple_count);
	json_write_key(writer, "fields");
	json_write_array(writer);
	for (size_t i = 0; i < table->count; i++)
		if (!table_refuses(table, table->fields[i].name))
			dump_field(writer, &table->fields[i]);
	json_write_array_end(writer);
	json_write_object_end(writer);
}

static void dump_methods(struct json_writer *writer, struct known *known)
{
	json_write_key(writer, "methods");
	json_write_array(writer);
	for (int i = METHOD_NONE + 1; i < METHOD_COUNT; i++) {
		enum method method = (enum method)i;

		collect(known, method_params_table(method));
		collect(known, method_result_table(method));
		json_write_object(writer);
		member_text(writer, "name", method_name(method));
		member_text(writer, "meaning", method_meaning(method));
		member_text(writer, "params", method_params_table(method)->name);
		member_text(writer, "result", method_result_table(method)->name);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

static void dump_errors(struct json_writer *writer)
{
	json_write_key(writer, "errors");
	json_write_array(writer);
	for (int i = ERR_NONE + 1; i <= ERROR_KIND_COUNT; i++) {
		json_write_object(writer);
		member_text(writer, "name", error_name((enum error_kind)i));
		member_text(writer, "meaning", error_meaning((enum error_kind)i));
		member_int(writer, "status", error_exit_status((enum error_kind)i));
		member_int(writer, "code", error_rpc_code((enum error_kind)i));
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

static int dump(void)
{
	struct buf out = BUF_INIT(4u << 20);
	struct known known = { .count = 0 };
	struct json_writer writer;
	int r = 0;

	json_writer_init(&writer, &out);
	json_write_object(&writer);
	dump_methods(&writer, &known);
	dump_errors(&writer);
	collect(&known, &exited_table);
	collect(&known, &error_table);
	collect(&known, &profile_table);
	collect(&known, &context_full_table);
	json_write_key(&writer, "tables");
	json_write_object(&writer);
	for (size_t i = 0; i < known.count; i++)
		dump_table(&writer, known.tables[i]);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	r = json_writer_check(&writer, NULL) < 0 || puts(buf_text(&out)) < 0;
	buf_deinit(&out);
	return r;
}

/* Write the message in TEXT again, into OUT. */
static int reencode_message(const char *text, size_t size, enum method method, struct fdset *fds,
			    struct buf *out, struct error *err)
{
	union method_params params;
	union method_result result;
	struct wait_result exited;
	struct message message;
	int r = message_parse(&message, text, size, fds, err);

	if (r == 0 && message.kind == MESSAGE_REQUEST) {
		r = message_decode_params(&message, &params, err);
		if (r == 0) {
			r = message_encode_request(out, fds, &message.id, message.method, &params,
						   err);
			method_params_deinit(message.method, &params);
		}
	} else if (r == 0 && message.kind == MESSAGE_RESULT) {
		r = message_decode_result(&message, method, &result, err);
		if (r == 0) {
			r = message_encode_result(out, fds, &message.id, method, &result, err);
			method_result_deinit(method, &result);
		}
	} else if (r == 0 && message.kind == MESSAGE_EXITED) {
		r = message_decode_exited(&message, &exited, err);
		if (r == 0) {
			r = message_encode_exited(out, &exited, err);
			wait_result_deinit(&exited);
		}
	} else if (r == 0) {
		r = message_encode_error(out, &message.id, &message.error, err);
	}
	message_deinit(&message);
	return r;
}

/* The text of the member "message" as it stands in INPUT: it is the last one. */
static const char *message_text(const char *input, size_t size, size_t *ret_size)
{
	const char *key = strstr(input, "\"message\":");
	const char *end = strrchr(input, '}');

	if (!key || !end || end <= key || size == 0)
		return NULL;
	key += strlen("\"message\":");
	*ret_size = (size_t)(end - key);
	return key;
}

static int reencode(void)
{
	static char input[1u << 20];
	size_t size = fread(input, 1, sizeof(input) - 1, stdin);
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	const struct json_value *method = NULL;
	const struct json_value *count = NULL;
	struct error err = ERROR_INIT;
	struct fdset fds = FDSET_INIT;
	struct json_doc *doc = NULL;
	const char *text = NULL;
	size_t text_size = 0;
	int r = json_parse(&doc, input, size, NULL, &err);

	text = message_text(input, size, &text_size);
	if (r == 0) {
		method = json_get(json_root(doc), "method");
		count = json_get(json_root(doc), "fds");
	}
	if (r < 0 || !text || !method || method->type != JSON_STRING || !count)
		r = error_set(&err, ERR_INVALID, 0, "not {method, fds, message}");
	for (int64_t i = 0; r == 0 && i < count->u.number; i++)
		r = fdset_add_take(&fds, open("/dev/null", O_RDONLY | O_CLOEXEC), &err);
	if (r == 0)
		r = reencode_message(text, text_size, method_from_name(method->u.text), &fds, &out,
				     &err);
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", error_name(err.kind), err.message);
	else
		(void)puts(buf_text(&out));
	fdset_deinit(&fds);
	buf_deinit(&out);
	json_doc_free(doc);
	return r < 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "reencode") == 0)
		return reencode();
	return argc == 1 ? dump() : 2;
}
