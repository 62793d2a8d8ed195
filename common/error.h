/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_ERROR_H
#define FSBOX_COMMON_ERROR_H

/*
 * Why something failed: a closed list of kinds and one short message, without allocation, so that
 * failing cannot fail.
 *
 * A function that can fail returns 0 or -KIND and takes `struct error *err` last. ERR may be NULL;
 * otherwise it is filled exactly when the result is negative. Each level that knows a further fact
 * puts it in front with error_prefix(), so that the message reads from the outside in:
 *
 *	mount '/home/u/p': open: No such file or directory
 *
 * ERROR_KINDS is the one table of kinds: the enum, the name on the wire, the JSON-RPC code, the
 * exit status of `fsboxctl spawn` and the row in the manual all come from it.
 */

#include <stdarg.h>
#include <stddef.h>

/*	 symbol			wire name		exit	what it means, for the manual */
#define ERROR_KINDS(X)                                                                             \
	X(ERR_INVALID, "bad-request", 125, "a parameter is missing, unknown or of the wrong form") \
	X(ERR_SYSTEM, "internal", 125, "a system call failed where it should not")                 \
	X(ERR_NOMEM, "out-of-memory", 125, "memory could not be had, or a ceiling was reached")    \
	X(ERR_FRAME_TOO_LARGE, "frame-too-large", 125, "a frame is longer than 4 MiB")             \
	X(ERR_BAD_FRAME, "bad-frame", 125,                                                         \
	  "a frame is empty, truncated, or its descriptors do not match")                          \
	X(ERR_BAD_JSON, "bad-json", 125, "a frame is not the JSON this protocol allows")           \
	X(ERR_UNKNOWN_METHOD, "unknown-method", 125, "there is no such method")                    \
	X(ERR_NOT_AUTHORIZED, "not-authorized", 125, "the caller may not do this")                 \
	X(ERR_CONFINED_PEER, "confined-peer", 125,                                                 \
	  "the caller is itself confined or lives in other namespaces")                            \
	X(ERR_POLICY_INVALID, "policy-invalid", 125, "the policy cannot be used as written")       \
	X(ERR_EXTERNAL_BOTS_CONFIG, "external-bots-config", 125,                                   \
	  "the loaded configuration lies outside every authority root")                            \
	X(ERR_WORKING_DIR_IS_AUTHORITY, "working-dir-is-authority", 125,                           \
	  "the working directory lies in an authority root")                                       \
	X(ERR_BOTS_CONFIG_IN_CARVEOUT, "bots-config-in-carveout", 125,                             \
	  "a deeper grant opens the loaded configuration again")                                   \
	X(ERR_PATH_NOT_FOUND, "path-not-found", 125, "a path that must exist does not")            \
	X(ERR_COMMAND_NOT_FOUND, "command-not-found", 127, "the command was not found inside")     \
	X(ERR_COMMAND_NOT_EXECUTABLE, "command-not-executable", 126,                               \
	  "the command was found inside but cannot be executed")                                   \
	X(ERR_ENGINE_UNAVAILABLE, "engine-unavailable", 125,                                       \
	  "the engine asked for does not work on this machine now")                                \
	X(ERR_SETUP_FAILED, "setup-failed", 125,                                                   \
	  "the sandbox could not be prepared; stage, path and errno say where")                    \
	X(ERR_STDIO_RELAY, "stdio-relay", 125,                                                     \
	  "a regular file outside readWrite was passed as stdio; relay it through a pipe")         \
	X(ERR_DESCRIPTOR_REFUSED, "descriptor-refused", 125,                                       \
	  "a descriptor is of a kind that may not enter a sandbox")                                \
	X(ERR_RESOLVER_BUSY, "resolver-busy", 125,                                                 \
	  "too many path look-ups of this user are stuck on unresponsive file systems")            \
	X(ERR_LEDGER_FAILED, "ledger-failed", 125, "the ledger of placeholders cannot be written") \
	X(ERR_QUOTA_EXCEEDED, "quota-exceeded", 125, "a limit on jobs, rate or connections")       \
	X(ERR_GRANT_INVALID, "grant-invalid", 125, "the grant does not fit, is spent or expired")  \
	X(ERR_JOB_UNKNOWN, "job-unknown", 125, "no such job, or not the caller's")                 \
	X(ERR_SESSION_UNKNOWN, "session-unknown", 125, "no such session, or not the caller's")     \
	X(ERR_AUDIT_UNAVAILABLE, "audit-unavailable", 125,                                         \
	  "records are required and cannot be written")                                            \
	X(ERR_TIMEOUT, "timeout", 125, "the daemon gave up waiting for a step to finish")          \
	X(ERR_UNREACHABLE, "daemon-unreachable", 125,                                              \
	  "no daemon answers on the socket, or it is not to be trusted")                           \
	X(ERR_CONFIG, "config-invalid", 125, "a line of the configuration is wrong")

#define X(symbol, name, status, text) symbol##_INDEX,
enum error_index { ERROR_KINDS(X) ERROR_KIND_COUNT };
#undef X

/* Kinds count from 1, so that 0 is success and -kind an error. */
#define X(symbol, name, status, text) symbol = symbol##_INDEX + 1,
enum error_kind { ERR_NONE = 0, ERROR_KINDS(X) };
#undef X

#define ERROR_MESSAGE_BYTES 512

/*
 * @kind     which of ERROR_KINDS, or ERR_NONE
 * @errnum   the errno behind it, or 0
 * @message  terminated; foreign text in it is quoted by whoever put it there; may be cut short
 */
struct error {
	enum error_kind kind;
	int errnum;
	char message[ERROR_MESSAGE_BYTES];
};

#define ERROR_INIT               \
	{                        \
		.kind = ERR_NONE \
	}

/*
 * Record a failure and return -KIND.
 *
 * @err     may be NULL
 * @errnum  appended as text when not 0
 * @format  printf; what was attempted on what, without a final newline
 */
int error_set(struct error *err, enum error_kind kind, int errnum, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Put "what: " before the message of ERR, which may be NULL. Keeps the kind. */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget what ERR (may be NULL) holds. */
void error_clear(struct error *err);

/* The name on the wire, "ok" for ERR_NONE, "internal" for anything out of range. */
const char *error_name(enum error_kind kind);

/* The kind with this wire name, or ERR_NONE. */
enum error_kind error_from_name(const char *name);

/* One line for the manual; never NULL. */
const char *error_meaning(enum error_kind kind);

/* The exit status that `fsboxctl spawn` gives for it (125, 126, 127). */
int error_exit_status(enum error_kind kind);

#endif
