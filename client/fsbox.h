/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_FSBOX_H
#define FSBOX_FSBOX_H

/*
 * libfsbox: run commands in a sandbox through the fsbox daemon.
 *
 *	struct fsbox_error err;
 *	struct fsbox *box = NULL;
 *	struct fsbox_exit *end = NULL;
 *	const char *const argv[] = { "make", "test", NULL };
 *	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
 *
 *	spawn.argv = argv;
 *	spawn.stdout_fd = 1;
 *	spawn.stderr_fd = 2;
 *	if (fsbox_open(&box, NULL, &err) < 0 || fsbox_run(box, &spawn, &end, &err) < 0)
 *		fprintf(stderr, "%s (%s)\n", err.message, err.kind);
 *	else
 *		printf("%s %d\n", end->reason_name, end->code);
 *	fsbox_exit_free(end);
 *	fsbox_close(box);
 *
 * Conventions
 *   - A function that can fail returns 0 or -1 and takes `struct fsbox_error *err` last, which may be
 *     NULL and is filled exactly when the result is -1. Outputs (`ret_x`) are written only on success.
 *   - Everything passed in is borrowed for the call, descriptors too: the library duplicates what it
 *     sends. Objects handed out belong to the caller, who frees them with the function named after
 *     them; all strings and lists in an object live as long as it does. Free functions take NULL.
 *   - Strings are bytes ended by NUL. Paths, arguments and variables may hold any other byte.
 *   - The library never prints, logs, exits, changes a signal's handling or raises SIGPIPE, and starts no
 *     threads. Every descriptor it makes is close-on-exec.
 *   - One connection is used by one thread at a time; different ones are independent.
 *   - Structs may grow at their end in later versions. Those that a caller fills begin with their
 *     size: start from the _INIT macro. Unknown room in a struct that is longer than this library's
 *     must be zero.
 *
 * Security: nothing is sent before the kernel has said that the socket belongs to root or to the
 * caller. In a set-user-id program the environment is not looked at.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FSBOX_API __attribute__((visibility("default")))
#else
#define FSBOX_API
#endif

/* ---- errors -------------------------------------------------------------------------- */

/*
 * @kind     one of the names in fsbox-protocol(7): "command-not-found", "policy-invalid" ...; programs
 *           decide by it
 * @message  for people: what was attempted and why it failed
 * @hint     for people: what to do about it; may be empty
 * @stage    of "setup-failed": which step; else empty
 * @errnum   the errno behind it, or 0
 */
struct fsbox_error {
	char kind[32];
	char message[512];
	char hint[512];
	char stage[64];
	int errnum;
};

/* The exit status that `fsboxctl spawn` gives for a kind: 127, 126, else 125. */
FSBOX_API int fsbox_error_exit_status(const char *kind);

/* ---- connections --------------------------------------------------------------------- */

struct fsbox;

/*
 * @socket        path of the daemon's socket; NULL: $FSBOX_SOCKET, else the system service if it is
 *                there, else a daemon of the caller's own
 * @user          never the system service
 * @no_autostart  fail rather than start a daemon of the caller's own
 * @client        name and version of the calling program, for the daemon's records; may be NULL
 * @daemon        path of the fsboxd to start; NULL: the one that belongs to this library
 * @timeout_ms    how long a call may wait for the daemon, other than for a job's end; 0: a minute
 */
struct fsbox_options {
	size_t size;
	const char *socket;
	bool user;
	bool no_autostart;
	const char *client;
	const char *daemon;
	int timeout_ms;
};

#define FSBOX_OPTIONS_INIT                                                      \
	{                                                                       \
		sizeof(struct fsbox_options), NULL, false, false, NULL, NULL, 0 \
	}

/*
 * Connect and introduce ourselves; may block up to the time limit.
 *
 * A system socket that exists and refuses the caller is an error ("not-authorized"), never a reason to
 * use another one. Kinds: "daemon-unreachable" (nobody there, or not to be trusted),
 * "not-authorized", "confined-peer" (the caller is itself confined), "timeout".
 *
 * @options  may be NULL
 */
FSBOX_API int fsbox_open(struct fsbox **ret_box, const struct fsbox_options *options,
			 struct fsbox_error *err);

/* Close the connection and forget unread events. Jobs go on: see struct fsbox_job. Returns NULL. */
FSBOX_API struct fsbox *fsbox_close(struct fsbox *box);

/*
 * @server    name and version: "fsbox 0.1.0"
 * @mode      "system", "user" or "root"
 * @socket    path in use
 * @place     how it was found: "explicit", "system", "user" or "root"
 * @uid       as whom the daemon knows the caller
 * @features  names, ended by NULL
 */
struct fsbox_server {
	const char *server;
	const char *mode;
	const char *socket;
	const char *place;
	uint32_t protocol;
	uint32_t uid;
	const char *const *features;
};

/*
 * After a call failed with "daemon-unreachable" because the connection broke: connect again, as
 * fsbox_open() did, and ask for the ends of this connection's jobs, whose FSBOX_EVENT_EXITED come as if
 * nothing had happened. Jobs outlive the daemon: one that is restarted takes them over. Requests that
 * were under way have failed. Does nothing while the connection is good.
 *
 * Afterwards fsbox_fd() and fsbox_server() tell of the new connection. Fails like fsbox_open(); then it may
 * be tried again.
 *
 * @timeout_ms  how long one attempt may take; 0: as in the options
 */
FSBOX_API int fsbox_reconnect(struct fsbox *box, int timeout_ms, struct fsbox_error *err);

/* Who answers. Borrowed from BOX. */
FSBOX_API const struct fsbox_server *fsbox_server(const struct fsbox *box);

/* ---- spawning ------------------------------------------------------------------------ */

enum fsbox_access { FSBOX_READ_WRITE = 1, FSBOX_READ_ONLY, FSBOX_DENY };

/*
 * @path      absolute
 * @absent    for denies whose path does not exist: "placeholder", "watch", "report" or "ignore"; NULL:
 *            as configured
 * @optional  a grant whose path may be missing; otherwise that is an error
 */
struct fsbox_rule {
	const char *path;
	enum fsbox_access access;
	const char *absent;
	bool optional;
};

/*
 * All pointers may be NULL, all numbers 0 but where said otherwise. Lists of strings end with NULL.
 *
 * @argv            required; argv[0] is absolute or looked up on PATH inside
 * @cwd             absolute; NULL: the caller's
 * @env             "NAME=VALUE" of which the profile withholds some; NULL: the caller's environment
 * @env_set         "NAME=VALUE" set besides, never withheld
 * @env_pass        names in @env that are not to be withheld
 * @profile         a name or the absolute path of a file; NULL: the daemon's default
 * @context         JSON object for profile "botmux"
 * @rules           paths on top of the profile's
 * @socket_allow    known dangerous sockets that stay reachable
 * @net             "none", "proxy" or "host"; NULL: the profile's
 * @net_allow, @net_deny  host patterns for "proxy"
 * @forward         loopback ports of the host to be reachable inside; @forward_count of them
 * @memory_bytes ... @cpus_milli   limits; 0: none of the caller's
 * @wall_ms         the job is ended after this time, with reason "timeout"
 * @stdin_fd ... @stderr_fd  descriptors; -1: /dev/null. A regular file that the job may not write is
 *                  refused with "stdio-relay": see struct fsbox_relay. From a terminal the job
 *                  reads in whatever direction it is open: pass none to a job that stays behind
 * @grant_fd        where a grant's token is read from, 64 digits, when this is sent; -1: none
 * @engine          "bwrap", "native"; NULL: the daemon's choice
 * @label           shown in lists
 * @session         joins that session
 * @allow_home      the home directory itself may be the working directory
 * @allow_git_config  `.git/config` stays writable
 * @detach          the job does not end with the caller
 */
struct fsbox_spawn {
	size_t size;
	const char *const *argv;
	const char *cwd;
	const char *const *env;
	const char *const *env_set;
	const char *const *env_pass;
	const char *profile;
	const char *context;
	const struct fsbox_rule *rules;
	size_t rule_count;
	const char *const *socket_allow;
	const char *net;
	const char *const *net_allow;
	const char *const *net_deny;
	const uint32_t *forward;
	size_t forward_count;
	uint64_t memory_bytes;
	uint64_t wall_ms;
	uint32_t pids;
	uint32_t cpus_milli;
	int stdin_fd;
	int stdout_fd;
	int stderr_fd;
	int grant_fd;
	const char *engine;
	const char *label;
	const char *session;
	bool allow_home;
	bool allow_git_config;
	bool detach;
};

#define FSBOX_SPAWN_INIT                                                                         \
	{                                                                                        \
		sizeof(struct fsbox_spawn), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0,   \
			NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, -1, -1, -1, -1, NULL, NULL, \
			NULL, false, false, false                                                \
	}

/* Something that was left out or changed, and why. */
struct fsbox_note {
	const char *path;
	const char *reason;
};

/*
 * A job that runs.
 *
 * @id             the daemon's number for it
 * @cookie         32 digits; with it another connection may ask about the job. A secret
 * @pid            of pid 1 inside, as the caller's pid namespace shows it; 0 where it does not
 * @pidfd          of the same: readable once nothing runs any more; -1 where there is none
 * @lifeline       while this is open, the job may run: when its last copy is closed, by fsbox_job_free()
 *                 or because this process ended, the daemon ends the job. -1 with `detach`. A child that
 *                 was forked and not exec'd holds a copy
 * @engine         which engine confines it
 * @room           its network: "egress-denied", "egress-allowlist", "egress-open", "opted-out" ...
 * @policy_digest  SHA-256 of the policy, 64 digits
 * @rules          how many rules the policy has
 * @suppressed     grants that were left out, @suppressed_count of them
 * @withheld       names of variables that were not passed on
 * @warnings       sentences for people
 * @unenforced     limits that this machine cannot hold: "memoryBytes" ...
 */
struct fsbox_job {
	uint64_t id;
	const char *cookie;
	pid_t pid;
	int pidfd;
	int lifeline;
	const char *engine;
	const char *room;
	const char *policy_digest;
	uint32_t rules;
	const struct fsbox_note *suppressed;
	size_t suppressed_count;
	const char *const *withheld;
	const char *const *warnings;
	const char *const *unenforced;
};

/* Ends the job if it still runs and was not detached. Returns NULL. */
FSBOX_API struct fsbox_job *fsbox_job_free(struct fsbox_job *job);

/* Ends the job likewise by closing @lifeline, and keeps the object: its end is still reported. */
FSBOX_API void fsbox_job_end(struct fsbox_job *job);

enum fsbox_reason {
	FSBOX_EXITED = 1, /* by itself, with a status */
	FSBOX_SIGNALED,   /* by a signal */
	FSBOX_TIMEOUT,    /* its time was over */
	FSBOX_OOM,        /* it was out of memory */
	FSBOX_LOST,       /* nobody knows: pid 1 inside was killed from outside */
};

/*
 * How a job ended. When this is there, nothing of the job runs any more.
 *
 * @reason_name  "exited", "signaled", "timeout", "oom" or "lost"
 * @code         with FSBOX_EXITED: the command's status
 * @signal       with FSBOX_SIGNALED: the signal's number
 * @planted      dangerous names that the command tried to leave behind
 * @repaired     how often a mask had to be put back
 */
struct fsbox_exit {
	uint64_t job;
	enum fsbox_reason reason;
	const char *reason_name;
	int code;
	int signal;
	bool core_dumped;
	uint64_t wall_ms;
	uint64_t user_ms;
	uint64_t sys_ms;
	uint64_t max_rss_kib;
	const char *const *planted;
	uint32_t repaired;
};

FSBOX_API struct fsbox_exit *fsbox_exit_free(struct fsbox_exit *end);

/*
 * The exit status that a shell would show: the command's, 128 + n for signal n, 124 for a timeout, 137
 * for out of memory, 123 for lost.
 */
FSBOX_API int fsbox_exit_status(const struct fsbox_exit *end);

/* ---- calls that wait ----------------------------------------------------------------- */

/*
 * Each sends one request and waits for its answer. What else arrives meanwhile is kept for
 * fsbox_event_next().
 */

/* Start a job; returns when its command was executed. */
FSBOX_API int fsbox_spawn(struct fsbox *box, const struct fsbox_spawn *spawn,
			  struct fsbox_job **ret_job, struct fsbox_error *err);

/*
 * Wait until a job has ended. Also for jobs of other connections. When the daemon is restarted meanwhile,
 * its successor is asked: for half a minute it is tried again to reach one (fsbox_reconnect()).
 *
 * @cookie      the job's, or NULL: the caller's own jobs need none
 * @timeout_ms  negative: for ever. When it is over: kind "timeout", and the job goes on
 */
FSBOX_API int fsbox_wait(struct fsbox *box, uint64_t job, const char *cookie, int timeout_ms,
			 struct fsbox_exit **ret_end, struct fsbox_error *err);

/* fsbox_spawn() and fsbox_wait() in one. */
FSBOX_API int fsbox_run(struct fsbox *box, const struct fsbox_spawn *spawn,
			struct fsbox_exit **ret_end, struct fsbox_error *err);

/* Send a signal to a job's command and its process group. */
FSBOX_API int fsbox_signal(struct fsbox *box, uint64_t job, const char *cookie, int signo,
			   struct fsbox_error *err);

/*
 * @state       "starting", "running" or "ending"
 * @command     last component of its argv[0]
 * @started_ms  milliseconds since 1970
 */
struct fsbox_job_info {
	uint64_t id;
	uint32_t uid;
	pid_t pid;
	const char *state;
	const char *profile;
	const char *command;
	const char *label;
	uint64_t started_ms;
	const char *engine;
	const char *room;
	bool detached;
};

struct fsbox_job_list {
	const struct fsbox_job_info *jobs;
	size_t count;
};

/* The caller's jobs; an administrator's ALL. */
FSBOX_API int fsbox_list(struct fsbox *box, bool all, struct fsbox_job_list **ret_list,
			 struct fsbox_error *err);
FSBOX_API struct fsbox_job_list *fsbox_job_list_free(struct fsbox_job_list *list);

/*
 * What the policy of SPAWN says about one path; nothing is run.
 *
 * @access  "readWrite", "readOnly", "deny" or "none"
 * @rule_path, @rule_source, @rule_origin  the rule that decided; NULL where none covers the path
 * @real    where the path really is when links lead elsewhere, else NULL
 * @hint    what to do about it, or NULL
 */
struct fsbox_why {
	const char *access;
	const char *rule_path;
	const char *rule_source;
	const char *rule_origin;
	const char *real;
	const char *hint;
};

FSBOX_API int fsbox_why(struct fsbox *box, const struct fsbox_spawn *spawn, const char *path,
			struct fsbox_why **ret_why, struct fsbox_error *err);
FSBOX_API struct fsbox_why *fsbox_why_free(struct fsbox_why *why);

/*
 * Any method of fsbox-protocol(7) without descriptors, as JSON: for what has no call of its own
 * (`inspect`, `status`, `detect`, `policy`), and for methods that are newer than this library.
 *
 * @params    a JSON object, or NULL for an empty one
 * @ret_json  text of the result; free()
 */
FSBOX_API int fsbox_call(struct fsbox *box, const char *method, const char *params, char **ret_json,
			 struct fsbox_error *err);

/* ---- without waiting ----------------------------------------------------------------- */

/*
 * For programs with an event loop: send, then let the loop watch fsbox_fd() for fsbox_poll_events(),
 * call fsbox_process() when it is ready, and take events until there are none.
 */

/* As fsbox_spawn(), but only sends. The answer is an event with this request number. */
FSBOX_API int fsbox_spawn_send(struct fsbox *box, const struct fsbox_spawn *spawn,
			       uint64_t *ret_request, struct fsbox_error *err);
FSBOX_API int fsbox_wait_send(struct fsbox *box, uint64_t job, const char *cookie,
			      uint64_t *ret_request, struct fsbox_error *err);
FSBOX_API int fsbox_signal_send(struct fsbox *box, uint64_t job, const char *cookie, int signo,
				uint64_t *ret_request, struct fsbox_error *err);

/* The connection's descriptor: for poll(2) only. Good until fsbox_close() or fsbox_reconnect(). */
FSBOX_API int fsbox_fd(const struct fsbox *box);

/* What to poll it for now: POLLIN, and POLLOUT while something waits to be sent. */
FSBOX_API short fsbox_poll_events(const struct fsbox *box);

/*
 * Send and receive what can be without waiting. Fails once the connection is of no more use; every
 * request under way then has its event with an error.
 */
FSBOX_API int fsbox_process(struct fsbox *box, struct fsbox_error *err);

enum fsbox_event_type {
	FSBOX_EVENT_REPLY = 1, /* to a request */
	FSBOX_EVENT_EXITED,    /* a job that this connection started has ended */
};

/*
 * @request  of a reply: which
 * @error    of a reply: why it failed, or NULL
 * @job      of a reply to fsbox_spawn_send(); take it out with fsbox_event_take_job()
 * @end      of FSBOX_EVENT_EXITED and of a reply to fsbox_wait_send(); fsbox_event_take_end()
 */
struct fsbox_event {
	enum fsbox_event_type type;
	uint64_t request;
	const struct fsbox_error *error;
	const struct fsbox_job *job;
	const struct fsbox_exit *end;
};

/* The next event, or NULL. Nothing is sent or received. */
FSBOX_API struct fsbox_event *fsbox_event_next(struct fsbox *box);

/* The event's job, now the caller's; NULL when it has none. */
FSBOX_API struct fsbox_job *fsbox_event_take_job(struct fsbox_event *event);

/* The event's @end likewise. */
FSBOX_API struct fsbox_exit *fsbox_event_take_end(struct fsbox_event *event);

/* Frees the event with all it still holds (a job that was not taken ends). Returns NULL. */
FSBOX_API struct fsbox_event *fsbox_event_free(struct fsbox_event *event);

/* ---- relaying regular files ---------------------------------------------------------- */

/*
 * A regular file that lies outside what the job may write must not be handed to it, since any
 * descriptor can be opened again through /proc with other rights. The daemon then answers
 * "stdio-relay", and the caller passes a pipe instead and moves the bytes itself:
 *
 *	fsbox_relay_new(&relay, fds, &err);		fds: the caller's own three
 *	spawn.stdin_fd = fsbox_relay_fd(relay, 0);	1 and 2 likewise
 *	fsbox_spawn(...);
 *	fsbox_relay_started(relay);			closes this process's ends of the job
 *	...						poll, fsbox_relay_process()
 *	fsbox_relay_finish(relay, &err);		after the job's end: what is left
 */
struct fsbox_relay;

/*
 * A relay for those of FDS (stdin, stdout, stderr; -1: none) that are regular files; the others are
 * passed on as they are. FDS are borrowed as long as the relay lives.
 */
FSBOX_API int fsbox_relay_new(struct fsbox_relay **ret_relay, const int fds[3],
			      struct fsbox_error *err);
FSBOX_API struct fsbox_relay *fsbox_relay_free(struct fsbox_relay *relay);

/* What to pass to the job as descriptor INDEX (0 to 2); -1 where FDS had none. */
FSBOX_API int fsbox_relay_fd(const struct fsbox_relay *relay, int index);

/* The job has its descriptors, or will never have them. */
FSBOX_API void fsbox_relay_started(struct fsbox_relay *relay);

#define FSBOX_RELAY_POLLFDS 3

/* What to wait for, at most FSBOX_RELAY_POLLFDS entries; returns how many. 0: nothing is left to do. */
FSBOX_API size_t fsbox_relay_poll(const struct fsbox_relay *relay,
				  struct pollfd fds[FSBOX_RELAY_POLLFDS]);

/* Move what can be moved without waiting for the job. Errors of the files show in finish. */
FSBOX_API void fsbox_relay_process(struct fsbox_relay *relay);

/*
 * Write out what the job left in its pipes. Fails ("internal", with errno) when a file could not be
 * read or written completely.
 */
FSBOX_API int fsbox_relay_finish(struct fsbox_relay *relay, struct fsbox_error *err);

#ifdef __cplusplus
}
#endif

#endif
