/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A text as JSON. What is taken is written again and must then read as the same; with less memory it is
 * taken as well or refused for want of memory, never otherwise.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(struct json_writer *writer, const struct json_value *value)
{
	const struct json_value *item = NULL;

	if (value->key)
		json_write_key(writer, value->key);
	switch (value->type) {
	case JSON_NULL:
		json_write_null(writer);
		break;
	case JSON_BOOL:
		json_write_bool(writer, value->u.boolean);
		break;
	case JSON_INT:
		json_write_int(writer, value->u.number);
		break;
	case JSON_STRING:
		if (strlen(value->u.text) != value->size)
			abort();
		json_write_text(writer, value->u.text);
		break;
	case JSON_ARRAY:
		json_write_array(writer);
		for (item = value->u.first; item; item = item->next)
			write_value(writer, item);
		json_write_array_end(writer);
		break;
	case JSON_OBJECT:
		json_write_object(writer);
		for (item = value->u.first; item; item = item->next)
			write_value(writer, item);
		json_write_object_end(writer);
		break;
	}
}

/* Read SIZE bytes and write them again; false when they are refused. */
static int rewrite(const char *text, size_t size, struct buf *out)
{
	struct json_writer writer;
	struct json_doc *doc = NULL;
	struct error err = ERROR_INIT;
	int r = json_parse(&doc, text, size, NULL, &err);

	if (r < 0) {
		if (err.kind != ERR_BAD_JSON || err.message[0] == '\0')
			abort();
		return 0;
	}
	json_writer_init(&writer, out);
	write_value(&writer, json_root(doc));
	json_doc_free(doc);
	if (json_writer_check(&writer, NULL) < 0)
		abort();
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_limits limits = JSON_LIMITS;
	struct buf once = BUF_INIT(64u << 20);
	struct buf twice = BUF_INIT(64u << 20);
	struct json_doc *doc = NULL;
	int taken = rewrite((const char *)data, size, &once);
	int r = 0;

	if (taken && (!rewrite(buf_text(&once), once.size, &twice) ||
		      strcmp(buf_text(&once), buf_text(&twice)) != 0))
		abort();

	limits.memory_bytes = size * 16;
	r = json_parse(&doc, (const char *)data, size, &limits, NULL);
	if (r != -ERR_NOMEM && (r == 0) != taken)
		abort();
	json_doc_free(doc);
	buf_deinit(&once);
	buf_deinit(&twice);
	return 0;
}
