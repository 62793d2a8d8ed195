/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ZYGOTE_H
#define FSBOX_DAEMON_SPAWNER_ZYGOTE_H

/*
 * Warm zygotes: processes that are a job's pid 1 in everything but the job. Each stands in a copy of its template, has
 * the ids and limits of the template's user, has given up all that an init gives up, and waits for one
 * message (proto/wire/zygoteop.h). Off unless the configuration says zygotes = N.
 *
 *	born    forked like a job's leader, while nobody waits for anything; one at a time
 *	ready   it has reported that it stands; it may be taken by the next job of its template
 *	gone    taken by a job, 30 seconds old, or ended with its template, its user's broker or fsboxd
 *
 * A template gets some once it is used twice within ten seconds. Its zygotes have the limits and priorities of the
 * client that used it last (R20): a client with others has them ended, and gets an ordinary leader.
 *
 * To fsboxd a zygote is as hostile as any process of a peer's. One that was stopped, was killed or does not
 * answer costs its user's job a moment at most: the job then begins the ordinary way (zygotejob.h).
 *
 * In user mode there are none: pid 1 is not fsboxd's child there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/inherit.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/reportin.h"

struct spawner;
struct template;

/*
 * @socket_fd  our end; its reverse direction is shut down
 * @go_fd      becomes the job's
 * @set        the namespaces it stands in, to be given back with the job's
 * @ready      it has reported that it waits
 */
struct zygote {
	struct template *template;
	struct child child;
	int socket_fd;
	int go_fd;
	struct native_set set;
	struct reportin report;
	struct loop_source report_source;
	uint64_t born_ms;
	bool ready;
	struct zygote *next; /* template.zygotes.first */
};

/*
 * Those of one template.
 *
 * @inherit   as of the client that used it last; NULL: nobody did while there could be zygotes
 * @used_ms   when that was
 * @hot       it was used twice within ten seconds
 * @failures  in a row: births that came to nothing
 */
struct zygotes_of {
	struct zygote *first;
	size_t count;
	struct inherit *inherit;
	uint64_t used_ms;
	bool hot;
	unsigned int failures;
};

/*
 * All of them.
 *
 * @count, @ready  now; ready ones count in both
 * @used           jobs that began in one
 * @refused        taken by a job, or meant for one, that then began the ordinary way: the host had changed, the
 *                 client's limits were others, or it did not answer
 * @expired        nobody took them in time
 * @put_off_ms     since when something else has been more urgent than making one; 0: nothing is
 */
struct zygotes {
	size_t count;
	size_t ready;
	uint64_t used;
	uint64_t refused;
	uint64_t expired;
	uint64_t put_off_ms;
	struct loop_timer refill;
	struct loop_timer expiry;
};

/* TEMPLATE is used by a client with INHERIT: remembered, and whatever does not fit it goes. */
void zygotes_note(struct template *template, const struct inherit *inherit);

/* A job of TEMPLATE has begun: what it took is made anew when it is quiet. */
void zygotes_refill(struct template *template);

/*
 * One of TEMPLATE's that is ready and runs, out of the pool, to be given back by zygote_free(); or NULL. Those
 * found stopped or dead go.
 */
struct zygote *zygotes_take(struct template *template);

/* End it, unless its process was taken, and let go of everything. It is in no pool any more. */
void zygote_free(struct zygote *zygote);

/* TEMPLATE is no more, or its zygotes are not what they were. */
void zygotes_drop(struct template *template);

/* The same for all of this user's. */
void zygotes_drop_user(struct spawner *spawner, uid_t uid);

/* TEMPLATE goes: its zygotes, and what is remembered of its clients. */
void zygotes_deinit(struct template *template);

#endif
