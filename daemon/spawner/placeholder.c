/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/placeholder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/placeholderfile.h"
#include "daemon/spawner/quote.h"

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200 /* Linux 6.5: also from file systems that cannot open by handle */
#endif

#define PLACEHOLDER_MODE 0700
#define NAME_BYTES 256 /* NAME_MAX and a NUL */

/* Directory entries that are looked at for a parent that was renamed. */
#define RENAMED_ENTRIES 4096

/* The user may be at work in the same directories; each round ends with something having changed. */
#define MAKE_ROUNDS 16

#define WALK (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* ---- identity ------------------------------------------------------------------------ */

static int open_how(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_PATH | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

static void read_handle(int fd, struct node_identity *identity)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(identity->handle)];
	} space = { .handle.handle_bytes = sizeof(identity->handle) };
	int mount_id = 0;
	int r = name_to_handle_at(fd, "", &space.handle, &mount_id, AT_EMPTY_PATH | AT_HANDLE_FID);

	if (r < 0 && errno == EINVAL) {
		space.handle.handle_bytes = sizeof(identity->handle);
		r = name_to_handle_at(fd, "", &space.handle, &mount_id, AT_EMPTY_PATH);
	}
	if (r < 0 || space.handle.handle_bytes > sizeof(identity->handle))
		return; /* the file system has none; the rest must do */
	identity->handle_bytes = space.handle.handle_bytes;
	identity->handle_type = space.handle.handle_type;
	memcpy(identity->handle, space.bytes + sizeof(struct file_handle),
	       space.handle.handle_bytes);
}

int node_identity_read(int fd, struct node_identity *ret_identity, struct error *err)
{
	struct node_identity identity = { 0 };
	struct statx stx;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &stx) < 0)
		return error_set(err, ERR_SYSTEM, errno, "statx");
	if (fstatfs(fd, &fs) < 0)
		return error_set(err, ERR_SYSTEM, errno, "statfs");
	identity.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	identity.ino = stx.stx_ino;
	if (stx.stx_mask & STATX_BTIME) {
		identity.btime_sec = stx.stx_btime.tv_sec;
		identity.btime_nsec = stx.stx_btime.tv_nsec;
	}
	memcpy(&identity.fsid, &fs.f_fsid, sizeof(identity.fsid));
	read_handle(fd, &identity);
	*ret_identity = identity;
	return 0;
}

/* By file-system id, since device numbers change across mounts; by those where there is no id. */
static bool same_file_system(const struct node_identity *a, const struct node_identity *b)
{
	if (a->fsid != 0 && b->fsid != 0)
		return a->fsid == b->fsid;
	return a->dev == b->dev;
}

bool node_identity_equal(const struct node_identity *a, const struct node_identity *b)
{
	if (!same_file_system(a, b) || a->ino != b->ino || a->btime_sec != b->btime_sec ||
	    a->btime_nsec != b->btime_nsec)
		return false;
	if (a->handle_bytes == 0 || b->handle_bytes == 0)
		return true; /* another kernel may give handles where this one does not */
	return a->handle_bytes == b->handle_bytes && a->handle_type == b->handle_type &&
	       memcmp(a->handle, b->handle, a->handle_bytes) == 0;
}

/* Not before: BTIME is at or after the time in IDENTITY. */
static bool born_since(const struct statx *stx, int64_t sec, uint32_t nsec)
{
	if (!(stx->stx_mask & STATX_BTIME))
		return false;
	return stx->stx_btime.tv_sec > sec ||
	       (stx->stx_btime.tv_sec == sec && stx->stx_btime.tv_nsec >= nsec);
}

/*
 * Whether FD has all marks of a directory that this user made as a placeholder. There may be more in it: the
 * builder of another job is fast.
 */
static bool looks_made_by_us(const struct statx *stx)
{
	/* A set-group-id parent hands that bit down. */
	return S_ISDIR(stx->stx_mode) && stx->stx_uid == geteuid() &&
	       (stx->stx_mode & 0777) == PLACEHOLDER_MODE;
}

/* ---- making -------------------------------------------------------------------------- */

/* Where in PATH the walk is: PATH[0 .. end) is the level NAME, below PARENT_FD. */
struct level {
	int parent_fd;
	char name[NAME_BYTES];
	size_t end;
};

/* Put the component of PATH after END into LEVEL; false when there is none of a possible length. */
static bool level_next(struct level *level, const char *path)
{
	size_t start = level->end;
	size_t length = 0;

	while (path[start] == '/')
		start++;
	length = strcspn(path + start, "/");
	if (length == 0 || length >= sizeof(level->name))
		return false;
	memcpy(level->name, path + start, length);
	level->name[length] = '\0';
	level->end = start + length;
	return true;
}

static int announce_level(const struct level *level, const char *path, enum report_kind kind,
			  int node_fd, placeholder_announce_fn *announce, void *arg,
			  struct error *err)
{
	struct report_placeholder what = { 0 };
	int r = node_identity_read(level->parent_fd, &what.parent, err);

	if (r == 0 && node_fd >= 0)
		r = node_identity_read(node_fd, &what.node, err);
	if (r < 0)
		return r;
	memcpy(what.path, path, level->end);
	return announce(kind, &what, arg, err);
}

/* After mkdir: what now stands there under our name must be what we made. Returns its fd or -1. */
static int open_made(const struct level *level, const struct timespec *since)
{
	AUTO(auto_close)
	int fd = open_how(level->parent_fd, level->name, O_DIRECTORY | O_NOFOLLOW,
			  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	struct statx stx;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) < 0 ||
	    !looks_made_by_us(&stx))
		return -1;
	/*
	 * Somebody swapped it for an older one: theirs, and never to be removed by us. Where no birth tells,
	 * one with directories in it is taken for that; some file systems count no links.
	 */
	if (stx.stx_mask & STATX_BTIME ? !born_since(&stx, since->tv_sec, (uint32_t)since->tv_nsec)
				       : stx.stx_nlink > 2)
		return -1;
	return steal_fd(&fd);
}

/* For want of room, of whatever kind, it can no more be made than recorded. */
static int make_failed(struct error *err, int errnum, const char *path)
{
	bool is_room = errnum == ENOSPC || errnum == EDQUOT || errnum == EROFS ||
		       errnum == EMFILE || errnum == ENFILE;

	return error_set(err, is_room ? ERR_LEDGER_FAILED : ERR_SETUP_FAILED, errnum,
			 "make placeholder %s", quote(path).text);
}

/* The whole file system: then nobody can make anything. */
static bool is_read_only(int fd)
{
	struct statvfs about;

	return fstatvfs(fd, &about) == 0 && (about.f_flag & ST_RDONLY) != 0;
}

/*
 * Make one missing level. Returns 1 when something is there now, 0 when this user cannot make it, 2
 * when the parent went away meanwhile.
 */
static int make_level(const struct level *level, const char *path,
		      placeholder_announce_fn *announce, void *arg, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	struct timespec since;
	int errnum = 0;
	int r = announce_level(level, path, REPORT_PLACEHOLDER_INTENT, -1, announce, arg, err);

	if (r < 0)
		return r;
	/* The clock that file systems stamp with, or one that is behind it. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &since);
	if (mkdirat(level->parent_fd, level->name, PLACEHOLDER_MODE) == 0) {
		fd = open_made(level, &since);
		r = announce_level(level, path,
				   fd >= 0 ? REPORT_PLACEHOLDER_MADE : REPORT_PLACEHOLDER_SKIPPED,
				   fd, announce, arg, err);
		return r < 0 ? r : 1;
	}
	errnum = errno;
	r = announce_level(level, path, REPORT_PLACEHOLDER_SKIPPED, -1, announce, arg, err);
	if (r < 0)
		return r;
	switch (errnum) {
	case EEXIST:
		return 1;
	case EACCES:
	case EPERM:
	case ENAMETOOLONG: /* then nobody can ever make it */
		return 0;
	case ENOENT:
		return 2;
	case EROFS:
		if (is_read_only(level->parent_fd))
			return 0;
		break;
	default:
		break;
	}
	return make_failed(err, errnum, path);
}

/* One walk from the root. Returns 1, 0 as placeholder_make(), 2 to walk again. */
static int make_walk(const char *path, placeholder_announce_fn *announce, void *arg,
		     struct error *err)
{
	AUTO(auto_close) int fd = open_how(AT_FDCWD, "/", O_DIRECTORY, WALK);
	struct level level = { .parent_fd = -1 };
	int r = 0;

	if (fd < 0)
		return make_failed(err, errno, path);
	if (path[1] == '\0')
		return 1; /* the root */
	while (path[level.end] != '\0') {
		AUTO(auto_close) int next = -1;
		bool last = false;

		level.parent_fd = fd;
		if (!level_next(&level, path))
			return 0;
		last = path[level.end] == '\0';
		next = open_how(fd, level.name, last ? O_NOFOLLOW : O_DIRECTORY, WALK);
		if (next < 0 && errno == ENOENT) {
			r = make_level(&level, path, announce, arg, err);
			if (r != 1)
				return r;
			next = open_how(fd, level.name, last ? O_NOFOLLOW : O_DIRECTORY, WALK);
			if (next < 0 && errno == ENOENT)
				return 2;
		}
		if (next < 0) {
			/* Below a file or behind a closed door: nobody can make it as things are. */
			if (errno == ENOTDIR || errno == EACCES || errno == EPERM)
				return 0;
			return make_failed(err, errno, path);
		}
		(void)close(fd);
		fd = steal_fd(&next);
	}
	return 1;
}

int placeholder_make(const char *path, placeholder_announce_fn *announce, void *arg,
		     struct error *err)
{
	int r = 2;

	if (path[0] != '/' || strlen(path) > LIMIT_PATH_BYTES)
		return error_set(err, ERR_SETUP_FAILED, 0, "placeholder %s is no absolute path",
				 quote(path).text);
	for (int round = 0; r == 2 && round < MAKE_ROUNDS; round++)
		r = make_walk(path, announce, arg, err);
	if (r == 2)
		return error_set(err, ERR_SETUP_FAILED, 0,
				 "placeholder %s: its parents keep disappearing", quote(path).text);
	return r;
}

/* ---- removing ------------------------------------------------------------------------ */

static int remove_later(struct error *err, int errnum, const char *path)
{
	return error_set(err, ERR_SYSTEM, errnum, "placeholder %s cannot be removed now",
			 quote(path).text);
}

/*
 * The parent's path is not there any more: 0 when it was deleted, an error when the file system that it
 * lay on is not mounted, so that the placeholder still exists on it.
 */
static int parent_missing(const struct report_placeholder *placeholder, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	char path[sizeof(placeholder->path)];
	struct node_identity ancestor;
	int r = 0;

	memcpy(path, placeholder->path, sizeof(path));
	while (fd < 0) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return remove_later(err, ENOENT, placeholder->path);
		*slash = '\0';
		fd = open_how(AT_FDCWD, path[0] ? path : "/", O_DIRECTORY, WALK);
	}
	r = node_identity_read(fd, &ancestor, err);
	if (r < 0)
		return r;
	if (same_file_system(&ancestor, &placeholder->parent))
		return 0;
	return remove_later(err, ENOENT, placeholder->path);
}

/* Of the directory BASE whatever entry has REL below it as the recorded parent: its descriptor, or -1. */
static int search_entries(const struct node_identity *parent, const char *base, const char *rel,
			  unsigned int *left)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = WALK };
	DIR *dir = fdopendir((int)syscall(SYS_openat2, AT_FDCWD, base, &how, sizeof(how)));
	struct dirent *entry = NULL;
	int result = -1;

	while (dir && result < 0 && *left > 0 && (entry = readdir(dir))) {
		char path[LIMIT_PATH_BYTES + NAME_BYTES];
		AUTO(auto_close) int fd = -1;
		struct node_identity identity;

		--*left;
		if (entry->d_name[0] == '.' && strspn(entry->d_name, ".") == strlen(entry->d_name))
			continue;
		/* The parent itself can be told by its number already. */
		if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    (rel[0] == '\0' && entry->d_ino != parent->ino))
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", entry->d_name, rel);
		fd = open_how(dirfd(dir), path, O_DIRECTORY,
			      WALK | RESOLVE_BENEATH | RESOLVE_NO_XDEV);
		if (fd >= 0 && node_identity_read(fd, &identity, NULL) == 0 &&
		    node_identity_equal(&identity, parent))
			result = steal_fd(&fd);
	}
	if (dir)
		(void)closedir(dir);
	return result;
}

/*
 * The recorded parent was PATH and is not any more: its user renamed it, or a directory above it, perhaps
 * where it was. Looks so far as is cheap; -1: elsewhere, or gone.
 */
static int find_renamed(const struct node_identity *parent, const char *path)
{
	unsigned int left = RENAMED_ENTRIES;
	char base[LIMIT_PATH_BYTES + 1];
	const char *rel = path + strlen(path);

	while (left > 0 && rel > path) {
		const char *name = rel - 1;
		int fd = -1;

		while (name > path && *name != '/')
			name--;
		(void)snprintf(base, sizeof(base), "%.*s", name == path ? 1 : (int)(name - path),
			       path);
		fd = search_entries(parent, base, rel, &left);
		if (fd >= 0)
			return fd;
		rel = name;
	}
	return -1;
}

/* The parent directory, if it is the one that was recorded. Returns 1 with it, 0 to forget, or fails. */
static int open_parent(const struct report_placeholder *placeholder, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	char path[sizeof(placeholder->path)];
	struct node_identity identity;
	char *slash = NULL;
	int r = 0;

	memcpy(path, placeholder->path, sizeof(path));
	slash = strrchr(path, '/');
	if (!slash || slash[1] == '\0')
		return 0;
	*slash = '\0';
	fd = open_how(AT_FDCWD, path[0] ? path : "/", O_DIRECTORY, WALK);
	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			return remove_later(err, errno, placeholder->path);
		*ret_fd = find_renamed(&placeholder->parent, path);
		return *ret_fd >= 0 ? 1 : parent_missing(placeholder, err);
	}
	r = node_identity_read(fd, &identity, err);
	if (r < 0)
		return r;
	if (node_identity_equal(&identity, &placeholder->parent)) {
		*ret_fd = steal_fd(&fd);
		return 1;
	}
	if (!same_file_system(&identity, &placeholder->parent))
		return remove_later(err, ENOENT, placeholder->path);
	*ret_fd = find_renamed(&placeholder->parent, path);
	return *ret_fd >= 0 ? 1 : 0; /* replaced; and ours with it */
}

/*
 * Whether what is at FD is the one that PLACEHOLDER says we made, or were about to. One that was about
 * to be made was made within its maker's life, or never: what this user makes later is his own.
 */
static bool is_ours(const struct placeholder *placeholder, int fd)
{
	const struct report_placeholder *what = &placeholder->what;
	int64_t until = placeholder->since_sec + (LIMIT_SETUP_MS + LIMIT_TEARDOWN_MS) / 1000;
	struct node_identity identity;
	struct statx stx;

	if (what->node.ino != 0 && node_identity_read(fd, &identity, NULL) == 0 &&
	    node_identity_equal(&identity, &what->node))
		return true;
	return placeholder->since_sec != 0 &&
	       statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) == 0 &&
	       (looks_made_by_us(&stx) || placeholder_file_looks_ours(&stx)) &&
	       born_since(&stx, placeholder->since_sec, placeholder->since_nsec) &&
	       stx.stx_btime.tv_sec <= until;
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int placeholder_remove(const struct placeholder *placeholder, struct error *err)
{
	const char *path = placeholder->what.path;
	const char *slash = strrchr(path, '/');
	AUTO(auto_close) int parent_fd = -1;
	AUTO(auto_close) int fd = -1;
	int r = open_parent(&placeholder->what, &parent_fd, err);

	if (r <= 0)
		return r < 0 ? r : PLACEHOLDER_GONE;
	fd = open_how(parent_fd, slash + 1, O_NOFOLLOW,
		      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (fd < 0 && errno == ENOENT)
		return placeholder->what.node.ino == 0
			       ? PLACEHOLDER_GONE
			       : placeholder_file_finish(parent_fd, slash + 1,
							 &placeholder->what.node, err);
	if (fd < 0)
		return errno == ELOOP || errno == EXDEV ? PLACEHOLDER_LEFT
							: remove_later(err, errno, path);
	if (!is_ours(placeholder, fd))
		return PLACEHOLDER_LEFT;
	if (is_file(fd)) {
		struct node_identity node;

		r = node_identity_read(fd, &node, err);
		return r < 0 ? r : placeholder_file_remove(parent_fd, slash + 1, &node, err);
	}
	/* The worst that a race can do here: another empty directory of this very user's goes. */
	if (unlinkat(parent_fd, slash + 1, AT_REMOVEDIR) == 0)
		return PLACEHOLDER_REMOVED;
	if (errno == ENOENT)
		return PLACEHOLDER_GONE;
	if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
		return PLACEHOLDER_LEFT;
	return remove_later(err, errno, path);
}
