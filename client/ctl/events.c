/* SPDX-License-Identifier: Apache-2.0 */

/* events: what was recorded, and what is being recorded. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
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

/* The longest line that we look at; the recorder's are shorter. */
#define LINE_BYTES (256u << 10)

static void print_value(const char *prefix, const struct json_value *value)
{
	if (value->type == JSON_OBJECT) {
		for (const struct json_value *item = value->u.first; item; item = item->next)
			print_value(value->key, item);
		return;
	}
	(void)fputc(' ', stdout);
	if (prefix) {
		output_text(stdout, prefix);
		(void)fputc('.', stdout);
	}
	output_text(stdout, value->key);
	(void)fputc('=', stdout);
	switch (value->type) {
	case JSON_STRING:
		output_text(stdout, value->u.text);
		break;
	case JSON_INT:
		(void)printf("%" PRId64, value->u.number);
		break;
	case JSON_BOOL:
		(void)fputs(value->u.boolean ? "yes" : "no", stdout);
		break;
	case JSON_NULL:
	case JSON_ARRAY:
	case JSON_OBJECT:
		(void)fputc('-', stdout);
		break;
	}
}

/* Time and kind in columns, the rest as it comes. False: it is no event. */
static bool print_event(const struct ctl *ctl, const struct json_value *event)
{
	const struct json_value *time = json_get(event, "time");
	const struct json_value *kind = json_get(event, "event");

	if (!time || time->type != JSON_STRING || !kind || kind->type != JSON_STRING)
		return false;
	output_style(ctl, stdout, STYLE_DIM);
	output_text(stdout, time->u.text);
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputs("  ", stdout);
	output_style(ctl, stdout, STYLE_BOLD);
	(void)output_padded(stdout, kind->u.text, 18);
	output_style(ctl, stdout, STYLE_PLAIN);
	for (const struct json_value *item = event->u.first; item; item = item->next)
		if (item != time && item != kind)
			print_value(NULL, item);
	(void)fputc('\n', stdout);
	return true;
}

/* 0, or the exit status when the recorder says that there are too many readers. */
static int take_line(const struct ctl *ctl, const char *line, size_t size)
{
	struct json_doc *doc = NULL;
	const struct json_value *root = NULL;
	int status = CTL_OK;

	if (json_parse(&doc, line, size, NULL, NULL) == 0)
		root = json_root(doc);
	if (root && root->type == JSON_OBJECT && json_get(root, "error") &&
	    !json_get(root, "event")) {
		struct error fail = ERROR_INIT;

		(void)error_set(&fail, ERR_QUOTA_EXCEEDED, 0, "too many readers of events");
		output_failure(ctl, NULL, &fail);
		status = CTL_FAILED;
	} else if (ctl->args.json) {
		(void)printf("%.*s\n", (int)size, line);
	} else if (!root || root->type != JSON_OBJECT || !print_event(ctl, root)) {
		/* Not ours: an administrator may have written to the file. */
		AUTO(auto_free) char *text = strndup(line, size);

		(void)fputs("?  ", stdout);
		output_text(stdout, text);
		(void)fputc('\n', stdout);
	}
	(void)json_doc_free(doc);
	return status;
}

static int print_lines(const struct ctl *ctl, int fd)
{
	AUTO(buf_deinit) struct buf in = BUF_INIT(LINE_BYTES);
	struct error fail = ERROR_INIT;
	int status = CTL_OK;

	while (status == CTL_OK) {
		const char *newline = in.size > 0 ? memchr(in.data, '\n', in.size) : NULL;
		char *room = NULL;
		ssize_t got = 0;

		if (newline) {
			status = take_line(ctl, in.data, (size_t)(newline - in.data));
			buf_consume(&in, (size_t)(newline - in.data) + 1);
			continue;
		}
		(void)fflush(stdout); /* whoever follows sees it now */
		if (ferror(stdout))
			return CTL_OK;
		room = buf_reserve(&in, 4096);
		got = room ? read(fd, room, 4096) : -1;
		if (got < 0 && room && errno == EINTR)
			continue;
		if (got < 0) {
			(void)error_set(&fail, ERR_SYSTEM, room ? errno : 0, "read events");
			output_failure(ctl, NULL, &fail);
			return CTL_FAILED;
		}
		if (got == 0)
			return CTL_OK;
		buf_commit(&in, (size_t)got);
	}
	return status;
}

int command_events(struct ctl *ctl)
{
	const union method_params params = {
		.events = { .job = ctl->args.job, .follow = ctl->args.follow, .all = ctl->args.all }
	};
	struct conn_event *event = NULL;
	struct fsbox_error err;
	int status = CTL_OK;

	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	if (conn_request(fsbox_conn(ctl->box), METHOD_EVENTS, &params, &event, &err) < 0) {
		output_error(ctl, NULL, &err);
		return strcmp(err.kind, error_name(ERR_NOT_AUTHORIZED)) == 0 ? CTL_NO : CTL_FAILED;
	}
	status = print_lines(ctl, event->result.events.stream_fd);
	(void)conn_event_free(event);
	return status;
}
