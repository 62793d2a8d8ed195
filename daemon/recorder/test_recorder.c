/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* A directory of its own for each case. */
struct place {
	char dir[64];
	char path[96];
	char old[100];
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (place == NULL)
		return -1;
	(void)snprintf(place->dir, sizeof(place->dir), "/tmp/fsbox-recorder.XXXXXX");
	if (mkdtemp(place->dir) == NULL)
		return -1;
	(void)snprintf(place->path, sizeof(place->path), "%s/events.jsonl", place->dir);
	(void)snprintf(place->old, sizeof(place->old), "%s.1", place->path);
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;

	(void)unlink(place->path);
	(void)unlink(place->old);
	(void)rmdir(place->dir);
	free(place);
	return 0;
}

static struct event_message event_make(uint64_t job)
{
	struct event_message message = {
		.size = sizeof(message),
		.kind = EVENT_EXECUTION_STARTED,
		.time_ns = UINT64_C(1700000000123456789),
		.job = job,
		.engine = ENGINE_BWRAP,
		.room = ROOM_EGRESS_DENIED,
	};

	return message;
}

static size_t file_read(const char *path, char *text, size_t size)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	return (size_t)n;
}

static size_t count_of(const char *text, const char *piece)
{
	size_t count = 0;

	for (const char *at = strstr(text, piece); at != NULL; at = strstr(at + 1, piece))
		count++;
	return count;
}

static void recorder_start(struct recorder *recorder, const struct place *place, uint64_t max_bytes)
{
	const struct recorder_options options = { .path = place->path, .max_bytes = max_bytes };
	struct error err = ERROR_INIT;

	assert_int_equal(recorder_init(recorder, &options, &err), 0);
}

static void lines_are_appended(void **state)
{
	const struct place *place = *state;
	struct recorder recorder = RECORDER_INIT;
	struct event_message messages[2] = { event_make(1), event_make(2) };
	struct stat st;
	char text[4096];

	for (int round = 0; round < 2; round++) {
		recorder_start(&recorder, place, 0);
		recorder_take(&recorder, messages, 2);
		recorder_deinit(&recorder);
		recorder_deinit(&recorder);
	}
	file_read(place->path, text, sizeof(text));
	assert_int_equal(count_of(text, "\n"), 4);
	assert_int_equal(count_of(text, "\"job\":1,"), 2);
	assert_int_equal(stat(place->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void group_may_read_if_told_so(void **state)
{
	const struct place *place = *state;
	const struct recorder_options options = { .path = place->path, .group_readable = true };
	struct recorder recorder = RECORDER_INIT;
	struct stat st;
	mode_t mask = umask(077);

	assert_int_equal(recorder_init(&recorder, &options, NULL), 0);
	recorder_deinit(&recorder);
	(void)umask(mask);
	assert_int_equal(stat(place->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

/* At the ceiling a file stays, one byte past it the next line opens a new one. */
static void rotation_is_exact(void **state)
{
	const struct place *place = *state;
	struct recorder recorder = RECORDER_INIT;
	struct event_message message = event_make(1);
	char text[4096];
	uint64_t line = 0;

	recorder_start(&recorder, place, 0);
	recorder_take(&recorder, &message, 1);
	line = recorder.size;
	recorder_deinit(&recorder);

	recorder_start(&recorder, place, 2 * line);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(access(place->old, F_OK), -1);
	message.job = 2;
	recorder_take(&recorder, &message, 1);
	recorder_deinit(&recorder);
	file_read(place->old, text, sizeof(text));
	assert_int_equal(count_of(text, "\n"), 2);
	file_read(place->path, text, sizeof(text));
	assert_int_equal(count_of(text, "\n"), 1);
	assert_int_equal(count_of(text, "\"job\":2,"), 1);
}

static void a_moved_file_is_followed_by_a_new_one(void **state)
{
	const struct place *place = *state;
	struct recorder recorder = RECORDER_INIT;
	struct event_message message = event_make(1);
	char text[4096];

	recorder_start(&recorder, place, 0);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(rename(place->path, place->old), 0);
	recorder_take(&recorder, &message, 1);
	recorder_deinit(&recorder);
	file_read(place->path, text, sizeof(text));
	assert_int_equal(count_of(text, "\n"), 1);
}

static void links_and_pipes_are_not_written(void **state)
{
	const struct place *place = *state;
	struct recorder recorder = RECORDER_INIT;
	struct event_message message = event_make(1);

	assert_int_equal(symlink(place->old, place->path), 0);
	recorder_start(&recorder, place, 0);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(recorder.lost, 1);
	assert_int_equal(recorder.lost_errno, ELOOP);
	assert_int_equal(access(place->old, F_OK), -1);
	assert_int_equal(unlink(place->path), 0);
	assert_int_equal(mkfifo(place->path, 0600), 0);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(recorder.lost, 2);
	assert_int_equal(unlink(place->path), 0);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(recorder.lost, 0);
	recorder_deinit(&recorder);
}

/* A full disk, played by a limit on file size: whole lines only, a count, then life goes on. */
static void a_full_disk_loses_whole_lines_and_says_so(void **state)
{
	const struct place *place = *state;
	struct recorder recorder = RECORDER_INIT;
	struct event_message message = event_make(1);
	struct rlimit old;
	struct rlimit tight;
	char text[8192];
	size_t size = 0;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	recorder_start(&recorder, place, 0);
	recorder_take(&recorder, &message, 1);
	tight = (struct rlimit){ .rlim_cur = recorder.size + 10, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	recorder_take(&recorder, &message, 1);
	recorder_take(&recorder, &message, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(recorder.lost, 2);
	size = file_read(place->path, text, sizeof(text));
	assert_int_equal(size, recorder.size);
	assert_int_equal(text[size - 1], '\n');

	message.job = 9;
	recorder_take(&recorder, &message, 1);
	assert_int_equal(recorder.lost, 0);
	recorder_deinit(&recorder);
	file_read(place->path, text, sizeof(text));
	assert_int_equal(count_of(text, "\n"), 3);
	assert_non_null(strstr(text, "\"event\":\"recorder.lost\",\"count\":2,"));
	assert_non_null(strstr(text, "\"job\":9,"));
}

static void needs_an_absolute_path_in_a_directory(void **state)
{
	const char *const bad[] = { "", "events.jsonl", "/", "/tmp/", "/nonexistent-fsbox/e" };
	struct recorder recorder = RECORDER_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct recorder_options options = { .path = bad[i] };
		struct error err = ERROR_INIT;

		assert_true(recorder_init(&recorder, &options, &err) < 0);
		assert_true(err.message[0] != '\0');
		recorder_deinit(&recorder);
	}
}

/* The pipe's bytes in pieces of CHUNK; the result of recorder_run(). */
static int run_with(const struct place *place, const void *data, size_t size, size_t chunk)
{
	struct recorder recorder = RECORDER_INIT;
	struct error err = ERROR_INIT;
	int fds[2];
	pid_t writer = 0;
	int r = 0;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		const char *bytes = data;

		for (size_t at = 0; at < size; at += chunk) {
			size_t piece = size - at < chunk ? size - at : chunk;

			if (write(fds[1], bytes + at, piece) != (ssize_t)piece)
				_exit(1);
		}
		_exit(0);
	}
	(void)close(fds[1]);
	recorder_start(&recorder, place, 0);
	r = recorder_run(&recorder, fds[0], &err);
	recorder_deinit(&recorder);
	(void)close(fds[0]);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	return r;
}

static void the_pipe_may_come_in_any_pieces(void **state)
{
	static const size_t chunks[] = { 1, 7, 1000, sizeof(struct event_message), 4096 };
	const struct place *place = *state;
	struct event_message messages[3] = { event_make(1), event_make(2), event_make(3) };
	char text[16384];

	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
		(void)unlink(place->path);
		assert_int_equal(run_with(place, messages, sizeof(messages), chunks[i]), 0);
		file_read(place->path, text, sizeof(text));
		assert_int_equal(count_of(text, "\n"), 3);
		assert_non_null(strstr(text, "\"job\":3,"));
	}
}

static void garbage_ends_it(void **state)
{
	const struct place *place = *state;
	struct event_message messages[2] = { event_make(1), event_make(2) };

	messages[1].kind = EVENT_KIND_COUNT;
	assert_int_equal(run_with(place, messages, sizeof(messages), 4096), -ERR_BAD_FRAME);
	assert_int_equal(run_with(place, messages, sizeof(messages[0]) + 10, 4096), -ERR_BAD_FRAME);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
	const struct CMUnitTest tests[] = {
		CASE(lines_are_appended),
		CASE(group_may_read_if_told_so),
		CASE(rotation_is_exact),
		CASE(a_moved_file_is_followed_by_a_new_one),
		CASE(links_and_pipes_are_not_written),
		CASE(a_full_disk_loses_whole_lines_and_says_so),
		CASE(needs_an_absolute_path_in_a_directory),
		CASE(the_pipe_may_come_in_any_pieces),
		CASE(garbage_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
