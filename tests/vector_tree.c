/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vector_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"

#define ROOT_NAME "${ROOT}"

static char *replaced_text(const char *text, const char *from, const char *to)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(16u << 20);
	size_t size = strlen(from);
	const char *at = NULL;

	while ((at = strstr(text, from)) != NULL) {
		(void)buf_add(&out, text, (size_t)(at - text));
		(void)buf_add_string(&out, to);
		text = at + size;
	}
	(void)buf_add_string(&out, text);
	return buf_steal(&out);
}

struct json_value *vector_replace(const struct json_value *value, const char *from, const char *to)
{
	struct json_value *copy = NULL;

	if (value->type == JSON_STRING) {
		AUTO(auto_free) char *text = replaced_text(value->text, from, to);

		return json_new_string(text);
	}
	copy = json_new(value->type);
	copy->truth = value->truth;
	if (value->text) {
		copy->text = strdup(value->text);
		copy->size = value->size;
	}
	for (size_t i = 0; i < value->count; i++) {
		struct json_value *item = vector_replace(value->items[i], from, to);

		if (value->type == JSON_OBJECT)
			(void)json_set(copy, value->keys[i], item);
		else
			json_append(copy, item);
	}
	return copy;
}

struct json_value *vector_tree_result(const struct vector_tree *tree,
				      const struct json_value *value)
{
	return vector_replace(value, tree->root, ROOT_NAME);
}

static int make_parents(const char *path)
{
	AUTO(auto_free) char *copy = strdup(path);

	for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

static int make_file(const char *path, const char *mode, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	int r = fd < 0 ? -1 : fchmod(fd, mode ? (mode_t)strtoul(mode, NULL, 8) : 0644);

	if (r == 0 && text && write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		r = -1;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int make_node(const struct json_value *entry, const char *path)
{
	const char *type = json_get_string(entry, "type");
	const char *target = json_get_string(entry, "target");

	if (!type || make_parents(path) < 0)
		return -1;
	if (strcmp(type, "dir") == 0)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
	if (strcmp(type, "file") == 0)
		return make_file(path, json_get_string(entry, "mode"),
				 json_get_string(entry, "text"));
	if (strcmp(type, "fifo") == 0)
		return mkfifo(path, 0644);
	if (strcmp(type, "symlink") == 0 && target)
		return symlink(target, path);
	errno = EINVAL;
	return -1;
}

static int make_nodes(struct vector_tree *tree, struct error *err)
{
	const struct json_value *entries = json_get(tree->input, "tree");

	for (size_t i = 0; entries && i < entries->count; i++) {
		const char *rel = json_get_string(entries->items[i], "path");
		AUTO(auto_free) char *path = rel ? path_join(tree->root, rel) : NULL;

		if (!path || make_node(entries->items[i], path) < 0)
			return error_set(err, ERR_INVALID, errno, "make '%s' of the tree",
					 rel ? rel : "a nameless entry");
	}
	return 0;
}

int vector_tree_init(struct vector_tree *tree, const struct json_value *input, struct error *err)
{
	const char *base = getenv("TMPDIR");
	AUTO(auto_free)
	char *template = path_join(base && base[0] == '/' ? base : "/tmp", "fsbox-vector.XXXXXX");

	if (!mkdtemp(template))
		return error_set(err, ERR_SYSTEM, errno, "mkdtemp");
	tree->root = realpath(template, NULL);
	if (!tree->root)
		return error_set(err, ERR_SYSTEM, errno, "realpath");
	tree->input = vector_replace(input, ROOT_NAME, tree->root);
	return make_nodes(tree, err);
}

static int remove_node(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void vector_tree_deinit(struct vector_tree *tree)
{
	if (tree->root)
		(void)nftw(tree->root, remove_node, 16, FTW_DEPTH | FTW_PHYS);
	free(tree->root);
	json_free(tree->input);
	*tree = (struct vector_tree)VECTOR_TREE_INIT;
}
