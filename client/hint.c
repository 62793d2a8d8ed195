/* SPDX-License-Identifier: Apache-2.0 */
#include "client/hint.h"

#include <stdio.h>
#include <string.h>

const char *hint_for(enum error_kind kind)
{
	switch (kind) {
	case ERR_NONE:
		return "";
	case ERR_INVALID:
		return "correct the request; 'fsboxctl COMMAND --help' shows the forms";
	case ERR_SYSTEM:
		return "look at the daemon's log (journalctl -u fsboxd, or fsboxd.log in its state "
		       "directory)";
	case ERR_NOMEM:
		return "free memory, or make the request smaller";
	case ERR_FRAME_TOO_LARGE:
		return "make the request smaller; large environments are the usual cause";
	case ERR_BAD_FRAME:
	case ERR_BAD_JSON:
		return "client and daemon do not speak the same language: compare 'fsboxctl version' "
		       "and 'fsboxctl status'";
	case ERR_UNKNOWN_METHOD:
		return "the daemon is older than this program: update it and restart it";
	case ERR_NOT_AUTHORIZED:
		return "'fsboxctl whoami' shows as whom the daemon knows you";
	case ERR_CONFINED_PEER:
		return "run it outside the sandbox or container you are in; 'fsboxctl whoami' says "
		       "which check refused";
	case ERR_POLICY_INVALID:
		return "'fsboxctl policy check' with the same options shows what is wrong";
	case ERR_EXTERNAL_BOTS_CONFIG:
		return "move the loaded configuration below the configured home";
	case ERR_WORKING_DIR_IS_AUTHORITY:
		return "choose another working directory (--cwd)";
	case ERR_BOTS_CONFIG_IN_CARVEOUT:
		return "remove the grant that opens the configuration again";
	case ERR_PATH_NOT_FOUND:
		return "check the spelling, or create it first";
	case ERR_COMMAND_NOT_FOUND:
		return "check the spelling, or whether the policy shows its directory: 'fsboxctl why "
		       "PATH'";
	case ERR_COMMAND_NOT_EXECUTABLE:
		return "check its mode (chmod +x) and its first line (#!)";
	case ERR_ENGINE_UNAVAILABLE:
		return "'fsboxctl doctor' says what is missing";
	case ERR_SETUP_FAILED:
		return "'fsboxctl doctor' checks this machine step by step";
	case ERR_STDIO_RELAY:
		return "pass a pipe instead of the file (fsboxctl does so by itself)";
	case ERR_DESCRIPTOR_REFUSED:
		return "pass a pipe, a terminal or /dev/null as standard input and output";
	case ERR_RESOLVER_BUSY:
		return "a network or FUSE file system does not answer: find it with 'findmnt' and "
		       "unmount it";
	case ERR_LEDGER_FAILED:
		return "make room on the file system of the daemon's state directory";
	case ERR_QUOTA_EXCEEDED:
		return "wait until other jobs have ended ('fsboxctl ps'), or raise the limit in "
		       "fsboxd.conf";
	case ERR_GRANT_INVALID:
		return "ask the administrator for a new grant";
	case ERR_JOB_UNKNOWN:
		return "'fsboxctl ps' lists your jobs; ended ones are soon forgotten";
	case ERR_SESSION_UNKNOWN:
		return "the session has ended, or is somebody else's: start a new one";
	case ERR_AUDIT_UNAVAILABLE:
		return "make room for the daemon's log, or set 'audit = best-effort' in fsboxd.conf";
	case ERR_TIMEOUT:
		return "try again; 'fsboxctl status' shows what the daemon is busy with";
	case ERR_UNREACHABLE:
		return "'fsboxctl doctor' checks step by step";
	case ERR_CONFIG:
		return "correct the file; 'fsboxd --check-config' checks it";
	}
	return "'fsboxctl doctor' checks step by step";
}

int hint_fill(struct fsbox_error *out, const struct error *err, const char *hint)
{
	if (!out)
		return -1;

	memset(out, 0, sizeof(*out));
	(void)snprintf(out->kind, sizeof(out->kind), "%s", error_name(err->kind));
	(void)snprintf(out->message, sizeof(out->message), "%s", err->message);
	(void)snprintf(out->hint, sizeof(out->hint), "%s",
		       hint && hint[0] ? hint : hint_for(err->kind));
	out->errnum = err->errnum;
	return -1;
}
