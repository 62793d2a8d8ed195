/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "proto/json/tables.h"
#include "proto/json/utf8.h"

/* ---- paths --------------------------------------------------------------------------- */

#define FIRST_CAPACITY 8

int path_entry_list_add(struct path_entry_list *list, const char *path, struct error *err)
{
	size_t capacity = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
	struct path_entry *grown = NULL;
	char *copy = NULL;

	if (list->count == list->capacity) {
		grown = realloc(list->items, capacity * sizeof(*grown));
		if (!grown)
			return error_set(err, ERR_NOMEM, 0, "list of %zu paths", list->count);
		list->items = grown;
		list->capacity = capacity;
	}
	copy = strdup(path);
	if (!copy)
		return error_set(err, ERR_NOMEM, 0, "list of %zu paths", list->count);
	list->items[list->count++] = (struct path_entry){ .path = copy };
	return 0;
}

void path_entry_list_deinit(struct path_entry_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct path_entry_list){ .items = NULL };
}

/* ---- network ------------------------------------------------------------------------- */

bool net_choice_mode(enum net_choice choice, enum net_mode *ret_mode)
{
	switch (choice) {
	case NET_CHOICE_UNSET:
		return false;
	case NET_CHOICE_NONE:
		*ret_mode = NET_NONE;
		return true;
	case NET_CHOICE_PROXY:
		*ret_mode = NET_PROXY;
		return true;
	case NET_CHOICE_HOST:
		*ret_mode = NET_HOST;
		return true;
	}
	return false;
}

enum net_choice net_choice_from_mode(enum net_mode mode)
{
	switch (mode) {
	case NET_NONE:
		return NET_CHOICE_NONE;
	case NET_PROXY:
		return NET_CHOICE_PROXY;
	case NET_HOST:
		return NET_CHOICE_HOST;
	}
	return NET_CHOICE_UNSET;
}

/* ---- errors -------------------------------------------------------------------------- */

int error_rpc_code(enum error_kind kind)
{
	/* The numbers that JSON-RPC 2.0 gives; the rest lies in its range for servers. */
	if (kind == ERR_BAD_JSON)
		return -32700;
	if (kind == ERR_UNKNOWN_METHOD)
		return -32601;
	if (kind == ERR_INVALID)
		return -32602;
	return -32000 - (int)kind;
}

/* A copy of TEXT in which each byte that is not part of a character is \xNN. NULL: no memory. */
static char *valid_copy(const char *text)
{
	struct buf out = BUF_INIT(ERROR_REPLY_BYTES);
	size_t size = strlen(text);
	size_t at = 0;

	while (at < size) {
		size_t length = utf8_length(text + at, size - at);

		if (length > 0)
			(void)buf_add(&out, text + at, length);
		else
			(void)buf_printf(&out, "\\x%02x", (unsigned)(unsigned char)text[at]);
		at += length > 0 ? length : 1;
	}
	if (out.failed) {
		buf_deinit(&out);
		return NULL;
	}
	return buf_steal(&out);
}

int error_reply_set(struct error_reply *ret_reply, const struct error *err, const char *stage,
		    const char *path, const char *hint, struct error *fail)
{
	struct error_reply reply = { .kind = err->kind == ERR_NONE ? ERR_SYSTEM : err->kind };

	reply.code = error_rpc_code(reply.kind);
	reply.errnum = err->errnum > 0 ? (uint32_t)err->errnum : 0;
	reply.message = valid_copy(err->message);
	reply.stage = stage ? strdup(stage) : NULL;
	reply.path = path ? strdup(path) : NULL;
	reply.hint = hint ? strdup(hint) : NULL;
	if (!reply.message || (stage && !reply.stage) || (path && !reply.path) ||
	    (hint && !reply.hint)) {
		error_reply_deinit(&reply);
		return error_set(fail, ERR_NOMEM, 0, "an error reply");
	}
	*ret_reply = reply;
	return 0;
}

int error_reply_to_error(const struct error_reply *reply, struct error *err)
{
	int r = error_set(err, reply->kind, 0, "%s", reply->message);

	/* The text of errno is in the message already. */
	if (err)
		err->errnum = (int)reply->errnum;
	return r;
}

void error_reply_deinit(struct error_reply *reply)
{
	codec_deinit(&error_table, reply);
}
