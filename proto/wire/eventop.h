/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_EVENTOP_H
#define FSBOX_PROTO_WIRE_EVENTOP_H

/*
 * Records that fsboxd hands to the recorder over a pipe: facts only, fixed layout; the recorder
 * makes text of them. Strings may hold any bytes and are escaped by the recorder.
 */

#include <stdint.h>

#include "common/error.h"
#include "common/hostname.h"
#include "common/limits.h"
#include "proto/wire/spawnop.h"

enum event_kind {
	EVENT_DAEMON_STARTED = 1,
	EVENT_DAEMON_STOPPED,
	EVENT_EXECUTION_STARTED,
	EVENT_EXECUTION_FINISHED,
	EVENT_EXECUTION_FAILED, /* a spawn that ran nothing */
	EVENT_PEER_REFUSED,
	EVENT_ROLE_DIED,
	EVENT_PLACEHOLDER_LEFT, /* one could not be removed: it is not ours any more */
	EVENT_STUCK,            /* a helper hangs and was abandoned */
	EVENT_EGRESS_ALLOWED,
	EVENT_EGRESS_DENIED,
	EVENT_EGRESS_FAILED, /* allowed, but not to be reached */
	EVENT_EGRESS_CLOSED, /* the end of one that was allowed */
	EVENT_MASK_REPAIRED, /* something hidden showed in a job for a moment */
	EVENT_MASK_LOST,     /* the same, and the job was killed */
	EVENT_NAME_PLANTED,  /* a protected name appeared while a job ran */
	EVENT_GUARD_DOWN,    /* what keeps masks in place died, and was replaced if it could be */
	EVENT_LEDGER_REPLAYED, /* a start found placeholders of another one, or a ledger that is damaged */
	EVENT_MOUNT_HELD,        /* the host let a mount go that a running job still has */
	EVENT_POLICY_SUPPRESSED, /* parts of a request were left out: how many */
	EVENT_GRANT_CREATED,
	EVENT_GRANT_USED, /* reserved for a job */
	EVENT_GRANT_REFUSED,
	EVENT_GRANT_REVOKED,
	EVENT_KIND_COUNT,
};

/*
 * A connection out of a job, for EVENT_EGRESS_*: see struct egress_event.
 *
 * @via, @reason, @flags  enum egress_via, enum net_reason, enum egress_event_flags
 */
struct event_egress {
	uint64_t connection;
	uint64_t sent_bytes;
	uint64_t received_bytes;
	uint64_t duration_ms;
	uint32_t via;
	uint32_t reason;
	uint32_t flags;
	uint32_t port;
	char host[HOSTNAME_BYTES + 2];
	char address[NETADDR_TEXT_BYTES + 2];
};

/*
 * @time_ns  CLOCK_REALTIME
 * @seq      fsboxd's number for it, counted from 1
 * @urgent   somebody waits for it to be durable: it is synced at once and acknowledged
 * @grant    number of the grant that it is about, or that the job was started with
 * @detail   EVENT_PEER_REFUSED, _FAILED: why; _ROLE_DIED: which; _PLACEHOLDER_LEFT,
 *          _MASK_*, _NAME_PLANTED: the path, cut; _LEDGER_REPLAYED: what was found
 */
struct event_message {
	uint32_t size; /* sizeof(struct event_message) */
	uint32_t kind; /* enum event_kind */
	uint64_t time_ns;
	uint64_t seq;
	uint64_t grant;
	uint64_t job;
	uint32_t uid;
	int32_t pid;
	uint32_t engine;
	uint32_t room;
	uint32_t argc;
	uint32_t rules;
	uint32_t suppressed;
	uint32_t withheld;
	uint32_t error_kind;
	uint32_t guard_action; /* enum guard_action of _NAME_PLANTED */
	uint64_t exposure_us;  /* of _MASK_REPAIRED: for how long, at most */
	uint32_t urgent;
	uint32_t reserved;
	uint8_t args_hash[32];
	uint8_t policy_digest[32];
	struct exit_record exited;
	struct event_egress egress;
	char profile[LIMIT_NAME_BYTES];
	char command[LIMIT_NAME_BYTES];
	char label[LIMIT_LABEL_BYTES];
	char kept_as[LIMIT_LEAF_BYTES + 1]; /* of _NAME_PLANTED */
	char detail[1024];
};

const char *event_kind_name(enum event_kind kind); /* "execution.started" ... */

/* ---- fsboxd -> recorder (socket), recorder -> fsboxd (pipe) ---------------------------- */

/*
 * Show what was recorded, and with @follow what will be, as lines of text. With it rides one
 * descriptor: the writing end of a pipe that fsboxd made. It is closed when there is nothing more to
 * show; when the reader goes away, that is the end as well.
 *
 * @uid        whose events; counts unless @everybody
 * @job        only those about this job; 0: all
 */
struct recorder_control {
	uint32_t size; /* sizeof(struct recorder_control) */
	uint32_t uid;
	uint64_t job;
	uint32_t everybody;
	uint32_t follow;
};

/* What became of the events with numbers @first to @last: durable, or not written. */
struct recorder_ack {
	uint64_t first;
	uint64_t last;
	uint32_t durable;
	uint32_t reserved;
};

int recorder_control_check(const struct recorder_control *control, size_t size, struct error *err);
int recorder_ack_check(const struct recorder_ack *ack, struct error *err);

int event_message_check(const struct event_message *message, size_t size, struct error *err);

#endif
