/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/maskmounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"

#define NAME "mask-mounts.json"

/* What a plan can have at most, each path with every byte escaped. */
#define FILE_BYTES (64u << 20)

void mask_mounts_deinit(struct mask_mount_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	memset(list, 0, sizeof(*list));
}

/* ---- making ---------------------------------------------------------------------------- */

/* Room for one more at the front: before anything is made, so that nothing is made unrecorded. */
static int make_room(struct mask_mount_list *list, const char *path, struct error *err)
{
	size_t capacity = list->capacity ? list->capacity * 2 : 16;
	struct mask_mount *items = list->items;
	char *copy = strdup(path);

	if (copy && list->count == list->capacity) {
		items = reallocarray(list->items, capacity, sizeof(*items));
		list->items = items ? items : list->items;
		list->capacity = items ? capacity : list->capacity;
	}
	if (!copy || !items) {
		free(copy);
		return error_set(err, ERR_NOMEM, 0, "list of mount points");
	}
	memmove(items + 1, items, list->count * sizeof(*items));
	items[0] = (struct mask_mount){ .path = copy };
	list->count++;
	return 0;
}

static void take_back_room(struct mask_mount_list *list)
{
	free(list->items[0].path);
	list->count--;
	memmove(list->items, list->items + 1, list->count * sizeof(*list->items));
}

static int make_node(const char *path, bool is_dir)
{
	int fd = -1;

	if (is_dir)
		return mkdir(path, 0700);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int make_level(struct mask_mount_list *list, const char *path, bool is_dir,
		      struct error *err)
{
	struct stat about;
	int r = make_room(list, path, err);

	if (r < 0)
		return r;
	if (make_node(path, is_dir) < 0 || lstat(path, &about) < 0) {
		r = error_set(err, ERR_SETUP_FAILED, errno, "make mount point '%.400s'", path);
		take_back_room(list);
		return r;
	}
	list->items[0].is_dir = is_dir;
	list->items[0].dev = about.st_dev;
	list->items[0].ino = about.st_ino;
	return 0;
}

int mask_mounts_create(struct mask_mount_list *list, const char *path, bool is_dir,
		       struct error *err)
{
	AUTO(auto_free) char *level = strdup(path);
	size_t length = strlen(path);
	struct stat about;
	int r = 0;

	if (!level)
		return error_set(err, ERR_NOMEM, 0, "mount point");
	if (path[0] != '/')
		return error_set(err, ERR_SETUP_FAILED, 0, "mount point '%.400s' is not absolute",
				 path);
	/* Up to the first ancestor that is there, then down again: cut off a level, give it back. */
	while (stat(level, &about) < 0) {
		char *slash = strrchr(level, '/');

		*slash = '\0';
		if (slash == level)
			break;
	}
	while (r == 0 && strlen(level) < length) {
		level[strlen(level)] = '/';
		r = make_level(list, level, strlen(level) < length || is_dir, err);
	}
	return r;
}

/* ---- removing -------------------------------------------------------------------------- */

static bool has_dot_dot(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, "/..")) != NULL) {
		if (at[3] == '/' || at[3] == '\0')
			return true;
		at += 3;
	}
	return false;
}

static void reclaim_one(const struct mask_mount *mount)
{
	struct stat about;

	if (mount->path[0] != '/' || has_dot_dot(mount->path) || lstat(mount->path, &about) < 0 ||
	    about.st_dev != mount->dev || about.st_ino != mount->ino)
		return;
	if (mount->is_dir && S_ISDIR(about.st_mode))
		(void)rmdir(mount->path);
	else if (!mount->is_dir && S_ISREG(about.st_mode) && about.st_size == 0)
		(void)unlink(mount->path);
}

void mask_mounts_reclaim(const struct mask_mount_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		reclaim_one(&list->items[i]);
}

/* ---- the file -------------------------------------------------------------------------- */

static int write_file(int dir_fd, const struct buf *text)
{
	AUTO(auto_close)
	int fd = openat(dir_fd, NAME ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	size_t done = 0;

	while (fd >= 0 && done < text->size) {
		ssize_t n = write(fd, (const char *)text->data + done, text->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return fd >= 0 && fsync(fd) == 0 && renameat(dir_fd, NAME ".new", dir_fd, NAME) == 0 ? 0
											     : -1;
}

int mask_mounts_save(const struct mask_mount_list *list, const char *dir, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(FILE_BYTES);
	AUTO(auto_close) int dir_fd = -1;
	int r = 0;

	if (list->count == 0)
		return 0;
	mask_mounts_write(list, &text);
	r = buf_check(&text, "list of mount points", err);
	if (r < 0)
		return r;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0 && write_file(dir_fd, &text) == 0)
		return 0;
	r = error_set(err, ERR_SYSTEM, errno, "write '%.400s/" NAME "'", dir);
	if (dir_fd >= 0)
		(void)unlinkat(dir_fd, NAME ".new", 0);
	return r;
}

int mask_mounts_load(struct mask_mount_list *ret_list, const char *dir, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(FILE_BYTES);
	AUTO(auto_close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int fd = -1;
	ssize_t got = 1;

	if (dir_fd >= 0)
		fd = openat(dir_fd, NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	while (fd >= 0 && got > 0) {
		void *space = buf_reserve(&text, 65536);

		got = space ? read(fd, space, 65536) : 0;
		if (got > 0)
			buf_commit(&text, (size_t)got);
	}
	if (fd < 0 || got < 0 || text.failed)
		return 0;
	return mask_mounts_read(ret_list, (const char *)text.data, text.size, err);
}
