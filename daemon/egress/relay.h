/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_RELAY_H
#define FSBOX_DAEMON_EGRESS_RELAY_H

/*
 * Bytes between two sockets, both ways at once, by splice(2): they pass through a pipe and are not
 * copied. A pipe is held only while bytes are in it. The end of one side's bytes is passed on as such
 * while the other way goes on.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "daemon/egress/chunked.h"

#define PIPEPOOL_SIZE 64

/* Pipes that are empty, for the next one who needs one. */
struct pipepool {
	int pipes[PIPEPOOL_SIZE][2];
	size_t count;
};

void pipepool_deinit(struct pipepool *pool);

/* What of the source's bytes belongs to the way. */
enum relay_extent {
	RELAY_ALL = 0, /* until it ends */
	RELAY_COUNTED, /* @left bytes, and no more are read */
	RELAY_CHUNKED, /* one chunked body, which must be in its form */
};

/*
 * @first  bytes that go ahead of those of @from; not counted
 * @bytes  that were passed on from @from
 */
struct relay_way {
	struct relay *relay;
	int from;
	int to;
	enum relay_extent extent;
	uint64_t left;
	struct chunked chunked;
	struct buf first;
	size_t first_sent;
	int pipe[2];
	size_t piped;
	uint64_t bytes;
	bool ended; /* nothing more is read */
	bool done;  /* and all is passed on */
	struct event readable;
	struct event writable;
};

enum relay_way_index { RELAY_OUT = 0, RELAY_IN };

enum relay_end {
	RELAY_OVER = 0, /* all that there was is passed on */
	RELAY_UNREAD,   /* so is all of one side; the other one did not take all */
	RELAY_CUT,      /* one side's bytes ended without an end */
};

/*
 * Zeroed is a relay that was not prepared. It is over when both ways are done, or with @answer_ends
 * when RELAY_IN is. When one side takes no more the other way goes on: a server may answer what
 * it did not read to the end.
 *
 * @unread  one side takes no more; @reset: and said so by a reset, not after an end
 */
struct relay {
	struct relay_way ways[2];
	struct pipepool *pool;
	struct event_base *base;
	bool answer_ends;
	bool unread;
	bool reset;
	uint64_t moved_ms; /* event base's clock, when bytes moved last */
	void (*on_end)(enum relay_end end, void *arg);
	void *arg;
};

/*
 * Both ways RELAY_ALL with empty @first; change that before relay_start(). CLIENT and SERVER are borrowed
 * and non-blocking. ON_END is called once, from the event loop; it may end the relay.
 */
void relay_prepare(struct relay *relay, struct event_base *base, struct pipepool *pool, int client,
		   int server, void (*on_end)(enum relay_end end, void *arg), void *arg);
void relay_start(struct relay *relay);
void relay_deinit(struct relay *relay);

/* Milliseconds on the event base's clock. */
uint64_t relay_now_ms(struct event_base *base);

#endif
