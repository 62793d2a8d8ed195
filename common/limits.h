/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_LIMITS_H
#define FSBOX_COMMON_LIMITS_H

/*
 * Every bound in the program, with its reason. What a client can make us allocate, wait for or
 * keep has its bound here; a test goes to it and one past it.
 */

/* Paths: what the kernel takes (PATH_MAX counts the NUL). */
#define LIMIT_PATH_BYTES 4095
#define LIMIT_LEAF_BYTES 255 /* one component */

/* One policy: the kernel's default for mounts in one namespace (fs.mount-max) is 100,000. */
#define LIMIT_RULES 100000

/* Regular expressions of one kind in a policy: each is tried on every path of the trees shown. */
#define LIMIT_EXPRESSIONS 256

/* One serialised plan: 100,000 rules of about 160 bytes. */
#define LIMIT_PLAN_BYTES (16u << 20)

/* Wire: fixed by protocol version 1. */
#define LIMIT_FRAME_BYTES (4u << 20)
#define LIMIT_FRAME_FDS 16
#define LIMIT_PARAMS_BYTES (64u << 20) /* params in a sealed memfd */

/* JSON: deep enough for every message with room to grow; shallow enough for any stack. */
#define LIMIT_JSON_DEPTH 32
#define LIMIT_JSON_ELEMENTS 1000000
#define LIMIT_JSON_STRING_BYTES (2u << 20)
/* Tree and parser of one document: the longest params, and the most elements of 48 bytes each. */
#define LIMIT_JSON_MEMORY_BYTES (160u << 20)

/* argv and environment together: the kernel's own ceiling with an 8 MiB stack is 2 MiB. */
#define LIMIT_ARGS_BYTES (2u << 20)
#define LIMIT_ARGS_COUNT 65536

/* Text a person chose, to be shown in lists. */
#define LIMIT_LABEL_BYTES 128
#define LIMIT_NAME_BYTES 64

/* Network lists of one request: a host name has at most 253 bytes; "*.", ":65535", "+private". */
#define LIMIT_HOST_PATTERN_BYTES 269
#define LIMIT_HOST_PATTERNS 4096
#define LIMIT_FORWARDS 64

/* Supplementary groups of a peer that we carry; the kernel allows 65,536, directories use few. */
#define LIMIT_GROUPS 256

/* fsboxd: connections not yet handed on, per user; jobs; rates. Defaults, changed by fsboxd.conf. */
#define LIMIT_CONNECTIONS_PER_UID 1024
#define LIMIT_JOBS_PER_UID 1024
#define LIMIT_JOBS 4096
#define LIMIT_SPAWNS_PER_SECOND 1000
#define LIMIT_BROKERS 256
#define LIMIT_BROKERS_PER_UID 8 /* sets of groups of one user */
#define LIMIT_CONNECTIONS 8192  /* each costs fsboxd a pidfd */

/* Messages to one broker that it has not read: a full list of jobs, and room beside it. */
#define LIMIT_LINK_QUEUE_BYTES (4u << 20)

/* Events waiting for the recorder before the next ones are dropped and counted. */
#define LIMIT_EVENT_QUEUE 1024

/* Grants that are open, or spent and not expired; 0.4 KB each. */
#define LIMIT_GRANTS 1024
#define LIMIT_GRANT_MS (UINT64_C(366) * 24 * 3600 * 1000) /* longer is no grant but a setting */

/* Who reads events at the same time: each costs the recorder three descriptors. */
#define LIMIT_EVENT_READERS 64
#define LIMIT_EVENT_READERS_PER_UID 16

/* A start that waits for its record to be durable (audit = required). */
#define LIMIT_AUDIT_MS 10000

/* Connections and channels that hold descriptors nobody dares to close, because closing hangs. */
#define LIMIT_LINGERING 1024

/*
 * How jobs ended is kept for those who ask again: the newest of each identity (0.25 KB each, and two pages of
 * the runtime directory), and so long; once more after each restart, but never longer than the last.
 */
#define LIMIT_RESULTS_PER_BROKER 1024
#define LIMIT_RESULT_KEPT_MS 10000
#define LIMIT_RESULT_LONGEST_MS 60000

/* Directories that one job may have made as mount points. */
#define LIMIT_GUARD_REPORTS_PER_JOB \
	256 /* of masks and names: further ones are acted on, not told */
#define LIMIT_PLACEHOLDERS_PER_JOB 4096
#define LIMIT_PLACEHOLDERS_PER_UID 16384 /* 0.5 KB each in the ledger */

/*
 * The ledger's file: a line is a path of which each byte is escaped, LIMIT_GROUPS numbers and two file
 * handles; a file is what sixteen users with all their placeholders leave.
 */
#define LIMIT_LEDGER_LINE_BYTES (24u << 10)
#define LIMIT_LEDGER_BYTES (1u << 29)
#define LIMIT_LEDGER_ENTRIES ((size_t)16 * LIMIT_PLACEHOLDERS_PER_UID)

/* One prepared tree, with what lies below its binds: as much as fsboxd.conf can allow all together. */
#define LIMIT_TEMPLATE_MOUNTS 1000000

/* Processes that wait for a job (zygotes = N is for each template): 0.3 MB and eight descriptors each. */
#define LIMIT_ZYGOTES_PER_UID 64
#define LIMIT_ZYGOTES 256

/* Entries of the ledger in one answer: 4 KB each. */
#define LIMIT_LEDGER_SHOWN 256

/* Rules whose mounts are being prepared for one user: two of the largest policies; 0.4 KB each. */
#define LIMIT_BUILDING_OPERATIONS_PER_UID 200000 /* two plans of LIMIT_RULES */

/* Helpers of one user that hang on a dead file system before we say resolver-busy. */
#define LIMIT_STUCK_PER_UID 4

/* Waiting on another process, in milliseconds. */
#define LIMIT_RESOLVE_MS 10000
#ifndef LIMIT_TEMPLATE_IDLE_MS       /* tests build a fsboxd with less of the next two */
#define LIMIT_TEMPLATE_IDLE_MS 60000 /* a prepared mount tree that nobody used (R12) */
#endif
#ifndef LIMIT_SETUP_MS
#define LIMIT_SETUP_MS 30000
#endif
#ifndef LIMIT_ZYGOTE_IDLE_MS       /* likewise */
#define LIMIT_ZYGOTE_IDLE_MS 30000 /* one that no job took */
#endif
#define LIMIT_ZYGOTE_ANSWER_MS 250  /* one that was taken must be pid 1 by then */
#define LIMIT_GUARD_IDLE_MS 60000   /* a guard without a plan that anybody uses */
#define LIMIT_GUARD_ANSWER_MS 10000 /* a guard must say that it is done with a job */
#define LIMIT_FRAME_MS 30000        /* a frame once begun must be complete */
#define LIMIT_HELLO_MS 10000        /* a connection must say hello */
#define LIMIT_TEARDOWN_MS 5000      /* what cannot be killed is reported, not waited for */
#define LIMIT_LIFELINE_MS 200       /* from TERM to KILL for a job whose client vanished */
#define LIMIT_GRACE_MS 2000         /* from SIGTERM to SIGKILL when a job's time is up */
#define LIMIT_STALL_MS 10000        /* a broker must take what fsboxd sends it */
#define LIMIT_BROKER_IDLE_MS 30000

/* A client that does not read: bytes queued to it before its connection is closed. */
#define LIMIT_REPLY_QUEUE_BYTES (8u << 20)

/* Requests of one connection that are under way before we stop reading it. */
#define LIMIT_REQUESTS_PER_CONNECTION 256

/* One configuration file, one profile. */
#define LIMIT_CONFIG_BYTES (1u << 20)
#define LIMIT_CONFIG_LINE_BYTES 8192 /* the longest path, every byte escaped */
#define LIMIT_PROFILE_BYTES (1u << 20)
#define LIMIT_PROFILE_PATHS 4096 /* in one list: merging two profiles compares all with all */

/*
 * fsbox-egress. A connection costs it two descriptors and about 1 KB, and while bytes wait two pipes
 * of 64 KB; per job so that one cannot take the connections of all.
 */
#define LIMIT_EGRESS_POLICY_BYTES (4u << 20) /* LIMIT_HOST_PATTERNS of the longest, twice */
#define LIMIT_EGRESS_JOBS 4096               /* as LIMIT_JOBS */
#define LIMIT_EGRESS_CONNECTIONS 8192
#define LIMIT_EGRESS_CONNECTIONS_PER_JOB 2048
#define LIMIT_EGRESS_LISTENERS_PER_JOB 132 /* 2 proxies, LIMIT_FORWARDS; IPv4 and IPv6 */
#define LIMIT_EGRESS_ACCEPTS_BURST 2048    /* of one job; each may become a record */
#define LIMIT_EGRESS_ACCEPTS_PER_SECOND 500
#define LIMIT_EGRESS_HEAD_BYTES 16384 /* of an HTTP request; what common servers take */
#define LIMIT_EGRESS_FIELDS 128
#define LIMIT_EGRESS_HEAD_MS 30000  /* to say where to go */
#define LIMIT_EGRESS_IDLE_MS 900000 /* nothing in either direction: 15 minutes */
#define LIMIT_EGRESS_CONNECT_MS 20000
#define LIMIT_EGRESS_ATTEMPT_MS 250 /* until the next address is tried, too (RFC 8305) */
#define LIMIT_EGRESS_ADDRESSES 16   /* of one name */
#define LIMIT_EGRESS_LOOKUPS 16     /* at a time: each is a process that may hang */
#define LIMIT_EGRESS_LOOKUPS_PER_JOB 4
#define LIMIT_EGRESS_EVENT_QUEUE 4096 /* while it is full nothing new is accepted */

#endif
