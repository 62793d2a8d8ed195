/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/hint.h"
#include "common/limits.h"
#include "common/scope.h"
#include "proto/json/json.h"
#include "proto/json/utf8.h"

void output_init(struct ctl *ctl)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	bool wanted = (!no_colour || no_colour[0] == '\0') && term && strcmp(term, "dumb") != 0;

	ctl->terminal_err = isatty(STDERR_FILENO) == 1;
	ctl->colour_err = wanted && ctl->terminal_err;
	ctl->colour_out = wanted && isatty(STDOUT_FILENO) == 1;
}

int ctl_open_error(struct ctl *ctl, struct fsbox_error *err)
{
	const struct fsbox_options options = {
		.size = sizeof(options),
		.socket = ctl->args.socket,
		.user = ctl->args.user,
		.no_autostart = ctl->args.no_autostart,
		.client = "fsboxctl " FSBOX_VERSION,
	};

	return ctl->box ? 0 : fsbox_open(&ctl->box, &options, err);
}

int ctl_open(struct ctl *ctl)
{
	struct fsbox_error err;

	if (ctl_open_error(ctl, &err) == 0)
		return 0;
	output_error(ctl, NULL, &err);
	return -1;
}

/* ---- text ---------------------------------------------------------------------------- */

/*
 * How many bytes at TEXT (SIZE left) are one printable character; 0: escape the byte. C1 control
 * characters and the marks that turn writing direction round are foreign text's tricks, too.
 */
static size_t printable(const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = utf8_length(text, size);

	if (length == 1 && (bytes[0] < ' ' || bytes[0] == 0x7f))
		return 0;
	if (length == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0)
		return 0;
	if (length == 3 && bytes[0] == 0xe2 &&
	    ((bytes[1] == 0x80 && bytes[2] >= 0x8e && bytes[2] <= 0x8f) ||
	     (bytes[1] == 0x80 && bytes[2] >= 0xa8 && bytes[2] <= 0xae) ||
	     (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9)))
		return 0;
	return length;
}

size_t output_padded(FILE *file, const char *text, size_t width)
{
	size_t columns = 0;

	if (!text)
		text = "-";
	for (size_t left = strlen(text); left > 0;) {
		size_t length = printable(text, left);

		if (length == 0) {
			(void)fprintf(file, "\\x%02x", (unsigned)(unsigned char)*text);
			columns += 4;
			length = 1;
		} else {
			(void)fwrite(text, 1, length, file);
			columns++;
		}
		text += length;
		left -= length;
	}
	for (; columns < width; columns++)
		(void)fputc(' ', file);
	return columns;
}

void output_text(FILE *file, const char *text)
{
	(void)output_padded(file, text, 0);
}

void output_style(const struct ctl *ctl, FILE *file, enum output_style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m", [STYLE_GOOD] = "\033[32m",
		[STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[31m", [STYLE_DIM] = "\033[2m",
	};

	if (file == stderr ? ctl->colour_err : ctl->colour_out)
		(void)fputs(codes[style], file);
}

/* ---- errors -------------------------------------------------------------------------- */

/* Spawn's standard output is the command's. */
static FILE *error_stream(const struct ctl *ctl)
{
	return ctl->command && ctl->command->run == command_spawn && !ctl->args.dry_run ? stderr
											: stdout;
}

void output_error_json(struct json_writer *writer, const struct fsbox_error *err)
{
	json_write_key(writer, "error");
	json_write_object(writer);
	json_write_key(writer, "kind");
	json_write_text(writer, err->kind);
	json_write_key(writer, "message");
	json_write_bytes(writer, err->message);
	if (err->hint[0]) {
		json_write_key(writer, "hint");
		json_write_bytes(writer, err->hint);
	}
	if (err->stage[0]) {
		json_write_key(writer, "stage");
		json_write_bytes(writer, err->stage);
	}
	if (err->errnum != 0) {
		json_write_key(writer, "errno");
		json_write_int(writer, err->errnum);
	}
	json_write_object_end(writer);
}

int output_json(const struct ctl *ctl, FILE *file, struct json_writer *writer, struct buf *out,
		int status)
{
	struct error err = ERROR_INIT;

	if (json_writer_check(writer, &err) < 0) {
		(void)fprintf(stderr, "fsboxctl: %s\n", err.message);
		return CTL_FAILED;
	}
	(void)ctl;
	(void)fwrite(out->data, 1, out->size, file);
	(void)fputc('\n', file);
	return status;
}

void output_error(const struct ctl *ctl, const char *what, const struct fsbox_error *err)
{
	if (ctl->args.json) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct json_writer writer;

		json_writer_init(&writer, &out);
		json_write_object(&writer);
		output_error_json(&writer, err);
		json_write_object_end(&writer);
		(void)output_json(ctl, error_stream(ctl), &writer, &out, 0);
		return;
	}

	output_style(ctl, stderr, STYLE_BAD);
	(void)fputs("fsboxctl:", stderr);
	output_style(ctl, stderr, STYLE_PLAIN);
	(void)fputc(' ', stderr);
	if (what) {
		output_text(stderr, what);
		(void)fputs(": ", stderr);
	}
	output_text(stderr, err->message);
	if (err->stage[0] && strcmp(err->kind, error_name(ERR_SETUP_FAILED)) == 0) {
		(void)fputs(" [", stderr);
		output_text(stderr, err->stage);
		(void)fputc(']', stderr);
	}
	(void)fprintf(stderr, " (%s)", err->kind);
	if (err->hint[0]) {
		(void)fputs("; ", stderr);
		output_text(stderr, err->hint);
	}
	(void)fputc('\n', stderr);
}

void output_failure(const struct ctl *ctl, const char *what, const struct error *err)
{
	struct fsbox_error public;

	(void)hint_fill(&public, err, NULL);
	output_error(ctl, what, &public);
}

int output_usage(const struct ctl *ctl, const char *group, const struct error *err)
{
	const char *name = ctl->command ? ctl->command->name : NULL;
	const char *about = name ? name : group;
	struct fsbox_error public;
	char hint[128];

	(void)snprintf(hint, sizeof(hint), "'fsboxctl %s%s--help' shows what there is",
		       about ? about : "", about ? " " : "");
	(void)hint_fill(&public, err, hint);
	if (err->kind == ERR_INVALID)
		(void)snprintf(public.kind, sizeof(public.kind), "usage");
	output_error(ctl, name, &public);
	return ctl->command && ctl->command->run == command_spawn ? CTL_FAILED : CTL_USAGE;
}

void output_note(const struct ctl *ctl, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (ctl->args.quiet || (!ctl->terminal_err && !ctl->args.verbose))
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	output_style(ctl, stderr, STYLE_DIM);
	(void)fputs("fsboxctl: ", stderr);
	output_text(stderr, line);
	output_style(ctl, stderr, STYLE_PLAIN);
	(void)fputc('\n', stderr);
}

/* ---- numbers ------------------------------------------------------------------------- */

const char *output_age(char out[static 32], uint64_t milliseconds)
{
	uint64_t seconds = milliseconds / 1000;

	if (seconds < 120)
		(void)snprintf(out, 32, "%" PRIu64 " s", seconds);
	else if (seconds < 7200)
		(void)snprintf(out, 32, "%" PRIu64 " min", seconds / 60);
	else if (seconds < 172800)
		(void)snprintf(out, 32, "%" PRIu64 " h", seconds / 3600);
	else
		(void)snprintf(out, 32, "%" PRIu64 " d", seconds / 86400);
	return out;
}

const char *output_bytes(char out[static 32], uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out, 32, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value,
		       units[unit]);
	return out;
}
