/* SPDX-License-Identifier: Apache-2.0 */
/* The text of mask-mounts.json: one array of objects, read without trust and without a JSON library. */
#include "daemon/maskmounts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/limits.h"

#define DEPTH_MAX 16
#define TEXT_BYTES (LIMIT_PATH_BYTES + 1)

/* ---- writing ---------------------------------------------------------------------------- */

static void write_text(const char *text, struct buf *out)
{
	(void)buf_add_byte(out, '"');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			(void)buf_printf(out, "\\%c", byte);
		else if (byte < ' ')
			(void)buf_printf(out, "\\u%04x", byte);
		else
			(void)buf_add_byte(out, *text);
	}
	(void)buf_add_byte(out, '"');
}

void mask_mounts_write(const struct mask_mount_list *list, struct buf *out)
{
	(void)buf_add_byte(out, '[');
	for (size_t i = 0; i < list->count; i++) {
		const struct mask_mount *mount = &list->items[i];

		(void)buf_add_string(out, i > 0 ? ",{\"path\":" : "{\"path\":");
		write_text(mount->path, out);
		(void)buf_printf(out, ",\"kind\":\"%s\",\"dev\":%" PRIu64 ",\"ino\":%" PRIu64 "}",
				 mount->is_dir ? "dir" : "file", mount->dev, mount->ino);
	}
	(void)buf_add_byte(out, ']');
}

/* ---- reading ---------------------------------------------------------------------------- */

enum value_kind { VALUE_OTHER, VALUE_TEXT, VALUE_NUMBER };

/*
 * @text, @number  of the last value, if it was one
 * @fits           the text was no longer than a path, and without NUL
 */
struct reader {
	const char *at;
	const char *end;
	bool bad;
	enum value_kind kind;
	char text[TEXT_BYTES];
	bool fits;
	uint64_t number;
};

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

static bool take(struct reader *reader, char byte)
{
	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

static void put(struct reader *reader, size_t *used, unsigned byte)
{
	if (byte == 0 || *used + 1 >= sizeof(reader->text))
		reader->fits = false;
	else
		reader->text[(*used)++] = (char)byte;
}

/* The four digits of \uXXXX, which our own writer uses below 0x20; more is no path that we wrote. */
static unsigned read_code(struct reader *reader)
{
	char digits[5] = "";
	char *end = NULL;
	unsigned long code = 0;

	if (reader->end - reader->at < 4) {
		reader->bad = true;
		return 0;
	}
	memcpy(digits, reader->at, 4);
	reader->at += 4;
	code = strtoul(digits, &end, 16);
	if (end != digits + 4)
		reader->bad = true;
	return code < 0x80 ? (unsigned)code : 0;
}

static void read_escape(struct reader *reader, size_t *used)
{
	static const char names[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";
	char byte = (char)(reader->at < reader->end ? *reader->at++ : '\0');
	const char *name = byte ? strchr(names, byte) : NULL;

	if (name)
		put(reader, used, (unsigned char)bytes[name - names]);
	else if (byte == 'u')
		put(reader, used, read_code(reader));
	else
		reader->bad = true;
}

static void read_text(struct reader *reader)
{
	size_t used = 0;

	reader->kind = VALUE_TEXT;
	reader->fits = true;
	while (!reader->bad) {
		char byte = (char)(reader->at < reader->end ? *reader->at++ : '\0');

		if (byte == '"')
			break;
		if ((unsigned char)byte < ' ')
			reader->bad = true;
		else if (byte == '\\')
			read_escape(reader, &used);
		else
			put(reader, &used, (unsigned char)byte);
	}
	reader->text[used] = '\0';
}

/* A number or a word, up to where it ends; a whole number that fits counts as one. */
static void read_word(struct reader *reader)
{
	char word[32];
	size_t length = 0;
	char *end = NULL;

	while (reader->at < reader->end && *reader->at && !strchr(" \t\r\n,:]}[{\"", *reader->at)) {
		if (length + 1 < sizeof(word))
			word[length++] = *reader->at;
		reader->at++;
	}
	word[length] = '\0';
	if (length == 0) {
		reader->bad = true;
		return;
	}
	errno = 0;
	reader->number = strtoull(word, &end, 10);
	if (errno == 0 && *end == '\0' && word[0] >= '0' && word[0] <= '9')
		reader->kind = VALUE_NUMBER;
}

static void read_value(struct reader *reader, unsigned depth);

/* What is between brackets of no interest. */
static void skip_inside(struct reader *reader, char close, unsigned depth)
{
	if (depth >= DEPTH_MAX)
		reader->bad = true;
	if (take(reader, close))
		return;
	while (!reader->bad) {
		read_value(reader, depth);
		if (close == '}' && !take(reader, ':'))
			reader->bad = true;
		else if (close == '}')
			read_value(reader, depth);
		if (take(reader, close))
			break;
		if (!take(reader, ','))
			reader->bad = true;
	}
	reader->kind = VALUE_OTHER;
}

static void read_value(struct reader *reader, unsigned depth)
{
	reader->kind = VALUE_OTHER;
	if (take(reader, '"'))
		read_text(reader);
	else if (take(reader, '['))
		skip_inside(reader, ']', depth + 1);
	else if (take(reader, '{'))
		skip_inside(reader, '}', depth + 1);
	else
		read_word(reader);
}

/* What an entry says so far. */
struct entry {
	char *path;
	bool has_kind;
	bool is_dir;
	bool has_dev;
	bool has_ino;
	uint64_t dev;
	uint64_t ino;
};

static int take_member(struct entry *entry, const char *key, const struct reader *value,
		       struct error *err)
{
	bool is_text = value->kind == VALUE_TEXT && value->fits;

	if (strcmp(key, "path") == 0) {
		free(entry->path);
		entry->path = is_text ? strdup(value->text) : NULL;
		if (is_text && !entry->path)
			return error_set(err, ERR_NOMEM, 0, "list of mount points");
	} else if (strcmp(key, "kind") == 0) {
		entry->is_dir = is_text && strcmp(value->text, "dir") == 0;
		entry->has_kind = entry->is_dir || (is_text && strcmp(value->text, "file") == 0);
	} else if (strcmp(key, "dev") == 0) {
		entry->has_dev = value->kind == VALUE_NUMBER;
		entry->dev = value->number;
	} else if (strcmp(key, "ino") == 0) {
		entry->has_ino = value->kind == VALUE_NUMBER;
		entry->ino = value->number;
	}
	return 0;
}

static int add_entry(struct mask_mount_list *list, struct entry *entry, struct error *err)
{
	if (entry->path && entry->has_kind && entry->has_dev && entry->has_ino) {
		size_t capacity = list->capacity ? list->capacity * 2 : 16;
		struct mask_mount *items = list->items;

		if (list->count == list->capacity) {
			items = reallocarray(items, capacity, sizeof(*items));
			if (!items) {
				free(entry->path);
				return error_set(err, ERR_NOMEM, 0, "list of mount points");
			}
			list->items = items;
			list->capacity = capacity;
		}
		items[list->count++] = (struct mask_mount){ .path = entry->path,
							    .is_dir = entry->is_dir,
							    .dev = entry->dev,
							    .ino = entry->ino };
		entry->path = NULL;
	}
	free(entry->path);
	return 0;
}

static int read_entry(struct mask_mount_list *list, struct reader *reader, struct error *err)
{
	struct entry entry = { .path = NULL };
	char key[TEXT_BYTES];
	int r = 0;

	if (take(reader, '}'))
		return 0;
	while (r == 0 && !reader->bad) {
		if (!take(reader, '"')) {
			reader->bad = true;
			break;
		}
		read_text(reader);
		memcpy(key, reader->text, sizeof(key));
		if (!take(reader, ':'))
			reader->bad = true;
		else
			read_value(reader, 1);
		if (!reader->bad)
			r = take_member(&entry, key, reader, err);
		if (take(reader, '}'))
			break;
		if (!take(reader, ','))
			reader->bad = true;
	}
	if (r == 0 && !reader->bad)
		return add_entry(list, &entry, err);
	free(entry.path);
	return r;
}

int mask_mounts_read(struct mask_mount_list *ret_list, const char *text, size_t size,
		     struct error *err)
{
	struct mask_mount_list list = { .items = NULL };
	struct reader reader = { .at = text, .end = text + size };
	bool first = true;
	int r = 0;

	reader.bad = !take(&reader, '[');
	while (r == 0 && !reader.bad && !(first && take(&reader, ']'))) {
		first = false;
		if (take(&reader, '{'))
			r = read_entry(&list, &reader, err);
		else
			read_value(&reader, 0);
		if (take(&reader, ']'))
			break;
		if (!take(&reader, ','))
			reader.bad = true;
	}
	skip_blanks(&reader);
	if (r < 0 || reader.bad || reader.at != reader.end || list.count > LIMIT_RULES) {
		mask_mounts_deinit(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}
