/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/dircache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"

struct dircache *dircache_new(void)
{
	return calloc(1, sizeof(struct dircache));
}

struct dircache *dircache_free(struct dircache *cache)
{
	if (cache == NULL)
		return NULL;
	for (size_t i = 0; i < DIRCACHE_SLOTS; i++) {
		struct dircache_entry *entry = &cache->entries[i];

		if (entry->state == DIRCACHE_OPEN)
			(void)close(entry->fd);
		free(entry->path);
	}
	free(cache);
	return NULL;
}

/* FNV-1a. */
static size_t hash(const char *path, size_t length)
{
	uint64_t value = 14695981039346656037u;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)path[i]) * 1099511628211u;
	return (size_t)(value ^ (value >> 32));
}

/* The entry of the first LENGTH bytes of PATH, or the free one where it belongs. */
static struct dircache_entry *slot_of(struct dircache *cache, const char *path, size_t length)
{
	size_t at = hash(path, length) & (DIRCACHE_SLOTS - 1);

	for (;;) {
		struct dircache_entry *entry = &cache->entries[at];

		if (entry->state == DIRCACHE_EMPTY ||
		    (entry->length == length && memcmp(entry->path, path, length) == 0))
			return entry;
		at = (at + 1) & (DIRCACHE_SLOTS - 1);
	}
}

/* Open NAME in PARENT, or say why that is no plain directory. */
static void look_at(struct dircache_entry *entry, const struct dircache_entry *parent,
		    const char *name)
{
	entry->fd = openat(parent->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (entry->fd >= 0) {
		entry->state = DIRCACHE_OPEN;
		entry->existing_bytes = entry->length;
	} else if (errno == ENOENT) {
		entry->state = DIRCACHE_ABSENT;
		entry->existing_bytes = parent->length;
	} else {
		entry->state = DIRCACHE_ODD;
	}
}

static const struct dircache_entry *add(struct dircache *cache, const char *path, size_t length);

/* The directory named by the first LENGTH bytes of PATH; NULL when it cannot be kept. */
static const struct dircache_entry *directory(struct dircache *cache, const char *path,
					      size_t length)
{
	struct dircache_entry *entry = slot_of(cache, path, length);

	return entry->state != DIRCACHE_EMPTY ? entry : add(cache, path, length);
}

static const struct dircache_entry *add(struct dircache *cache, const char *path, size_t length)
{
	struct dircache_entry *entry;
	const struct dircache_entry *parent = NULL;
	size_t parent_length = path_parent_length(path, length);
	char *copy;

	if (length > 1) {
		parent = directory(cache, path, parent_length);
		if (parent == NULL)
			return NULL;
	}
	copy = strndup(path, length);
	if (copy == NULL || cache->count == DIRCACHE_MAX) {
		free(copy);
		return NULL;
	}
	entry = slot_of(cache, path, length);
	entry->path = copy;
	entry->length = length;
	cache->count++;
	if (parent == NULL) {
		entry->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		entry->state = entry->fd >= 0 ? DIRCACHE_OPEN : DIRCACHE_ODD;
		entry->existing_bytes = 1;
	} else if (parent->state == DIRCACHE_OPEN) {
		look_at(entry, parent, copy + (parent_length > 1 ? parent_length + 1 : 1));
	} else {
		entry->state = parent->state;
		entry->existing_bytes = parent->existing_bytes;
	}
	return entry;
}

static void fill(struct walk *walk, const char *path, enum node_type type, size_t existing_bytes)
{
	walk_deinit(walk);
	memcpy(walk->real, path, strlen(path) + 1);
	walk->existing_bytes = existing_bytes;
	walk->type = type;
	walk->errnum = type == NODE_ABSENT ? ENOENT : 0;
	walk->dev = 0;
	walk->ino = 0;
	walk->link = NULL;
}

int dircache_walk(struct dircache *cache, struct walk *ret_walk, const char *path,
		  struct error *err)
{
	size_t length = strlen(path);
	const struct dircache_entry *parent;
	const char *leaf;
	struct statx stx;

	if (length < 2 || length > LIMIT_PATH_BYTES || path[length - 1] == '/' ||
	    path_refusal(path) != NULL)
		return walk_path(ret_walk, path, err);
	parent = directory(cache, path, path_parent_length(path, length));
	if (parent != NULL && parent->state == DIRCACHE_ABSENT) {
		fill(ret_walk, path, NODE_ABSENT, parent->existing_bytes);
		return 0;
	}
	leaf = path_leaf(path);
	if (parent == NULL || parent->state != DIRCACHE_OPEN)
		return walk_path(ret_walk, path, err);
	if (statx(parent->fd, leaf, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) < 0) {
		if (errno != ENOENT)
			return walk_path(ret_walk, path, err);
		fill(ret_walk, path, NODE_ABSENT, parent->length);
		return 0;
	}
	if (S_ISLNK(stx.stx_mode))
		return walk_path(ret_walk, path, err);
	fill(ret_walk, path, walk_node_type(stx.stx_mode), length);
	return 0;
}
