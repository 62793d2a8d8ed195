/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/recorderlink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/identity.h"
#include "daemon/log.h"
#include "daemon/spawner/reportin.h"

#define RESTART_FIRST_MS 200
#define RESTART_LONGEST_MS 30000
#define STEADY_MS 60000

struct recorderlink_event {
	struct event_message message;
	struct recorderlink_event *next; /* recorderlink.first, oldest first */
};

int recorderlink_init_take(struct recorderlink *link, struct loop *loop, struct children *children,
			   int exec_fd, const char *log_dir, uint64_t max_bytes, struct error *err)
{
	size_t size = strlen(log_dir) + sizeof("/events.jsonl");

	*link = (struct recorderlink)RECORDERLINK_INIT;
	link->loop = loop;
	link->children = children;
	link->exec_fd = exec_fd;
	link->max_bytes = max_bytes;
	link->events_path = malloc(size);
	if (!link->events_path)
		return error_set(err, ERR_NOMEM, 0, "remember the path of the events");
	(void)snprintf(link->events_path, size, "%s/events.jsonl", log_dir);
	return 0;
}

void recorderlink_set_owner(struct recorderlink *link, uid_t uid, gid_t gid)
{
	link->uid = uid;
	link->gid = gid;
	link->group_readable = true;
}

static void drop_first(struct recorderlink *link)
{
	struct recorderlink_event *event = link->first;

	link->first = event->next;
	if (!link->first)
		link->last = NULL;
	link->queued--;
	free(event);
}

/* What is of one recorder alone. The pipe stays, with what it did not read. */
static void close_ends(struct recorderlink *link)
{
	if (link->loop) {
		loop_remove(link->loop, &link->source);
		loop_remove(link->loop, &link->ack_source);
	}
	auto_close(&link->control_fd);
	auto_close(&link->ack_fd);
	link->control_fd = -1;
	link->ack_fd = -1;
	link->ack_used = 0;
}

/* ---- who waits ------------------------------------------------------------------------ */

static void look_for_patience(struct recorderlink *link);

void recorderlink_forget(struct recorderlink *link, struct recorder_wait *wait)
{
	struct recorder_wait **at = &link->waits;

	while (*at && *at != wait)
		at = &(*at)->next;
	if (*at)
		*at = wait->next;
	*wait = (struct recorder_wait){ .waits = false };
	look_for_patience(link);
}

/* Each is out of the list before it is told: what it then does may change the list. */
static void tell_waits(struct recorderlink *link, uint64_t first, uint64_t last, bool durable)
{
	struct recorder_wait *wait = link->waits;

	while (wait) {
		recorder_wait_fn *fn = wait->fn;
		void *arg = wait->arg;

		if (wait->seq < first || wait->seq > last) {
			wait = wait->next;
			continue;
		}
		recorderlink_forget(link, wait);
		fn(arg, durable);
		wait = link->waits;
	}
}

/* Whoever waited too long. The oldest is the last of the list. */
static void on_patience(void *arg)
{
	struct recorderlink *link = arg;
	uint64_t now_ms = loop_now_ms();
	struct recorder_wait *wait = link->waits;

	while (wait) {
		recorder_wait_fn *fn = wait->fn;
		void *fn_arg = wait->arg;

		if (wait->due_ms > now_ms) {
			wait = wait->next;
			continue;
		}
		recorderlink_forget(link, wait);
		fn(fn_arg, false);
		wait = link->waits;
	}
	look_for_patience(link);
}

static void look_for_patience(struct recorderlink *link)
{
	uint64_t now_ms = loop_now_ms();
	uint64_t due_ms = 0;

	for (const struct recorder_wait *wait = link->waits; wait; wait = wait->next)
		if (due_ms == 0 || wait->due_ms < due_ms)
			due_ms = wait->due_ms;
	if (!link->loop)
		return;
	if (due_ms == 0)
		loop_disarm(link->loop, &link->patience);
	else
		loop_arm(link->loop, &link->patience, due_ms > now_ms ? due_ms - now_ms : 0,
			 on_patience, link);
}

/* A whole number of acknowledgements, or the beginning of one. False: garbage, or the end. */
static bool read_acks(struct recorderlink *link)
{
	for (;;) {
		ssize_t got = read(link->ack_fd, (char *)&link->ack + link->ack_used,
				   sizeof(link->ack) - link->ack_used);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (got <= 0)
			return false;
		link->ack_used += (size_t)got;
		if (link->ack_used < sizeof(link->ack))
			continue;
		link->ack_used = 0;
		if (recorder_ack_check(&link->ack, NULL) < 0)
			return false;
		tell_waits(link, link->ack.first, link->ack.last, link->ack.durable != 0);
		if (link->ack_fd < 0)
			return true; /* it died of what was told */
	}
}

static void broken(struct recorderlink *link);

static void on_ack(uint32_t events, void *arg)
{
	(void)events;
	if (!read_acks(arg))
		broken(arg);
}

void recorderlink_deinit(struct recorderlink *link)
{
	close_ends(link);
	/* End of the pipe is how the recorder learns to sync and end: it is not killed. */
	auto_close(&link->pipe_fd);
	auto_close(&link->read_fd);
	link->pipe_fd = -1;
	link->read_fd = -1;
	while (link->first)
		drop_first(link);
	if (link->loop) {
		loop_disarm(link->loop, &link->restart);
		loop_disarm(link->loop, &link->patience);
	}
	if (link->children)
		child_forget(link->children, &link->child);
	if (link->exec_fd >= 0)
		(void)close(link->exec_fd);
	link->exec_fd = -1;
	free(link->events_path);
	link->events_path = NULL;
}

/* In the child, whose ends of pipes and socket stand in @link. */
static int recorder_main(void *arg)
{
	const struct recorderlink *link = arg;
	const int keep[] = { link->read_fd, link->control_fd, link->ack_fd, link->exec_fd };
	const int exec_fd = CHILD_FIRST_FD + (int)ARRAY_SIZE(keep) - 1;
	struct identity identity = { .uid = link->uid, .gid = link->gid };
	char max_bytes[32];
	char name[] = "fsbox-recorder";
	char events[] = "--events";
	char max[] = "--max-bytes";
	char linked[] = "--linked";
	char readable[] = "--group-readable";
	char *argv[] = { name,
			 events,
			 link->events_path,
			 max,
			 max_bytes,
			 linked,
			 link->group_readable ? readable : NULL,
			 NULL };
	char *envp[] = { NULL };

	(void)snprintf(max_bytes, sizeof(max_bytes), "%llu", (unsigned long long)link->max_bytes);
	if (child_arrange_fds(keep, ARRAY_SIZE(keep), true, NULL) < 0 || setsid() < 0 ||
	    chdir("/") < 0)
		return 1;
	if (link->uid != (uid_t)-1 && identity_become(&identity, NULL) < 0)
		return 1;
	if (fcntl(exec_fd, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	(void)syscall(SYS_execveat, exec_fd, "", argv, envp, AT_EMPTY_PATH);
	return 127;
}

static void start(struct recorderlink *link);

static void on_restart(void *arg)
{
	struct recorderlink *link = arg;

	if (link->first)
		start(link);
}

static void later(struct recorderlink *link)
{
	uint64_t pause_ms = RESTART_FIRST_MS;

	if (link->since_ms != 0 && loop_now_ms() - link->since_ms > STEADY_MS)
		link->failures = 0;
	for (unsigned i = 0; i < link->failures && pause_ms < RESTART_LONGEST_MS; i++)
		pause_ms *= 2;
	link->failures++;
	loop_arm(link->loop, &link->restart, pause_ms, on_restart, link);
}

static void on_exit_of_recorder(int status, void *arg)
{
	struct recorderlink *link = arg;
	struct event_message event = { 0 };

	close_ends(link);
	log_write(LOG_ERROR, "fsbox-recorder ended with wait status %d; events wait for the next",
		  status);
	later(link);
	tell_waits(link, 0, UINT64_MAX, false);
	(void)snprintf(event.detail, sizeof(event.detail), "fsbox-recorder");
	recorderlink_send(link, EVENT_ROLE_DIED, &event);
}

/* Nobody reads any more: what waits stays for the next one, SIGCHLD brings the rest. */
static void broken(struct recorderlink *link)
{
	close_ends(link);
	child_signal(&link->child, SIGKILL);
}

static void flush(struct recorderlink *link)
{
	while (link->first && recorderlink_up(link)) {
		/* One event is one write below PIPE_BUF: all of it or nothing. */
		ssize_t wrote =
			write(link->pipe_fd, &link->first->message, sizeof(link->first->message));

		if (wrote < 0 && errno == EAGAIN)
			break;
		if (wrote < 0) {
			broken(link);
			return;
		}
		drop_first(link);
	}
	if (recorderlink_up(link))
		(void)loop_change(link->loop, &link->source, link->first ? EPOLLOUT : 0, NULL);
}

static void on_writable(uint32_t events, void *arg)
{
	struct recorderlink *link = arg;

	if ((events & EPOLLERR) != 0)
		broken(link);
	else
		flush(link);
}

_Static_assert(sizeof(struct event_message) <= 4096, "an event is written atomically");

/* The ends of what lies between us and one recorder, beside the pipe for events: ours and his. */
struct ends {
	int ours[2];
	int theirs[2];
};

static void ends_close(struct ends *ends)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends->ours); i++) {
		auto_close(&ends->ours[i]);
		auto_close(&ends->theirs[i]);
	}
}

static int ends_make(struct ends *ends, struct error *err)
{
	int control[2];

	if (child_pipe(&ends->ours[1], &ends->theirs[1], CHILD_PIPE_READ_OURS, err) < 0)
		return -ERR_SYSTEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	ends->ours[0] = control[0];
	ends->theirs[0] = control[1];
	/* Nothing comes back this way: a socket could bring descriptors (R7). */
	if (shutdown(control[0], SHUT_RD) < 0 ||
	    fcntl(ends->theirs[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare the way to the recorder");
	return 0;
}

/* The pipe for events: not made again when a recorder dies. */
static int make_pipe(struct recorderlink *link, struct error *err)
{
	AUTO(auto_close) int read_fd = -1;
	AUTO(auto_close) int write_fd = -1;

	if (child_pipe(&read_fd, &write_fd, CHILD_PIPE_WRITE_OURS, err) < 0)
		return -ERR_SYSTEM;
	link->read_fd = steal_fd(&read_fd);
	link->pipe_fd = steal_fd(&write_fd);
	return 0;
}

static int start_process(struct recorderlink *link, struct error *err)
{
	AUTO(ends_close) struct ends ends = { { -1, -1 }, { -1, -1 } };
	struct recorderlink in_child;
	int r = 0;

	if (link->pipe_fd < 0 && (r = make_pipe(link, err)) < 0)
		return r;
	r = ends_make(&ends, err);
	if (r < 0)
		return r;
	in_child = *link;
	in_child.control_fd = ends.theirs[0];
	in_child.ack_fd = ends.theirs[1];
	r = child_start(link->children, &link->child, recorder_main, &in_child, on_exit_of_recorder,
			link, err);
	if (r < 0)
		return r;
	link->since_ms = loop_now_ms();
	if ((r = loop_add(link->loop, &link->source, link->pipe_fd, 0, on_writable, link, err)) < 0)
		return r;
	r = loop_add(link->loop, &link->ack_source, ends.ours[1], EPOLLIN, on_ack, link, err);
	if (r < 0) {
		loop_remove(link->loop, &link->source);
		return r;
	}
	link->control_fd = steal_fd(&ends.ours[0]);
	link->ack_fd = steal_fd(&ends.ours[1]);
	return 0;
}

static void start(struct recorderlink *link)
{
	struct error err = ERROR_INIT;

	if (link->exec_fd < 0 || link->child.pid > 0)
		return;
	if (start_process(link, &err) < 0) {
		log_failure(&err, "start fsbox-recorder");
		if (link->child.pid == 0)
			later(link);
		return;
	}
	flush(link);
}

static uint64_t real_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t recorderlink_send(struct recorderlink *link, enum event_kind kind,
			   struct event_message *event)
{
	struct recorderlink_event *queued = NULL;

	if (link->exec_fd < 0)
		return 0;
	if (link->queued < LIMIT_EVENT_QUEUE)
		queued = calloc(1, sizeof(*queued));
	if (!queued) {
		/* Said once for each row of losses; the recorder's file shows a gap in time. */
		if (link->dropped++ == 0)
			log_write(LOG_ERROR, "events are dropped: fsbox-recorder does not keep up");
		return 0;
	}
	if (link->dropped > 0)
		log_write(LOG_WARNING, "%llu events were dropped",
			  (unsigned long long)link->dropped);
	link->dropped = 0;
	event->size = sizeof(*event);
	event->kind = kind;
	event->seq = ++link->last_seq;
	event->time_ns = real_ns();
	queued->message = *event;
	if (link->last)
		link->last->next = queued;
	else
		link->first = queued;
	link->last = queued;
	link->queued++;

	if (link->child.pid == 0 && !link->restart.armed)
		start(link);
	else
		flush(link);
	return link->last_seq;
}

void recorderlink_send_durable(struct recorderlink *link, enum event_kind kind,
			       struct event_message *event, struct recorder_wait *wait,
			       recorder_wait_fn *fn, void *arg)
{
	event->urgent = 1;
	*wait = (struct recorder_wait){
		.waits = true,
		.fn = fn,
		.arg = arg,
		.due_ms = loop_now_ms() + LIMIT_AUDIT_MS,
		.next = link->waits,
	};
	link->waits = wait;
	wait->seq = recorderlink_send(link, kind, event);
	if (wait->seq == 0)
		wait->due_ms = loop_now_ms(); /* dropped: told from the loop, at once */
	look_for_patience(link);
}

int recorderlink_read(struct recorderlink *link, const struct recorder_control *control,
		      int *ret_fd, struct error *err)
{
	AUTO(auto_close) int read_fd = -1;
	AUTO(auto_close) int write_fd = -1;
	struct iovec iov = { (void *)(uintptr_t)control, sizeof(*control) };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} space = { .bytes = { 0 } };
	struct msghdr header = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = space.bytes,
				 .msg_controllen = sizeof(space.bytes) };

	if (link->exec_fd >= 0 && link->child.pid == 0 && !link->restart.armed)
		start(link);
	if (link->control_fd < 0)
		return error_set(err, ERR_SYSTEM, 0, "fsbox-recorder does not run");
	if (child_pipe(&read_fd, &write_fd, CHILD_PIPE_WRITE_OURS, err) < 0)
		return -ERR_SYSTEM;
	space.header.cmsg_level = SOL_SOCKET;
	space.header.cmsg_type = SCM_RIGHTS;
	space.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&space.header), &write_fd, sizeof(write_fd));
	if (sendmsg(link->control_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "ask fsbox-recorder");
	*ret_fd = steal_fd(&read_fd);
	return 0;
}

bool recorderlink_up(const struct recorderlink *link)
{
	return link->control_fd >= 0;
}

bool recorderlink_ready(const struct recorderlink *link)
{
	return link->exec_fd >= 0 && !link->restart.armed && link->queued < LIMIT_EVENT_QUEUE / 2;
}
