/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/show.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/signals.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "proto/json/json.h"
#include "proto/wire/spawnop.h"

/* ---- beginning ----------------------------------------------------------------------- */

/* All names in one line, which is cut where it would fill the screen. */
static void note_withheld(const struct ctl *ctl, const char *const *names)
{
	AUTO(buf_deinit) struct buf line = BUF_INIT(600);

	for (; *names; names++)
		if (buf_printf(&line, " %s", *names) < 0) {
			(void)buf_add_string(&line, " ...");
			break;
		}
	output_note(ctl, "withheld from the command (--env-pass passes one on):%s",
		    buf_text(&line));
}

/* Whoever reads the log of a script must find it, so not only on a terminal. */
static void warn_opted_out(const struct ctl *ctl)
{
	if (ctl->args.quiet)
		return;
	output_style(ctl, stderr, STYLE_BAD);
	(void)fputs("fsboxctl: WARNING: opted-out: the command has the host's whole network, at the"
		    " caller's request; this is recorded",
		    stderr);
	output_style(ctl, stderr, STYLE_PLAIN);
	(void)fputc('\n', stderr);
}

void show_started(const struct ctl *ctl, const struct fsbox_job *job)
{
	if (strcmp(job->room, room_name(ROOM_OPTED_OUT)) == 0)
		warn_opted_out(ctl);
	for (size_t i = 0; i < job->suppressed_count; i++)
		output_note(ctl, "left out: %s: %s", job->suppressed[i].path,
			    job->suppressed[i].reason);
	for (const char *const *warning = job->warnings; *warning; warning++)
		output_note(ctl, "%s", *warning);
	for (const char *const *limit = job->unenforced; *limit; limit++)
		output_note(ctl, "this machine cannot enforce the limit %s", *limit);
	if (job->withheld[0])
		note_withheld(ctl, job->withheld);
}

int show_detached(const struct ctl *ctl, const struct fsbox_job *job)
{
	if (ctl->args.json)
		(void)printf("{\"job\":%" PRIu64 "}\n", job->id);
	else
		(void)printf("%" PRIu64 "\n", job->id);
	return CTL_OK;
}

/* ---- end ----------------------------------------------------------------------------- */

const char *show_end_text(char out[static 80], const struct fsbox_exit *end)
{
	char name[32];
	char age[32];

	switch (end->reason) {
	case FSBOX_EXITED:
		(void)snprintf(out, 80, "exited with status %d", end->code);
		break;
	case FSBOX_SIGNALED:
		(void)snprintf(out, 80, "killed by %s%s", signal_label(name, end->signal),
			       end->core_dumped ? " (core dumped)" : "");
		break;
	case FSBOX_TIMEOUT:
		(void)snprintf(out, 80, "ended after %s: its time was over",
			       output_age(age, end->wall_ms));
		break;
	case FSBOX_OOM:
		(void)snprintf(out, 80, "killed: out of memory");
		break;
	case FSBOX_LOST:
		(void)snprintf(out, 80, "lost: it is over, but nobody knows how it ended");
		break;
	}
	return out;
}

void show_end_json(struct json_writer *writer, const struct fsbox_exit *end)
{
	json_write_object(writer);
	json_write_key(writer, "job");
	json_write_uint(writer, end->job);
	json_write_key(writer, "reason");
	json_write_text(writer, end->reason_name);
	json_write_key(writer, "code");
	json_write_int(writer, end->code);
	json_write_key(writer, "signal");
	json_write_int(writer, end->signal);
	json_write_key(writer, "coreDumped");
	json_write_bool(writer, end->core_dumped);
	json_write_key(writer, "wallMs");
	json_write_uint(writer, end->wall_ms);
	json_write_key(writer, "usage");
	json_write_object(writer);
	json_write_key(writer, "userMs");
	json_write_uint(writer, end->user_ms);
	json_write_key(writer, "sysMs");
	json_write_uint(writer, end->sys_ms);
	json_write_key(writer, "maxRssKiB");
	json_write_uint(writer, end->max_rss_kib);
	json_write_object_end(writer);
	json_write_key(writer, "planted");
	json_write_array(writer);
	for (const char *const *name = end->planted; *name; name++)
		json_write_bytes(writer, *name);
	json_write_array_end(writer);
	json_write_key(writer, "repaired");
	json_write_uint(writer, end->repaired);
	json_write_object_end(writer);
}

/* One line on FD. A supervisor that went away is no reason to fail. */
static void write_line(const struct ctl *ctl, int fd, struct json_writer *writer, struct buf *out)
{
	struct error err = ERROR_INIT;
	size_t done = 0;

	if (json_writer_check(writer, &err) < 0 || buf_add_byte(out, '\n') < 0) {
		output_failure(ctl, "--status-fd", &err);
		return;
	}
	while (done < out->size) {
		ssize_t written = write(fd, out->data + done, out->size - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			(void)error_set(&err, ERR_SYSTEM, errno, "write to descriptor %d", fd);
			output_failure(ctl, "--status-fd", &err);
			return;
		}
		done += (size_t)written;
	}
}

void show_status_error(const struct ctl *ctl, int fd, const struct fsbox_error *err)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct json_writer writer;

	json_writer_init(&writer, &out);
	json_write_object(&writer);
	output_error_json(&writer, err);
	json_write_object_end(&writer);
	write_line(ctl, fd, &writer, &out);
}

/* What stays there must be looked at by somebody. */
static void note_planted(const struct ctl *ctl, const char *sentence)
{
	static const char repository[] = "/.git (reported)";
	static const char reported[] = " (reported)";
	size_t length = strlen(sentence);

	if (length >= strlen(repository) &&
	    strcmp(sentence + length - strlen(repository), repository) == 0)
		output_note(ctl,
			    "the command made %s; before you run git there, look at what it obeys: "
			    "'config' and 'hooks' in it, or where it leads",
			    sentence);
	else if (length >= strlen(reported) &&
		 strcmp(sentence + length - strlen(reported), reported) == 0)
		output_note(ctl,
			    "the command made %s; look at it before you run programs that obey it",
			    sentence);
	else
		output_note(ctl, "the command tried to leave %s behind", sentence);
}

int show_end(const struct ctl *ctl, const struct fsbox_exit *end)
{
	char text[80];

	if (ctl->args.status_fd >= 0) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct json_writer writer;

		json_writer_init(&writer, &out);
		show_end_json(&writer, end);
		write_line(ctl, ctl->args.status_fd, &writer, &out);
	}

	/* What a shell would say nothing about needs no word from us either. */
	if (end->reason != FSBOX_EXITED &&
	    !(end->reason == FSBOX_SIGNALED && (end->signal == SIGINT || end->signal == SIGPIPE)))
		output_note(ctl, "job %" PRIu64 " was %s", end->job, show_end_text(text, end));
	for (const char *const *name = end->planted; *name; name++)
		note_planted(ctl, *name);
	return fsbox_exit_status(end);
}

int show_lost(const struct ctl *ctl, const struct fsbox_job *job)
{
	static const char *const nothing[] = { NULL };
	const struct fsbox_exit end = {
		.job = job->id,
		.reason = FSBOX_LOST,
		.reason_name = "lost",
		.planted = nothing,
	};

	return show_end(ctl, &end);
}
