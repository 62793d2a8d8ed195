/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledgerline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "common/sha256.h"

#define SUM_BYTES 16
#define NOTHING "-"

static const char *const act_names[] = {
	[LEDGER_INTENT] = "intent",
	[LEDGER_MADE] = "made",
	[LEDGER_SHARE] = "share",
	[LEDGER_CANCEL] = "cancel",
};

/* ---- writing ------------------------------------------------------------------------- */

static void write_groups(const struct identity *identity, struct buf *out)
{
	if (identity->group_count == 0)
		(void)buf_add_string(out, NOTHING);
	for (size_t i = 0; i < identity->group_count; i++)
		(void)buf_printf(out, "%s%u", i > 0 ? "," : "", identity->groups[i]);
}

static void write_node(const struct node_identity *node, struct buf *out)
{
	(void)buf_printf(out,
			 " %" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRId64 ".%" PRIu32 ":%" PRId32
			 ":",
			 node->fsid, node->dev, node->ino, node->btime_sec, node->btime_nsec,
			 node->handle_type);
	if (node->handle_bytes == 0)
		(void)buf_add_string(out, NOTHING);
	for (uint32_t i = 0; i < node->handle_bytes && i < sizeof(node->handle); i++)
		(void)buf_printf(out, "%02x", node->handle[i]);
}

static void write_path(const char *path, struct buf *out)
{
	(void)buf_add_byte(out, ' ');
	for (; *path; path++) {
		unsigned char byte = (unsigned char)*path;

		if (byte > ' ' && byte < 0x7f && byte != '\\')
			(void)buf_add_byte(out, *path);
		else
			(void)buf_printf(out, "\\x%02x", byte);
	}
}

static void write_sum(const char *text, size_t size, char ret_sum[SUM_BYTES + 1])
{
	char digest[SHA256_HEX_BYTES];

	sha256_hex(text, size, digest);
	memcpy(ret_sum, digest, SUM_BYTES);
	ret_sum[SUM_BYTES] = '\0';
}

static bool has_nodes(enum ledger_act act)
{
	return act == LEDGER_INTENT || act == LEDGER_MADE;
}

void ledger_line_write(const struct ledger_line *line, struct buf *out)
{
	const struct identity *identity = &line->identity;
	size_t begin = out->size;
	char sum[SUM_BYTES + 1];

	(void)buf_printf(out, "%s %" PRIu64 " %u %u ", act_names[line->act], line->job,
			 identity->uid, identity->gid);
	write_groups(identity, out);
	if (has_nodes(line->act)) {
		write_node(&line->parent, out);
		write_node(&line->node, out);
	} else {
		(void)buf_add_string(out, " " NOTHING " " NOTHING);
	}
	write_path(line->path, out);
	if (out->failed)
		return;
	write_sum((const char *)out->data + begin, out->size - begin, sum);
	(void)buf_printf(out, " %s\n", sum);
}

/* ---- reading ------------------------------------------------------------------------- */

/* What is left of a line, NUL-terminated, cut at each separator as it is taken. */
struct cursor {
	char *text;
	bool bad;
};

/* The text up to SEPARATOR (or the end, for NUL), which must be there. */
static char *take(struct cursor *cursor, char separator)
{
	char *text = cursor->text;
	char *end = strchr(text, separator);

	if (!end) {
		cursor->bad = true;
		return text + strlen(text);
	}
	cursor->text = separator ? end + 1 : end;
	*end = '\0';
	return text;
}

/* Lenient: what is not written the one way is found out by writing it again. */
static uint64_t take_number(struct cursor *cursor, char separator, int base, uint64_t max)
{
	const char *text = take(cursor, separator);
	char *end = NULL;
	unsigned long long value = 0;

	errno = 0;
	value = strtoull(text, &end, base);
	if (errno != 0 || *text == '\0' || *end != '\0' || value > max)
		cursor->bad = true;
	return value;
}

static int64_t take_signed(struct cursor *cursor, char separator, int64_t min, int64_t max)
{
	const char *text = take(cursor, separator);
	char *end = NULL;
	long long value = 0;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *text == '\0' || *end != '\0' || value < min || value > max)
		cursor->bad = true;
	return value;
}

static void read_groups(struct cursor *cursor, struct identity *identity)
{
	struct cursor groups = { .text = take(cursor, ' ') };

	if (strcmp(groups.text, NOTHING) == 0)
		return;
	while (!groups.bad) {
		bool last = !strchr(groups.text, ',');
		gid_t group = (gid_t)take_number(&groups, last ? '\0' : ',', 10, UINT32_MAX);

		if (identity->group_count == LIMIT_GROUPS ||
		    (identity->group_count > 0 &&
		     group <= identity->groups[identity->group_count - 1]))
			break;
		identity->groups[identity->group_count++] = group;
		if (last && !groups.bad)
			return;
	}
	cursor->bad = true;
}

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int hex_byte(const char *text)
{
	int high = hex_digit(text[0]);
	int low = high < 0 ? -1 : hex_digit(text[1]);

	return low < 0 ? -1 : high * 16 + low;
}

static void read_node(struct cursor *cursor, struct node_identity *node)
{
	struct cursor in = { .text = take(cursor, ' ') };
	const char *handle = NULL;

	node->fsid = take_number(&in, ':', 16, UINT64_MAX);
	node->dev = take_number(&in, ':', 16, UINT64_MAX);
	node->ino = take_number(&in, ':', 16, UINT64_MAX);
	node->btime_sec = take_signed(&in, '.', INT64_MIN, INT64_MAX);
	node->btime_nsec = (uint32_t)take_number(&in, ':', 10, UINT32_MAX);
	node->handle_type = (int32_t)take_signed(&in, ':', INT32_MIN, INT32_MAX);
	handle = take(&in, '\0');
	cursor->bad |= in.bad;
	if (strcmp(handle, NOTHING) == 0)
		return;
	for (; *handle && node->handle_bytes < sizeof(node->handle); handle += 2) {
		int byte = hex_byte(handle);

		if (byte < 0)
			break;
		node->handle[node->handle_bytes++] = (uint8_t)byte;
	}
	if (*handle || node->handle_bytes == 0)
		cursor->bad = true;
}

static void read_path(struct cursor *cursor, char *path, size_t size)
{
	const char *text = take(cursor, ' ');
	size_t used = 0;

	while (*text && used + 1 < size) {
		int byte = (unsigned char)*text++;

		if (byte == '\\') {
			byte = *text == 'x' ? hex_byte(text + 1) : -1;
			text += byte < 0 ? 0 : 3;
		}
		if (byte <= 0)
			break;
		path[used++] = (char)byte;
	}
	path[used] = '\0';
	if (*text || strcmp(path, "/") == 0 || !plan_path_is_canonical(path))
		cursor->bad = true;
}

static bool read_act(struct cursor *cursor, enum ledger_act *ret_act)
{
	const char *name = take(cursor, ' ');

	for (size_t i = LEDGER_INTENT; i < ARRAY_SIZE(act_names); i++) {
		if (strcmp(act_names[i], name) == 0) {
			*ret_act = (enum ledger_act)i;
			return true;
		}
	}
	return false;
}

static void read_nodes(struct cursor *cursor, struct ledger_line *line)
{
	if (!has_nodes(line->act)) {
		cursor->bad |= strcmp(take(cursor, ' '), NOTHING) != 0;
		cursor->bad |= strcmp(take(cursor, ' '), NOTHING) != 0;
		return;
	}
	read_node(cursor, &line->parent);
	read_node(cursor, &line->node);
	cursor->bad |= (line->node.ino != 0) != (line->act == LEDGER_MADE);
}

static bool is_written_so(const struct ledger_line *line, const char *text, size_t size)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);

	ledger_line_write(line, &out);
	return !out.failed && out.size == size + 1 && memcmp(out.data, text, size) == 0;
}

bool ledger_line_read(struct ledger_line *ret_line, const char *text, size_t size)
{
	AUTO(auto_free) char *copy = NULL;
	AUTO(auto_free) struct ledger_line *line = calloc(1, sizeof(*line));
	struct cursor cursor = { .bad = false };

	if (size >= LIMIT_LEDGER_LINE_BYTES || memchr(text, '\0', size))
		return false;
	copy = cursor.text = strndup(text, size);
	if (!copy || !line || !read_act(&cursor, &line->act))
		return false;
	line->job = take_number(&cursor, ' ', 10, UINT64_MAX);
	/* The last number means nobody, to whom nothing can belong. */
	line->identity.uid = (uid_t)take_number(&cursor, ' ', 10, UINT32_MAX - 1);
	line->identity.gid = (gid_t)take_number(&cursor, ' ', 10, UINT32_MAX - 1);
	read_groups(&cursor, &line->identity);
	read_nodes(&cursor, line);
	read_path(&cursor, line->path, sizeof(line->path));
	if (cursor.bad || !is_written_so(line, text, size))
		return false;
	*ret_line = *line;
	return true;
}
