/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_BYTES 256

void buf_init(struct buf *buf, size_t ceiling_bytes)
{
	*buf = (struct buf)BUF_INIT(ceiling_bytes);
}

void buf_deinit(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	buf_init(buf, buf->ceiling);
}

void buf_clear(struct buf *buf)
{
	buf->size = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

void *buf_reserve(struct buf *buf, size_t size)
{
	size_t capacity = buf->capacity ? buf->capacity : BUF_FIRST_BYTES;
	char *grown = NULL;

	if (size > buf->ceiling || buf->size > buf->ceiling - size) {
		buf->failed = true;
		return NULL;
	}
	if (buf->data && buf->capacity - buf->size > size)
		return buf->data + buf->size;

	while (capacity - buf->size <= size)
		capacity *= 2;
	grown = realloc(buf->data, capacity);
	if (!grown) {
		buf->failed = true;
		return NULL;
	}
	buf->data = grown;
	buf->capacity = capacity;
	buf->data[buf->size] = '\0';
	return buf->data + buf->size;
}

void buf_commit(struct buf *buf, size_t size)
{
	if (!buf->data)
		return;
	buf->size += size;
	buf->data[buf->size] = '\0';
}

int buf_add(struct buf *buf, const void *data, size_t size)
{
	void *room = buf_reserve(buf, size);

	if (!room)
		return -ERR_NOMEM;
	if (size > 0)
		memcpy(room, data, size);
	buf_commit(buf, size);
	return 0;
}

int buf_add_string(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

int buf_add_byte(struct buf *buf, char byte)
{
	return buf_add(buf, &byte, 1);
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	va_list again;
	int needed = 0;
	char *room = NULL;

	va_start(args, format);
	va_copy(again, args);
	needed = vsnprintf(NULL, 0, format, args);
	va_end(args);

	room = needed < 0 ? NULL : buf_reserve(buf, (size_t)needed);
	if (room)
		(void)vsnprintf(room, (size_t)needed + 1, format, again);
	va_end(again);
	if (!room) {
		buf->failed = true;
		return -ERR_NOMEM;
	}
	buf_commit(buf, (size_t)needed);
	return 0;
}

void buf_consume(struct buf *buf, size_t size)
{
	if (size >= buf->size) {
		bool failed = buf->failed;

		buf_clear(buf);
		buf->failed = failed;
		return;
	}
	memmove(buf->data, buf->data + size, buf->size - size);
	buf->size -= size;
	buf->data[buf->size] = '\0';
}

int buf_check(const struct buf *buf, const char *what, struct error *err)
{
	if (!buf->failed)
		return 0;
	return error_set(err, ERR_NOMEM, 0, "%s does not fit into %zu bytes", what, buf->ceiling);
}

const char *buf_text(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

char *buf_steal(struct buf *buf)
{
	char *text = NULL;

	if (!buf->data && !buf_reserve(buf, 0))
		return NULL;
	text = buf->data;
	buf->data = NULL;
	buf->size = 0;
	buf->capacity = 0;
	buf->failed = false;
	return text;
}
