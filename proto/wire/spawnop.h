/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_SPAWNOP_H
#define FSBOX_PROTO_WIRE_SPAWNOP_H

/*
 * What the broker, fsboxd, the builder and init say to each other: fixed layouts in the machine's
 * own byte order, since both ends are always on one machine and of one build.
 *
 *	broker  --pipe---->  fsboxd	struct op_message	no descriptors possible
 *	fsboxd  --socket-->  broker	struct link_message	descriptors that fsboxd made or accepted
 *	builder, init --pipe--> fsboxd	struct report_message	no descriptors possible
 *	guard   --pipe---->  fsboxd	struct report_message	no descriptors possible
 *	fsboxd  --pipe---->  builder, init	one GO byte for each thing announced
 *	broker  --socket-->  init	struct start_message	the client's descriptors
 *	init    --socket-->  broker	struct report_message	init's own pidfd
 *
 * Towards fsboxd everything is a pipe: a pipe cannot carry a descriptor, so fsboxd can never be made
 * to hold or close a file that somebody else chose (closing one on a dead file system can block for
 * ever). Each pipe has one writer; a message is its header and exactly header.size bytes in all.
 *
 * Every receiver checks with the *_check() functions below before it looks at a field: size, kind,
 * terminated strings, booleans 0 or 1, enums in range.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"

#define SPAWNOP_VERSION 1

/* Descriptor numbers at exec. */
#define BROKER_FD_LINK 3      /* socket: fsboxd's messages */
#define BROKER_FD_REQUEST 4   /* pipe: our messages to fsboxd */
#define RECORDER_FD_EVENTS 3  /* pipe: struct event_message */
#define INIT_FD_REPORT 3      /* pipe: struct report_message to fsboxd */
#define INIT_FD_GO 4          /* pipe: GO bytes from fsboxd */
#define INIT_FD_CHANNEL 5     /* socket: the job channel */
#define INIT_FD_SETUP 6       /* sealed memfd: struct setup_header ... */
#define INIT_FD_SELF 7        /* sealed memfd: the init program itself (bwrap engine) */
#define INIT_FD_DEV 8         /* O_PATH directory: the host's /dev, for Landlock; may be closed */
#define INIT_FD_EGRESS 9      /* socket: struct egress_listener to fsbox-egress; may be closed */
#define INIT_FD_RESULT 10     /* socket: the scribe of the result (bwrap engine); or no socket */
#define RECORDER_FD_CONTROL 4 /* socket: struct recorder_control */
#define RECORDER_FD_ACK 5     /* pipe: struct recorder_ack to fsboxd */

enum daemon_mode { MODE_SYSTEM = 1, MODE_USER, MODE_ROOT };

enum engine_kind { ENGINE_DEFAULT = 0, ENGINE_BWRAP, ENGINE_NATIVE, ENGINE_SEATBELT };

/* What the job's network room was, for records (docs: fsbox-events). */
enum room_kind {
	ROOM_EGRESS_DENIED = 1,
	ROOM_EGRESS_ALLOWLIST,
	ROOM_EGRESS_OPEN,
	ROOM_OPTED_OUT,
	ROOM_GRANTED_EGRESS,
	ROOM_UNSUPPORTED,
};

struct job_limits {
	uint64_t memory_bytes; /* 0: none */
	uint64_t wall_ms;      /* 0: none */
	uint32_t pids;         /* 0: none */
	uint32_t cpus_milli;   /* thousandths of a processor; 0: none */
};

/* How a job ended. */
enum exit_reason { EXIT_EXITED = 1, EXIT_SIGNALED, EXIT_TIMEOUT, EXIT_OOM, EXIT_LOST };

struct exit_record {
	uint32_t reason; /* enum exit_reason */
	int32_t code;    /* EXIT_EXITED: the status, else 0 */
	int32_t signal;  /* EXIT_SIGNALED: the number, else 0 */
	uint32_t core_dumped;
	uint64_t wall_ms;
	uint64_t user_ms;
	uint64_t sys_ms;
	uint64_t max_rss_kib;
};

/* Why a step failed; text is foreign to fsboxd: it copies, never interprets. */
struct failure {
	uint32_t kind; /* enum error_kind */
	int32_t errnum;
	char stage[32];    /* "placeholder", "bwrap", "landlock", "exec" ... */
	char message[512]; /* for people */
};

/* ---- broker -> fsboxd ---------------------------------------------------------------- */

enum op_kind {
	OP_READY = 1,    /* the broker serves */
	OP_CONN_CLOSED,  /* conn: forget this connection */
	OP_JOB_OPEN,     /* conn: answered by LINK_JOB_OPENED or LINK_ERROR with the same seq */
	OP_JOB_START,    /* answered by LINK_JOB_UP, then LINK_JOB_ENDED; or LINK_JOB_FAILED */
	OP_JOB_ABANDON,  /* a job that is open or provisional will not be started */
	OP_JOB_SIGNAL,   /* answered by LINK_DONE or LINK_ERROR */
	OP_JOB_LIST,     /* answered by any number of LINK_JOB_ENTRY, then LINK_DONE */
	OP_STATUS,       /* answered by LINK_STATUS */
	OP_JOB_FIND,     /* a job that another broker started: LINK_JOB_FOUND, or LINK_ERROR */
	OP_EVENTS,       /* answered by LINK_EVENTS */
	OP_GRANT_CREATE, /* answered by LINK_GRANT */
	OP_GRANT_LIST,   /* answered by any number of LINK_GRANT_ENTRY, then LINK_DONE */
	OP_GRANT_REVOKE, /* answered by LINK_DONE */
	OP_JOB_CONFIRM,  /* a provisional job's plan is right */
	OP_LEDGER, /* answered by up to LIMIT_LEDGER_SHOWN LINK_LEDGER_ENTRY, then LINK_LEDGER */
	OP_KIND_COUNT,
};

/* What a standard descriptor may be; bits. */
enum stdio_kind {
	STDIO_KIND_NULL = 1 << 0, /* none given, or /dev/null */
	STDIO_KIND_TTY = 1 << 1,
	STDIO_KIND_PIPE = 1 << 2,
	STDIO_KIND_SOCKET = 1 << 3,
	STDIO_KIND_FILE = 1 << 4,
	STDIO_KIND_OTHER = 1 << 5,
	STDIO_KIND_ALL = (1 << 6) - 1,
};

#define HASH_BYTES 32        /* SHA-256 */
#define GRANT_TOKEN_BYTES 32 /* random */

/*
 * What one grant allows, exactly. fsboxd holds user, network, plan and time; pid 1 of the job what only
 * it can see: arguments, environment, executable, descriptors.
 *
 * @uid         who may use it
 * @net         enum net_mode
 * @expires_ms  CLOCK_REALTIME
 * @args_hash   of the working directory and the arguments, each with its NUL
 * @env_hash    of the variables NAME=VALUE in their order, each with its NUL
 * @exec_hash   of the content of the file that is executed
 * @plan_hash   of the encoded plan and the lists of hosts behind it: everything that is enforced
 * @stdio       enum stdio_kind of standard input, output, error
 * @command     for lists
 */
struct grant_terms {
	uint32_t uid;
	uint32_t net;
	uint64_t expires_ms;
	uint8_t args_hash[HASH_BYTES];
	uint8_t env_hash[HASH_BYTES];
	uint8_t exec_hash[HASH_BYTES];
	uint8_t plan_hash[HASH_BYTES];
	uint32_t stdio[3];
	uint32_t reserved;
	char command[LIMIT_NAME_BYTES];
};

/*
 * @has_grant  @token is there, and so are the hashes: they are what the broker says, so that a grant
 *             that cannot fit is not spent on finding out
 */
struct op_start_grant {
	uint32_t has_grant;
	uint32_t reserved;
	uint8_t token[GRANT_TOKEN_BYTES];
	uint8_t args_hash[HASH_BYTES];
	uint8_t env_hash[HASH_BYTES];
};

struct op_start {
	struct job_limits limits;
	uint32_t plan_bytes; /* size of the plan in the job's plan memfd */
	uint32_t net_bytes;  /* of the network policy (common/netpolicy.h) behind it; 0: none */
	uint32_t engine;     /* enum engine_kind, not default */
	uint32_t room;       /* enum room_kind */
	uint32_t detached;
	uint32_t provisional; /* only what is prepared may be used for it before OP_JOB_CONFIRM */
	uint32_t argc;
	uint32_t rules;
	uint32_t suppressed;
	uint32_t withheld;
	uint8_t args_hash[32];     /* SHA-256 over the args memfd's argv part */
	uint8_t policy_digest[32]; /* SHA-256 over the canonical policy text */
	uint8_t cookie_hash[32];   /* SHA-256 over the cookie's text */
	char profile[LIMIT_NAME_BYTES];
	char command[LIMIT_NAME_BYTES]; /* last component of argv[0], cut and escaped */
	char label[LIMIT_LABEL_BYTES];
	struct op_start_grant grant;
};

struct op_signal {
	uint32_t signo;
};

/* @everybody  an administrator's connection only */
struct op_events {
	uint64_t about_job; /* 0: all */
	uint32_t everybody;
	uint32_t follow;
};

struct op_grant_id {
	uint64_t id;
};

struct op_ledger {
	uint32_t repair; /* try again what could not be removed */
	uint32_t all;    /* everybody's, for administrators */
};

struct op_message {
	uint32_t size; /* of the whole message: op_message_size(kind) */
	uint32_t kind; /* enum op_kind */
	uint64_t seq;  /* the broker's number for the request; echoed in the answer */
	uint64_t conn; /* fsboxd's number of the client's connection; 0 where none is meant */
	uint64_t job;  /* 0 where none is meant */
	union {
		struct op_start start;
		struct op_signal signal;
		struct op_events events;
		struct grant_terms grant;
		struct op_grant_id grant_id;
		struct op_ledger ledger;
	} u;
};

/* ---- fsboxd -> broker ---------------------------------------------------------------- */

enum link_kind {
	LINK_CONFIG = 1, /* first message */
	LINK_CONN,       /* + [connection, pidfd of the peer] */
	LINK_JOB_OPENED, /* + [plan memfd, job channel]; seq 0: ahead of the next OP_JOB_START */
	LINK_JOB_UP,     /* pid 1 of the job is known to fsboxd */
	LINK_JOB_FAILED, /* the job never ran its command; nothing of it is left */
	LINK_JOB_ENDED,  /* the job is over, as fsboxd saw it */
	LINK_JOB_ENTRY,
	LINK_DONE,
	LINK_ERROR,
	LINK_STATUS,
	LINK_JOB_GUARD, /* what the job's guard did */
	LINK_JOB_FOUND, /* LINK_JOB_ENDED follows when it ends, unless it has */
	LINK_EVENTS,    /* + [reading end of a pipe with lines of text] */
	LINK_GRANT,
	LINK_GRANT_ENTRY,
	LINK_LEDGER_ENTRY,
	LINK_LEDGER,
	LINK_KIND_COUNT,
};

#define LINK_TEXT_BYTES 2048

/*
 * @text  NUL-terminated strings one after the other, an empty one ends them: NAME=VALUE host facts
 *        that configuration froze for this user (XDG_CONFIG_HOME ...)
 */
struct link_config {
	uint32_t version; /* SPAWNOP_VERSION */
	uint32_t mode;    /* enum daemon_mode */
	uint32_t engines; /* bits 1 << enum engine_kind that work now */
	uint32_t uid;
	uint32_t gid;
	char run_dir[256];       /* fsbox's runtime directory, mandatory deny */
	char state_dir[256];     /* likewise */
	char log_dir[256];       /* likewise; may be empty */
	char config_dir[256];    /* /etc/fsbox */
	char exec_dir[256];      /* where the roles are, mandatory readOnly */
	char mask_dir[256];      /* an empty directory of mode 000 */
	char mask_file[256];     /* an empty file of mode 000 */
	char engine_reason[256]; /* why an engine is not there, for people */
	char text[LINK_TEXT_BYTES];
};

struct link_conn {
	int32_t pid;
	uint32_t uid;
	uint32_t gid;
	uint32_t admin;      /* may see and signal everybody's jobs */
	uint64_t start_time; /* of the peer's process, clock ticks since boot (proc_pid_stat(5)) */
};

struct link_job_up {
	int32_t pid; /* of pid 1, as the host sees it */
};

struct link_job_entry {
	uint32_t uid;
	int32_t pid;
	uint32_t state; /* enum job_state */
	uint32_t engine;
	uint32_t room;
	uint32_t detached;
	uint64_t started_ms; /* CLOCK_REALTIME */
	char profile[LIMIT_NAME_BYTES];
	char command[LIMIT_NAME_BYTES];
	char label[LIMIT_LABEL_BYTES];
};

enum job_state { JOB_OPEN = 1, JOB_STARTING, JOB_RUNNING, JOB_ENDING };

/*
 * @entry, @limits, @rules, @policy_digest  of a job that runs
 * @is_over  it does not, and ended as @ended says
 */
struct link_job_found {
	struct link_job_entry entry;
	struct job_limits limits;
	uint32_t rules;
	uint32_t is_over;
	uint32_t repaired; /* so often its guard put a mask back */
	uint32_t reserved;
	uint8_t policy_digest[32];
	uint8_t cookie_hash[32];
	struct exit_record ended;
};

struct link_status {
	uint64_t started_ms; /* CLOCK_REALTIME at which fsboxd started */
	uint32_t brokers;
	uint32_t connections;
	uint32_t jobs;
	uint32_t jobs_of_uid;
	uint64_t spawns;
	uint64_t failures;
	uint64_t refused_peers;
	uint32_t placeholders;
	uint32_t stuck;
	uint32_t recorder_up;
	uint32_t engines;
	uint64_t zygotes_ready, zygotes_used, zygotes_refused, zygotes_expired;
};

/* What was done about a protected name that appeared. */
enum guard_action {
	GUARD_REPORTED = 1, /* nothing */
	GUARD_QUARANTINED,  /* it was renamed */
	GUARD_LEFT,         /* it could not be renamed: the job was killed */
	GUARD_KILLED,       /* it was renamed and the job killed */
};

const char *guard_action_name(enum guard_action action); /* "reported" ... */

/*
 * What a guard tells (REPORT_MASK_*, REPORT_NAME_APPEARED); of all but REPORT_MASK_GONE the broker hears.
 *
 * @exposure_us  REPORT_MASK_REPAIRED: for how long it was open at most; else 0
 * @action       REPORT_NAME_APPEARED: enum guard_action, else 0
 * @kept_as      the name in quarantine, in the same directory as path or, where path is an entry of
 *               a directory that stays, beside that; else empty
 */
struct report_guard {
	uint64_t job;
	uint64_t exposure_us;
	uint32_t action;
	uint32_t reserved;
	char kept_as[LIMIT_LEAF_BYTES + 1];
	char path[LIMIT_PATH_BYTES + 1];
};

enum guard_news_kind { GUARD_NEWS_REPAIRED = 1, GUARD_NEWS_LOST, GUARD_NEWS_APPEARED };

struct link_guard_news {
	uint32_t kind; /* enum guard_news_kind */
	uint32_t reserved;
	struct report_guard what;
};

enum grant_state { GRANT_OPEN = 1, GRANT_SPENT, GRANT_REVOKED, GRANT_EXPIRED };

/* The token is told once, to who made the grant, and kept nowhere. */
struct link_grant {
	uint64_t id;
	uint64_t expires_ms; /* CLOCK_REALTIME */
	uint8_t token[GRANT_TOKEN_BYTES];
};

struct link_grant_entry {
	uint64_t id;
	uint64_t created_ms; /* CLOCK_REALTIME */
	uint32_t creator;
	uint32_t state;   /* enum grant_state */
	uint64_t used_by; /* the job, or 0 */
	struct grant_terms terms;
};

/* One placeholder. @made, @kept: as in struct ledger_view */
struct link_ledger_entry {
	uint32_t uid;
	uint32_t made;
	uint32_t kept;
	uint32_t jobs;
	char path[LIMIT_PATH_BYTES + 1];
};

/* @entries: shown or not; @replayed, @damaged, @why: as in struct ledger_replay */
struct link_ledger {
	uint32_t entries;
	uint32_t replayed;
	uint32_t damaged;
	uint32_t reserved;
	char why[128];
};

struct link_message {
	uint32_t size; /* of the whole message: link_message_size(kind) */
	uint32_t kind; /* enum link_kind */
	uint64_t seq;  /* of the request this answers; 0 for news */
	uint64_t conn;
	uint64_t job;
	union {
		struct link_config config;
		struct link_conn conn;
		struct link_job_up up;
		struct failure failure; /* LINK_JOB_FAILED, LINK_ERROR */
		struct exit_record ended;
		struct link_job_entry entry;
		struct link_status status;
		struct link_guard_news guard;
		struct link_job_found found;
		struct link_grant grant;
		struct link_grant_entry grant_entry;
		struct link_ledger_entry placeholder;
		struct link_ledger ledger;
	} u;
};

#define LINK_MESSAGE_FDS 2

/* ---- builder and init -> fsboxd (pipe) and -> broker (job channel) ------------------- */

enum report_kind {
	REPORT_PLACEHOLDER_INTENT = 1, /* about to make path; waits for a GO byte */
	REPORT_PLACEHOLDER_MADE,       /* made it: identity */
	REPORT_PLACEHOLDER_SKIPPED,    /* it was there, or cannot be made by this user */
	REPORT_PID1_UP,                /* init runs, confined; waits for a GO byte */
	REPORT_STARTED,                /* exec of the command succeeded; on the channel + [pidfd] */
	REPORT_FAILED,                 /* nothing was run, nothing is left */
	REPORT_EXITED,                 /* nothing runs any more */
	REPORT_BUILT, /* a template stands ready; waits for a GO byte while fsboxd takes it */
	REPORT_MASK_REPAIRED, /* guard: path was open to job for a moment, and is not any more */
	REPORT_MASK_LOST, /* guard: it cannot be closed again, or must not: the job was killed */
	REPORT_NAME_APPEARED, /* guard: a protected name that was not there */
	REPORT_GUARD_WATCHES, /* guard: it is ready for jobs with this plan */
	REPORT_GUARD_DONE,    /* guard: nothing more comes about this job, which is over */
	REPORT_GUARD_HOLDS, /* guard: all masks of this job, which fsboxd handed to it, are in place */
	REPORT_MASK_GONE, /* guard: nothing is there any more, so that job could make it */
	REPORT_KIND_COUNT,
};

/* Which object a placeholder is, across mounts and restarts (R26). */
struct node_identity {
	uint64_t dev;
	uint64_t ino;
	int64_t btime_sec; /* 0 with btime_nsec 0: the file system has none */
	uint32_t btime_nsec;
	uint32_t handle_bytes; /* 0: none */
	int32_t handle_type;
	uint32_t reserved;
	uint8_t handle[128]; /* MAX_HANDLE_SZ of name_to_handle_at(2) */
	uint64_t fsid;       /* statfs(2) f_fsid */
};

struct report_placeholder {
	struct node_identity parent;
	struct node_identity node; /* zeroed in an intent */
	char path[LIMIT_PATH_BYTES + 1];
};

/* @mounts  in the template's namespace, what came along below its binds included */
struct report_built {
	uint32_t mounts;
};

struct report_message {
	uint32_t size; /* of the whole message: report_message_size(kind) */
	uint32_t kind; /* enum report_kind */
	union {
		struct report_placeholder placeholder;
		struct failure failure;
		struct exit_record exited;
		struct report_guard guard;
		uint64_t number; /* of the plan that is watched, the job that is done or held */
		struct report_built built;
	} u;
};

/* ---- broker -> init (job channel) ---------------------------------------------------- */

/*
 * With it ride, in this order, the descriptors named by the bits of @fds (START_FD_*), lowest bit
 * first. A standard descriptor without its bit is /dev/null.
 */
enum start_fds {
	START_FD_STDIN = 1 << 0,
	START_FD_STDOUT = 1 << 1,
	START_FD_STDERR = 1 << 2,
	START_FD_LIFELINE = 1 << 3,
	START_FD_ARGS = 1 << 4, /* always: sealed memfd, struct args_header */
	START_FD_ALL = (1 << 5) - 1,
};

struct start_message {
	uint32_t size;  /* sizeof(struct start_message) */
	uint32_t fds;   /* enum start_fds */
	uint32_t umask; /* the client's; jobs inherit it */
	uint32_t reserved;
};

/* ---- memfds -------------------------------------------------------------------------- */

#define ARGS_MAGIC 0x53475241u  /* "ARGS" */
#define SETUP_MAGIC 0x55544553u /* "SETU" */

/*
 * argv and environment, sealed, mapped by init alone (R15). The header is followed by, each
 * NUL-terminated: the working directory, argc arguments, envc variables NAME=VALUE. The last byte
 * of the file is the last NUL.
 */
struct args_header {
	uint32_t magic;
	uint32_t size; /* of the whole file */
	uint32_t argc; /* at least 1 */
	uint32_t envc;
};

enum setup_flags {
	SETUP_KEEP_NOTHING = 0,
	SETUP_NET_HOST = 1 << 0, /* scope abstract sockets by Landlock where the kernel can */
	SETUP_DETACHED = 1 << 1, /* no lifeline is expected */
	SETUP_PROXY = 1 << 2,    /* listeners for proxies go to fsbox-egress */
	SETUP_GRANTED = 1 << 3,  /* @grant is there and must fit */
};

/*
 * What init must do before it runs anything, made by the builder from the verified plan. The header
 * is followed by @path_count times: one byte access (enum access), the path, NUL.
 */
struct setup_header {
	uint32_t magic;
	uint32_t size;   /* of the whole file */
	uint32_t flags;  /* enum setup_flags */
	uint32_t engine; /* enum engine_kind */
	uint32_t path_count;
	uint32_t forward_count;            /* listeners for @forwards go to fsbox-egress, too */
	uint16_t forwards[LIMIT_FORWARDS]; /* ports; zeros behind */
	struct grant_terms grant;
};

/* Size of a message of this kind; 0 for a kind that does not exist. */
size_t op_message_size(enum op_kind kind);
size_t link_message_size(enum link_kind kind);
size_t report_message_size(enum report_kind kind);

/*
 * Whether SIZE bytes received as MESSAGE are one well-formed message. Fails with ERR_BAD_FRAME,
 * saying what is wrong. Only then may fields be read.
 */
int op_message_check(const struct op_message *message, size_t size, struct error *err);
int link_message_check(const struct link_message *message, size_t size, struct error *err);
int report_message_check(const struct report_message *message, size_t size, struct error *err);
int start_message_check(const struct start_message *message, size_t size, size_t fd_count,
			struct error *err);

/* The mapped args or setup bytes, likewise; every string terminated, the last byte consumed. */
int args_check(const void *data, size_t size, struct error *err);
int setup_check(const void *data, size_t size, struct error *err);

/* Whether TERMS could be a grant at all. Fails with ERR_BAD_FRAME. */
int grant_terms_check(const struct grant_terms *terms, struct error *err);

/* The hashes of a grant over checked args bytes. */
void args_hash(const void *data, uint8_t ret_args[HASH_BYTES], uint8_t ret_env[HASH_BYTES]);

/* Build an args file: @argv and @envp end with NULL. The caller seals and owns what it wrote. */
struct buf;
int args_encode(struct buf *out, const char *cwd, char *const argv[], char *const envp[],
		struct error *err);

/*
 * Views into checked args bytes. @ret_argv and @ret_envp are arrays on the heap, ended by NULL, of
 * pointers into DATA; the caller frees the arrays.
 */
int args_split(const void *data, const char **ret_cwd, char ***ret_argv, char ***ret_envp,
	       struct error *err);

/* What runs when nobody chose: the native engine where it works. @engines: bits 1 << enum engine_kind. */
enum engine_kind engine_default(uint32_t engines);

const char *engine_name(enum engine_kind engine);
bool engine_parse(const char *name, enum engine_kind *ret_engine);
const char *room_name(enum room_kind room);
const char *exit_reason_name(enum exit_reason reason);
const char *daemon_mode_name(enum daemon_mode mode);
const char *job_state_name(enum job_state state);
const char *grant_state_name(enum grant_state state);

/* Names of bits of enum stdio_kind. */
const char *stdio_kind_name(enum stdio_kind kind); /* "null" "tty" ...; one bit */
bool stdio_kind_parse(const char *name, enum stdio_kind *ret_kind);

/* FAILURE from ERR, and back into ERR. STAGE may be NULL. */
void failure_set(struct failure *failure, const struct error *err, const char *stage);
int failure_to_error(const struct failure *failure, struct error *err);

#endif
