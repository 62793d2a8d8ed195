/* SPDX-License-Identifier: Apache-2.0 */

/* Mount points of masks, made, meddled with and reclaimed: mask-lifecycle.json. */

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/maskmounts.h"
#include "tests/vector_handlers.h"
#include "tests/vector_tree.h"

#define SESSION ".session"

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "vector_masks: %s: %s\n", what, strerror(errno));
	abort();
}

static void must(bool holds, const char *what)
{
	if (!holds)
		give_up(what);
}

/* ---- what is there ------------------------------------------------------------------------ */

static const char *walk_root;
static struct json_value *walk_list;

static int see_node(const char *path, const struct stat *about, int type, struct FTW *where)
{
	const char *rel = path + strlen(walk_root);
	struct json_value *pair = NULL;

	(void)type;
	(void)where;
	if (rel[0] == '\0' || strncmp(rel + 1, SESSION, strlen(SESSION)) == 0)
		return 0;
	pair = json_new(JSON_ARRAY);
	json_append(pair, json_new_string(rel + 1));
	json_append(pair, json_new_string(S_ISDIR(about->st_mode)   ? "dir"
					  : S_ISREG(about->st_mode) ? "file"
					  : S_ISLNK(about->st_mode) ? "symlink"
								    : "other"));
	json_append(walk_list, pair);
	return 0;
}

static int compare_pairs(const void *left, const void *right)
{
	const struct json_value *const *a = left;
	const struct json_value *const *b = right;

	return strcmp((*a)->items[0]->text, (*b)->items[0]->text);
}

static struct json_value *list_tree(const char *root)
{
	walk_root = root;
	walk_list = json_new(JSON_ARRAY);
	must(nftw(root, see_node, 16, FTW_PHYS) == 0, "look at the tree");
	if (walk_list->count > 1)
		qsort(walk_list->items, walk_list->count, sizeof(struct json_value *),
		      compare_pairs);
	return walk_list;
}

/* ---- what happens between ------------------------------------------------------------------- */

static int remove_node(const char *path, const struct stat *about, int type, struct FTW *where)
{
	(void)about;
	(void)type;
	(void)where;
	return remove(path);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	must(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

static void make_directories(const char *path)
{
	AUTO(auto_free) char *copy = strdup(path);

	for (char *slash = copy + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		must(mkdir(copy, 0755) == 0 || errno == EEXIST, copy);
	}
	must(mkdir(path, 0755) == 0, path);
}

/* Another object in its place, made while the first still has its number. */
static void replace_node(const char *path)
{
	AUTO(auto_free) char *other = NULL;

	must(asprintf(&other, "%s.other", path) > 0, "memory");
	must(mkdir(other, 0700) == 0 && rmdir(path) == 0 && rename(other, path) == 0, path);
}

static struct json_value *read_manifest(const char *path)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "re");
	struct json_value *value = NULL;
	size_t size = 0;

	must(file != NULL, path);
	size = fread(text, 1, sizeof(text), file);
	(void)fclose(file);
	value = json_parse(text, size, NULL);
	must(value && value->type == JSON_ARRAY, "the manifest is no list");
	return value;
}

static void write_manifest(const char *path, const struct json_value *value)
{
	FILE *file = fopen(path, "we");

	must(file != NULL, path);
	json_print(value, file);
	must(fclose(file) == 0, path);
}

static struct json_value *number(uint64_t value)
{
	struct json_value *result = json_new(JSON_NUMBER);

	must(asprintf(&result->text, "%" PRIu64, value) > 0, "memory");
	result->size = strlen(result->text);
	return result;
}

static void set_member(struct json_value *object, const char *key, const struct json_value *to)
{
	struct json_value *copy = vector_replace(to, "\x01", "\x01");

	for (size_t i = 0; i < object->count; i++) {
		if (strcmp(object->keys[i], key) != 0)
			continue;
		if (to->type == JSON_STRING && strcmp(to->text, "+1") == 0) {
			json_free(copy);
			copy = number(strtoull(object->items[i]->text, NULL, 10) + 1);
		}
		json_free(object->items[i]);
		object->items[i] = copy;
		return;
	}
	(void)json_set(object, key, copy);
}

static void edit_manifest(const char *path, const struct json_value *step)
{
	AUTO(json_release) struct json_value *list = read_manifest(path);
	const struct json_value *set = json_get(step, "set");
	size_t index = strtoul(json_get(step, "index")->text, NULL, 10);

	must(index < list->count, "no such entry");
	for (size_t i = 0; i < set->count; i++)
		set_member(list->items[index], set->keys[i], set->items[i]);
	write_manifest(path, list);
}

static void append_to_manifest(const char *path, const struct json_value *step)
{
	AUTO(json_release) struct json_value *list = read_manifest(path);
	struct json_value *entry = vector_replace(json_get(step, "entry"), "\x01", "\x01");
	struct stat about;

	must(lstat(json_get_string(step, "identityOf"), &about) == 0, "identityOf");
	(void)json_set(entry, "dev", number(about.st_dev));
	(void)json_set(entry, "ino", number(about.st_ino));
	json_append(list, entry);
	write_manifest(path, list);
}

static void meddle(const struct json_value *step, const char *manifest)
{
	const char *op = json_get_string(step, "op");
	const char *path = json_get_string(step, "path");
	const char *text = json_get_string(step, "text");

	if (strcmp(op, "write") == 0)
		write_file(path, text ? text : "host");
	else if (strcmp(op, "mkdir") == 0)
		make_directories(path);
	else if (strcmp(op, "remove") == 0)
		must(nftw(path, remove_node, 16, FTW_DEPTH | FTW_PHYS) == 0, path);
	else if (strcmp(op, "rename") == 0)
		must(rename(path, json_get_string(step, "to")) == 0, path);
	else if (strcmp(op, "replace") == 0)
		replace_node(path);
	else if (strcmp(op, "swap-for-symlink") == 0)
		must(rmdir(path) == 0 && symlink(json_get_string(step, "target"), path) == 0, path);
	else if (strcmp(op, "manifest-edit") == 0)
		edit_manifest(manifest, step);
	else if (strcmp(op, "manifest-append") == 0)
		append_to_manifest(manifest, step);
	else if (strcmp(op, "manifest-text") == 0)
		write_file(manifest, text);
	else
		give_up(op);
}

/* ---- one case ---------------------------------------------------------------------------------- */

static bool create_all(struct mask_mount_list *list, const struct json_value *masks)
{
	for (size_t i = 0; i < masks->count; i++) {
		const char *kind = json_get_string(masks->items[i], "kind");

		if (mask_mounts_create(list, json_get_string(masks->items[i], "path"),
				       strcmp(kind, "dir") == 0, NULL) < 0)
			return false;
	}
	return true;
}

static struct json_value *created(const struct mask_mount_list *list)
{
	struct json_value *result = json_new(JSON_ARRAY);

	for (size_t i = 0; i < list->count; i++) {
		struct json_value *entry = json_new(JSON_OBJECT);

		(void)json_set(entry, "path", json_new_string(list->items[i].path));
		(void)json_set(entry, "kind",
			       json_new_string(list->items[i].is_dir ? "dir" : "file"));
		json_append(result, entry);
	}
	return result;
}

static bool save(const struct mask_mount_list *list, const char *session, const char *manifest,
		 struct json_value *result)
{
	bool written = mask_mounts_save(list, session, NULL) == 0;
	struct stat about;
	bool exists = lstat(manifest, &about) == 0;
	char mode[8];

	(void)json_set(result, "manifestWritten", json_new_bool(written));
	(void)json_set(result, "manifestExists", json_new_bool(exists));
	(void)snprintf(mode, sizeof(mode), "%04o", exists ? about.st_mode & 07777 : 0);
	if (exists)
		(void)json_set(result, "manifestMode", json_new_string(mode));
	return written;
}

static struct json_value *run(const struct vector_tree *tree)
{
	AUTO(mask_mounts_deinit) struct mask_mount_list list = { .items = NULL };
	AUTO(mask_mounts_deinit) struct mask_mount_list loaded = { .items = NULL };
	AUTO(auto_free) char *session = path_join(tree->root, SESSION);
	AUTO(auto_free) char *manifest = path_join(session, "mask-mounts.json");
	const struct json_value *between = json_get(tree->input, "between");
	const char *mode = json_get_string(tree->input, "manifest");
	struct json_value *result = json_new(JSON_OBJECT);
	bool good = create_all(&list, json_get(tree->input, "masks"));
	bool saved = false;

	(void)json_set(result, "createError", json_new_bool(!good));
	(void)json_set(result, "created", created(&list));
	(void)json_set(result, "after", list_tree(tree->root));
	if (mode) {
		must(strcmp(mode, "unwritable") == 0 || mkdir(session, 0700) == 0, session);
		saved = save(&list, session, manifest, result);
	}
	for (size_t i = 0; i < between->count; i++)
		meddle(between->items[i], manifest);
	if (saved)
		must(mask_mounts_load(&loaded, session, NULL) == 0, "load the manifest");
	mask_mounts_reclaim(saved ? &loaded : &list);
	(void)json_set(result, "final", list_tree(tree->root));
	return result;
}

static struct json_value *do_masks(const struct json_value *input, struct error *err)
{
	AUTO(vector_tree_deinit) struct vector_tree tree = VECTOR_TREE_INIT;
	AUTO(json_release) struct json_value *result = NULL;

	if (vector_tree_init(&tree, input, err) < 0)
		return NULL;
	result = run(&tree);
	return vector_tree_result(&tree, result);
}

const struct vector_function *vector_masks_function(const char *name)
{
	static const struct vector_function function = { "maskLifecycle", do_masks, false, NULL,
							 NULL };

	return strcmp(name, function.name) == 0 ? &function : NULL;
}
