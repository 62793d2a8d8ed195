/* SPDX-License-Identifier: Apache-2.0 */
#include "client/jsontext.h"

#include <string.h>

#include "common/limits.h"
#include "common/scope.h"

void jsontext_write(struct json_writer *writer, const struct json_value *value)
{
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
		json_write_text_sized(writer, value->u.text, value->size);
		break;
	case JSON_ARRAY:
		json_write_array(writer);
		for (const struct json_value *item = value->u.first; item; item = item->next)
			jsontext_write(writer, item); /* depth is bounded by json_parse() */
		json_write_array_end(writer);
		break;
	case JSON_OBJECT:
		json_write_object(writer);
		for (const struct json_value *item = value->u.first; item; item = item->next) {
			json_write_key(writer, item->key);
			jsontext_write(writer, item);
		}
		json_write_object_end(writer);
		break;
	}
}

int jsontext_of(char **ret_text, const struct json_value *value, struct error *err)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PARAMS_BYTES);
	struct json_writer writer;
	char *text = NULL;
	int r = 0;

	json_writer_init(&writer, &out);
	if (value) {
		jsontext_write(&writer, value);
	} else {
		json_write_object(&writer);
		json_write_object_end(&writer);
	}
	r = json_writer_check(&writer, err);
	if (r < 0)
		return r;
	text = buf_steal(&out);
	if (!text)
		return error_set(err, ERR_NOMEM, 0, "write JSON");
	*ret_text = text;
	return 0;
}

int jsontext_request(struct buf *out, uint64_t id, const char *method, const char *params,
		     struct error *err)
{
	struct json_doc *doc = NULL;
	struct json_writer writer;
	int r = 0;

	if (params) {
		r = json_parse(&doc, params, strlen(params), NULL, err);
		if (r < 0)
			return r;
	}
	if (doc && json_root(doc)->type != JSON_OBJECT)
		r = error_set(err, ERR_INVALID, 0, "params are not an object");

	if (r == 0) {
		json_writer_init(&writer, out);
		json_write_object(&writer);
		json_write_key(&writer, "jsonrpc");
		json_write_text(&writer, "2.0");
		json_write_key(&writer, "id");
		json_write_uint(&writer, id);
		json_write_key(&writer, "method");
		json_write_text(&writer, method);
		json_write_key(&writer, "params");
		if (doc) {
			jsontext_write(&writer, json_root(doc));
		} else {
			json_write_object(&writer);
			json_write_object_end(&writer);
		}
		json_write_object_end(&writer);
		r = json_writer_check(&writer, err);
	}
	(void)json_doc_free(doc);
	return r;
}
