/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/lookuprecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

struct room {
	char dir[64];
	struct buf record;
};

static char *below(const struct room *room, const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", room->dir, name);
	return path;
}

static void touch(const struct room *room, const char *name)
{
	FILE *file = fopen(below(room, name), "we");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));

	(void)snprintf(room->dir, sizeof(room->dir), "/tmp/fsbox-record-XXXXXX");
	assert_non_null(mkdtemp(room->dir));
	buf_init(&room->record, 1u << 20);
	*state = room;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "file", "other", "link", "late" };
	struct room *room = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlink(below(room, names[i]));
	(void)rmdir(room->dir);
	buf_deinit(&room->record);
	free(room);
	return 0;
}

/* Ask KIND of REQUEST now and record it. */
static void ask(struct room *room, enum lookup_kind kind, struct buf *request)
{
	struct buf answer = BUF_INIT(1u << 20);
	struct error err = ERROR_INIT;

	assert_int_equal(resolver_answer(kind, request->data, request->size, &answer, &err), 0);
	lookup_record_add(&room->record, kind, request, answer.data, answer.size);
	buf_deinit(&answer);
	buf_deinit(request);
}

static void ask_path(struct room *room, const char *name)
{
	struct buf request = BUF_INIT(1u << 16);

	pack_u32(&request, 1);
	pack_string(&request, below(room, name));
	ask(room, LOOKUP_PATHS, &request);
}

static bool is_same(const struct room *room)
{
	struct unpack in = UNPACK_INIT(room->record.data, room->record.size);
	struct error err = ERROR_INIT;
	bool same = false;

	assert_int_equal(lookup_record_repeat(&in, &same, &err), 0);
	assert_int_equal(unpack_end(&in, &err), 0);
	return same;
}

/* R10: links and absences count as much as what is there. */
static void r10_every_visited_node_counts(void **state)
{
	struct room *room = *state;

	touch(room, "file");
	touch(room, "other");
	assert_int_equal(symlink("file", below(room, "link")), 0);
	ask_path(room, "link");
	ask_path(room, "late");
	assert_true(is_same(room));
	assert_true(is_same(room));

	assert_int_equal(unlink(below(room, "link")), 0);
	assert_int_equal(symlink("other", below(room, "link")), 0);
	assert_false(is_same(room));
	assert_int_equal(unlink(below(room, "link")), 0);
	assert_int_equal(symlink("file", below(room, "link")), 0);
	assert_true(is_same(room));

	touch(room, "late");
	assert_false(is_same(room));
}

static void what_a_file_says_counts(void **state)
{
	struct room *room = *state;
	struct buf request = BUF_INIT(1u << 16);
	FILE *file = NULL;

	touch(room, "file");
	pack_string(&request, below(room, "file"));
	pack_u32(&request, 4096);
	ask(room, LOOKUP_READ, &request);
	assert_true(is_same(room));

	file = fopen(below(room, "file"), "we");
	assert_non_null(file);
	assert_true(fputs("more", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_false(is_same(room));
}

static void garbage_is_no_record(void **state)
{
	struct room *room = *state;
	struct error err = ERROR_INIT;
	bool same = true;
	struct unpack in;

	ask_path(room, "late");
	in = (struct unpack)UNPACK_INIT(room->record.data, room->record.size - 1);
	assert_int_equal(lookup_record_repeat(&in, &same, &err), -ERR_BAD_FRAME);

	buf_clear(&room->record);
	pack_u32(&room->record, LOOKUP_REPEAT);
	pack_bytes(&room->record, "", 0);
	pack_bytes(&room->record, "", 0);
	in = (struct unpack)UNPACK_INIT(room->record.data, room->record.size);
	assert_int_equal(lookup_record_repeat(&in, &same, &err), -ERR_BAD_FRAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(r10_every_visited_node_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_file_says_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(garbage_is_no_record, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
