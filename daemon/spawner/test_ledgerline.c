/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/ledgerline.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "common/sha256.h"
#include "tests/test.h"

static struct ledger_line made(void)
{
	return (struct ledger_line){
		.act = LEDGER_MADE,
		.job = 7,
		.identity = { .uid = 1000, .gid = 100, .group_count = 2, .groups = { 4, 100 } },
		.parent = { .fsid = 0xabc, .dev = 0xfe00, .ino = 2, .btime_sec = -5 },
		.node = { .fsid = 0xabc,
			  .dev = 0xfe00,
			  .ino = 77,
			  .btime_sec = 1700000000,
			  .btime_nsec = 12,
			  .handle_bytes = 3,
			  .handle_type = -1,
			  .handle = { 0, 0xff, 0x1a } },
		.path = "/home/u/a b\\\xc3\xa9",
	};
}

static void one_way_to_write(void **state)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);
	struct ledger_line line = made();
	char *rest = NULL;

	(void)state;
	ledger_line_write(&line, &out);
	assert_false(out.failed);
	assert_int_equal(buf_add_byte(&out, '\0'), 0);
	assert_string_equal(strtok_r((char *)out.data, "\n", &rest),
			    "made 7 1000 100 4,100 abc:fe00:2:-5.0:0:- "
			    "abc:fe00:4d:1700000000.12:-1:00ff1a /home/u/a\\x20b\\x5c\\xc3\\xa9 "
			    "9d4d2d4930d5ab64");
}

static void assert_same(const struct ledger_line *line)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);
	AUTO(auto_free) struct ledger_line *again = malloc(sizeof(*again));

	ledger_line_write(line, &out);
	assert_false(out.failed);
	assert_int_equal(out.data[out.size - 1], '\n');
	memset(again, 0xa5, sizeof(*again));
	assert_true(ledger_line_read(again, (const char *)out.data, out.size - 1));
	assert_int_equal(again->act, line->act);
	assert_int_equal(again->job, line->job);
	assert_true(identity_equal(&again->identity, &line->identity));
	assert_memory_equal(&again->node, &line->node, sizeof(line->node));
	assert_memory_equal(&again->parent, &line->parent, sizeof(line->parent));
	assert_string_equal(again->path, line->path);
}

static void every_act_and_the_largest_come_back(void **state)
{
	AUTO(auto_free) struct ledger_line *line = malloc(sizeof(*line));

	(void)state;
	*line = made();
	assert_same(line);

	/* The largest there can be: each number, each byte of the path escaped. */
	line->job = UINT64_MAX;
	line->identity.uid = line->identity.gid = UINT32_MAX - 1;
	line->identity.group_count = LIMIT_GROUPS;
	for (size_t i = 0; i < LIMIT_GROUPS; i++)
		line->identity.groups[i] = (gid_t)(UINT32_MAX - LIMIT_GROUPS + i);
	memset(&line->node, 0xff, sizeof(line->node));
	line->node.handle_bytes = sizeof(line->node.handle);
	line->node.reserved = 0;
	line->parent = line->node;
	memset(line->path, 0xff, LIMIT_PATH_BYTES);
	line->path[0] = '/';
	line->path[LIMIT_PATH_BYTES] = '\0';
	assert_same(line);

	*line = made();
	line->act = LEDGER_INTENT;
	line->node = (struct node_identity){ .btime_sec = 1700000000, .btime_nsec = 999999999 };
	line->identity.group_count = 0;
	assert_same(line);
	for (int act = LEDGER_SHARE; act <= LEDGER_CANCEL; act++) {
		*line = made();
		line->act = (enum ledger_act)act;
		memset(&line->node, 0, sizeof(line->node));
		memset(&line->parent, 0, sizeof(line->parent));
		assert_same(line);
	}
}

/* TEXT with a right sum: only what it says can be wrong with it. */
static bool reads(const char *text)
{
	AUTO(buf_deinit) struct buf line = BUF_INIT(1 << 20);
	struct ledger_line *ret = malloc(sizeof(*ret));
	char sum[SHA256_HEX_BYTES];
	bool result = false;

	sha256_hex(text, strlen(text), sum);
	assert_int_equal(buf_printf(&line, "%s %.16s", text, sum), 0);
	result = ledger_line_read(ret, (const char *)line.data, line.size);
	free(ret);
	return result;
}

#define NODE "1:2:3:4.5:6:-"

static void R26_what_is_no_line_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"made",
		"make 1 2 3 - " NODE " " NODE " /p",
		"made  1 2 3 - " NODE " " NODE " /p",
		"made 01 2 3 - " NODE " " NODE " /p",
		"made +1 2 3 - " NODE " " NODE " /p",
		"made 1 4294967295 3 - " NODE " " NODE " /p",
		"made 1 2 4294967295 - " NODE " " NODE " /p",
		"made 18446744073709551616 2 3 - " NODE " " NODE " /p",
		"made 1 2 3 4,4 " NODE " " NODE " /p",
		"made 1 2 3 5,4 " NODE " " NODE " /p",
		"made 1 2 3 4, " NODE " " NODE " /p",
		"made 1 2 3  " NODE " " NODE " /p",
		"made 1 2 3 - - " NODE " /p",
		"made 1 2 3 - " NODE " - /p",
		"made 1 2 3 - " NODE " 1:2:0:4.5:6:- /p",
		"made 1 2 3 - " NODE " 1:2:3:4:6:- /p",
		"made 1 2 3 - " NODE " 1:2:3:4.5:6: /p",
		"made 1 2 3 - " NODE " 1:2:3:4.5:6:0 /p",
		"made 1 2 3 - " NODE " 1:2:3:4.5:6:0g /p",
		"made 1 2 3 - " NODE " 1:2:3:4.5:6:AA /p",
		"made 1 2 3 - " NODE " " NODE " p",
		"made 1 2 3 - " NODE " " NODE " /",
		"made 1 2 3 - " NODE " " NODE " /p/",
		"made 1 2 3 - " NODE " " NODE " /p//q",
		"made 1 2 3 - " NODE " " NODE " /p/../q",
		"made 1 2 3 - " NODE " " NODE " /p\\x00q",
		"made 1 2 3 - " NODE " " NODE " /p\\x41",
		"made 1 2 3 - " NODE " " NODE " /p\\q",
		"made 1 2 3 - " NODE " " NODE " /p\\x",
		"made 1 2 3 - " NODE " " NODE " /p\xc3",
		"made 1 2 3 - " NODE " " NODE " /p x",
		"intent 1 2 3 - " NODE " " NODE " /p",
		"share 1 2 3 - " NODE " - /p",
		"share 1 2 3 - - " NODE " /p",
		"cancel 1 2 3 - " NODE " " NODE " /p",
	};

	(void)state;
	assert_true(reads("made 1 2 3 - " NODE " " NODE " /p"));
	assert_true(reads("intent 1 2 3 4,5 " NODE " 0:0:0:4.5:0:- /p"));
	assert_true(reads("share 1 2 3 - - - /p\\x20"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (reads(wrong[i]))
			fail_msg("read: %s", wrong[i]);
}

/* Wherever it is torn, whatever byte is another one. */
static void R26_a_torn_or_altered_line_is_none(void **state)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);
	AUTO(auto_free) struct ledger_line *line = malloc(sizeof(*line));

	(void)state;
	*line = made();
	ledger_line_write(line, &out);
	for (size_t i = 0; i + 1 < out.size; i++) {
		assert_false(ledger_line_read(line, (const char *)out.data, i));
		for (int bit = 0; bit < 8; bit++) {
			out.data[i] ^= (unsigned char)(1 << bit);
			assert_false(ledger_line_read(line, (const char *)out.data, out.size - 1));
			out.data[i] ^= (unsigned char)(1 << bit);
		}
	}
	assert_true(ledger_line_read(line, (const char *)out.data, out.size - 1));
	assert_false(ledger_line_read(line, (const char *)out.data, out.size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_way_to_write),
		cmocka_unit_test(every_act_and_the_largest_come_back),
		cmocka_unit_test(R26_what_is_no_line_is_refused),
		cmocka_unit_test(R26_a_torn_or_altered_line_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
