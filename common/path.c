/* SPDX-License-Identifier: Apache-2.0 */
#include "common/path.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

/* A stretch of SIZE bytes as a string of its own; NULL with errno ENOMEM. */
static char *path_span(const char *text, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(copy, text, size);
	copy[size] = '\0';
	return copy;
}

static bool segment_is(const char *segment, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(segment, name, size) == 0;
}

/* Length of the segment that begins at TEXT; at most SIZE. */
static size_t segment_length(const char *text, size_t size)
{
	const char *slash = memchr(text, '/', size);

	return slash ? (size_t)(slash - text) : size;
}

static bool has_segment(const char *path, size_t size, const char *name)
{
	for (size_t at = 0; at <= size;) {
		size_t length = segment_length(path + at, size - at);

		if (segment_is(path + at, length, name))
			return true;
		at += length + 1;
	}
	return false;
}

bool path_normal_length(const char *path, size_t *ret_length)
{
	size_t size = strlen(path);

	if (path[0] != '/')
		return false;
	while (size > 1 && path[size - 1] == '/')
		size--;
	/* Most paths hold no two dots in a row: one search settles it. */
	if (strstr(path, "/..") && has_segment(path, size, ".."))
		return false;
	*ret_length = size;
	return true;
}

char *path_normalize(const char *path)
{
	size_t size = 0;

	errno = 0;
	if (!path_normal_length(path, &size))
		return NULL;
	return path_span(path, size);
}

size_t path_depth_sized(const char *path, size_t size)
{
	size_t depth = 0;

	if (size == 1 && path[0] == '/')
		return 0;
	for (size_t i = 0; i < size; i++)
		depth += path[i] == '/';
	return depth;
}

size_t path_depth(const char *path)
{
	return path_depth_sized(path, strlen(path));
}

bool path_covers(const char *path, const char *child)
{
	size_t size = strlen(path);

	if (strcmp(path, "/") == 0)
		return child[0] == '/';
	if (strncmp(path, child, size) != 0)
		return false;
	return child[size] == '/' || child[size] == '\0';
}

/* What to do with `..` while segments are copied. */
enum dotdot { DOTDOT_KEEP, DOTDOT_RESOLVE };

/* PATH, which begins with `/`, without empty and `.` segments. */
static char *rewrite_segments(const char *path, enum dotdot dotdot)
{
	size_t size = strlen(path);
	char *out = malloc(size + 1);
	size_t used = 0;

	if (!out) {
		errno = ENOMEM;
		return NULL;
	}
	for (size_t at = 1; at <= size;) {
		const char *segment = path + at;
		size_t length = segment_length(segment, size - at);

		at += length + 1;
		if (length == 0 || segment_is(segment, length, "."))
			continue;
		if (dotdot == DOTDOT_RESOLVE && segment_is(segment, length, "..")) {
			while (used > 0 && out[--used] != '/')
				;
			continue;
		}
		out[used++] = '/';
		memcpy(out + used, segment, length);
		used += length;
	}
	if (used == 0)
		out[used++] = '/';
	out[used] = '\0';
	return out;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte == 0x7f)
			return true;
	}
	return false;
}

char *path_clean(const char *path)
{
	if (path[0] != '/' || has_control(path)) {
		errno = EINVAL;
		return NULL;
	}
	return rewrite_segments(path, DOTDOT_RESOLVE);
}

/* PATH is relative. Every `..` at the front of OUT stays: SEGMENTS counts those that can be undone. */
static char *lexical_relative(const char *path)
{
	size_t size = strlen(path);
	char *out = malloc(size + 2);
	size_t segments = 0;
	size_t used = 0;

	if (!out) {
		errno = ENOMEM;
		return NULL;
	}
	for (size_t at = 0; at <= size;) {
		const char *segment = path + at;
		size_t length = segment_length(segment, size - at);

		at += length + 1;
		if (length == 0 || segment_is(segment, length, "."))
			continue;
		if (segment_is(segment, length, "..") && segments > 0) {
			while (used > 0 && out[--used] != '/')
				;
			segments--;
			continue;
		}
		if (!segment_is(segment, length, ".."))
			segments++;
		if (used > 0)
			out[used++] = '/';
		memcpy(out + used, segment, length);
		used += length;
	}
	if (used == 0)
		out[used++] = '.';
	out[used] = '\0';
	return out;
}

char *path_lexical(const char *path)
{
	return path[0] == '/' ? rewrite_segments(path, DOTDOT_RESOLVE) : lexical_relative(path);
}

char *path_collapse(const char *path)
{
	if (path[0] != '/') {
		errno = EINVAL;
		return NULL;
	}
	return rewrite_segments(path, DOTDOT_KEEP);
}

char *path_join(const char *dir, const char *name)
{
	size_t dir_size = strlen(dir);
	size_t name_size = 0;
	char *joined = NULL;

	while (dir_size > 0 && dir[dir_size - 1] == '/')
		dir_size--;
	while (name[0] == '/')
		name++;
	name_size = strlen(name);
	if (name_size == 0)
		return dir_size > 0 ? path_span(dir, dir_size) : path_span("/", 1);

	joined = malloc(dir_size + name_size + 2);
	if (!joined) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(joined, dir, dir_size);
	joined[dir_size] = '/';
	memcpy(joined + dir_size + 1, name, name_size + 1);
	return joined;
}

size_t path_parent_length(const char *path, size_t size)
{
	while (size > 0 && path[size - 1] != '/')
		size--;
	return size > 1 ? size - 1 : 1;
}

char *path_parent(const char *path)
{
	size_t size = strlen(path);

	errno = 0;
	if (strcmp(path, "/") == 0)
		return NULL;
	size = path_parent_length(path, size);
	return size == 1 ? path_span("/", 1) : path_span(path, size);
}

const char *path_leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_is_relative(const char *rel)
{
	size_t size = strlen(rel);

	return !has_segment(rel, size, "") && !has_segment(rel, size, ".") &&
	       !has_segment(rel, size, "..");
}

const char *path_refusal(const char *path)
{
	size_t size = strlen(path);

	if (size == 0)
		return "is empty";
	if (path[0] != '/')
		return "is relative";
	if (size > LIMIT_PATH_BYTES)
		return "is longer than 4095 bytes";
	if (has_segment(path, size, ".."))
		return "has a '..' segment";
	while (size > 1 && path[size - 1] == '/')
		size--;
	if (size == 1)
		return NULL;
	if (has_segment(path + 1, size - 1, ""))
		return "has an empty segment";
	if (has_segment(path + 1, size - 1, "."))
		return "has a '.' segment";
	return NULL;
}
