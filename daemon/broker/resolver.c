/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/dircache.h"
#include "daemon/broker/lookuprecord.h"
#include "daemon/broker/matching.h"
#include "daemon/broker/protected.h"
#include "daemon/broker/walk.h"

void lookup_path_unpack(struct unpack *unpack, struct lookup_path *ret_path)
{
	uint32_t type;

	ret_path->real = unpack_string(unpack);
	ret_path->existing_bytes = unpack_u32(unpack);
	type = unpack_u32(unpack);
	ret_path->type = type <= NODE_OTHER ? (enum node_type)type : NODE_UNKNOWN;
	ret_path->errnum = (int)unpack_u32(unpack);
	ret_path->dev = unpack_u64(unpack);
	ret_path->ino = unpack_u64(unpack);
	ret_path->link = unpack_string(unpack);
	if (ret_path->link[0] == '\0')
		ret_path->link = NULL;
	ret_path->link_count = unpack_u32(unpack);
	ret_path->links = *unpack;
	if (ret_path->link_count > WALK_LINKS_MAX + 1 ||
	    ret_path->existing_bytes > strlen(ret_path->real))
		unpack->bad = true;
	for (uint32_t i = 0; i < ret_path->link_count && !unpack->bad; i++)
		(void)unpack_string(unpack);
}

static int answer_paths(struct unpack *in, struct buf *out, struct error *err)
{
	AUTO(auto_free) struct walk *walk = calloc(1, sizeof(*walk));
	struct dircache *cache = dircache_new();
	uint32_t count = unpack_u32(in);
	int r = 0;

	if (walk == NULL || cache == NULL) {
		(void)dircache_free(cache);
		return error_set(err, ERR_NOMEM, ENOMEM, "look up paths");
	}
	for (uint32_t i = 0; i < count && r == 0 && !in->bad; i++) {
		const char *path = unpack_string(in);

		if (in->bad)
			break;
		r = dircache_walk(cache, walk, path, err);
		if (r < 0)
			break;
		pack_string(out, walk->real);
		pack_u32(out, (uint32_t)walk->existing_bytes);
		pack_u32(out, walk->type);
		pack_u32(out, (uint32_t)walk->errnum);
		pack_u64(out, walk->dev);
		pack_u64(out, walk->ino);
		pack_string(out, walk->link != NULL ? walk->link : "");
		pack_u32(out, (uint32_t)walk->links.count);
		for (size_t k = 0; k < walk->links.count; k++)
			pack_string(out, walk->links.items[k]);
	}
	walk_deinit(walk);
	(void)dircache_free(cache);
	return r;
}

/* The whole of a regular file, at most MOST bytes; -1 with errno. */
static int read_file(const char *path, size_t most, struct buf *ret_data)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	for (;;) {
		void *room = buf_reserve(ret_data, 4096);
		ssize_t n;

		if (room == NULL) {
			errno = ENOMEM;
			return -1;
		}
		n = read(fd, room, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		buf_commit(ret_data, (size_t)n);
		if (ret_data->size > most) {
			errno = EFBIG;
			return -1;
		}
	}
}

static void answer_read(struct unpack *in, struct buf *out)
{
	const char *path = unpack_string(in);
	uint32_t most = unpack_u32(in);
	struct buf data = BUF_INIT((size_t)most + 8192);

	if (read_file(path, most, &data) < 0) {
		pack_u32(out, (uint32_t)errno);
		pack_bytes(out, "", 0);
	} else {
		pack_u32(out, 0);
		pack_bytes(out, data.data != NULL ? data.data : "", data.size);
	}
	buf_deinit(&data);
}

static bool is_directory(const char *path)
{
	AUTO(auto_close) int fd = walk_open(path, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

/*
 * Make PATH and what is missing above it, for this user alone. No link is followed: the caller has
 * the path from a look-up. Returns 0 or an errno.
 */
static int make_dirs(const char *path)
{
	char at[LIMIT_PATH_BYTES + 1];
	size_t length = strlen(path);

	if (path[0] != '/' || length > LIMIT_PATH_BYTES || path_refusal(path) != NULL)
		return EINVAL;
	if (is_directory(path))
		return 0;
	memcpy(at, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		AUTO(auto_close) int parent = -1;
		AUTO(auto_close) int made = -1;
		char *slash;

		if (at[i] != '/' && at[i] != '\0')
			continue;
		at[i] = '\0';
		made = walk_open(at, O_PATH | O_DIRECTORY);
		if (made < 0 && errno != ENOENT)
			return errno;
		if (made < 0) {
			slash = strrchr(at, '/');
			*slash = '\0';
			parent = walk_open(slash == at ? "/" : at, O_PATH | O_DIRECTORY);
			*slash = '/';
			if (parent < 0)
				return errno;
			if (mkdirat(parent, slash + 1, 0700) < 0 && errno != EEXIST)
				return errno;
			made = walk_open(at, O_PATH | O_DIRECTORY);
			if (made < 0)
				return errno;
		}
		if (i < length)
			at[i] = '/';
	}
	return 0;
}

static void answer_make_dirs(struct unpack *in, struct buf *out)
{
	uint32_t count = unpack_u32(in);

	for (uint32_t i = 0; i < count && !in->bad; i++)
		pack_u32(out, (uint32_t)make_dirs(unpack_string(in)));
}

static int answer_repeat(struct unpack *in, struct buf *out, struct error *err)
{
	bool same = false;
	int r = lookup_record_repeat(in, &same, err);

	pack_u32(out, same ? 1 : 0);
	return r;
}

int resolver_answer(enum lookup_kind kind, const void *values, size_t size, struct buf *out,
		    struct error *err)
{
	struct unpack in = UNPACK_INIT(values, size);
	int r = 0;

	switch (kind) {
	case LOOKUP_PATHS:
		r = answer_paths(&in, out, err);
		break;
	case LOOKUP_READ:
		answer_read(&in, out);
		break;
	case LOOKUP_MAKE_DIRS:
		answer_make_dirs(&in, out);
		break;
	case LOOKUP_PROTECTED:
		r = protected_answer(&in, out, err);
		break;
	case LOOKUP_MATCHING:
		r = matching_answer(&in, out, err);
		break;
	case LOOKUP_REPEAT:
		r = answer_repeat(&in, out, err);
		break;
	}
	if (r == 0)
		r = unpack_end(&in, err);
	if (r == 0)
		r = buf_check(out, "what a look-up found", err);
	return r;
}

/* ---- the child ------------------------------------------------------------------------- */

static bool read_all(int fd, void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, (char *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* One request; false when there will be no more. */
static bool serve_one(int fd, struct buf *in, struct buf *out)
{
	struct lookup_header header;
	struct error err = ERROR_INIT;
	void *values;
	int r;

	if (!read_all(fd, &header, sizeof(header)) || header.size < sizeof(header) ||
	    header.size > RESOLVER_MESSAGE_BYTES)
		return false;
	buf_clear(in);
	buf_clear(out);
	values = buf_reserve(in, header.size - sizeof(header) + 1);
	if (values == NULL || !read_all(fd, values, header.size - sizeof(header)))
		return false;
	if (buf_add(out, &header, sizeof(header)) < 0)
		return false;
	r = resolver_answer((enum lookup_kind)header.kind, values, header.size - sizeof(header),
			    out, &err);
	if (r < 0) {
		buf_clear(out);
		out->failed = false;
		(void)buf_add(out, &header, sizeof(header));
		pack_string(out, err.message);
	}
	header.result = r;
	header.errnum = err.errnum;
	header.size = (uint32_t)out->size;
	memcpy(out->data, &header, sizeof(header));
	return write_all(fd, out->data, out->size);
}

/* Descriptor 3 is all this process keeps. */
static bool leave_everything(int fd)
{
	int null;

	if (fd != 3 && dup2(fd, 3) < 0)
		return false;
	if (syscall(SYS_close_range, 4u, ~0u, 0u) < 0) {
		for (int i = 4; i < 65536; i++)
			(void)close(i);
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return false;
	for (int i = 0; i < 3; i++) {
		if (dup2(null, i) < 0)
			return false;
	}
	(void)close(null);
	return true;
}

static _Noreturn void child_main(int fd, pid_t broker)
{
	struct buf in = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	struct buf out = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	sigset_t none;

	/* Not left over when the broker dies while this process hangs. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != broker)
		_exit(1);
	(void)prctl(PR_SET_NAME, "fsbox-resolver");
	for (int signo = 1; signo < 32; signo++)
		(void)signal(signo, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(077);
	if (!leave_everything(fd))
		_exit(1);
	while (serve_one(3, &in, &out)) {
		/* A rare large batch does not stay for ever in each of the children. */
		if (in.capacity > (1u << 20))
			buf_deinit(&in);
		if (out.capacity > (1u << 20))
			buf_deinit(&out);
	}
	buf_deinit(&in);
	buf_deinit(&out);
	_exit(0);
}

int resolver_fork(int *ret_fd, pid_t *ret_pid, struct error *err)
{
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int pair[2];
	pid_t broker = getpid();
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork a resolver");
	if (pid == 0)
		child_main(theirs, broker);
	*ret_fd = steal_fd(&ours);
	*ret_pid = pid;
	return 0;
}
