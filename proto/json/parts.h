/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_PARTS_H
#define FSBOX_PROTO_JSON_PARTS_H

/*
 * Structs that several messages are made of, and the error reply. The conventions are those of
 * message.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"
#include "common/rule.h"
#include "proto/json/envlist.h"
#include "proto/wire/spawnop.h"

/* ---- of requests --------------------------------------------------------------------- */

/* A path of a request: on the wire a string, or {path, absent, optional}. */
struct path_entry {
	char *path; /* absolute; otherwise as given */
	enum absent_mode absent;
	bool optional; /* may be missing: then dropped without a word */
};

struct path_entry_list {
	struct path_entry *items;
	size_t count;
	size_t capacity;
};

int path_entry_list_add(struct path_entry_list *list, const char *path, struct error *err);
void path_entry_list_deinit(struct path_entry_list *list);

struct msg_paths {
	struct path_entry_list read_write; /* "readWrite" */
	struct path_entry_list read_only;  /* "readOnly" */
	struct path_entry_list deny;
};

struct port_list {
	uint32_t *items;
	size_t count;
	size_t capacity;
};

enum net_choice { NET_CHOICE_UNSET = 0, NET_CHOICE_NONE, NET_CHOICE_PROXY, NET_CHOICE_HOST };

/*
 * @mode      NET_CHOICE_UNSET when the caller left it to the profile
 * @allow     host patterns for mode proxy; @deny wins
 * @forward   loopback ports of the host to be reachable inside
 * @loopback  publish on loopback TCP too
 */
struct msg_net {
	enum net_choice mode; /* net_choice_mode() */
	struct string_list allow;
	struct string_list deny;
	struct port_list forward;
	bool loopback;
};

/* False for NET_CHOICE_UNSET. */
bool net_choice_mode(enum net_choice choice, enum net_mode *ret_mode);
enum net_choice net_choice_from_mode(enum net_mode mode);

/* 0: not limited by the caller. "cpus" is an integer or a decimal string like "1.5". */
struct msg_limits {
	uint64_t memory_bytes;
	uint64_t wall_ms;
	uint32_t pids;
	uint32_t cpus_milli; /* "cpus" */
};

struct msg_tty {
	uint32_t rows;
	uint32_t cols;
};

/* "stdin", "stdout", "stderr": a descriptor, or -1 for "null" and absent. */
struct msg_stdio {
	int in_fd;
	int out_fd;
	int err_fd;
};

#define MSG_STDIO_INIT                                  \
	{                                               \
		.in_fd = -1, .out_fd = -1, .err_fd = -1 \
	}

/* ---- of results ---------------------------------------------------------------------- */

struct msg_engine {
	enum engine_kind name;
	bool supported;  /* built for this platform */
	bool available;  /* works now */
	bool is_default; /* "default" */
	char *reason;    /* why not available */
};

struct msg_engine_list {
	struct msg_engine *items;
	size_t count;
	size_t capacity;
};

/* What is enforced; @unenforced names those of the members that this machine cannot hold. */
struct limits_result {
	uint64_t memory_bytes;
	uint64_t wall_ms;
	uint32_t pids;
	uint32_t cpus_milli;
	struct string_list unenforced;
};

/* One rule; on the wire of `policy` the tuple [path, access, source]. */
struct msg_rule {
	char *path;
	enum access access;
	enum rule_source source;
	char *origin; /* for people: where it came from; not in the tuple */
};

struct msg_rule_list {
	struct msg_rule *items;
	size_t count;
	size_t capacity;
};

struct msg_note {
	char *path;
	char *reason;
};

struct msg_note_list {
	struct msg_note *items;
	size_t count;
	size_t capacity;
};

/* One plan operation. */
struct msg_plan_op {
	char *op; /* "bind", "mask-dir" ... */
	char *path;
	char *source;
	struct string_list flags; /* "read-only", "placeholder" ... */
};

struct msg_plan_op_list {
	struct msg_plan_op *items;
	size_t count;
	size_t capacity;
};

/* ---- errors -------------------------------------------------------------------------- */

struct index_list {
	uint32_t *items;
	size_t count;
	size_t capacity;
};

/* A whole message of struct error, each byte of it written as \xNN. */
#define ERROR_REPLY_BYTES ((size_t)4 * ERROR_MESSAGE_BYTES)

/*
 * @code      JSON-RPC's number: error_rpc_code(kind)
 * @message   for people
 * @errnum    "errno", 0 when there is none
 * @stage     of setup-failed: "placeholder", "bwrap", "exec" ...
 * @path      what it was about
 * @indexes   descriptors of the frame that were refused (stdio-relay, descriptor-refused)
 * @hint      what to do about it
 */
struct error_reply {
	int32_t code;
	char *message;
	enum error_kind kind;
	uint32_t errnum;
	char *stage;
	char *path;
	struct index_list indexes;
	char *hint;
};

int error_rpc_code(enum error_kind kind);

/*
 * REPLY, which is uninitialised, from ERR. STAGE, PATH, HINT may be NULL; copied. Bytes of a message that
 * are not UTF-8 become \xNN. Fails with ERR_NOMEM in FAIL.
 */
int error_reply_set(struct error_reply *ret_reply, const struct error *err, const char *stage,
		    const char *path, const char *hint, struct error *fail);
/* Back into ERR; returns -kind. */
int error_reply_to_error(const struct error_reply *reply, struct error *err);
void error_reply_deinit(struct error_reply *reply);

/* ---- of answers -------------------------------------------------------------------- */

/*
 * @made  else somebody was about to make it, and perhaps did
 * @left  it could not be removed when it was tried
 * @jobs  how many stand on it
 */
struct msg_placeholder {
	char *path;
	uint32_t uid;
	bool made;
	bool left;
	uint32_t jobs;
};

struct msg_placeholder_list {
	struct msg_placeholder *items;
	size_t count;
	size_t capacity;
};

/* What the daemon has counted since it started. */
struct status_counters {
	uint32_t brokers;
	uint32_t connections;
	uint32_t jobs;
	uint32_t jobs_of_uid; /* "jobsOfUid" */
	uint64_t spawns;
	uint64_t failures;
	uint64_t refused_peers; /* "refusedPeers" */
	uint32_t placeholders;
	uint32_t stuck;
	uint64_t zygotes_ready, zygotes_used;      /* "zygotesReady", "zygotesUsed" */
	uint64_t zygotes_refused, zygotes_expired; /* "zygotesRefused", "zygotesExpired" */
};

#endif
