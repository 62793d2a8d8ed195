/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

static const struct {
	const char *file;
	const char *name;
} places[PLACE_COUNT] = {
	[PLACE_USER] = { "ns/user", "user namespace" },
	[PLACE_MOUNT] = { "ns/mnt", "mount namespace" },
	[PLACE_PID] = { "ns/pid", "pid namespace" },
	[PLACE_ROOT] = { "root", "root directory" },
};

/* PLACE_COUNT when all were read, else the first that was not. */
static enum sender_place read_places(int proc_fd, struct sender_places *ret_places)
{
	struct stat st;

	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if (fstatat(proc_fd, places[i].file, &st, 0) < 0)
			return (enum sender_place)i;
		ret_places->place[i].dev = st.st_dev;
		ret_places->place[i].ino = st.st_ino;
	}
	return PLACE_COUNT;
}

int sender_own_places(struct sender_places *ret_places, struct error *err)
{
	AUTO(auto_close) int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	enum sender_place failed;

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open '/proc/self'");
	failed = read_places(fd, ret_places);
	if (failed != PLACE_COUNT)
		return error_set(err, ERR_SYSTEM, errno, "read our own %s", places[failed].name);
	return 0;
}

static bool is_alive(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 0;
}

int sender_init_take(struct sender *sender, pid_t pid, uid_t uid, int pidfd, struct error *err)
{
	char path[64];

	*sender = (struct sender)SENDER_INIT;
	sender->pid = pid;
	sender->uid = uid;
	sender->pidfd = pidfd;
	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	sender->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sender->proc_fd < 0)
		return error_set(err, ERR_CONFINED_PEER, errno, "open '%s' of the client", path);
	/* Alive after the open: the pid was not used again before it, so the directory is its own. */
	if (!is_alive(pidfd))
		return error_set(err, ERR_CONFINED_PEER, 0, "the client that connected is gone");
	return 0;
}

void sender_deinit(struct sender *sender)
{
	if (sender == NULL)
		return;
	auto_close(&sender->pidfd);
	auto_close(&sender->proc_fd);
	*sender = (struct sender)SENDER_INIT;
}

int sender_check(const struct sender *sender, const struct channel_sender *who,
		 const struct sender_places *ours, struct error *err)
{
	struct sender_places theirs;
	enum sender_place failed;

	if (who->pid != sender->pid)
		return error_set(err, ERR_CONFINED_PEER, 0,
				 "a frame from process %d on the connection of process %d: connect"
				 " yourself",
				 (int)who->pid, (int)sender->pid);
	if (who->uid != sender->uid)
		return error_set(err, ERR_CONFINED_PEER, 0,
				 "a frame from uid %u on the connection of uid %u", who->uid,
				 sender->uid);
	if (!is_alive(sender->pidfd))
		return error_set(err, ERR_CONFINED_PEER, 0, "the client that connected is gone");
	failed = read_places(sender->proc_fd, &theirs);
	if (failed != PLACE_COUNT)
		return error_set(err, ERR_CONFINED_PEER, errno, "read the client's %s",
				 places[failed].name);
	for (unsigned i = 0; i < PLACE_COUNT; i++) {
		if (theirs.place[i].dev != ours->place[i].dev ||
		    theirs.place[i].ino != ours->place[i].ino)
			return error_set(err, ERR_CONFINED_PEER, 0,
					 "the client is in another %s than we are", places[i].name);
	}
	return 0;
}
