/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/recorderlink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/identity.h"
#include "daemon/log.h"

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

static void close_pipe(struct recorderlink *link)
{
	if (link->loop)
		loop_remove(link->loop, &link->source);
	if (link->pipe_fd >= 0)
		(void)close(link->pipe_fd);
	link->pipe_fd = -1;
}

void recorderlink_deinit(struct recorderlink *link)
{
	/* End of the pipe is how the recorder learns to sync and end: it is not killed. */
	close_pipe(link);
	while (link->first)
		drop_first(link);
	if (link->loop)
		loop_disarm(link->loop, &link->restart);
	if (link->children)
		child_forget(link->children, &link->child);
	if (link->exec_fd >= 0)
		(void)close(link->exec_fd);
	link->exec_fd = -1;
	free(link->events_path);
	link->events_path = NULL;
}

/* In the child. @link->pipe_fd is the reading end here. */
static int recorder_main(void *arg)
{
	const struct recorderlink *link = arg;
	const int keep[] = { link->pipe_fd, link->exec_fd };
	struct identity identity = { .uid = link->uid, .gid = link->gid };
	char max_bytes[32];
	char name[] = "fsbox-recorder";
	char events[] = "--events";
	char max[] = "--max-bytes";
	char readable[] = "--group-readable";
	char *argv[] = { name, events,    link->events_path,
			 max,  max_bytes, link->group_readable ? readable : NULL,
			 NULL };
	char *envp[] = { NULL };

	(void)snprintf(max_bytes, sizeof(max_bytes), "%llu", (unsigned long long)link->max_bytes);
	if (child_arrange_fds(keep, ARRAY_SIZE(keep), true, NULL) < 0 || setsid() < 0 ||
	    chdir("/") < 0)
		return 1;
	if (link->uid != (uid_t)-1 && identity_become(&identity, NULL) < 0)
		return 1;
	if (fcntl(CHILD_FIRST_FD + 1, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	(void)syscall(SYS_execveat, CHILD_FIRST_FD + 1, "", argv, envp, AT_EMPTY_PATH);
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

	close_pipe(link);
	log_write(LOG_ERROR, "fsbox-recorder ended with wait status %d; events wait for the next",
		  status);
	later(link);
	(void)snprintf(event.detail, sizeof(event.detail), "fsbox-recorder");
	recorderlink_send(link, EVENT_ROLE_DIED, &event);
}

/* Nobody reads any more: what waits stays for the next one, SIGCHLD brings the rest. */
static void broken(struct recorderlink *link)
{
	close_pipe(link);
	child_signal(&link->child, SIGKILL);
}

static void flush(struct recorderlink *link)
{
	while (link->first && link->pipe_fd >= 0) {
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
	if (link->pipe_fd >= 0)
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

static int start_process(struct recorderlink *link, struct error *err)
{
	AUTO(auto_close) int read_end = -1;
	AUTO(auto_close) int write_end = -1;
	struct recorderlink in_child = *link;
	int ends[2];
	int r = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	read_end = ends[0];
	write_end = ends[1];
	if (fcntl(write_end, F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");
	in_child.pipe_fd = read_end;
	r = child_start(link->children, &link->child, recorder_main, &in_child, on_exit_of_recorder,
			link, err);
	if (r < 0)
		return r;
	link->since_ms = loop_now_ms();
	r = loop_add(link->loop, &link->source, write_end, 0, on_writable, link, err);
	if (r < 0)
		return r;
	link->pipe_fd = steal_fd(&write_end);
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

void recorderlink_send(struct recorderlink *link, enum event_kind kind, struct event_message *event)
{
	struct recorderlink_event *queued = NULL;

	if (link->exec_fd < 0)
		return;
	if (link->queued < LIMIT_EVENT_QUEUE)
		queued = calloc(1, sizeof(*queued));
	if (!queued) {
		/* Said once for each row of losses; the recorder's file shows a gap in time. */
		if (link->dropped++ == 0)
			log_write(LOG_ERROR, "events are dropped: fsbox-recorder does not keep up");
		return;
	}
	if (link->dropped > 0)
		log_write(LOG_WARNING, "%llu events were dropped",
			  (unsigned long long)link->dropped);
	link->dropped = 0;
	event->size = sizeof(*event);
	event->kind = kind;
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
}

bool recorderlink_up(const struct recorderlink *link)
{
	return link->pipe_fd >= 0;
}

bool recorderlink_ready(const struct recorderlink *link)
{
	return link->exec_fd >= 0 && !link->restart.armed && link->queued < LIMIT_EVENT_QUEUE / 2;
}
