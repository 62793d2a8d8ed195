/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/reportin.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/fdcount.h"
#include "tests/test.h"

#define MOST 8

struct scene {
	struct reportin in;
	int write_fd;
	struct report_message seen[MOST];
	size_t seen_count;
	bool close_at_first;
};

static void on_message(const struct report_message *report, void *arg)
{
	struct scene *scene = arg;

	assert_true(scene->seen_count < MOST);
	scene->seen[scene->seen_count++] = *report;
	if (scene->close_at_first)
		reportin_deinit(&scene->in);
}

static void scene_init(struct scene *scene)
{
	int ends[2];

	memset(scene, 0, sizeof(*scene));
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	scene->write_fd = ends[1];
	reportin_init_take(&scene->in, ends[0], on_message, scene);
}

static void scene_deinit(struct scene *scene)
{
	if (scene->write_fd >= 0)
		(void)close(scene->write_fd);
	reportin_deinit(&scene->in);
}

static struct report_message message_of(enum report_kind kind)
{
	struct report_message message;

	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.size = (uint32_t)report_message_size(kind);
	if (kind == REPORT_FAILED) {
		message.u.failure.kind = ERR_SETUP_FAILED;
		message.u.failure.stage[0] = 's';
	}
	if (kind == REPORT_EXITED)
		message.u.exited.reason = EXIT_EXITED;
	if (kind == REPORT_BUILT)
		message.u.built.mounts = 1;
	return message;
}

static void put(const struct scene *scene, const void *bytes, size_t size)
{
	assert_int_equal(write(scene->write_fd, bytes, size), (ssize_t)size);
}

static enum reportin_result read_all(struct scene *scene)
{
	enum reportin_result result = REPORTIN_MORE;

	while (result == REPORTIN_MORE)
		result = reportin_read(&scene->in, NULL);
	return result;
}

/* Whatever pieces the bytes come in, the messages are the same. */
static void messages_in_pieces_of_any_size(void **state)
{
	static const enum report_kind kinds[] = { REPORT_PID1_UP, REPORT_FAILED, REPORT_EXITED,
						  REPORT_BUILT };
	unsigned char bytes[4 * sizeof(struct report_message)];
	size_t size = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct report_message message = message_of(kinds[i]);

		memcpy(bytes + size, &message, message.size);
		size += message.size;
	}
	for (size_t piece = 1; piece <= size; piece += piece < 20 ? 1 : 61) {
		struct scene scene;

		scene_init(&scene);
		for (size_t at = 0; at < size; at += piece) {
			put(&scene, bytes + at, size - at < piece ? size - at : piece);
			assert_int_equal(read_all(&scene), REPORTIN_LATER);
		}
		assert_int_equal(scene.seen_count, 4);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(scene.seen[i].kind, kinds[i]);
		(void)close(scene.write_fd);
		scene.write_fd = -1;
		assert_int_equal(read_all(&scene), REPORTIN_END);
		scene_deinit(&scene);
	}
}

static void garbage_is_told_from_messages(void **state)
{
	struct report_message message = message_of(REPORT_PID1_UP);
	const struct {
		uint32_t size;
		uint32_t kind;
	} wrong[] = {
		{ 0, REPORT_PID1_UP },
		{ 7, REPORT_PID1_UP },
		{ message.size + 1, REPORT_PID1_UP },
		{ message.size, 0 },
		{ message.size, REPORT_KIND_COUNT },
		{ message.size, UINT32_MAX },
		{ UINT32_MAX, REPORT_FAILED },
		{ sizeof(struct report_message) + 1, REPORT_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct scene scene;

		scene_init(&scene);
		put(&scene, &message, message.size); /* what came before is heard */
		put(&scene, &wrong[i], sizeof(wrong[i]));
		assert_int_equal(read_all(&scene), REPORTIN_GARBAGE);
		assert_int_equal(scene.seen_count, 1);
		scene_deinit(&scene);
	}
}

static void half_a_message_is_none(void **state)
{
	struct report_message message = message_of(REPORT_FAILED);
	struct scene scene;

	(void)state;
	scene_init(&scene);
	put(&scene, &message, message.size - 1);
	assert_int_equal(read_all(&scene), REPORTIN_LATER);
	(void)close(scene.write_fd);
	scene.write_fd = -1;
	assert_int_equal(read_all(&scene), REPORTIN_END);
	assert_int_equal(scene.seen_count, 0);
	scene_deinit(&scene);
}

static void who_is_called_may_close(void **state)
{
	struct report_message message = message_of(REPORT_PID1_UP);
	size_t fds = fd_count();
	struct scene scene;

	(void)state;
	scene_init(&scene);
	scene.close_at_first = true;
	put(&scene, &message, message.size);
	put(&scene, &message, message.size);
	assert_int_equal(read_all(&scene), REPORTIN_END);
	assert_int_equal(scene.seen_count, 1);
	scene_deinit(&scene);
	scene.write_fd = -1;
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

/* What was a message of one user's lies in the memory of others' processes otherwise. */
static void R15_nothing_of_a_message_is_kept(void **state)
{
	struct report_message message = message_of(REPORT_FAILED);
	struct scene scene;

	(void)state;
	scene_init(&scene);
	memset(message.u.failure.message, 'x', sizeof(message.u.failure.message) - 1);
	put(&scene, &message, message.size);
	assert_int_equal(read_all(&scene), REPORTIN_LATER);
	assert_int_equal(scene.seen_count, 1);
	if (scene.in.part.data)
		assert_null(memchr(scene.in.part.data, 'x', message.size));
	scene_deinit(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_in_pieces_of_any_size),
		cmocka_unit_test(garbage_is_told_from_messages),
		cmocka_unit_test(half_a_message_is_none),
		cmocka_unit_test(who_is_called_may_close),
		cmocka_unit_test(R15_nothing_of_a_message_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
