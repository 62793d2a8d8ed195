/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sbpl.h"

#include <string.h>

#include "common/buf.h"
#include "common/macpath.h"
#include "common/path.h"
#include "common/seatbelt.h"

/*
 * Operations named together. file-read* and file-write* do not reach those that hang directly below
 * file*; they are named where they belong.
 */
#define READ_PLAIN "file-read*"
#define READ_NAMES \
	"file-read* file-read-data file-read-metadata file-read-xattr file-map-executable"
#define WRITE_PLAIN "file-write*"
#define WRITE_NAMES                                                                        \
	"file-write* file-write-data file-write-create file-write-unlink file-write-mode " \
	"file-write-owner file-write-flags file-write-times file-write-xattr"
#define EXEC_NAMES " process-exec* process-exec-interpreter"
#define IOCTL_NAME " file-ioctl"
#define LINK_NAME " file-link"
#define SOCKET_NAMES " network-bind network-outbound"

bool sbpl_is_hard(const struct sbpl *sbpl, uint32_t flag)
{
	return (sbpl->harden & flag) != 0;
}

void sbpl_text(struct sbpl *sbpl, const char *text)
{
	(void)buf_add_string(sbpl->out, text);
}

/* What a string literal needs: a backslash before quotes and backslashes. */
static void add_escaped(struct sbpl *sbpl, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)buf_add_byte(sbpl->out, '\\');
		(void)buf_add_byte(sbpl->out, *text);
	}
}

/* " (NAME "VOLUME PATH")"; VOLUME is put in front of the path, which then is not "/" but nothing. */
static void add_filter(struct sbpl *sbpl, const char *name, const char *volume, const char *path)
{
	sbpl_text(sbpl, " (");
	sbpl_text(sbpl, name);
	sbpl_text(sbpl, " \"");
	sbpl_text(sbpl, volume);
	if (volume[0] == '\0' || strcmp(path, "/") != 0)
		add_escaped(sbpl, path);
	sbpl_text(sbpl, "\")");
}

static void add_filters(struct sbpl *sbpl, const struct sbpl_place *place, const char *volume)
{
	switch (place->kind) {
	case PATH_PATTERN_LITERAL:
		add_filter(sbpl, "literal", volume, place->text);
		break;
	case PATH_PATTERN_SUBPATH:
		if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_OPERATIONS))
			add_filter(sbpl, "literal", volume, place->text);
		add_filter(sbpl, "subpath", volume, place->text);
		break;
	case PATH_PATTERN_PREFIX:
		add_filter(sbpl, "prefix", volume, place->text);
		break;
	}
}

void sbpl_filters(struct sbpl *sbpl, const struct sbpl_place *place, bool deny)
{
	add_filters(sbpl, place, "");
	if (deny && sbpl_is_hard(sbpl, SEATBELT_HARDEN_DATA_VOLUME) &&
	    !macpath_on_data_volume(place->text))
		add_filters(sbpl, place, MACPATH_DATA_VOLUME);
}

/* The two halves of a rule's operations. */
static void add_read_names(struct sbpl *sbpl)
{
	sbpl_text(sbpl, sbpl_is_hard(sbpl, SEATBELT_HARDEN_OPERATIONS) ? READ_NAMES : READ_PLAIN);
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_BASE))
		sbpl_text(sbpl, EXEC_NAMES);
}

static void add_write_names(struct sbpl *sbpl)
{
	sbpl_text(sbpl, sbpl_is_hard(sbpl, SEATBELT_HARDEN_OPERATIONS) ? WRITE_NAMES : WRITE_PLAIN);
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_BASE))
		sbpl_text(sbpl, IOCTL_NAME);
}

static void allow_read(struct sbpl *sbpl, const struct sbpl_place *place)
{
	sbpl_text(sbpl, "(allow ");
	add_read_names(sbpl);
	sbpl_filters(sbpl, place, false);
	sbpl_text(sbpl, ")\n");
}

static void deny_read(struct sbpl *sbpl, const struct sbpl_place *place)
{
	sbpl_text(sbpl, "(deny ");
	add_read_names(sbpl);
	sbpl_filters(sbpl, place, true);
	sbpl_text(sbpl, ")\n");
}

/* DENY: the line belongs to a deny, not to a read-only rule. */
static void deny_write(struct sbpl *sbpl, const struct sbpl_place *place, bool deny)
{
	sbpl_text(sbpl, "(deny ");
	add_write_names(sbpl);
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_LINKS))
		sbpl_text(sbpl, LINK_NAME);
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_SOCKETS))
		sbpl_text(sbpl, SOCKET_NAMES);
	sbpl_filters(sbpl, place, deny);
	sbpl_text(sbpl, ")\n");
}

static void allow_write_and_sockets(struct sbpl *sbpl, const struct sbpl_place *place)
{
	sbpl_text(sbpl, "(allow ");
	add_write_names(sbpl);
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_SOCKETS))
		sbpl_text(sbpl, SOCKET_NAMES);
	sbpl_filters(sbpl, place, false);
	sbpl_text(sbpl, ")\n");
}

void sbpl_allow_write(struct sbpl *sbpl, const struct sbpl_place *place)
{
	sbpl_text(sbpl, "(allow ");
	add_write_names(sbpl);
	sbpl_filters(sbpl, place, false);
	sbpl_text(sbpl, ")\n");
}

void sbpl_deny(struct sbpl *sbpl, const struct sbpl_place *place)
{
	deny_read(sbpl, place);
	deny_write(sbpl, place, true);
}

void sbpl_rule(struct sbpl *sbpl, const char *path, enum access access)
{
	static const struct sbpl_place data = { PATH_PATTERN_SUBPATH, MACPATH_DATA_VOLUME };
	const struct sbpl_place place = { PATH_PATTERN_SUBPATH, path };

	if (access == ACCESS_DENY) {
		sbpl_deny(sbpl, &place);
		return;
	}
	allow_read(sbpl, &place);
	if (access == ACCESS_READ_WRITE)
		allow_write_and_sockets(sbpl, &place);
	else
		deny_write(sbpl, &place, false);

	/* The Data volume lies below /System; nothing there is meant by a rule above it. */
	if (sbpl_is_hard(sbpl, SEATBELT_HARDEN_DATA_VOLUME) && path_covers(path, data.text))
		sbpl_deny(sbpl, &data);
}

static void add_regex(struct sbpl *sbpl, const char *start, const char *expression)
{
	sbpl_text(sbpl, start);
	sbpl_text(sbpl, " (regex #\"");
	for (; *expression; expression++) {
		if (*expression == '"')
			(void)buf_add_byte(sbpl->out, '.');
		else
			(void)buf_add_byte(sbpl->out, *expression);
	}
	sbpl_text(sbpl, "\"))\n");
}

void sbpl_allow_write_regex(struct sbpl *sbpl, const char *expression)
{
	add_regex(sbpl, "(allow " WRITE_PLAIN, expression);
}

void sbpl_deny_regex(struct sbpl *sbpl, const char *expression)
{
	add_regex(sbpl, "(deny " READ_PLAIN, expression);
	add_regex(sbpl, "(deny " WRITE_PLAIN, expression);
}

void sbpl_literals(struct sbpl *sbpl, const char *start, const struct string_list *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		sbpl_text(sbpl, start);
		add_filter(sbpl, "literal", "", paths->items[i]);
		sbpl_text(sbpl, ")\n");
	}
}

size_t sbpl_filter_bytes(const struct sbpl *sbpl, const char *path, bool deny)
{
	size_t filter = strlen(path) + SBPL_FILTER_BYTES;
	size_t filters = sbpl_is_hard(sbpl, SEATBELT_HARDEN_OPERATIONS) ? 2 : 1;

	if (deny && sbpl_is_hard(sbpl, SEATBELT_HARDEN_DATA_VOLUME))
		filter += filter + strlen(MACPATH_DATA_VOLUME);
	return filter * filters;
}
