/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_MESSAGE_H
#define FSBOX_PROTO_JSON_MESSAGE_H

/*
 * Protocol version 1 as C structs: what clients ask and what the broker answers.
 *
 * docs/fsbox-protocol(7) says what each field means to people, fsbox-1.schema.json how it looks on the
 * wire; tests hold both against the tables behind these structs.
 *
 * Conventions, for every struct here:
 *   - char * is owned heap text without NUL inside; NULL where an optional field is absent. Paths,
 *     arguments and variables may hold any bytes but NUL; on the wire {"b64":"..."} where they are not
 *     UTF-8. All other text is UTF-8.
 *   - a list is {items, count, capacity}, owned; an absent list is empty. List items are never NULL.
 *   - an optional struct is an owned pointer, NULL when absent; plain members are always there.
 *   - an optional number or boolean is 0 or false when absent, unless said otherwise.
 *   - an int named ..._fd is an owned descriptor, -1 when absent. Decoding claims it from the frame's
 *     fdset; encoding puts a duplicate into the outgoing one; deinit closes it.
 *   - start from the _INIT macro where a struct has one, else from zeroes: that is the absent state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/limits.h"
#include "proto/json/parts.h"
#include "proto/wire/fdset.h"
#include "proto/wire/spawnop.h"

#define PROTOCOL_VERSION 1

struct json_doc;
struct json_value;
struct policy_context; /* common/context.h */

/*	 symbol		name		member		what it does, for the manual */
#define METHODS(X)                                                                         \
	X(METHOD_HELLO, "hello", hello, "agree on the protocol; must come first")          \
	X(METHOD_SPAWN, "spawn", spawn, "run a command in a sandbox")                      \
	X(METHOD_WAIT, "wait", wait, "answer when a job has ended")                        \
	X(METHOD_SIGNAL, "signal", signal, "send a signal to a job's command")             \
	X(METHOD_LIST, "list", list, "the caller's jobs; an administrator's all")          \
	X(METHOD_INSPECT, "inspect", inspect, "one job in detail")                         \
	X(METHOD_STATUS, "status", status, "the daemon: counters, frozen facts, engines")  \
	X(METHOD_DETECT, "detect", detect, "which engines work on this machine now")       \
	X(METHOD_POLICY, "policy", policy, "what a spawn would enforce; nothing is run")   \
	X(METHOD_WHY, "why", why, "which rule decides about a path or a host")             \
	X(METHOD_EVENTS, "events", events, "what was recorded, as lines of JSON")          \
	X(METHOD_GRANT_CREATE, "grant.create", grant_create, "allow one job more network") \
	X(METHOD_GRANT_LIST, "grant.list", grant_list, "grants that were made")            \
	X(METHOD_GRANT_REVOKE, "grant.revoke", grant_revoke, "take a grant back")          \
	X(METHOD_LEDGER, "ledger", ledger, "placeholders on the host")

#define X(symbol, name, member, text) symbol,
enum method { METHOD_NONE = 0, METHODS(X) METHOD_COUNT };
#undef X

const char *method_name(enum method method);    /* "spawn"; "" when out of range */
const char *method_meaning(enum method method); /* one line for the manual */
enum method method_from_name(const char *name); /* METHOD_NONE when there is none */

/* ---- hello --------------------------------------------------------------------------- */

struct hello_params {
	uint32_t protocol;
	char *client; /* program and version, for people */
};

struct hello_limits {
	uint64_t frame_bytes;
	uint64_t params_bytes;
	uint32_t frame_fds;
	uint32_t requests; /* of one connection at a time */
};

struct hello_result {
	uint32_t protocol;
	char *server; /* "fsbox 0.1.0" */
	enum daemon_mode mode;
	struct msg_engine_list engines;
	struct string_list features;
	struct hello_limits limits;
	uint32_t uid; /* as whom the caller is known */
};

/* ---- spawn, policy ------------------------------------------------------------------- */

/*
 * @argv        at least one; argv[0] absolute, or a name looked up on the job's PATH
 * @cwd         absolute
 * @env         the caller's environment: withheld by name as the profile says
 * @env_set     "envSet": set on top, never withheld
 * @env_pass    "envPass": names of @env that are not withheld
 * @profile     a name, or the absolute path of a profile file; NULL: the default
 * @context     botmux profile only; NULL when absent
 * @socket_allow  "socketAllow": known dangerous sockets that stay reachable
 * @engine      ENGINE_DEFAULT when absent
 * @umask       as a number; -1 when absent
 * @lifeline_fd "lifeline": when its other end closes, the job ends
 * @grant_fd    "grant": where a grant's token is read from
 * @session     joins a session; NULL: none
 * @grant_request  "grantRequest": dry runs and `policy` only: as if there was a grant, to see what it
 *              would have to be for
 */
struct spawn_params {
	struct string_list argv;
	char *cwd;
	struct env_list env;
	struct env_list env_set;
	struct string_list env_pass;
	char *profile;
	struct policy_context *context;
	struct msg_paths paths;
	struct string_list socket_allow;
	struct msg_net net;
	struct msg_limits limits;
	struct msg_tty *tty;
	struct msg_stdio stdio;
	int lifeline_fd;
	int grant_fd;
	enum engine_kind engine;
	char *label;
	char *session;
	int32_t umask;
	bool allow_home;       /* "allowHome" */
	bool allow_git_config; /* "allowGitConfig" */
	bool detach;
	bool dry_run; /* "dryRun" */
	bool grant_request;
};

#define SPAWN_PARAMS_INIT                                                               \
	{                                                                               \
		.stdio = MSG_STDIO_INIT, .lifeline_fd = -1, .grant_fd = -1, .umask = -1 \
	}

/* `policy`: the params of a spawn; argv and cwd may be left out. */
struct policy_params {
	struct spawn_params spawn;
};

/*
 * @bwrap      argument vector without the command; empty when not for this engine
 * @seatbelt   profile text; NULL when not for this engine
 */
struct policy_result {
	struct msg_rule_list rules;
	enum net_mode net;
	struct msg_net *hosts; /* where network `proxy` leads, and forwarded ports; NULL: nowhere */
	enum engine_kind engine;
	enum room_kind room;
	char *policy_digest;                           /* "policyDigest": 64 hexadecimal digits */
	struct string_list suppressed_authority_paths; /* "suppressedAuthorityPaths" */
	struct string_list write_regexes;              /* "writeRegexes" */
	struct string_list deny_regexes;               /* "denyRegexes" */
	struct string_list final_read_only_paths;      /* "finalReadOnlyPaths" */
	struct msg_note_list notes;
	struct string_list withheld; /* names of variables */
	struct string_list warnings;
	struct msg_plan_op_list plan;
	struct string_list bwrap;
	char *seatbelt;
	char *args_hash; /* "argsHash": these three for a grant (struct grant_terms); only with argv */
	char *env_hash;  /* "envHash" */
	char *plan_hash; /* "planHash" */
};

/*
 * Of a dry run only @engine, @room, @policy_digest, @rules, the lists and @policy are there.
 *
 * @cookie   32 hexadecimal digits; with it the job may be asked about from another connection
 * @pid      pid 1 of the job, as the caller's pid namespace shows it
 * @pidfd    "pidfd": of pid 1
 * @rules    how many
 */
struct spawn_result {
	uint64_t job;
	char *cookie;
	int32_t pid;
	int pidfd_fd;
	enum engine_kind engine;
	enum room_kind room;
	char *policy_digest;
	uint32_t rules;
	struct msg_note_list suppressed;
	struct string_list withheld;
	struct string_list warnings;
	struct limits_result limits;
	struct policy_result *policy;
};

#define SPAWN_RESULT_INIT      \
	{                      \
		.pidfd_fd = -1 \
	}

/* ---- wait, signal, list, inspect ----------------------------------------------------- */

/* @cookie  needed for a job of another connection unless the caller's uid owns it; may be NULL */
struct wait_params {
	uint64_t job;
	char *cookie;
};

struct msg_usage {
	uint64_t user_ms;
	uint64_t sys_ms;
	uint64_t max_rss_kib;
};

/* Also the notification `exited`. */
struct wait_result {
	uint64_t job;
	enum exit_reason reason;
	uint32_t code;   /* EXIT_EXITED */
	uint32_t signal; /* EXIT_SIGNALED */
	bool core_dumped;
	uint64_t wall_ms;
	struct msg_usage usage;
	struct string_list planted;
	uint32_t repaired;
};

/* From and to the fixed-layout record. */
void wait_result_from_record(struct wait_result *ret_result, uint64_t job,
			     const struct exit_record *record);

struct signal_params {
	uint64_t job;
	char *cookie;
	uint32_t signal;
};

struct signal_result {
	bool none; /* an empty object on the wire */
};

/* @all  also of other users; administrators only */
struct list_params {
	bool all;
};

struct msg_job {
	uint64_t job;
	uint32_t uid;
	int32_t pid;
	enum job_state state;
	char *profile;
	char *command; /* last component of argv[0], nothing else of it */
	char *label;
	uint64_t started_ms; /* "startedMs": since 1970 */
	enum engine_kind engine;
	enum room_kind room;
	bool detached;
};

struct msg_job_list {
	struct msg_job *items;
	size_t count;
	size_t capacity;
};

struct list_result {
	struct msg_job_list jobs;
};

struct inspect_params {
	uint64_t job;
	char *cookie;
};

/*
 * What only the broker that started a job knows is absent for others.
 *
 * @masks, @placeholders, @pins, @watched  of a job that runs: paths that are hidden; of these, those that
 *                were made for it; directories that keep their names; absent paths that are waited for
 * @planted, @repaired  what its guard did so far, as in struct wait_result
 * @exited        it is over
 */
struct inspect_result {
	struct msg_job job;
	char *cwd;
	char *policy_digest;
	uint32_t rules;
	struct msg_note_list suppressed;
	struct string_list withheld;
	struct string_list warnings;
	struct limits_result limits;
	struct msg_net *hosts; /* of a job that runs, as in struct policy_result */
	struct string_list masks;
	struct string_list placeholders;
	struct string_list pins;
	struct string_list watched;
	struct string_list planted;
	uint32_t repaired;
	struct wait_result *exited;
};

/* ---- ledger -------------------------------------------------------------------------- */

/* @all  also of other users; administrators only. @repair  try again to remove what is left over */
struct ledger_params {
	bool all;
	bool repair;
};

/* @entries: shown or not; @replayed, @damaged, @unwritable: what fsboxd found when it started */
struct ledger_result {
	struct msg_placeholder_list placeholders;
	uint32_t entries;
	uint32_t replayed;
	uint32_t damaged;
	char *unwritable;
};

/* ---- status, detect ------------------------------------------------------------------ */

struct status_params {
	bool none;
};

/*
 * @facts        frozen facts about the caller's host: home, XDG_CONFIG_HOME ...
 * @unenforced   promises that this machine cannot hold, one clause each
 */
struct status_result {
	char *version;
	enum daemon_mode mode;
	uint32_t uid;
	uint64_t started_ms;
	uint64_t uptime_ms;
	bool recorder_up; /* "recorderUp" */
	struct status_counters counters;
	struct env_list facts;
	struct msg_engine_list engines;
	struct string_list unenforced;
	char *default_profile; /* "defaultProfile" */
	enum net_mode max_net; /* "maxNet" */
};

struct detect_params {
	bool none;
};

struct detect_result {
	struct msg_engine_list engines;
	struct string_list unenforced;
};

/* ---- why ----------------------------------------------------------------------------- */

/*
 * Exactly one of @path and @host. About a running job when @job is not 0; otherwise about the
 * policy that SPAWN would get (its fields stand beside the others on the wire; argv not needed).
 */
struct why_params {
	struct spawn_params spawn;
	uint64_t job;
	char *cookie;
	char *path;
	char *host;
};

#define WHY_PARAMS_INIT           \
	{                         \
		SPAWN_PARAMS_INIT \
	}

/*
 * @access    "readWrite" "readOnly" "deny" "none" for a path; "allowed" "denied" for a host
 * @rule      the one that decided; NULL when none covers the path
 * @shadowed  covers the path too, deepest first
 * @real      where the path really is, when links lead elsewhere
 * @type      what is there: "file", "directory", "absent" ...
 * @mask      how a deny is held: "mask-dir", "placeholder" ...
 * @hint      what to do about it; one sentence
 */
struct why_result {
	char *access;
	struct msg_rule *rule;
	struct msg_rule_list shadowed;
	char *real;
	char *type;
	char *mask;
	char *entry;  /* of a list of hosts: the deciding one */
	char *origin; /* whose @entry is: "request" or "profile" */
	char *hint;
};

/* ---- events -------------------------------------------------------------------------- */

/*
 * @job     only what is about this job; 0: everything
 * @follow  go on with what is recorded from now on
 * @all     of all users; administrators only
 */
struct events_params {
	uint64_t job;
	bool follow;
	bool all;
};

/* @stream_fd  "stream": a pipe, one event of events.jsonl on each line; its end is the end */
struct events_result {
	int stream_fd;
};

#define EVENTS_RESULT_INIT      \
	{                       \
		.stream_fd = -1 \
	}

/* ---- grants -------------------------------------------------------------------------- */

/*
 * Hashes are 64 hexadecimal digits each; struct grant_terms says over what.
 *
 * @uid    who may use it
 * @net    NET_PROXY or NET_HOST
 * @ttl_ms "ttlMs": for how long
 * @stdin_kinds ...  "stdin" ...: what the descriptor may be: "null" "tty" "pipe" "socket" "file" "other"
 */
struct grant_create_params {
	uint32_t uid;
	enum net_mode net;
	uint64_t ttl_ms;
	char *command;
	char *args_hash; /* "argsHash" */
	char *env_hash;  /* "envHash" */
	char *exec_hash; /* "execHash" */
	char *plan_hash; /* "planHash" */
	struct string_list stdin_kinds;
	struct string_list stdout_kinds;
	struct string_list stderr_kinds;
};

/* @token  64 hexadecimal digits; a secret, told only here */
struct grant_create_result {
	uint64_t grant;
	char *token;
	uint64_t expires_ms; /* "expiresMs": since 1970 */
};

struct grant_list_params {
	bool none;
};

/* @job  that used it, or 0 */
struct msg_grant {
	uint64_t grant;
	uint32_t uid;
	uint32_t creator;
	enum grant_state state;
	enum net_mode net;
	char *command;
	uint64_t created_ms; /* "createdMs" */
	uint64_t expires_ms; /* "expiresMs" */
	uint64_t job;
};

struct msg_grant_list {
	struct msg_grant *items;
	size_t count;
	size_t capacity;
};

struct grant_list_result {
	struct msg_grant_list grants;
};

struct grant_revoke_params {
	uint64_t grant;
};

struct grant_revoke_result {
	bool none;
};

/* ---- messages ------------------------------------------------------------------------ */

#define MESSAGE_ID_BYTES 64

/* A request's id: an integer or a string of at most MESSAGE_ID_BYTES bytes. */
struct message_id {
	enum { MESSAGE_ID_NONE = 0, MESSAGE_ID_NUMBER, MESSAGE_ID_STRING } kind;
	int64_t number;
	char text[MESSAGE_ID_BYTES + 1];
};

#define MESSAGE_ID(n)                                    \
	{                                                \
		.kind = MESSAGE_ID_NUMBER, .number = (n) \
	}

bool message_id_equal(const struct message_id *a, const struct message_id *b);

enum message_kind {
	MESSAGE_REQUEST = 1,
	MESSAGE_RESULT,
	MESSAGE_ERROR,
	MESSAGE_EXITED, /* the one notification of version 1 */
};

/*
 * One parsed frame, before its body is decoded.
 *
 * @method  of a request; METHOD_NONE for a method we do not know
 * @error   of MESSAGE_ERROR
 */
struct message {
	enum message_kind kind;
	struct message_id id;
	enum method method;
	struct error_reply error;
	struct json_doc *doc;          /* owned */
	const struct json_value *body; /* params or result, in doc */
	struct fdset fds;              /* not yet claimed */
};

/*
 * Parse one frame's payload.
 *
 * @text, @size  borrowed; not needed afterwards
 * @fds          the frame's descriptors, moved into the message; may be NULL
 *
 * Fails with ERR_BAD_JSON (not the JSON we allow), ERR_INVALID (not a message of ours),
 * ERR_UNKNOWN_METHOD. Whatever happens MESSAGE may be deinited, and message->id is the request's id
 * as far as one could be read, so that an error can be answered to it. Params in a memfd (paramsFd)
 * are checked for seals and size, mapped and parsed here.
 */
int message_parse(struct message *ret_message, const char *text, size_t size, struct fdset *fds,
		  struct error *err);
void message_deinit(struct message *message); /* closes unclaimed descriptors */

#define X(symbol, name, member, text) struct member##_params member;
union method_params {
	METHODS(X)
};
#undef X

#define X(symbol, name, member, text) struct member##_result member;
union method_result {
	METHODS(X)
};
#undef X

/* The absent state of a method's params or result. */
void method_params_init(enum method method, union method_params *params);
void method_params_deinit(enum method method, union method_params *params);
void method_result_init(enum method method, union method_result *result);
void method_result_deinit(enum method method, union method_result *result);

/*
 * Decode a request's params (by message->method) or a result (METHOD is what the caller asked with
 * this id). Every descriptor of the frame must be named exactly once. On failure nothing needs
 * releasing. Fails with ERR_INVALID, naming the member ("params.paths.deny[3].absent: ..."),
 * ERR_BAD_FRAME (descriptors), ERR_NOMEM.
 */
int message_decode_params(struct message *message, union method_params *ret_params,
			  struct error *err);
int message_decode_result(struct message *message, enum method method,
			  union method_result *ret_result, struct error *err);
int message_decode_exited(struct message *message, struct wait_result *ret_exited,
			  struct error *err);
void wait_result_deinit(struct wait_result *result);

/*
 * Append a payload to OUT, and duplicates of descriptors to FDS (NULL where the message has none).
 * Fails with ERR_NOMEM (OUT's ceiling), ERR_INVALID (a struct that the protocol cannot express),
 * ERR_SYSTEM; OUT and FDS are then to be thrown away. The params of a request that do not fit into a
 * frame are put into a sealed memfd.
 */
int message_encode_request(struct buf *out, struct fdset *fds, const struct message_id *id,
			   enum method method, const union method_params *params,
			   struct error *err);
int message_encode_result(struct buf *out, struct fdset *fds, const struct message_id *id,
			  enum method method, const union method_result *result, struct error *err);
/* @id  MESSAGE_ID_NONE where the request's could not be read */
int message_encode_error(struct buf *out, const struct message_id *id,
			 const struct error_reply *reply, struct error *err);
int message_encode_exited(struct buf *out, const struct wait_result *exited, struct error *err);

#endif
