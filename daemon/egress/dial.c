/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"

struct attempt {
	struct dial *dial;
	int fd;
	struct netaddr address;
	struct event writable;
};

/* @begun  attempts that were started. @open  of them under way */
struct dial {
	struct event_base *base;
	uint16_t port;
	dial_done done;
	void *arg;
	struct event next;     /* time for one more attempt */
	struct event deadline; /* time is up for all */
	int errnum;
	size_t count;
	size_t begun;
	size_t open;
	struct netaddr last;
	struct attempt attempts[LIMIT_EGRESS_ADDRESSES];
};

static void attempt_close(struct attempt *attempt)
{
	if (attempt->fd < 0)
		return;
	(void)event_del(&attempt->writable);
	(void)close(attempt->fd);
	attempt->fd = -1;
	attempt->dial->open--;
}

/* Families in turn, each in the order given, the first address first. */
static void arrange(struct dial *dial, const struct netaddr *addresses, size_t count)
{
	uint8_t family = addresses[0].family;
	bool used[LIMIT_EGRESS_ADDRESSES] = { false };

	for (size_t i = 0; i < count; i++) {
		size_t pick = count;

		for (size_t j = count; j > 0; j--)
			if (!used[j - 1] && (pick == count || addresses[j - 1].family == family ||
					     addresses[pick].family != family))
				pick = j - 1;
		used[pick] = true;
		family = addresses[pick].family == 4 ? 6 : 4;
		dial->attempts[i] = (struct attempt){ .dial = dial, .fd = -1 };
		dial->attempts[i].address = addresses[pick];
	}
	dial->count = count;
}

static socklen_t to_sockaddr(const struct netaddr *address, uint16_t port,
			     struct sockaddr_storage *ret_storage)
{
	memset(ret_storage, 0, sizeof(*ret_storage));
	if (address->family == 4) {
		struct sockaddr_in *in = (void *)ret_storage;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address->bytes, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (void *)ret_storage;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, address->bytes, 16);
	return sizeof(*in6);
}

static void begin_next(struct dial *dial);

/* Call it last: the receiver frees DIAL, and what ADDRESS points to with it. */
static void finish(struct dial *dial, int fd, const struct netaddr *address, int errnum)
{
	const struct netaddr copy = *address;

	(void)event_del(&dial->next);
	(void)event_del(&dial->deadline);
	dial->done(fd, &copy, errnum, dial->arg);
}

static void fail(struct attempt *attempt, int errnum)
{
	struct dial *dial = attempt->dial;

	/* Refused says more than a route that is missing. */
	if (dial->errnum == 0 || errnum == ECONNREFUSED)
		dial->errnum = errnum;
	dial->last = attempt->address;
	attempt_close(attempt);
	if (dial->begun < dial->count)
		begin_next(dial);
	else if (dial->open == 0)
		finish(dial, -1, &dial->last, dial->errnum);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *attempt = arg;
	int errnum = 0;
	socklen_t size = sizeof(errnum);

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) < 0)
		errnum = errno;
	if (errnum != 0) {
		fail(attempt, errnum);
		return;
	}
	(void)event_del(&attempt->writable);
	attempt->dial->open--;
	finish(attempt->dial, steal_fd(&attempt->fd), &attempt->address, 0);
}

static int connect_to(struct attempt *attempt)
{
	const int on = 1;
	struct sockaddr_storage storage;
	socklen_t size = to_sockaddr(&attempt->address, attempt->dial->port, &storage);

	attempt->fd =
		socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (attempt->fd < 0)
		return errno;
	attempt->dial->open++;
	(void)setsockopt(attempt->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(attempt->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)event_assign(&attempt->writable, attempt->dial->base, attempt->fd, EV_WRITE,
			   on_writable, attempt);
	if (connect(attempt->fd, (const void *)&storage, size) < 0 && errno != EINPROGRESS)
		return errno;
	(void)event_add(&attempt->writable, NULL);
	return 0;
}

static void begin_next(struct dial *dial)
{
	const struct timeval pause = { .tv_usec = LIMIT_EGRESS_ATTEMPT_MS * 1000L };

	while (dial->begun < dial->count) {
		struct attempt *attempt = &dial->attempts[dial->begun++];
		int errnum = connect_to(attempt);

		if (errnum == 0)
			break;
		if (dial->errnum == 0)
			dial->errnum = errnum;
		dial->last = attempt->address;
		attempt_close(attempt);
	}
	if (dial->open == 0)
		finish(dial, -1, &dial->last, dial->errnum);
	else if (dial->begun < dial->count)
		(void)event_add(&dial->next, &pause);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	begin_next(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct dial *dial = arg;

	(void)fd;
	(void)what;
	finish(dial, -1, &dial->attempts[dial->begun ? dial->begun - 1 : 0].address, ETIMEDOUT);
}

struct dial *dial_new(struct event_base *base, const struct netaddr *addresses, size_t count,
		      uint16_t port, dial_done done, void *arg)
{
	const struct timeval at_once = { 0 };
	const struct timeval limit = { .tv_sec = LIMIT_EGRESS_CONNECT_MS / 1000 };
	struct dial *dial = calloc(1, sizeof(*dial));

	if (!dial)
		return NULL;
	dial->base = base;
	dial->port = port;
	dial->done = done;
	dial->arg = arg;
	arrange(dial, addresses, count);
	(void)evtimer_assign(&dial->next, base, on_next, dial);
	(void)evtimer_assign(&dial->deadline, base, on_deadline, dial);
	(void)event_add(&dial->next, &at_once);
	(void)event_add(&dial->deadline, &limit);
	return dial;
}

struct dial *dial_free(struct dial *dial)
{
	if (!dial)
		return NULL;
	(void)event_del(&dial->next);
	(void)event_del(&dial->deadline);
	for (size_t i = 0; i < dial->begun; i++)
		attempt_close(&dial->attempts[i]);
	free(dial);
	return NULL;
}
