/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/kernelmounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"

/* 100,000 mounts of the longest paths would be more; nobody has that. */
#define MOUNTINFO_BYTES_MAX (64u << 20)

static const char *const kernel_types[] = {
	"proc",        "sysfs", "cgroup",     "cgroup2",   "devtmpfs", "debugfs",
	"tracefs",     "bpf",   "securityfs", "configfs",  "pstore",   "efivarfs",
	"binfmt_misc", "nsfs",  "fusectl",    "selinuxfs", "mqueue",   "resctrl",
};

static const char *const usual_places[] = { "/proc", "/sys", "/dev" };

static bool is_kernel_type(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_types); i++) {
		if (strcmp(type, kernel_types[i]) == 0)
			return true;
	}
	return false;
}

static bool is_usual(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual_places); i++) {
		if (path_covers(usual_places[i], path))
			return true;
	}
	return false;
}

/* \040 and the like, in place. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text != '\0'; out++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*out = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 4;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* Mount point and type of one line, cut out of it; false when it is none. */
static bool split_line(char *line, char **ret_path, char **ret_type)
{
	char *rest = line;
	char *path = NULL;

	for (int field = 0; field < 5; field++) {
		path = strsep(&rest, " ");
		if (path == NULL)
			return false;
	}
	rest = rest != NULL ? strstr(rest, " - ") : NULL;
	if (rest == NULL)
		return false;
	rest += 3;
	*ret_type = strsep(&rest, " ");
	unescape(path);
	*ret_path = path;
	return *ret_type != NULL;
}

int kernelmounts_parse(struct string_list *paths, char *text, struct error *err)
{
	char *line;
	int r = 0;

	while (r == 0 && (line = strsep(&text, "\n")) != NULL) {
		char *path;
		char *type;

		if (!split_line(line, &path, &type) || !is_kernel_type(type) || is_usual(path) ||
		    path_refusal(path) != NULL)
			continue;
		r = string_list_add(paths, path, err);
	}
	string_list_sort_unique(paths);
	return r;
}

static int read_mountinfo(int fd, struct buf *text, struct error *err)
{
	off_t at = 0;

	for (;;) {
		char *room = buf_reserve(text, 65536);
		ssize_t n;

		if (room == NULL)
			return error_set(err, ERR_NOMEM, 0, "the list of mounts");
		n = pread(fd, room, 65536, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, ERR_SYSTEM, errno, "read '/proc/self/mountinfo'");
		if (n == 0)
			return 0;
		buf_commit(text, (size_t)n);
		at += n;
	}
}

/* The kernel marks the file with POLLPRI once, when mounts changed since the last poll. */
static bool is_stale(const struct kernelmounts *mounts)
{
	struct pollfd pfd = { .fd = mounts->fd, .events = POLLPRI };

	return poll(&pfd, 1, 0) != 0;
}

int kernelmounts_refresh(struct kernelmounts *mounts, struct error *err)
{
	struct buf text = BUF_INIT(MOUNTINFO_BYTES_MAX);
	struct string_list paths = { 0 };
	int r;

	if (mounts->fd >= 0 && !is_stale(mounts))
		return 0;
	if (mounts->fd < 0) {
		mounts->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		if (mounts->fd < 0)
			return error_set(err, ERR_SYSTEM, errno, "open '/proc/self/mountinfo'");
		(void)is_stale(mounts); /* what is read now is newer than this */
	}
	r = read_mountinfo(mounts->fd, &text, err);
	if (r == 0 && text.data != NULL)
		r = kernelmounts_parse(&paths, text.data, err);
	buf_deinit(&text);
	if (r < 0) {
		/* Read again next time, whatever happens meanwhile. */
		string_list_deinit(&paths);
		auto_close(&mounts->fd);
		mounts->fd = -1;
		return r;
	}
	string_list_deinit(&mounts->paths);
	mounts->paths = paths;
	mounts->generation++;
	return 0;
}

void kernelmounts_deinit(struct kernelmounts *mounts)
{
	if (mounts == NULL)
		return;
	if (mounts->fd > 0)
		(void)close(mounts->fd);
	mounts->fd = -1;
	string_list_deinit(&mounts->paths);
}
