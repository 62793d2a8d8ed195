/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_BUF_H
#define FSBOX_COMMON_BUF_H

/*
 * Bytes that grow, under a ceiling that the owner states once.
 *
 * The data is always followed by one NUL that is not counted, so that text may be read as a string.
 * After a failed append the buffer is as before and `failed` is set: a writer of many pieces may
 * check once at the end with buf_check().
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/*
 * @data           heap, owned; NULL while nothing was appended
 * @size           bytes in use
 * @ceiling        most bytes that @size may reach
 * @failed         an append did not fit or memory was short
 */
struct buf {
	char *data;
	size_t size;
	size_t capacity;
	size_t ceiling;
	bool failed;
};

#define BUF_INIT(ceiling_bytes)            \
	{                                  \
		.ceiling = (ceiling_bytes) \
	}

void buf_init(struct buf *buf, size_t ceiling_bytes);
void buf_deinit(struct buf *buf); /* frees; NULL, zeroed and half-built are fine */

void buf_clear(struct buf *buf); /* size 0, memory kept */

/* Append; -ERR_NOMEM when it would pass the ceiling or memory is short. */
int buf_add(struct buf *buf, const void *data, size_t size);
int buf_add_string(struct buf *buf, const char *text);
int buf_add_byte(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Room for SIZE more bytes at the end, for a reader to fill; NULL as buf_add() fails. The bytes
 * count only after buf_commit().
 */
void *buf_reserve(struct buf *buf, size_t size);
void buf_commit(struct buf *buf, size_t size);

/* Remove the first SIZE bytes (at most all). */
void buf_consume(struct buf *buf, size_t size);

/* 0, or -ERR_NOMEM with ERR filled when any append failed; WHAT names the content. */
int buf_check(const struct buf *buf, const char *what, struct error *err);

/* The text, "" while empty. Borrowed until the next change. */
const char *buf_text(const struct buf *buf);

/* The text, now the caller's to free(); NULL when memory is short. The buffer is empty afterwards. */
char *buf_steal(struct buf *buf);

#endif
