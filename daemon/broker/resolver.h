/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_RESOLVER_H
#define FSBOX_DAEMON_BROKER_RESOLVER_H

/*
 * The broker's children that touch the user's file systems, so that a dead one hangs them and not the
 * broker. Forked, not exec'd: the same user, the same rights, no descriptor but their socket.
 *
 * What is asked and answered, over a stream socket: a header, then packed values (pack.h).
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/rule.h"
#include "daemon/broker/pack.h"

/* A batch of 100,000 paths with what was found at each; replies beyond it fail with out-of-memory. */
#define RESOLVER_MESSAGE_BYTES (64u << 20)

enum lookup_kind {
	LOOKUP_PATHS = 1, /* count, paths -> for each: struct lookup_path */
	LOOKUP_READ,      /* path, most bytes -> errno, bytes: a regular file, through links */
	LOOKUP_MAKE_DIRS, /* count, paths -> for each: errno */
	LOOKUP_PROTECTED, /* names and trees -> protected.h */
	LOOKUP_MATCHING,  /* expressions and trees -> protected.h */
	LOOKUP_REPEAT,    /* a record of others (lookuprecord.h) -> 1: the same answers, 0 */
};

/* @result is 0 or -kind; then one string, the message, is all that follows. */
struct lookup_header {
	uint32_t size; /* of header and values */
	uint32_t kind;
	uint64_t id;
	int32_t result;
	int32_t errnum;
};

/* What was found at one path; strings borrowed from the reply. See struct walk for the fields. */
struct lookup_path {
	const char *real;
	uint32_t existing_bytes;
	enum node_type type;
	int errnum;
	uint64_t dev;
	uint64_t ino;
	const char *link; /* NULL: the last component is no link */
	uint32_t link_count;
	struct unpack links; /* unpack_string() link_count times */
};

/* The next answer of a LOOKUP_PATHS reply; check with unpack_end() when all were read. */
void lookup_path_unpack(struct unpack *unpack, struct lookup_path *ret_path);

/*
 * Fork one. It answers on the returned socket until that is closed. All other descriptors of this
 * process are closed in it, its standard ones are /dev/null.
 *
 * @ret_fd   the caller's end, close-on-exec
 * @ret_pid  the caller reaps it
 */
int resolver_fork(int *ret_fd, pid_t *ret_pid, struct error *err);

/* Answer one request: VALUES to OUT (which has room for a header in front). Used by the child, tests. */
int resolver_answer(enum lookup_kind kind, const void *values, size_t size, struct buf *out,
		    struct error *err);

#endif
