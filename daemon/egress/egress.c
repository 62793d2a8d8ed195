/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/egress.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/egress/hostaddr.h"
#include "daemon/egress/jail.h"
#include "daemon/egress/job.h"
#include "daemon/egress/resolver.h"
#include "daemon/log.h"

/* Of each connection: its two sockets, and one of the two pipes that it may need now and then. */
#define FDS_PER_CONNECTION 4
#define FDS_RESERVED 64

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

void egress_fail(struct egress *egress, const struct error *err)
{
	if (!egress->failed)
		egress->why = *err;
	egress->failed = true;
	(void)event_base_loopbreak(egress->base);
}

bool egress_may_accept(const struct egress *egress)
{
	return !records_full(&egress->records) &&
	       egress->connection_count < egress->connection_max &&
	       !(egress->link_down && egress->config.required && egress->records.file_fd < 0);
}

void egress_job_gone(struct egress *egress)
{
	if (egress->link_down && egress->job_count == 0)
		(void)event_base_loopbreak(egress->base);
}

/* ---- fsboxd's link --------------------------------------------------------------------- */

static int take_config(struct egress *egress, const struct egress_config *config, struct error *err)
{
	if (egress->configured)
		return error_set(err, ERR_BAD_FRAME, 0, "configured twice");
	if (config->upstream != EGRESS_UPSTREAM_NONE &&
	    hostname_parse(config->upstream_host, strlen(config->upstream_host),
			   strchr(config->upstream_host, ':') != NULL, &egress->upstream, err) < 0)
		return error_set(err, ERR_BAD_FRAME, 0, "an upstream proxy that cannot be read");
	egress->config = *config;
	egress->configured = true;
	return 0;
}

static int take_message(struct egress *egress, const struct egress_link_message *message,
			int fds[EGRESS_LINK_FDS], struct error *err)
{
	struct error refused = ERROR_INIT;
	struct job *job = NULL;

	if (!egress->configured && message->kind != EGRESS_CONFIG)
		return error_set(err, ERR_BAD_FRAME, 0, "a job before the configuration");
	switch ((enum egress_link_kind)message->kind) {
	case EGRESS_CONFIG:
		return take_config(egress, &message->u.config, err);
	case EGRESS_JOB:
		if (job_begin_take(egress, message->job, &message->u.job, steal_fd(&fds[0]),
				   steal_fd(&fds[1]), &refused) < 0)
			log_failure(&refused, "job %llu", (unsigned long long)message->job);
		return 0;
	case EGRESS_END:
		job = job_find(egress, message->job);
		if (job)
			job_end(job);
		return 0;
	case EGRESS_LINK_KIND_COUNT:
		break;
	}
	return 0;
}

/* One message. 1: there was one, 0: none now, or the link's end. */
static int receive(struct egress *egress, struct error *err)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(EGRESS_LINK_FDS * sizeof(int))];
	} control;
	struct egress_link_message message;
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fds[EGRESS_LINK_FDS] = { -1, -1 };
	struct cmsghdr *rights = NULL;
	size_t count = 0;
	ssize_t got = recvmsg(egress->link_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int r = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0) {
		egress->link_down = true;
		(void)event_del(&egress->link_readable);
		egress_job_gone(egress);
		return 0;
	}
	rights = CMSG_FIRSTHDR(&msg);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
		count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
	}
	r = egress_link_check(&message, (size_t)got, count, err);
	if (r == 0)
		r = take_message(egress, &message, fds, err);
	for (size_t i = 0; i < EGRESS_LINK_FDS; i++)
		auto_close(&fds[i]);
	return r < 0 ? r : 1;
}

static void on_link(evutil_socket_t fd, short what, void *arg)
{
	struct egress *egress = arg;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (receive(egress, &err) < 0) {
		error_prefix(&err, "fsboxd's link");
		egress_fail(egress, &err);
	}
}

static void on_resolver_gone(void *arg)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, ERR_SYSTEM, 0, "the process that looks names up is gone");
	egress_fail(arg, &err);
}

/* ---- begin and end --------------------------------------------------------------------- */

static int own_netns(uint64_t *ret_cookie, struct error *err)
{
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) < 0)
		return error_set(err, ERR_SYSTEM, errno,
				 "this kernel cannot tell network namespaces apart (5.14 can)");
	*ret_cookie = cookie;
	return 0;
}

static int start_base(struct egress *egress, struct error *err)
{
	struct event_config *config = event_config_new();

	if (config) {
		/* Only what is opened below, before the filter; changes are sent in one go. */
		(void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
							    EVENT_BASE_FLAG_IGNORE_ENV |
							    EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
		egress->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!egress->base ||
	    strcmp(event_base_get_method(egress->base), "epoll (with changelist)") != 0)
		return error_set(err, ERR_SYSTEM, 0, "libevent has no epoll here");
	return 0;
}

int egress_init(struct egress *egress, int link_fd, int events_fd, int file_fd, struct error *err)
{
	struct egress_event ready = { .kind = EGRESS_EVENT_READY };
	AUTO(auto_close) int resolver_fd = -1;
	unsigned files = jail_raise_files();
	int r = 0;

	*egress = (struct egress)EGRESS_INIT;
	egress->link_fd = link_fd;
	egress->connection_max = files < 2 * FDS_RESERVED
					 ? FDS_RESERVED / FDS_PER_CONNECTION
					 : (files - FDS_RESERVED) / FDS_PER_CONNECTION;
	if (egress->connection_max > LIMIT_EGRESS_CONNECTIONS)
		egress->connection_max = LIMIT_EGRESS_CONNECTIONS;
	/* Forked first, while there is nothing yet that it should not have. */
	r = resolver_start(&resolver_fd, err);
	if (r == 0)
		r = own_netns(&egress->netns, err);
	if (r == 0)
		r = hostaddr_open(&egress->route_fd, err);
	if (r == 0)
		r = start_base(egress, err);
	if (r < 0)
		return r;
	lookups_init_take(&egress->lookups, egress->base, steal_fd(&resolver_fd), on_resolver_gone,
			  egress);
	records_init(&egress->records, egress->base, events_fd, file_fd);
	(void)event_assign(&egress->link_readable, egress->base, link_fd, EV_READ | EV_PERSIST,
			   on_link, egress);
	(void)event_add(&egress->link_readable, NULL);
	r = jail_enter(JAIL_PROXY, err);
	if (r == 0)
		records_add(&egress->records, &ready);
	return r;
}

void egress_deinit(struct egress *egress)
{
	if (!egress->base)
		return;
	egress->link_down = false;
	while (egress->jobs)
		job_end(egress->jobs);
	records_deinit(&egress->records);
	lookups_deinit(&egress->lookups);
	pipepool_deinit(&egress->pipes);
	auto_close(&egress->route_fd);
	if (event_initialized(&egress->link_readable))
		(void)event_del(&egress->link_readable);
	event_base_free(egress->base);
	egress->base = NULL;
}

int egress_run(struct egress *egress, struct error *err)
{
	if (event_base_dispatch(egress->base) < 0)
		return error_set(err, ERR_SYSTEM, 0, "the event loop failed");
	if (!egress->failed)
		return 0;
	*err = egress->why;
	return -(int)egress->why.kind;
}
