/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

#define LINE(seq, uid, rest)                                                                   \
	"{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"execution.started\",\"seq\":" #seq \
	",\"job\":" #seq ",\"uid\":" #uid rest "}\n"

struct place {
	char dir[40];
	int dir_fd;
	int ends[2];
	struct reader reader;
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	(void)snprintf(place->dir, sizeof(place->dir), "/tmp/fsbox-test-reader.XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	place->dir_fd = open(place->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->dir_fd >= 0);
	assert_int_equal(pipe2(place->ends, O_CLOEXEC | O_NONBLOCK), 0);
	place->reader = (struct reader)READER_INIT;
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;

	reader_deinit(&place->reader);
	(void)close(place->ends[0]);
	(void)unlinkat(place->dir_fd, "e", 0);
	(void)unlinkat(place->dir_fd, "e.1", 0);
	(void)close(place->dir_fd);
	(void)rmdir(place->dir);
	free(place);
	return 0;
}

static void add(const struct place *place, const char *name, const char *text)
{
	int fd = openat(place->dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void begin(struct place *place, uint32_t uid, bool everybody, bool follow)
{
	const struct recorder_control what = {
		.size = sizeof(what), .uid = uid, .everybody = everybody, .follow = follow
	};

	reader_init_take(&place->reader, &what, place->ends[1], place->dir_fd, "e");
}

static void expect(struct place *place, enum reader_state state, const char *want)
{
	char text[4096];
	ssize_t got = 0;

	assert_int_equal(reader_step(&place->reader, place->dir_fd, "e"), state);
	got = read(place->ends[0], text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	assert_string_equal(text, want);
}

static void R30_one_sees_his_own(void **state)
{
	struct place *place = *state;

	add(place, "e.1", LINE(1, 7, "") LINE(2, 8, ""));
	add(place, "e", LINE(3, 77, "") LINE(4, 7, ",\"command\":\"\\\",\\\"uid\\\":8\""));
	begin(place, 7, false, false);
	expect(place, READER_OVER,
	       LINE(1, 7, "") LINE(4, 7, ",\"command\":\"\\\",\\\"uid\\\":8\""));
}

static void R30_texts_do_not_forge_an_owner(void **state)
{
	static const char forged[] = LINE(1, 9, ",\"command\":\"x\",\"uid\":7");
	static const char foreign[] = "{\"uid\":7}\n";
	static const char lost[] = "{\"time\":\"x\",\"event\":\"recorder.lost\",\"count\":3}\n";
	const struct recorder_control mine = { .uid = 7 };
	const struct recorder_control all = { .uid = 7, .everybody = 1 };
	const struct recorder_control job = { .uid = 7, .everybody = 1, .job = 4 };

	(void)state;
	assert_false(reader_may_see(&mine, forged, strlen(forged)));
	assert_false(reader_may_see(&mine, foreign, strlen(foreign)));
	assert_false(reader_may_see(&mine, lost, strlen(lost)));
	assert_true(reader_may_see(&all, lost, strlen(lost)));
	assert_true(reader_may_see(&all, foreign, strlen(foreign)));
	assert_false(reader_may_see(&job, lost, strlen(lost)));
	assert_true(reader_may_see(&job, LINE(4, 1, ""), strlen(LINE(4, 1, ""))));
	assert_false(reader_may_see(&job, LINE(44, 1, ""), strlen(LINE(44, 1, ""))));
	assert_false(reader_may_see(&mine, "", 0));
}

static void following_goes_over_rotations(void **state)
{
	struct place *place = *state;

	begin(place, 0, true, true);
	expect(place, READER_WAITS_FOR_LINES, "");
	add(place, "e", LINE(1, 7, ""));
	expect(place, READER_WAITS_FOR_LINES, LINE(1, 7, ""));
	/* Half a line is none yet. */
	add(place, "e", "{\"time\":\"");
	expect(place, READER_WAITS_FOR_LINES, "");
	add(place, "e", "x\"}\n" LINE(2, 7, ""));
	expect(place, READER_WAITS_FOR_LINES, "{\"time\":\"x\"}\n" LINE(2, 7, ""));
	add(place, "e", LINE(3, 7, ""));
	assert_int_equal(renameat(place->dir_fd, "e", place->dir_fd, "e.1"), 0);
	add(place, "e", LINE(4, 7, ""));
	expect(place, READER_WAITS_FOR_LINES, LINE(3, 7, "") LINE(4, 7, ""));
	assert_int_equal(unlinkat(place->dir_fd, "e", 0), 0);
	expect(place, READER_WAITS_FOR_LINES, "");
	add(place, "e", LINE(5, 7, ""));
	expect(place, READER_WAITS_FOR_LINES, LINE(5, 7, ""));
}

/* One who does not read holds his place, nothing else; one who is gone is over. */
static void slow_readers_keep_their_place(void **state)
{
	struct place *place = *state;
	size_t lines = 0;
	char text[65536];

	for (int i = 0; i < 3000; i++)
		add(place, "e", LINE(1, 7, ",\"command\":\"make\""));
	begin(place, 7, false, false);
	while (lines < 3000) {
		enum reader_state now = reader_step(&place->reader, place->dir_fd, "e");
		ssize_t got = read(place->ends[0], text, sizeof(text));

		assert_true(now != READER_WAITS_FOR_LINES);
		assert_true(got > 0);
		for (ssize_t i = 0; i < got; i++)
			lines += text[i] == '\n';
	}
	assert_int_equal(lines, 3000);
}

static void one_who_left_is_over(void **state)
{
	struct place *place = *state;

	(void)signal(SIGPIPE, SIG_IGN);
	add(place, "e", LINE(1, 7, ""));
	begin(place, 7, false, true);
	(void)close(place->ends[0]);
	assert_int_equal(reader_step(&place->reader, place->dir_fd, "e"), READER_OVER);
}

static void what_is_no_file_is_not_read(void **state)
{
	struct place *place = *state;

	assert_int_equal(symlinkat("/etc/passwd", place->dir_fd, "e"), 0);
	begin(place, 0, true, false);
	expect(place, READER_OVER, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
	const struct CMUnitTest tests[] = {
		CASE(R30_one_sees_his_own),          CASE(R30_texts_do_not_forge_an_owner),
		CASE(following_goes_over_rotations), CASE(slow_readers_keep_their_place),
		CASE(one_who_left_is_over),          CASE(what_is_no_file_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
