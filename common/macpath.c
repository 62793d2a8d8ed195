/* SPDX-License-Identifier: Apache-2.0 */
#include "common/macpath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

/* TEXT for a message: without control characters, cut. */
struct shown {
	char text[128];
};

static bool is_control(char byte)
{
	return (unsigned char)byte < 0x20 || byte == 0x7f;
}

static struct shown show(const char *text)
{
	struct shown shown = { .text = "" };
	size_t used = 0;

	for (; *text && used + 1 < sizeof(shown.text); text++) {
		shown.text[used] = '?';
		if (!is_control(*text))
			shown.text[used] = *text;
		used++;
	}
	return shown;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (is_control(*text))
			return true;
	return false;
}

/* How many bytes a UTF-8 character has that begins with FIRST; 0 when none does. */
static size_t utf8_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static bool is_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		size_t length = utf8_length(*at);

		for (size_t i = 1; i < length; i++)
			if ((at[i] & 0xc0) != 0x80) /* also stops at the end of the text */
				return false;
		/* Longer than needed, a surrogate, beyond the last code point. */
		if (length == 0 || (at[0] == 0xe0 && at[1] < 0xa0) ||
		    (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
		    (at[0] == 0xf4 && at[1] > 0x8f))
			return false;
		at += length;
	}
	return true;
}

static int check_characters(const char *text, struct error *err)
{
	if (has_control(text))
		return error_set(err, ERR_POLICY_INVALID, 0, "'%s' has a control character",
				 show(text).text);
	if (!is_utf8(text))
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "'%s' is not UTF-8, as every name on macOS is", show(text).text);
	return 0;
}

/* The verdict on TEXT, whose form REFUSAL (may be NULL) is about. */
static int verdict(const char *text, const char *refusal, struct error *err)
{
	int r = check_characters(text, err);

	if (r < 0 || !refusal)
		return r;
	return error_set(err, ERR_POLICY_INVALID, 0, "'%s' %s", show(text).text, refusal);
}

int macpath_check(const char *path, struct error *err)
{
	return verdict(path, path_refusal(path), err);
}

int macpath_check_prefix(const char *prefix, struct error *err)
{
	size_t dir_size = (size_t)(path_leaf(prefix) - prefix);
	AUTO(auto_free) char *example = malloc(dir_size + 2);

	if (!example)
		return error_set(err, ERR_NOMEM, 0, "no memory for a path");
	memcpy(example, prefix, dir_size);
	memcpy(example + dir_size, "x", 2);
	return verdict(prefix, path_refusal(example), err);
}

bool macpath_is_linked(const char *path)
{
	return path_covers("/etc", path) || path_covers("/tmp", path) || path_covers("/var", path);
}

char *macpath_physical(const char *path)
{
	AUTO(auto_free) char *normal = path_normalize(path);

	if (normal && macpath_is_linked(normal))
		return path_join("/private", normal);
	return steal_ptr(&normal);
}

bool macpath_on_data_volume(const char *path)
{
	return path_covers(MACPATH_DATA_VOLUME, path);
}
