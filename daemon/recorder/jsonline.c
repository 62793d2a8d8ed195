/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/jsonline.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/error.h"
#include "common/netpolicy.h"
#include "proto/wire/egressop.h"

/*
 * Length in bytes of the UTF-8 character at TEXT, and the character; 0 for a foreign byte. TEXT ends
 * in NUL, which is never a continuation byte, so nothing behind it is read.
 */
static size_t utf8_decode(const unsigned char *text, uint32_t *ret_character)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{ 0x80, 0x00, 0 },
		{ 0xe0, 0xc0, 0x80 },
		{ 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		uint32_t character = text[0] & (unsigned char)~forms[i].mask;

		if ((text[0] & forms[i].mask) != forms[i].lead)
			continue;
		for (size_t k = 1; k <= i; k++) {
			if ((text[k] & 0xc0) != 0x80)
				return 0;
			character = character << 6 | (text[k] & 0x3f);
		}
		if (character < forms[i].least || character > 0x10ffff ||
		    (character >= 0xd800 && character <= 0xdfff))
			return 0;
		*ret_character = character;
		return i + 1;
	}
	return 0;
}

/* Whether a character would change how a terminal or an editor shows what surrounds it. */
static bool is_unprintable(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character <= 0x9f) || character == 0x61c ||
	       (character >= 0x200b && character <= 0x200f) ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2060 && character <= 0x206f) || character == 0xfeff;
}

int jsonline_text(struct buf *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	int r = buf_add_byte(out, '"');

	while (r == 0 && *at != '\0') {
		uint32_t character = 0;
		size_t length = utf8_decode(at, &character);

		if (length == 0 || character == '\\')
			r = buf_printf(out, "\\\\x%02x", *at);
		else if (is_unprintable(character))
			r = buf_printf(out, "\\u%04x", character);
		else if (character == '"')
			r = buf_add_string(out, "\\\"");
		else
			r = buf_add(out, at, length);
		at += length > 0 ? length : 1;
	}
	return r < 0 ? r : buf_add_byte(out, '"');
}

static int add_key_text(struct buf *out, const char *key, const char *text)
{
	int r = buf_printf(out, ",\"%s\":", key);

	return r < 0 ? r : jsonline_text(out, text);
}

static int add_key_number(struct buf *out, const char *key, uint64_t number)
{
	return buf_printf(out, ",\"%s\":%" PRIu64, key, number);
}

static int add_key_hex(struct buf *out, const char *key, const uint8_t digest[32])
{
	char hex[65];

	for (size_t i = 0; i < 32; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return buf_printf(out, ",\"%s\":\"%s\"", key, hex);
}

/* RFC 3339, UTC, milliseconds. */
static int add_time(struct buf *out, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char text[32] = "1970-01-01T00:00:00";
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return buf_printf(out, "{\"time\":\"%s.%03uZ\"", text,
			  (unsigned)(time_ns / 1000000 % 1000));
}

static int add_exited(struct buf *out, const struct exit_record *exited)
{
	return buf_printf(out,
			  ",\"exited\":{\"reason\":\"%s\",\"code\":%d,\"signal\":%d,"
			  "\"coreDumped\":%s,\"wallMs\":%" PRIu64 ",\"usage\":{\"userMs\":%" PRIu64
			  ",\"sysMs\":%" PRIu64 ",\"maxRssKiB\":%" PRIu64 "}}",
			  exit_reason_name((enum exit_reason)exited->reason), exited->code,
			  exited->signal, exited->core_dumped ? "true" : "false", exited->wall_ms,
			  exited->user_ms, exited->sys_ms, exited->max_rss_kib);
}

/* What was asked for and how it was to run: for the start of a job and for one that never ran. */
static int add_request(struct buf *out, const struct event_message *message)
{
	int r = 0;

	if (message->engine != ENGINE_DEFAULT)
		r = add_key_text(out, "engine", engine_name((enum engine_kind)message->engine));
	if (r == 0 && message->room != 0)
		r = add_key_text(out, "room", room_name((enum room_kind)message->room));
	if (r == 0 && message->profile[0] != '\0')
		r = add_key_text(out, "profile", message->profile);
	if (r == 0 && message->command[0] != '\0')
		r = add_key_text(out, "command", message->command);
	if (r == 0 && message->label[0] != '\0')
		r = add_key_text(out, "label", message->label);
	if (r < 0 || message->argc == 0)
		return r;
	if ((r = add_key_number(out, "argc", message->argc)) < 0 ||
	    (r = add_key_hex(out, "argsHash", message->args_hash)) < 0 ||
	    (r = add_key_hex(out, "policyDigest", message->policy_digest)) < 0 ||
	    (r = add_key_number(out, "rules", message->rules)) < 0 ||
	    (r = add_key_number(out, "suppressed", message->suppressed)) < 0)
		return r;
	return add_key_number(out, "withheld", message->withheld);
}

/* Where a program wanted to go, and what became of it. */
static int add_egress(struct buf *out, const struct event_message *message)
{
	const struct event_egress *egress = &message->egress;
	int r = 0;

	if ((r = add_key_text(out, "via", egress_via_name((enum egress_via)egress->via))) < 0 ||
	    (r = add_key_text(out, "host", egress->host)) < 0 ||
	    (r = add_key_number(out, "port", egress->port)) < 0)
		return r;
	if (egress->address[0] != '\0')
		r = add_key_text(out, "address", egress->address);
	if (r == 0 && egress->flags & EGRESS_ADDRESS_UNCHECKED)
		r = buf_add_string(out, ",\"addressUnchecked\":true");
	if (r == 0 && egress->flags & EGRESS_PLAIN_HTTP)
		r = buf_add_string(out, ",\"plainHttp\":true");
	if (r == 0 && egress->connection != 0)
		r = add_key_number(out, "connection", egress->connection);
	if (r == 0 && egress->reason != NET_ALLOWED)
		r = add_key_text(out, "reason", net_reason_name((enum net_reason)egress->reason));
	if (r < 0 || message->kind != EVENT_EGRESS_CLOSED)
		return r;
	if ((r = add_key_number(out, "sentBytes", egress->sent_bytes)) < 0 ||
	    (r = add_key_number(out, "receivedBytes", egress->received_bytes)) < 0)
		return r;
	return add_key_number(out, "durationMs", egress->duration_ms);
}

/* What only some kinds of event have. */
static int add_particulars(struct buf *out, const struct event_message *message)
{
	int r = 0;

	switch ((enum event_kind)message->kind) {
	case EVENT_EXECUTION_STARTED:
		return add_request(out, message);
	case EVENT_EXECUTION_FINISHED:
		r = add_request(out, message);
		return r < 0 ? r : add_exited(out, &message->exited);
	case EVENT_EXECUTION_FAILED:
		r = add_request(out, message);
		break;
	case EVENT_EGRESS_ALLOWED:
	case EVENT_EGRESS_DENIED:
	case EVENT_EGRESS_FAILED:
	case EVENT_EGRESS_CLOSED:
		r = add_egress(out, message);
		break;
	case EVENT_MASK_REPAIRED:
		return add_key_number(out, "exposureUs", message->exposure_us);
	case EVENT_NAME_PLANTED:
		r = add_key_text(out, "action",
				 guard_action_name((enum guard_action)message->guard_action));
		if (r == 0 && message->kept_as[0] != '\0')
			r = add_key_text(out, "keptAs", message->kept_as);
		break;
	case EVENT_DAEMON_STARTED:
	case EVENT_DAEMON_STOPPED:
	case EVENT_PEER_REFUSED:
	case EVENT_ROLE_DIED:
	case EVENT_PLACEHOLDER_LEFT:
	case EVENT_LEDGER_REPLAYED:
	case EVENT_STUCK:
	case EVENT_MASK_LOST:
	case EVENT_GUARD_DOWN:
	case EVENT_MOUNT_HELD:
		break;
	case EVENT_POLICY_SUPPRESSED:
		return add_key_number(out, "suppressed", message->suppressed);
	case EVENT_GRANT_CREATED:
	case EVENT_GRANT_USED:
	case EVENT_GRANT_REFUSED:
	case EVENT_GRANT_REVOKED:
		if (message->command[0] != '\0')
			r = add_key_text(out, "command", message->command);
		break;
	case EVENT_KIND_COUNT:
		break;
	}
	if (r == 0 && message->error_kind != ERR_NONE)
		r = add_key_text(out, "error", error_name((enum error_kind)message->error_kind));
	return r;
}

int jsonline_event(struct buf *out, const struct event_message *message)
{
	int r = 0;

	if ((r = add_time(out, message->time_ns)) < 0 ||
	    (r = add_key_text(out, "event", event_kind_name((enum event_kind)message->kind))) < 0)
		return r;
	if (message->seq != 0 && (r = add_key_number(out, "seq", message->seq)) < 0)
		return r;
	if (message->job != 0 && (r = add_key_number(out, "job", message->job)) < 0)
		return r;
	if ((r = add_key_number(out, "uid", message->uid)) < 0)
		return r;
	if (message->pid > 0 && (r = add_key_number(out, "pid", (uint64_t)message->pid)) < 0)
		return r;
	if (message->grant != 0 && (r = add_key_number(out, "grant", message->grant)) < 0)
		return r;
	if ((r = add_particulars(out, message)) < 0)
		return r;
	if (message->detail[0] != '\0' && (r = add_key_text(out, "detail", message->detail)) < 0)
		return r;
	return buf_add_string(out, "}\n");
}

int jsonline_lost(struct buf *out, uint64_t time_ns, uint64_t count, int errnum)
{
	int r = 0;

	if ((r = add_time(out, time_ns)) < 0 ||
	    (r = add_key_text(out, "event", "recorder.lost")) < 0 ||
	    (r = add_key_number(out, "count", count)) < 0 ||
	    (r = add_key_text(out, "detail", strerror(errnum))) < 0)
		return r;
	return buf_add_string(out, "}\n");
}
