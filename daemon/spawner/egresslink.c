/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/egresslink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/identity.h"
#include "daemon/log.h"
#include "daemon/spawner/egressfile.h"

/* The first death costs no pause: the next job starts it again. */
#define RETRY_FIRST_MS 200
#define RETRY_LONGEST_MS 30000

/* One that lived so long has died for a new reason. */
#define STEADY_MS 10000

/* So long it stays without a job. */
#define IDLE_MS 60000

/* Events that are taken before others have their turn. */
#define EVENTS_PER_TURN 32

/* A message for each beginning and end of all jobs that there can be. */
#define QUEUE_MAX ((size_t)2 * LIMIT_EGRESS_JOBS)

struct egresslink_item {
	struct egress_link_message message;
	int fds[EGRESS_LINK_FDS];
	size_t fd_count;
	struct egresslink_item *next; /* egresslink.first, oldest first */
};

/* Both in one write: the other end must be able to take a message whole. */
_Static_assert(sizeof(struct egress_event) <= 4096, "an event is written atomically");

void egresslink_init_take(struct egresslink *link, struct loop *loop, struct children *children,
			  int exec_fd, const struct egress_config *config,
			  egresslink_event_fn *on_event, egresslink_died_fn *on_died, void *arg)
{
	*link = (struct egresslink)EGRESSLINK_INIT;
	link->loop = loop;
	link->children = children;
	link->exec_fd = exec_fd;
	link->config = *config;
	link->config.version = EGRESSOP_VERSION;
	link->on_event = on_event;
	link->on_died = on_died;
	link->arg = arg;
}

void egresslink_set_owner(struct egresslink *link, uid_t uid, gid_t gid)
{
	link->uid = uid;
	link->gid = gid;
}

void egresslink_set_files(struct egresslink *link, const struct jobfiles *jobfiles)
{
	link->jobfiles = jobfiles;
}

bool egresslink_up(const struct egresslink *link)
{
	return link->link_fd >= 0 && link->ready;
}

/* ---- the end -------------------------------------------------------------------------- */

static void drop_first(struct egresslink *link)
{
	struct egresslink_item *item = link->first;

	link->first = item->next;
	if (!link->first)
		link->last = NULL;
	link->queued--;
	for (size_t i = 0; i < item->fd_count; i++)
		(void)close(item->fds[i]);
	free(item);
}

/* Neither is heard nor spoken to any more; the process ends by that, or is ended. */
static void close_all(struct egresslink *link)
{
	loop_remove(link->loop, &link->link_source);
	loop_remove(link->loop, &link->event_source);
	loop_disarm(link->loop, &link->stall);
	auto_close(&link->link_fd);
	auto_close(&link->event_fd);
	link->link_fd = -1;
	link->event_fd = -1;
	link->ready = false;
	while (link->first)
		drop_first(link);
	if (link->file[0] != '\0')
		egressfile_remove(link->jobfiles, link->file);
	link->file[0] = '\0';
}

void egresslink_deinit(struct egresslink *link)
{
	if (!link->loop)
		return;
	loop_disarm(link->loop, &link->idle);
	/* The end of the link is not the end of the jobs: it serves them as long as they live. */
	if (link->jobs > 0)
		link->file[0] = '\0';
	close_all(link);
	child_forget(link->children, &link->child);
	auto_close(&link->exec_fd);
	link->exec_fd = -1;
}

/* It is of no use any more: what follows is for the next one, and the pause before that. */
static void account(struct egresslink *link, int status)
{
	uint64_t now_ms = loop_now_ms();

	close_all(link);
	if (now_ms - link->since_ms > STEADY_MS)
		link->failures = 0;
	link->retry_ms = 0;
	if (link->failures > 0) {
		uint64_t pause_ms = RETRY_FIRST_MS;

		for (unsigned i = 1; i < link->failures && pause_ms < RETRY_LONGEST_MS; i++)
			pause_ms *= 2;
		link->retry_ms = now_ms + pause_ms;
	}
	link->failures++;
	link->on_died(status, link->arg);
}

static void broken(struct egresslink *link, const char *why)
{
	log_write(LOG_ERROR, "fsbox-egress %s; jobs that it served are without network", why);
	child_signal(&link->child, SIGKILL);
	child_forget(link->children, &link->child);
	account(link, SIGKILL);
}

static void on_exit_of_egress(int status, void *arg)
{
	log_write(LOG_ERROR,
		  "fsbox-egress ended with wait status %d; jobs that it served are without network",
		  status);
	account(arg, status);
}

/* ---- hearing -------------------------------------------------------------------------- */

static void on_events(uint32_t events, void *arg)
{
	struct egresslink *link = arg;
	struct egress_event event;
	struct error err = ERROR_INIT;

	(void)events;
	for (int turn = 0; turn < EVENTS_PER_TURN && link->event_fd >= 0; turn++) {
		ssize_t n = read(link->event_fd, &event, sizeof(event));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			/* Without it nothing would be recorded. If that is its end SIGCHLD says more. */
			if (pidfd_alive(link->child.pidfd))
				broken(link, "hung up");
			else
				loop_remove(link->loop, &link->event_source);
			return;
		}
		if (egress_event_check(&event, (size_t)n, &err) < 0) {
			broken(link, "does not speak its language");
			return;
		}
		if (event.kind == EGRESS_EVENT_READY)
			link->ready = true;
		else
			link->on_event(&event, link->arg);
	}
}

/* ---- speaking ------------------------------------------------------------------------- */

/* 1: sent; 0: not now; negative: never. */
static int item_send(const struct egresslink *link, const struct egresslink_item *item)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(item->fds))];
	} control = { 0 };
	struct iovec bytes = { (void *)(uintptr_t)&item->message, sizeof(item->message) };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };

	if (item->fd_count > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(item->fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), item->fds, item->fd_count * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(item->fd_count * sizeof(int));
	}
	if (sendmsg(link->link_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	return errno == EAGAIN ? 0 : -errno;
}

static void on_stall(void *arg)
{
	broken(arg, "does not read what it is sent");
}

static void flush(struct egresslink *link)
{
	bool progress = false;
	int r = 1;

	while (link->first && link->link_fd >= 0 && r > 0) {
		r = item_send(link, link->first);
		if (r < 0) {
			broken(link, "cannot be sent to");
			return;
		}
		if (r > 0) {
			drop_first(link);
			progress = true;
		}
	}
	if (link->link_fd < 0)
		return;
	if (!link->first)
		loop_disarm(link->loop, &link->stall);
	else if (progress || !link->stall.armed)
		loop_arm(link->loop, &link->stall, LIMIT_STALL_MS, on_stall, link);
	(void)loop_change(link->loop, &link->link_source, link->first ? EPOLLOUT : 0, NULL);
}

static void on_link(uint32_t events, void *arg)
{
	struct egresslink *link = arg;

	/* Its process is gone or about to be: SIGCHLD says the rest. */
	if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLOUT))
		loop_remove(link->loop, &link->link_source);
	else
		flush(link);
}

/* FDS are taken. */
static int enqueue_take(struct egresslink *link, const struct egress_link_message *message,
			const int *fds, size_t fd_count, struct error *err)
{
	bool room = link->link_fd >= 0 && link->queued < QUEUE_MAX;
	struct egresslink_item *item = room ? calloc(1, sizeof(*item)) : NULL;

	if (!item) {
		for (size_t i = 0; i < fd_count; i++)
			(void)close(fds[i]);
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "fsbox-egress takes no more jobs");
	}
	item->message = *message;
	item->fd_count = fd_count;
	for (size_t i = 0; i < fd_count; i++)
		item->fds[i] = fds[i];
	if (link->last)
		link->last->next = item;
	else
		link->first = item;
	link->last = item;
	link->queued++;
	flush(link);
	return 0;
}

static struct egress_link_message message_of(enum egress_link_kind kind, uint64_t job)
{
	return (struct egress_link_message){ .size = sizeof(struct egress_link_message),
					     .kind = kind,
					     .job = job };
}

/* ---- the process ---------------------------------------------------------------------- */

struct egress_child {
	const struct egresslink *link;
	int link_fd;
	int event_fd;
	int file_fd; /* or -1 */
};

static int egress_main(void *arg)
{
	const struct egress_child *child = arg;
	const struct egresslink *link = child->link;
	const int without_file[] = { child->link_fd, child->event_fd, link->exec_fd };
	const int with_file[] = { child->link_fd, child->event_fd, child->file_fd, link->exec_fd };
	const int *keep = child->file_fd >= 0 ? with_file : without_file;
	int count = child->file_fd >= 0 ? 4 : 3;
	int exec_fd = CHILD_FIRST_FD + count - 1;
	const struct rlimit most = { EGRESSFILE_BYTES, EGRESSFILE_BYTES };
	struct identity identity = { .uid = link->uid, .gid = link->gid };
	char name[] = "fsbox-egress";
	char *argv[] = { name, NULL };
	char *envp[] = { NULL };

	if (child_arrange_fds(keep, (size_t)count, true, NULL) < 0 || setsid() < 0 ||
	    chdir("/") < 0 || setrlimit(RLIMIT_FSIZE, &most) < 0)
		return 1;
	if (link->uid != (uid_t)-1 && identity_become(&identity, NULL) < 0)
		return 1;
	if (fcntl(exec_fd, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	(void)syscall(SYS_execveat, exec_fd, "", argv, envp, AT_EMPTY_PATH);
	return 127;
}

_Static_assert(CHILD_FIRST_FD == EGRESS_FD_LINK && CHILD_FIRST_FD + 1 == EGRESS_FD_EVENTS &&
		       CHILD_FIRST_FD + 2 == EGRESS_FD_FILE,
	       "child_arrange_fds() puts them in place");

/* Ours in @link, theirs in RET_*. */
static int make_ends(struct egresslink *link, int *ret_link_fd, int *ret_event_fd,
		     struct error *err)
{
	int sockets[2];
	int pipes[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	link->link_fd = sockets[0];
	*ret_link_fd = sockets[1];
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	link->event_fd = pipes[0];
	*ret_event_fd = pipes[1];
	/* Nothing can be sent to us: no descriptor of anybody's choice ever arrives here. */
	if (shutdown(link->link_fd, SHUT_RD) < 0 || fcntl(link->event_fd, F_SETFL, O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare the link to fsbox-egress");
	return 0;
}

static int start_process(struct egresslink *link, struct error *err)
{
	AUTO(auto_close) int their_link_fd = -1;
	AUTO(auto_close) int their_event_fd = -1;
	AUTO(auto_close) int file_fd = -1;
	struct egress_link_message config = message_of(EGRESS_CONFIG, 0);
	struct egress_child in_child;
	int r = make_ends(link, &their_link_fd, &their_event_fd, err);

	if (r == 0 && link->jobfiles)
		r = egressfile_make(link->jobfiles, link->file, &file_fd, err);
	if (r < 0)
		return r;
	in_child = (struct egress_child){ link, their_link_fd, their_event_fd, file_fd };
	if ((r = loop_add(link->loop, &link->link_source, link->link_fd, 0, on_link, link, err)) <
		    0 ||
	    (r = loop_add(link->loop, &link->event_source, link->event_fd, EPOLLIN, on_events, link,
			  err)) < 0 ||
	    (r = child_start(link->children, &link->child, egress_main, &in_child,
			     on_exit_of_egress, link, err)) < 0)
		return r;
	link->since_ms = loop_now_ms();
	config.u.config = link->config;
	return enqueue_take(link, &config, NULL, 0, err);
}

static int start(struct egresslink *link, struct error *err)
{
	uint64_t now_ms = loop_now_ms();
	int r = 0;

	if (link->link_fd >= 0)
		return 0;
	if (link->exec_fd < 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0,
				 "fsbox-egress is not installed: there is no network but 'none' and"
				 " 'host'");
	if (link->child.pid > 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0,
				 "fsbox-egress is ending; try again");
	if (link->retry_ms > now_ms)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0,
				 "fsbox-egress ended %u times in a row; it is started again in %llu"
				 " ms",
				 link->failures, (unsigned long long)(link->retry_ms - now_ms));
	r = start_process(link, err);
	if (r < 0) {
		child_forget(link->children, &link->child);
		close_all(link);
	}
	return r;
}

/* The end of its link is its end. */
static void on_idle(void *arg)
{
	struct egresslink *link = arg;

	if (link->jobs > 0 || link->link_fd < 0)
		return;
	child_forget(link->children, &link->child);
	close_all(link);
}

/* ---- jobs ----------------------------------------------------------------------------- */

int egresslink_job(struct egresslink *link, uint64_t job, uid_t uid, int policy_fd, int *ret_job_fd,
		   struct error *err)
{
	struct egress_link_message message = message_of(EGRESS_JOB, job);
	AUTO(auto_close) int policy = fcntl(policy_fd, F_DUPFD_CLOEXEC, 0);
	AUTO(auto_close) int ours = -1;
	int ends[2];
	int r = start(link, err);

	if (r < 0)
		return r;
	if (policy < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "a job's link to fsbox-egress");
	ours = ends[0];
	message.u.job.uid = uid;
	message.u.job.max_connections = LIMIT_EGRESS_CONNECTIONS_PER_JOB;
	r = enqueue_take(link, &message, (const int[]){ steal_fd(&policy), ends[1] }, 2, err);
	if (r < 0)
		return r;
	link->jobs++;
	loop_disarm(link->loop, &link->idle);
	*ret_job_fd = steal_fd(&ours);
	return 0;
}

void egresslink_end(struct egresslink *link, uint64_t job)
{
	const struct egress_link_message message = message_of(EGRESS_END, job);

	if (link->jobs > 0 && --link->jobs == 0)
		loop_arm(link->loop, &link->idle, IDLE_MS, on_idle, link);
	/* That the job's pid 1 is gone says the same. */
	if (link->link_fd >= 0)
		(void)enqueue_take(link, &message, NULL, 0, NULL);
}
