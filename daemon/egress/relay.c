/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE_BYTES (256u << 10)
#define COPY_BYTES 16384
#define TURNS 16 /* of one way before others get theirs */

/* LOST: who it goes to takes no more. */
enum outcome { BROKEN = -1, BLOCKED = 0, MOVED = 1, LOST };

void pipepool_deinit(struct pipepool *pool)
{
	while (pool->count > 0) {
		pool->count--;
		(void)close(pool->pipes[pool->count][0]);
		(void)close(pool->pipes[pool->count][1]);
	}
}

static int way_take_pipe(struct relay_way *way)
{
	struct pipepool *pool = way->relay->pool;

	if (way->pipe[0] >= 0)
		return 0;
	if (pool->count > 0) {
		pool->count--;
		memcpy(way->pipe, pool->pipes[pool->count], sizeof(way->pipe));
		return 0;
	}
	if (pipe2(way->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		way->pipe[0] = way->pipe[1] = -1;
		return -1;
	}
	/* Many small packets fill a pipe by their number: more room, as far as our share goes. */
	(void)fcntl(way->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

/* An empty pipe goes to the pool; one with bytes in it is no good to anybody. */
static void way_give_pipe(struct relay_way *way)
{
	struct pipepool *pool = way->relay->pool;

	if (way->pipe[0] < 0)
		return;
	if (way->piped == 0 && pool->count < PIPEPOOL_SIZE) {
		memcpy(pool->pipes[pool->count++], way->pipe, sizeof(way->pipe));
	} else {
		(void)close(way->pipe[0]);
		(void)close(way->pipe[1]);
	}
	way->pipe[0] = way->pipe[1] = -1;
	way->piped = 0;
}

uint64_t relay_now_ms(struct event_base *base)
{
	struct timeval now = { 0 };

	(void)event_base_gettimeofday_cached(base, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

static enum outcome failed(void)
{
	return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
}

/*
 * The reading side will not see a reset that was seen here, so it is remembered: what comes from there
 * ends without an end. EPIPE is what there is after an end, unless splice(2) met the error itself after
 * it had moved something, PARTLY, and kept it to itself.
 */
static enum outcome failed_to_send(struct relay *relay, bool partly)
{
	if (errno == EAGAIN || errno == EINTR)
		return BLOCKED;
	relay->unread = true;
	relay->reset = relay->reset || partly || errno != EPIPE;
	return LOST;
}

/* Pass on what is waiting: MOVED when nothing is left. */
static enum outcome way_flush(struct relay_way *way)
{
	bool partly = false;

	while (way->first_sent < way->first.size) {
		ssize_t sent = send(way->to, way->first.data + way->first_sent,
				    way->first.size - way->first_sent, MSG_NOSIGNAL);

		if (sent < 0)
			return failed_to_send(way->relay, false);
		way->first_sent += (size_t)sent;
	}
	if (way->first.size > 0) {
		buf_deinit(&way->first);
		way->first_sent = 0;
	}
	while (way->piped > 0) {
		ssize_t sent = splice(way->pipe[0], NULL, way->to, NULL, way->piped,
				      SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

		if (sent < 0)
			return failed_to_send(way->relay, partly);
		if (sent == 0)
			return BROKEN;
		way->piped -= (size_t)sent;
		partly = true;
	}
	return MOVED;
}

static enum outcome way_fill_pipe(struct relay_way *way)
{
	size_t most = PIPE_BYTES;
	ssize_t got = 0;

	if (way->extent == RELAY_COUNTED && way->left < most)
		most = (size_t)way->left;
	if (way_take_pipe(way) < 0)
		return BROKEN;
	got = splice(way->from, NULL, way->pipe[1], NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (got < 0)
		return failed();
	if (got == 0) {
		/* A body that is cut off must not look like a whole one. */
		way->ended = true;
		return way->extent == RELAY_COUNTED ? BROKEN : MOVED;
	}
	way->piped = (size_t)got;
	way->bytes += (uint64_t)got;
	if (way->extent == RELAY_COUNTED)
		way->left -= (uint64_t)got;
	return MOVED;
}

static enum outcome way_fill_chunked(struct relay_way *way)
{
	char bytes[COPY_BYTES];
	size_t good = 0;
	ssize_t got = recv(way->from, bytes, sizeof(bytes), 0);

	if (got < 0)
		return failed();
	good = chunked_feed(&way->chunked, bytes, (size_t)got);
	if (got == 0 || way->chunked.state == CHUNKED_BAD)
		return BROKEN;
	buf_init(&way->first, COPY_BYTES);
	way->bytes += good;
	return buf_add(&way->first, bytes, good) < 0 ? BROKEN : MOVED;
}

static void way_check_end(struct relay_way *way)
{
	if ((way->extent == RELAY_COUNTED && way->left == 0) ||
	    (way->extent == RELAY_CHUNKED && way->chunked.state == CHUNKED_END))
		way->ended = true;
}

static void way_stop(struct relay_way *way)
{
	way->done = true;
	way_give_pipe(way);
	(void)event_del(&way->readable);
	(void)event_del(&way->writable);
}

static void way_finish(struct relay_way *way)
{
	way_stop(way);
	/* After one request its server must not take the end for a client that went away. */
	if (way->extent == RELAY_ALL && !way->relay->reset)
		(void)shutdown(way->to, SHUT_WR);
}

/* Move what can be moved now. MOVED: the way is done. */
static enum outcome way_pump(struct relay_way *way)
{
	enum outcome outcome = MOVED;

	for (int turn = 0; turn < TURNS; turn++) {
		outcome = way_flush(way);
		if (outcome == BROKEN)
			return BROKEN;
		if (outcome == LOST) {
			way_check_end(way);
			way_stop(way);
			return MOVED;
		}
		if (outcome == BLOCKED)
			break;
		way_check_end(way);
		if (way->ended) {
			way_finish(way);
			return MOVED;
		}
		outcome = way->extent == RELAY_CHUNKED ? way_fill_chunked(way) : way_fill_pipe(way);
		if (outcome == BROKEN)
			return BROKEN;
		if (outcome == BLOCKED) {
			way_give_pipe(way);
			break;
		}
		way->relay->moved_ms = relay_now_ms(way->relay->base);
	}
	if (way->piped > 0 || way->first.size > 0) {
		(void)event_del(&way->readable);
		(void)event_add(&way->writable, NULL);
	} else {
		(void)event_del(&way->writable);
		(void)event_add(&way->readable, NULL);
	}
	return BLOCKED;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct relay_way *way = arg;
	struct relay *relay = way->relay;
	enum outcome outcome = way_pump(way);

	(void)fd;
	(void)what;
	if (outcome == BROKEN)
		relay->on_end(RELAY_CUT, relay->arg);
	else if (relay->ways[RELAY_IN].done && (relay->answer_ends || relay->ways[RELAY_OUT].done))
		relay->on_end(relay->reset    ? RELAY_CUT
			      : relay->unread ? RELAY_UNREAD
					      : RELAY_OVER,
			      relay->arg);
}

static void way_prepare(struct relay *relay, struct relay_way *way, int from, int to)
{
	way->relay = relay;
	way->from = from;
	way->to = to;
	way->pipe[0] = way->pipe[1] = -1;
	(void)event_assign(&way->readable, relay->base, from, EV_READ | EV_PERSIST, on_ready, way);
	(void)event_assign(&way->writable, relay->base, to, EV_WRITE | EV_PERSIST, on_ready, way);
}

void relay_prepare(struct relay *relay, struct event_base *base, struct pipepool *pool, int client,
		   int server, void (*on_end)(enum relay_end end, void *arg), void *arg)
{
	*relay = (struct relay){ .pool = pool, .base = base, .on_end = on_end, .arg = arg };
	way_prepare(relay, &relay->ways[RELAY_OUT], client, server);
	way_prepare(relay, &relay->ways[RELAY_IN], server, client);
	relay->moved_ms = relay_now_ms(base);
}

void relay_start(struct relay *relay)
{
	/* Both are tried at once, from the event loop: there may be bytes to go ahead. */
	for (int i = RELAY_OUT; i <= RELAY_IN; i++)
		event_active(&relay->ways[i].writable, EV_WRITE, 1);
}

void relay_deinit(struct relay *relay)
{
	if (!relay->base)
		return;
	for (int i = RELAY_OUT; i <= RELAY_IN; i++) {
		struct relay_way *way = &relay->ways[i];

		(void)event_del(&way->readable);
		(void)event_del(&way->writable);
		way_give_pipe(way);
		buf_deinit(&way->first);
	}
	relay->base = NULL;
}
