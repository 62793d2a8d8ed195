/* SPDX-License-Identifier: Apache-2.0 */
#include "client/hint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

/* A row for each kind; the test knows which one is missing. */
static const char *const hints[] = {
	[ERR_INVALID] = "correct the request; 'fsboxctl COMMAND --help' shows the forms",
	[ERR_SYSTEM] = "look at the daemon's log (journalctl -u fsboxd, or fsboxd.log in its state "
		       "directory)",
	[ERR_NOMEM] = "free memory, or make the request smaller",
	[ERR_FRAME_TOO_LARGE] = "make the request smaller; large environments are the usual cause",
	[ERR_BAD_FRAME] =
		"client and daemon do not speak the same language: compare 'fsboxctl version' "
		"and 'fsboxctl status'",
	[ERR_BAD_JSON] =
		"client and daemon do not speak the same language: compare 'fsboxctl version' "
		"and 'fsboxctl status'",
	[ERR_UNKNOWN_METHOD] = "the daemon is older than this program: update it and restart it",
	[ERR_NOT_AUTHORIZED] = "'fsboxctl whoami' shows as whom the daemon knows you",
	[ERR_CONFINED_PEER] =
		"run it outside the sandbox or container you are in; 'fsboxctl whoami' says "
		"which check refused",
	[ERR_POLICY_INVALID] = "'fsboxctl policy check' with the same options shows what is wrong",
	[ERR_EXTERNAL_BOTS_CONFIG] = "move the loaded configuration below the configured home",
	[ERR_WORKING_DIR_IS_AUTHORITY] = "choose another working directory (--cwd)",
	[ERR_BOTS_CONFIG_IN_CARVEOUT] = "remove the grant that opens the configuration again",
	[ERR_PATH_NOT_FOUND] = "check the spelling, or create it first",
	[ERR_COMMAND_NOT_FOUND] =
		"check the spelling, or whether the policy shows its directory: 'fsboxctl why "
		"PATH'",
	[ERR_COMMAND_NOT_EXECUTABLE] = "check its mode (chmod +x) and its first line (#!)",
	[ERR_ENGINE_UNAVAILABLE] = "'fsboxctl doctor' says what is missing",
	[ERR_SETUP_FAILED] = "'fsboxctl doctor' checks this machine step by step",
	[ERR_STDIO_RELAY] = "pass a pipe instead of the file (fsboxctl does so by itself)",
	[ERR_DESCRIPTOR_REFUSED] =
		"pass a pipe, a terminal or /dev/null as standard input and output",
	[ERR_RESOLVER_BUSY] =
		"a network or FUSE file system does not answer: find it with 'findmnt' and "
		"unmount it",
	[ERR_LEDGER_FAILED] = "make room on the file system of the daemon's state directory",
	[ERR_QUOTA_EXCEEDED] =
		"wait until other jobs have ended ('fsboxctl ps'), or raise the limit in "
		"fsboxd.conf",
	[ERR_GRANT_INVALID] = "ask the administrator for a new grant",
	[ERR_JOB_UNKNOWN] = "'fsboxctl ps' lists your jobs; ended ones are soon forgotten",
	[ERR_SESSION_UNKNOWN] = "the session has ended, or is somebody else's: start a new one",
	[ERR_AUDIT_UNAVAILABLE] =
		"make room for the daemon's log, or set 'audit = best-effort' in fsboxd.conf",
	[ERR_TIMEOUT] = "try again; 'fsboxctl status' shows what the daemon is busy with",
	[ERR_UNREACHABLE] = "'fsboxctl doctor' checks step by step",
	[ERR_CONFIG] = "correct the file; 'fsboxd --check-config' checks it",
};

const char *hint_for(enum error_kind kind)
{
	if (kind == ERR_NONE || (size_t)kind >= ARRAY_SIZE(hints) || !hints[kind])
		return "";
	return hints[kind];
}

/* Some reasons say more than the kind does. */
static const char *hint_for_error(const struct error *err)
{
	if (err->kind == ERR_SYSTEM && (err->errnum == EMFILE || err->errnum == ENFILE))
		return "too many files are open: raise the limit (ulimit -n), or close some";
	return hint_for(err->kind);
}

int hint_fill(struct fsbox_error *out, const struct error *err, const char *hint)
{
	if (!out)
		return -1;

	memset(out, 0, sizeof(*out));
	(void)snprintf(out->kind, sizeof(out->kind), "%s", error_name(err->kind));
	(void)snprintf(out->message, sizeof(out->message), "%s", err->message);
	(void)snprintf(out->hint, sizeof(out->hint), "%s",
		       hint && hint[0] ? hint : hint_for_error(err));
	out->errnum = err->errnum;
	return -1;
}
