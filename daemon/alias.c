/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alias.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"

/* 100,000 mounts of the longest paths would be more; nobody has that. */
#define MOUNTINFO_BYTES_MAX (64u << 20)
#define READ_BYTES 65536

/* ---- mounts ---------------------------------------------------------------------------- */

void mount_table_deinit(struct mount_table *table)
{
	free(table->entries);
	free(table->text);
	*table = (struct mount_table)MOUNT_TABLE_INIT;
}

/* \040 and the like, in place. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text != '\0'; out++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*out = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 4;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* The decimal number at *AT, and the END behind it. */
static bool take_number(char **at, char end, uint32_t *ret)
{
	uint64_t value = 0;
	char *digit = *at;

	for (; *digit >= '0' && *digit <= '9' && value <= UINT32_MAX; digit++)
		value = value * 10 + (uint64_t)(*digit - '0');
	if (digit == *at || *digit != end || value > UINT32_MAX)
		return false;
	*at = digit + 1;
	*ret = (uint32_t)value;
	return true;
}

/* One line, cut into pieces: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS */
static bool parse_line(char *line, struct mount_entry *ret_entry)
{
	char *root = NULL;
	char *point = NULL;
	char *type = NULL;

	if (!take_number(&line, ' ', &ret_entry->id) ||
	    !take_number(&line, ' ', &ret_entry->parent) ||
	    !take_number(&line, ':', &ret_entry->major) ||
	    !take_number(&line, ' ', &ret_entry->minor))
		return false;
	root = strsep(&line, " ");
	point = strsep(&line, " ");
	line = line ? strstr(line, " - ") : NULL;
	if (!line)
		return false;
	line += strlen(" - ");
	type = strsep(&line, " ");
	unescape(root);
	unescape(point);
	ret_entry->root = root;
	ret_entry->point = point;
	ret_entry->type = type;
	return point[0] == '/';
}

int mount_table_parse(struct mount_table *ret_table, const char *text, struct error *err)
{
	struct mount_table table = MOUNT_TABLE_INIT;
	size_t lines = 1;
	char *rest = NULL;
	char *line = NULL;

	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	table.text = strdup(text);
	table.entries = calloc(lines, sizeof(*table.entries));
	if (!table.text || !table.entries) {
		mount_table_deinit(&table);
		return error_set(err, ERR_NOMEM, ENOMEM, "the list of mounts");
	}
	rest = table.text;
	while ((line = strsep(&rest, "\n")))
		table.count += parse_line(line, &table.entries[table.count]);
	*ret_table = table;
	return 0;
}

int mount_table_read(struct mount_table *ret_table, int fd, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(MOUNTINFO_BYTES_MAX);

	for (;;) {
		char *room = buf_reserve(&text, READ_BYTES);
		ssize_t n = 0;

		if (!room)
			return error_set(err, ERR_NOMEM, 0, "the list of mounts");
		n = pread(fd, room, READ_BYTES, (off_t)text.size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, ERR_SYSTEM, errno, "read '/proc/self/mountinfo'");
		if (n == 0)
			return mount_table_parse(ret_table, buf_text(&text), err);
		buf_commit(&text, (size_t)n);
	}
}

int mountinfo_open(struct error *err)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		(void)error_set(err, ERR_SYSTEM, errno, "open '/proc/self/mountinfo'");
	return fd;
}

bool mountinfo_is_stale(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLPRI };

	return poll(&pfd, 1, 0) != 0;
}

/* The mount of "/" that everything else hangs below, not one that is stacked on it. */
static const struct mount_entry *find_root(const struct mount_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct mount_entry *entry = &table->entries[i];
		bool stacked = false;

		if (strcmp(entry->point, "/") != 0)
			continue;
		for (size_t j = 0; j < table->count && !stacked; j++)
			stacked = i != j && table->entries[j].id == entry->parent;
		if (!stacked)
			return entry;
	}
	return NULL;
}

/*
 * The mount that somebody on the way to PATH meets next in AT: of those in it the outermost. What lies
 * deeper in AT itself is covered by that one, unless it hangs below it.
 */
static const struct mount_entry *next_mount(const struct mount_table *table,
					    const struct mount_entry *at, const char *path)
{
	const struct mount_entry *next = NULL;

	for (size_t i = 0; i < table->count; i++) {
		const struct mount_entry *entry = &table->entries[i];

		if (entry->parent != at->id || entry == at || !path_covers(entry->point, path) ||
		    !path_covers(at->point, entry->point))
			continue;
		if (!next || strlen(entry->point) <= strlen(next->point))
			next = entry;
	}
	return next;
}

const struct mount_entry *mount_table_find(const struct mount_table *table, const char *path)
{
	const struct mount_entry *found = find_root(table);
	const struct mount_entry *next = found;

	/* Numbers that name each other in a circle end with the table. */
	for (size_t i = 0; next && i < table->count; i++) {
		found = next;
		next = next_mount(table, found, path);
	}
	return found;
}

/* ---- names ----------------------------------------------------------------------------- */

void alias_list_deinit(struct alias_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].of);
	}
	free(list->items);
	*list = (struct alias_list)ALIAS_LIST_INIT;
}

static bool has_alias(const struct alias_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return true;
	return false;
}

static int add_alias(struct alias_list *list, const char *path, const char *of, struct error *err)
{
	struct alias *item = NULL;

	if (list->count == ALIAS_MAX)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "more than %d bind mounts give other names to what is protected; "
				 "'%.256s' is one of '%.256s'",
				 ALIAS_MAX, path, of);
	if (!list->items)
		list->items = calloc(ALIAS_MAX, sizeof(*list->items));
	if (!list->items)
		return error_set(err, ERR_NOMEM, ENOMEM, "bind aliases");
	item = &list->items[list->count];
	item->path = strdup(path);
	item->of = strdup(of);
	if (item->path && item->of) {
		list->count++;
		return 0;
	}
	free(item->path);
	free(item->of);
	return error_set(err, ERR_NOMEM, ENOMEM, "bind aliases");
}

/* What is left of PATH below BASE, which covers it. */
static const char *rest_below(const char *base, const char *path)
{
	return strcmp(base, "/") == 0 ? path : path + strlen(base);
}

/* Where ENTRY shows PLACE, a path in its file system, or a part of it; NULL (errno 0) if nowhere. */
static char *shown_at(const struct mount_entry *entry, const char *place)
{
	if (path_covers(entry->root, place))
		return path_join(entry->point, rest_below(entry->root, place));
	if (path_covers(place, entry->root))
		return strdup(entry->point);
	errno = 0;
	return NULL;
}

static int find_aliases(struct alias_list *list, const struct mount_table *table, const char *path,
			struct error *err)
{
	const struct mount_entry *mount = mount_table_find(table, path);
	AUTO(auto_free) char *place = NULL;
	int r = 0;

	if (!mount)
		return 0;
	place = path_join(mount->root, rest_below(mount->point, path));
	if (!place)
		return error_set(err, ERR_NOMEM, ENOMEM, "bind aliases");
	for (size_t i = 0; r == 0 && i < table->count; i++) {
		const struct mount_entry *entry = &table->entries[i];
		AUTO(auto_free) char *name = NULL;

		if (entry == mount || entry->major != mount->major || entry->minor != mount->minor)
			continue;
		name = shown_at(entry, place);
		if (!name && errno == ENOMEM)
			return error_set(err, ERR_NOMEM, ENOMEM, "bind aliases");
		/* A name that leads into another mount by now is no name of this one. */
		if (name && !path_covers(path, name) && !has_alias(list, name) &&
		    mount_table_find(table, name) == entry)
			r = add_alias(list, name, path, err);
	}
	return r;
}

int alias_list_find(struct alias_list *list, const struct mount_table *table,
		    const struct string_list *paths, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < paths->count; i++)
		r = find_aliases(list, table, paths->items[i], err);
	return r;
}
