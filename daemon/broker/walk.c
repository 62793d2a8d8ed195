/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"

enum node_type walk_node_type(uint32_t mode)
{
	if (S_ISDIR(mode))
		return NODE_DIRECTORY;
	if (S_ISREG(mode))
		return NODE_FILE;
	if (S_ISSOCK(mode))
		return NODE_SOCKET;
	return NODE_OTHER;
}

/* Part by part, for kernels and filters without openat2(2). */
static int open_by_parts(const char *path, int flags)
{
	AUTO(auto_close) int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *at = path + strspn(path, "/");
	char name[NAME_MAX + 1];

	if (dir < 0)
		return -1;
	if (*at == '\0')
		return openat(dir, ".", flags | O_CLOEXEC);
	for (;;) {
		size_t length = strcspn(at, "/");
		const char *rest = at + length + strspn(at + length, "/");
		struct stat st;
		int fd;

		if (length > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, at, length);
		name[length] = '\0';
		if (*rest != '\0') {
			fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		} else {
			fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0 || !(flags & O_PATH))
				return fd;
		}
		if (fd < 0)
			return -1;
		if (fstat(fd, &st) < 0 || S_ISLNK(st.st_mode)) {
			(void)close(fd);
			errno = ELOOP;
			return -1;
		}
		if (*rest == '\0')
			return fd;
		(void)close(dir);
		dir = fd;
		at = rest;
	}
}

int walk_open(const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open_by_parts(path, flags);
	return (int)fd;
}

void walk_deinit(struct walk *walk)
{
	if (walk == NULL)
		return;
	string_list_deinit(&walk->links);
	memset(&walk->links, 0, sizeof(walk->links));
}

static void note_node(struct walk *walk, int fd)
{
	struct stat st;

	/* On an O_PATH descriptor; may block, which is what resolver children are for. */
	if (fstat(fd, &st) < 0) {
		walk->errnum = errno;
		walk->type = NODE_UNKNOWN;
		return;
	}
	walk->type = walk_node_type(st.st_mode);
	walk->dev = st.st_dev;
	walk->ino = st.st_ino;
	walk->existing_bytes = strlen(walk->real);
}

/*
 * The state of a slow walk. @real holds what was walked so far, a canonical directory that @dir is
 * open on, or text below the last that exists once @absent is set. @rest is what is still to be
 * walked; link texts are put in front of it.
 */
struct walker {
	struct walk *walk;
	int dir;
	bool absent;
	bool at_end; /* the last component was a link: what follows is where that leads */
	size_t end_link;
	unsigned followed;
	size_t real_bytes;
	char rest[2 * LIMIT_PATH_BYTES + 2];
};

static void stop_absent(struct walker *walker, int errnum)
{
	struct walk *walk = walker->walk;

	if (walker->absent)
		return;
	walker->absent = true;
	walk->errnum = errnum;
	walk->existing_bytes = walker->real_bytes > 0 ? walker->real_bytes : 1;
	walk->type = errnum == ENOENT || errnum == ENOTDIR ? NODE_ABSENT : NODE_UNKNOWN;
}

static int append_name(struct walker *walker, const char *name, size_t length, struct error *err)
{
	struct walk *walk = walker->walk;

	if (walker->real_bytes + 1 + length > LIMIT_PATH_BYTES)
		return error_set(err, ERR_INVALID, ENAMETOOLONG, "where a link leads");
	walk->real[walker->real_bytes] = '/';
	memcpy(walk->real + walker->real_bytes + 1, name, length);
	walker->real_bytes += 1 + length;
	walk->real[walker->real_bytes] = '\0';
	return 0;
}

/* `..`: up as text, which is exact since the text has no link in it; then open what is there. */
static void go_up(struct walker *walker)
{
	struct walk *walk = walker->walk;

	while (walker->real_bytes > 0 && walk->real[--walker->real_bytes] != '/')
		continue;
	walk->real[walker->real_bytes] = '\0';
	if (walker->absent) {
		/* Through something that is not there: only as text. What exists is not below. */
		if (walk->existing_bytes > walker->real_bytes)
			walk->existing_bytes = walker->real_bytes > 0 ? walker->real_bytes : 1;
		return;
	}
	if (walker->dir >= 0)
		(void)close(walker->dir);
	walker->dir = walk_open(walker->real_bytes > 0 ? walk->real : "/", O_PATH | O_DIRECTORY);
	if (walker->dir < 0)
		stop_absent(walker, errno);
}

/* NAME in walker->dir is a link: put where it leads in front of the rest. */
static int follow(struct walker *walker, int link_fd, const char *name, size_t length,
		  struct error *err)
{
	char node[LIMIT_PATH_BYTES + 1];
	char target[LIMIT_PATH_BYTES + 1];
	size_t rest_bytes = strlen(walker->rest);
	ssize_t n;
	int r;

	if (walker->real_bytes + 1 + length > LIMIT_PATH_BYTES) {
		stop_absent(walker, ENAMETOOLONG);
		return 0;
	}
	memcpy(node, walker->walk->real, walker->real_bytes);
	node[walker->real_bytes] = '/';
	memcpy(node + walker->real_bytes + 1, name, length);
	node[walker->real_bytes + 1 + length] = '\0';
	r = string_list_add(&walker->walk->links, node, err);
	if (r < 0)
		return r;
	if (!walker->at_end && walker->rest[strspn(walker->rest, "/")] == '\0') {
		walker->at_end = true;
		walker->end_link = walker->walk->links.count - 1;
	}
	if (++walker->followed > WALK_LINKS_MAX) {
		stop_absent(walker, ELOOP);
		return append_name(walker, name, length, err);
	}
	n = readlinkat(link_fd, "", target, sizeof(target));
	if (n <= 0 || (size_t)n >= sizeof(target) ||
	    (size_t)n + 1 + rest_bytes >= sizeof(walker->rest)) {
		stop_absent(walker, n < 0 ? errno : ENAMETOOLONG);
		return append_name(walker, name, length, err);
	}
	memmove(walker->rest + n + 1, walker->rest, rest_bytes + 1);
	memcpy(walker->rest, target, (size_t)n);
	walker->rest[n] = '/';
	if (target[0] != '/')
		return 0;
	walker->real_bytes = 0;
	walker->walk->real[0] = '\0';
	(void)close(walker->dir);
	walker->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walker->dir >= 0 ? 0 : error_set(err, ERR_SYSTEM, errno, "open '/'");
}

static int step(struct walker *walker, const char *name, size_t length, struct error *err)
{
	char part[NAME_MAX + 1];
	struct stat st;
	int fd;
	int r;

	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		go_up(walker);
		return 0;
	}
	if (!walker->absent && length > NAME_MAX)
		stop_absent(walker, ENAMETOOLONG);
	if (walker->absent)
		return append_name(walker, name, length, err);
	memcpy(part, name, length);
	part[length] = '\0';
	fd = openat(walker->dir, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			return error_set(err, ERR_SYSTEM, errno, "open");
		stop_absent(walker, errno);
		return append_name(walker, name, length, err);
	}
	if (fstat(fd, &st) < 0) {
		stop_absent(walker, errno);
		r = append_name(walker, name, length, err);
	} else if (S_ISLNK(st.st_mode) && path_covers("/proc", walker->walk->real)) {
		stop_absent(walker, ELOOP);
		r = append_name(walker, name, length, err);
	} else if (S_ISLNK(st.st_mode)) {
		r = follow(walker, fd, part, length, err);
	} else {
		r = append_name(walker, name, length, err);
		(void)close(walker->dir);
		walker->dir = steal_fd(&fd);
	}
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int walk_slowly(struct walk *walk, const char *path, struct error *err)
{
	struct walker walker = { .walk = walk, .dir = -1 };
	int r = 0;

	walker.dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (walker.dir < 0)
		return error_set(err, ERR_SYSTEM, errno, "open '/'");
	memcpy(walker.rest, path, strlen(path) + 1);
	while (r == 0) {
		char name[LIMIT_PATH_BYTES + 1];
		size_t skip = strspn(walker.rest, "/");
		size_t length = strcspn(walker.rest + skip, "/");

		if (length == 0)
			break;
		if (length > LIMIT_PATH_BYTES) {
			r = error_set(err, ERR_INVALID, ENAMETOOLONG, "where a link leads");
			break;
		}
		memcpy(name, walker.rest + skip, length);
		memmove(walker.rest, walker.rest + skip + length,
			strlen(walker.rest + skip + length) + 1);
		r = step(&walker, name, length, err);
	}
	if (r == 0 && walker.real_bytes == 0)
		memcpy(walk->real, "/", 2);
	if (r == 0 && !walker.absent)
		note_node(walk, walker.dir);
	if (walker.at_end)
		walk->link = walk->links.items[walker.end_link];
	if (walker.dir >= 0)
		(void)close(walker.dir);
	return r;
}

int walk_path(struct walk *ret_walk, const char *path, struct error *err)
{
	size_t length = strlen(path);
	int fd;

	walk_deinit(ret_walk);
	ret_walk->real[0] = '\0';
	ret_walk->existing_bytes = 1;
	ret_walk->type = NODE_UNKNOWN;
	ret_walk->errnum = 0;
	ret_walk->link = NULL;
	ret_walk->dev = 0;
	ret_walk->ino = 0;
	if (path[0] != '/')
		return error_set(err, ERR_INVALID, 0, "a path to look up is not absolute");
	if (length > LIMIT_PATH_BYTES)
		return error_set(err, ERR_INVALID, ENAMETOOLONG, "a path to look up");

	/* The usual case in one system call: everything is there and nothing is a link. */
	if (path_refusal(path) != NULL || (length > 1 && path[length - 1] == '/'))
		return walk_slowly(ret_walk, path, err);
	fd = walk_open(path, O_PATH);
	if (fd < 0)
		return walk_slowly(ret_walk, path, err);
	memcpy(ret_walk->real, path, length + 1);
	note_node(ret_walk, fd);
	(void)close(fd);
	return 0;
}
