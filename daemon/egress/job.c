/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/job.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/egress/conn.h"
#include "daemon/log.h"

#define RESUME_US 50000
#define ACCEPT_US 100000 /* no accept on a ready socket takes that long */
#define ACCEPTS_AT_ONCE 64
#define STRANGE_MAX 256
#define TOKEN 1000
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

_Static_assert(LIMIT_EGRESS_LISTENERS_PER_JOB == 2 * (2 + LIMIT_FORWARDS),
	       "a listener for each proxy, each forwarded port and each address family");

struct job *job_find(const struct egress *egress, uint64_t id)
{
	for (struct job *job = egress->jobs; job; job = job->next)
		if (job->id == id)
			return job;
	return NULL;
}

static void record(struct job *job, enum egress_event_kind kind, const char *detail)
{
	struct egress_event event = { .kind = kind, .job = job->id, .uid = job->limits.uid };

	event.stats = job->stats;
	event.stats.lost_events = job->egress->records.lost;
	(void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
	records_add(&job->egress->records, &event);
}

/* ---- listeners ------------------------------------------------------------------------- */

static void resume_all(struct job *job)
{
	job->paused = false;
	for (struct listener *at = job->listeners; at; at = at->next)
		(void)event_add(&at->readable, NULL);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	resume_all(arg);
}

/* What comes meanwhile waits in the listeners' backlogs. */
static void pause_all(struct job *job)
{
	const struct timeval later = { .tv_usec = RESUME_US };

	job->paused = true;
	for (struct listener *at = job->listeners; at; at = at->next)
		(void)event_del(&at->readable);
	(void)event_add(&job->resume, &later);
}

static bool take_token(struct job *job)
{
	uint64_t now_ms = relay_now_ms(job->egress->base);
	/* Each millisecond brings that many thousandths. The clock may be set back. */
	uint64_t more = now_ms > job->refilled_ms
				? (now_ms - job->refilled_ms) * LIMIT_EGRESS_ACCEPTS_PER_SECOND
				: 0;

	job->refilled_ms = now_ms;
	job->tokens += more < (uint64_t)LIMIT_EGRESS_ACCEPTS_BURST * TOKEN
			       ? more
			       : (uint64_t)LIMIT_EGRESS_ACCEPTS_BURST * TOKEN;
	if (job->tokens > (uint64_t)LIMIT_EGRESS_ACCEPTS_BURST * TOKEN)
		job->tokens = (uint64_t)LIMIT_EGRESS_ACCEPTS_BURST * TOKEN;
	if (job->tokens < TOKEN)
		return false;
	job->tokens -= TOKEN;
	return true;
}

/*
 * accept4() that cannot hold us: O_NONBLOCK belongs to the open socket, which init has too. -1 with
 * errno; EINTR means that it did block.
 */
static int accept_guarded(int fd)
{
	const struct itimerval limit = { .it_interval.tv_usec = ACCEPT_US,
					 .it_value.tv_usec = ACCEPT_US };
	const struct itimerval off = { 0 };
	int accepted = -1;
	int saved_errno = 0;

	(void)setitimer(ITIMER_REAL, &limit, NULL);
	accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	saved_errno = errno;
	(void)setitimer(ITIMER_REAL, &off, NULL);
	errno = saved_errno;
	return accepted;
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;
	struct job *job = listener->job;

	(void)what;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int accepted = -1;

		if (!egress_may_accept(job->egress) ||
		    job->conn_count >= job->limits.max_connections || !take_token(job)) {
			pause_all(job);
			return;
		}
		accepted = accept_guarded(fd);
		if (accepted >= 0) {
			conn_begin_take(job, listener, accepted);
			continue;
		}
		if (errno == EAGAIN || errno == ECONNABORTED)
			return;
		if (errno == EINTR || errno == EINVAL) {
			record(job, EGRESS_EVENT_LISTENER_REFUSED,
			       "a listener was changed under us; the job's network ends");
			job_end(job);
			return;
		}
		pause_all(job); /* EMFILE and its like */
		return;
	}
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

static const char *listener_refusal(const struct job *job, const struct egress_listener *message,
				    int fd, int *ret_family)
{
	uint64_t netns = 0;
	socklen_t size = sizeof(netns);

	*ret_family = option(fd, SO_DOMAIN);
	if ((*ret_family != AF_INET && *ret_family != AF_INET6) ||
	    option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return "a descriptor that is no TCP socket";
	if (option(fd, SO_ACCEPTCONN) != 1)
		return "a socket that does not listen";
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &netns, &size) < 0 || netns == 0 ||
	    netns == job->egress->netns)
		return "a socket in the host's own network";
	if (message->via == EGRESS_VIA_FORWARD &&
	    !netpolicy_forwards(&job->policy, (uint16_t)message->port))
		return "a port that is not forwarded";
	for (const struct listener *at = job->listeners; at; at = at->next)
		if (at->via == message->via && at->port == message->port &&
		    at->family == *ret_family)
			return "the same listener twice";
	if (job->listener_count == LIMIT_EGRESS_LISTENERS_PER_JOB)
		return "too many listeners";
	return NULL;
}

/*
 * What we send to programs goes over a loopback without loss and without anybody to share it with: no
 * need to pace it, as the host's choice for real networks may do. Connections inherit it; without it
 * they are slower.
 */
static void choose_congestion_control(int fd)
{
	static const char name[] = "reno"; /* always there, and allowed to anybody */

	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name) - 1);
}

/* FD is taken. */
static const char *add_listener(struct job *job, const struct egress_listener *message, int fd)
{
	struct listener *listener = NULL;
	int family = 0;
	const char *why = listener_refusal(job, message, fd, &family);

	if (!why) {
		listener = calloc(1, sizeof(*listener));
		why = listener ? NULL : "no memory for a listener";
	}
	if (why) {
		/* Closing a file on a dead file system hangs; so only sockets are closed. */
		if (option(fd, SO_TYPE) >= 0)
			(void)close(fd);
		else
			job->egress->strange_fds++;
		return why;
	}
	*listener = (struct listener){ .job = job,
				       .next = job->listeners,
				       .fd = fd,
				       .via = (enum egress_via)message->via,
				       .port = (uint16_t)message->port,
				       .family = family };
	job->listeners = listener;
	job->listener_count++;
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	choose_congestion_control(fd);
	(void)event_assign(&listener->readable, job->egress->base, fd, EV_READ | EV_PERSIST,
			   on_connection, listener);
	if (!job->paused)
		(void)event_add(&listener->readable, NULL);
	return NULL;
}

/* ---- init's socket --------------------------------------------------------------------- */

/* One message. 1: there was one. 0: none now. -1: init is gone. *ret_why: what is wrong with it. */
static int receive_listener(struct job *job, const char **ret_why)
{
	int fds[4] = { -1, -1, -1, -1 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control;
	struct egress_listener message;
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *rights = NULL;
	size_t count = 0;
	ssize_t got = recvmsg(job->init_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -1;
	rights = CMSG_FIRSTHDR(&msg);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
		count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
	}
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
	    egress_listener_check(&message, (size_t)got, count, NULL) < 0) {
		/* Never closed: nobody knows what they are. */
		job->egress->strange_fds += (unsigned)count;
		*ret_why = "a message that makes no sense";
		return 1;
	}
	*ret_why = add_listener(job, &message, fds[0]);
	return 1;
}

static void on_init(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;
	struct egress *egress = job->egress;
	const char *why = NULL;
	int r = receive_listener(job, &why);

	(void)fd;
	(void)what;
	if (r > 0 && !why)
		return;
	if (r == 0)
		return;
	if (why) {
		record(job, EGRESS_EVENT_LISTENER_REFUSED, why);
		log_write(LOG_WARNING, "job %llu: %s; its network ends",
			  (unsigned long long)job->id, why);
	}
	job_end(job);
	if (egress->strange_fds > STRANGE_MAX) {
		struct error err = ERROR_INIT;

		(void)error_set(&err, ERR_QUOTA_EXCEEDED, 0, "too many strange descriptors");
		egress_fail(egress, &err);
	}
}

/* ---- begin and end --------------------------------------------------------------------- */

static int read_policy(int fd, struct netpolicy *ret_policy, struct error *err)
{
	AUTO(auto_free) char *bytes = NULL;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0)
		return error_set(err, ERR_BAD_FRAME, 0, "the policy is no sealed memfd");
	if (st.st_size < 1 || st.st_size > LIMIT_EGRESS_POLICY_BYTES)
		return error_set(err, ERR_BAD_FRAME, 0, "the policy is empty or too large");
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return error_set(err, ERR_NOMEM, 0, "read the policy");
	if (pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		return error_set(err, ERR_SYSTEM, errno, "read the policy");
	return netpolicy_decode(ret_policy, bytes, (size_t)st.st_size, err);
}

static int job_new(struct egress *egress, uint64_t id, const struct egress_job *limits,
		   int policy_fd, struct job **ret_job, struct error *err)
{
	struct job *job = NULL;
	struct netpolicy policy = NETPOLICY_INIT;
	int r = 0;

	if (job_find(egress, id))
		return error_set(err, ERR_INVALID, 0, "the job is known already");
	if (egress->job_count == LIMIT_EGRESS_JOBS)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "too many jobs");
	r = read_policy(policy_fd, &policy, err);
	if (r < 0)
		return r;
	job = calloc(1, sizeof(*job));
	if (!job) {
		netpolicy_deinit(&policy);
		return error_set(err, ERR_NOMEM, 0, "begin a job");
	}
	job->egress = egress;
	job->id = id;
	job->limits = *limits;
	job->policy = policy;
	job->init_fd = -1;
	job->tokens = (uint64_t)LIMIT_EGRESS_ACCEPTS_BURST * TOKEN;
	job->refilled_ms = relay_now_ms(egress->base);
	*ret_job = job;
	return 0;
}

int job_begin_take(struct egress *egress, uint64_t id, const struct egress_job *limits,
		   int policy_fd, int init_fd, struct error *err)
{
	AUTO(auto_close) int policy = policy_fd;
	AUTO(auto_close) int init = init_fd;
	struct job *job = NULL;
	int r = job_new(egress, id, limits, policy, &job, err);

	if (r < 0) {
		struct egress_event event = { .kind = EGRESS_EVENT_JOB_REFUSED,
					      .job = id,
					      .uid = limits->uid };

		(void)snprintf(event.detail, sizeof(event.detail), "%.127s", err->message);
		records_add(&egress->records, &event);
		return r;
	}
	job->init_fd = steal_fd(&init);
	(void)evtimer_assign(&job->resume, egress->base, on_resume, job);
	(void)event_assign(&job->init_readable, egress->base, job->init_fd, EV_READ | EV_PERSIST,
			   on_init, job);
	(void)event_add(&job->init_readable, NULL);
	job->next = egress->jobs;
	egress->jobs = job;
	egress->job_count++;
	return 0;
}

void job_end(struct job *job)
{
	struct egress *egress = job->egress;
	struct job **at = &egress->jobs;

	while (job->conns)
		conn_end(job->conns);
	while (job->listeners) {
		struct listener *listener = job->listeners;

		job->listeners = listener->next;
		(void)event_del(&listener->readable);
		(void)close(listener->fd);
		free(listener);
	}
	(void)event_del(&job->resume);
	(void)event_del(&job->init_readable);
	(void)close(job->init_fd);
	record(job, EGRESS_EVENT_STATS, "");
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	egress->job_count--;
	netpolicy_deinit(&job->policy);
	free(job);
	egress_job_gone(egress);
}
