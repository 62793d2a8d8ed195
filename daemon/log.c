/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *log_role = "fsbox";
static enum log_level log_least = LOG_ERROR;
static bool log_sd;
static unsigned long log_dropped;

void log_open(const char *role, enum log_level level, bool sd)
{
	log_role = role;
	log_least = level;
	log_sd = sd;
}

void log_set_level(enum log_level level)
{
	log_least = level;
}

bool log_stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat about;
	char expected[64];

	if (!stream || fstat(STDERR_FILENO, &about) < 0)
		return false;
	(void)snprintf(expected, sizeof(expected), "%ju:%ju", (uintmax_t)about.st_dev,
		       (uintmax_t)about.st_ino);
	return strcmp(stream, expected) == 0;
}

static int priority_of(enum log_level level)
{
	switch (level) {
	case LOG_ERROR:
		return 3;
	case LOG_WARNING:
		return 4;
	case LOG_INFO:
		return 6;
	case LOG_DEBUG:
		return 7;
	}
	return 3;
}

/* Append TEXT escaped at LINE + USED; returns the new length, always below LOG_LINE_BYTES - 1. */
static size_t add_escaped(char *line, size_t used, const char *text)
{
	static const char hex[] = "0123456789abcdef";

	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;
		bool plain = byte >= 0x20 && byte < 0x7f;

		if (used + (plain ? 1 : 4) > LOG_LINE_BYTES - 2)
			break;
		if (plain) {
			line[used++] = (char)byte;
			continue;
		}
		line[used++] = '\\';
		line[used++] = 'x';
		line[used++] = hex[byte >> 4];
		line[used++] = hex[byte & 15];
	}
	return used;
}

static bool stderr_takes(void)
{
	struct pollfd waiting = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLOUT) != 0;
}

static void write_line(enum log_level level, const char *text)
{
	char line[LOG_LINE_BYTES];
	char prefix[96];
	size_t used = 0;

	if (!stderr_takes()) {
		log_dropped++;
		return;
	}
	if (log_sd)
		(void)snprintf(prefix, sizeof(prefix), "<%d>", priority_of(level));
	else
		(void)snprintf(prefix, sizeof(prefix), "%s: ", log_role);
	used = add_escaped(line, used, prefix);
	if (log_dropped > 0) {
		(void)snprintf(prefix, sizeof(prefix), "(%lu lines were dropped) ", log_dropped);
		used = add_escaped(line, used, prefix);
	}
	used = add_escaped(line, used, text);
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) == (ssize_t)used)
		log_dropped = 0;
	else
		log_dropped++;
}

__attribute__((format(printf, 3, 0))) static void
vlog(enum log_level level, const struct error *err, const char *format, va_list args)
{
	char text[LOG_LINE_BYTES];
	int saved_errno = errno;
	size_t used = 0;

	if (level > log_least)
		return;
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	used = strlen(text);
	if (err)
		(void)snprintf(text + used, sizeof(text) - used, ": %s (%s)", err->message,
			       error_name(err->kind));
	write_line(level, text);
	errno = saved_errno;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vlog(level, NULL, format, args);
	va_end(args);
}

void log_failure(const struct error *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vlog(LOG_ERROR, err, format, args);
	va_end(args);
}
