/* SPDX-License-Identifier: Apache-2.0 */

/* status, version, whoami: who is there, and who am I to them. */

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/command.h"
#include "client/hint.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "proto/json/json.h"

int command_version(struct ctl *ctl)
{
	if (ctl->args.json)
		(void)printf("{\"version\":\"%s\",\"protocol\":%d}\n", FSBOX_VERSION,
			     PROTOCOL_VERSION);
	else
		(void)printf("fsboxctl %s, protocol %d\n", FSBOX_VERSION, PROTOCOL_VERSION);
	return CTL_OK;
}

/* ---- status -------------------------------------------------------------------------- */

static void print_engines(const struct ctl *ctl, const struct msg_engine_list *engines)
{
	for (size_t i = 0; i < engines->count; i++) {
		const struct msg_engine *engine = &engines->items[i];
		const char *state = engine->available   ? "available"
				    : engine->supported ? "NOT AVAILABLE"
							: "not built in";

		(void)printf("%-13s %s: ", i == 0 ? "engines" : "", engine_name(engine->name));
		output_style(ctl, stdout,
			     engine->available   ? STYLE_GOOD
			     : engine->supported ? STYLE_BAD
						 : STYLE_DIM);
		(void)fputs(state, stdout);
		output_style(ctl, stdout, STYLE_PLAIN);
		if (engine->is_default)
			(void)fputs(", default", stdout);
		if (engine->reason && !engine->available) {
			(void)fputs(", ", stdout);
			output_text(stdout, engine->reason);
		}
		(void)fputc('\n', stdout);
	}
}

static void print_status(const struct ctl *ctl, const struct status_result *status,
			 const char *socket)
{
	const struct status_counters *counters = &status->counters;
	char age[32];

	(void)printf("daemon        ");
	output_text(stdout, status->version);
	(void)printf(", mode %s, up %s\nsocket        ", daemon_mode_name(status->mode),
		     output_age(age, status->uptime_ms));
	output_text(stdout, socket);
	(void)printf("\njobs          %" PRIu32 " running, %" PRIu32 " of them yours; %" PRIu64
		     " started, %" PRIu64 " failed to start\n",
		     counters->jobs, counters->jobs_of_uid, counters->spawns, counters->failures);
	(void)printf("roles         %" PRIu32 " brokers, %" PRIu32 " connections, recorder %s\n",
		     counters->brokers, counters->connections, status->recorder_up ? "up" : "DOWN");
	(void)printf("refused       %" PRIu64 " callers\nplaceholders  %" PRIu32
		     "\nstuck         %" PRIu32 " path look-ups\n",
		     counters->refused_peers, counters->placeholders, counters->stuck);
	if (counters->zygotes_ready + counters->zygotes_used > 0)
		(void)printf("zygotes       %" PRIu64 " ready; %" PRIu64 " used, %" PRIu64
			     " refused, %" PRIu64 " expired\n",
			     counters->zygotes_ready, counters->zygotes_used,
			     counters->zygotes_refused, counters->zygotes_expired);
	print_engines(ctl, &status->engines);
	if (status->default_profile) {
		(void)fputs("profile       ", stdout);
		output_text(stdout, status->default_profile);
		(void)fputs(" by default\n", stdout);
	}
	(void)printf("network       at most %s\n", net_mode_name(status->max_net));
	for (size_t i = 0; i < status->unenforced.count; i++) {
		(void)fputs("not held      ", stdout);
		output_text(stdout, status->unenforced.items[i]);
		(void)fputc('\n', stdout);
	}
	for (size_t i = 0; i < status->facts.count; i++) {
		(void)printf("%-13s ", i == 0 ? "facts" : "");
		output_text(stdout, status->facts.items[i].name);
		(void)fputc('=', stdout);
		output_text(stdout, status->facts.items[i].value);
		(void)fputc('\n', stdout);
	}
}

int command_status(struct ctl *ctl)
{
	const union method_params params = { .status = { .none = false } };
	struct conn_event *event = NULL;
	struct fsbox_error err;

	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	if (conn_request(fsbox_conn(ctl->box), METHOD_STATUS, &params, &event, &err) < 0) {
		output_error(ctl, NULL, &err);
		return CTL_FAILED;
	}
	if (ctl->args.json)
		(void)printf("%s\n", event->json);
	else
		print_status(ctl, &event->result.status, fsbox_server(ctl->box)->socket);
	(void)conn_event_free(event);
	return CTL_OK;
}

/* ---- whoami -------------------------------------------------------------------------- */

static int whoami_refused(const struct ctl *ctl, const struct fsbox_error *err)
{
	bool confined = strcmp(err->kind, error_name(ERR_CONFINED_PEER)) == 0;

	if (!confined || ctl->args.json) {
		output_error(ctl, NULL, err);
	} else {
		(void)printf("uid %lu\nconfined: ", (unsigned long)geteuid());
		output_text(stdout, err->message);
		(void)fputc('\n', stdout);
		if (err->hint[0]) {
			(void)fputs("what to do: ", stdout);
			output_text(stdout, err->hint);
			(void)fputc('\n', stdout);
		}
	}
	return confined || strcmp(err->kind, error_name(ERR_NOT_AUTHORIZED)) == 0 ? CTL_NO
										  : CTL_FAILED;
}

int command_whoami(struct ctl *ctl)
{
	const struct fsbox_server *server = NULL;
	struct fsbox_error err;

	if (ctl_open_error(ctl, &err) < 0)
		return whoami_refused(ctl, &err);
	server = fsbox_server(ctl->box);
	if (ctl->args.json) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct json_writer writer;

		json_writer_init(&writer, &out);
		json_write_object(&writer);
		json_write_key(&writer, "uid");
		json_write_uint(&writer, server->uid);
		json_write_key(&writer, "mode");
		json_write_text(&writer, server->mode);
		json_write_key(&writer, "server");
		json_write_bytes(&writer, server->server);
		json_write_key(&writer, "socket");
		json_write_bytes(&writer, server->socket);
		json_write_key(&writer, "place");
		json_write_text(&writer, server->place);
		json_write_object_end(&writer);
		return output_json(ctl, stdout, &writer, &out, CTL_OK);
	}
	(void)printf("uid %" PRIu32 "\nmode %s (%s)\nserver ", server->uid, server->mode,
		     locate_place_name(fsbox_conn(ctl->box)->location.place));
	output_text(stdout, server->server);
	(void)fputs("\nsocket ", stdout);
	output_text(stdout, server->socket);
	(void)fputc('\n', stdout);
	return CTL_OK;
}
