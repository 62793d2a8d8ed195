/* SPDX-License-Identifier: Apache-2.0 */
#include "common/confline.h"

#include <stdbool.h>
#include <string.h>

/* One line, without its end. */
struct span {
	const char *text;
	size_t size;
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static void skip_blanks(struct span *rest)
{
	while (rest->size > 0 && is_blank(rest->text[0])) {
		rest->text++;
		rest->size--;
	}
}

static bool is_key_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.' ||
	       byte == '@';
}

/* Cut the next line off the text. */
static int take_line(struct confline *reader, struct span *ret_line, struct error *err)
{
	const char *end = memchr(reader->text, '\n', reader->size);
	struct span line = { .text = reader->text, .size = reader->size };

	if (end)
		line.size = (size_t)(end - reader->text);
	reader->text += line.size + (end ? 1 : 0);
	reader->size -= line.size + (end ? 1 : 0);
	reader->line++;

	if (line.size > 0 && line.text[line.size - 1] == '\r')
		line.size--;
	if (line.size > LIMIT_CONFIG_LINE_BYTES)
		return error_set(err, ERR_CONFIG, 0, "the line is longer than %d bytes",
				 LIMIT_CONFIG_LINE_BYTES);
	for (size_t i = 0; i < line.size; i++) {
		unsigned char byte = (unsigned char)line.text[i];

		if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
			return error_set(err, ERR_CONFIG, 0, "control byte 0x%02x in the line",
					 byte);
	}
	*ret_line = line;
	return 0;
}

static int take_key(struct confline *reader, struct span *rest, struct error *err)
{
	size_t size = 0;

	while (size < rest->size && is_key_byte(rest->text[size]))
		size++;
	if (size == 0)
		return error_set(err, ERR_CONFIG, 0, "expected 'key = value'");
	if (size >= sizeof(reader->key))
		return error_set(err, ERR_CONFIG, 0, "the key is longer than %d bytes",
				 LIMIT_NAME_BYTES);
	memcpy(reader->key, rest->text, size);
	reader->key[size] = '\0';
	rest->text += size;
	rest->size -= size;

	skip_blanks(rest);
	if (rest->size == 0 || rest->text[0] != '=')
		return error_set(err, ERR_CONFIG, 0, "key '%s': expected '=' after it",
				 reader->key);
	rest->text++;
	rest->size--;
	skip_blanks(rest);
	return 0;
}

/* The value after its opening quote. */
static int take_quoted(struct confline *reader, struct span *rest, struct error *err)
{
	size_t used = 0;
	size_t i = 0;

	for (; i < rest->size && rest->text[i] != '"'; i++) {
		char byte = rest->text[i];

		if (byte == '\\') {
			byte = '\0';
			if (++i < rest->size)
				byte = rest->text[i];
			if (byte != '"' && byte != '\\' && byte != 'n')
				return error_set(err, ERR_CONFIG, 0,
						 "key '%s': only \\\" \\\\ and \\n may follow a "
						 "backslash in quotes",
						 reader->key);
			if (byte == 'n')
				byte = '\n';
		}
		reader->value[used++] = byte;
	}
	reader->value[used] = '\0';
	if (i == rest->size)
		return error_set(err, ERR_CONFIG, 0, "key '%s': the closing quote is missing",
				 reader->key);

	rest->text += i + 1;
	rest->size -= i + 1;
	skip_blanks(rest);
	if (rest->size > 0 && rest->text[0] != '#')
		return error_set(err, ERR_CONFIG, 0, "key '%s': text after the closing quote",
				 reader->key);
	return 0;
}

static int take_bare(struct confline *reader, const struct span *rest, struct error *err)
{
	size_t size = 0;

	while (size < rest->size) {
		bool starts_word = size == 0 || is_blank(rest->text[size - 1]);

		if (rest->text[size] == '#' && starts_word)
			break;
		if (rest->text[size] == '"')
			return error_set(err, ERR_CONFIG, 0,
					 "key '%s': a quote inside a value without quotes",
					 reader->key);
		size++;
	}
	while (size > 0 && is_blank(rest->text[size - 1]))
		size--;
	memcpy(reader->value, rest->text, size);
	reader->value[size] = '\0';
	return 0;
}

void confline_init(struct confline *reader, const char *text, size_t size)
{
	*reader = (struct confline){ .text = text, .size = size };
}

int confline_next(struct confline *reader, struct error *err)
{
	while (reader->size > 0) {
		struct span rest = { .text = NULL };
		int r = take_line(reader, &rest, err);

		if (r < 0)
			return r;
		skip_blanks(&rest);
		if (rest.size == 0 || rest.text[0] == '#')
			continue;

		r = take_key(reader, &rest, err);
		if (r < 0)
			return r;
		if (rest.size > 0 && rest.text[0] == '"') {
			rest.text++;
			rest.size--;
			r = take_quoted(reader, &rest, err);
		} else {
			r = take_bare(reader, &rest, err);
		}
		if (r < 0)
			return r;
		if (reader->value[0] == '\0')
			return error_set(err, ERR_CONFIG, 0, "key '%s': the value is empty",
					 reader->key);
		return 1;
	}
	return 0;
}
