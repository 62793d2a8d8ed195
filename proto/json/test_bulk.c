/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/bulk.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/fdcount.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int memfd(const char *text, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void written_is_read(void **state)
{
	AUTO(auto_close) int fd = -1;
	struct json_doc *doc = NULL;

	(void)state;
	assert_int_equal(bulk_create("[1,2]", 5, &fd, NULL), 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS), SEALS);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(bulk_read(fd, &doc, NULL), 0);
	assert_int_equal(json_root(doc)->size, 2);
	json_doc_free(doc);
}

static void each_seal_is_needed(void **state)
{
	static const int seals[] = { 0, SEALS & ~F_SEAL_SEAL, SEALS & ~F_SEAL_SHRINK,
				     SEALS & ~F_SEAL_GROW, SEALS & ~F_SEAL_WRITE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seals); i++) {
		AUTO(auto_close) int fd = memfd("[]", seals[i]);
		struct json_doc *doc = NULL;
		struct error err = ERROR_INIT;

		assert_int_equal(bulk_read(fd, &doc, &err), -ERR_BAD_FRAME);
		assert_non_null(strstr(err.message, "not sealed"));
	}
}

static void other_descriptors_are_refused(void **state)
{
	static const char *const paths[] = { "/dev/null", "/", "/proc/self/exe" };
	struct json_doc *doc = NULL;
	int ends[2] = { -1, -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		AUTO(auto_close) int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(bulk_read(fd, &doc, NULL), -ERR_BAD_FRAME);
	}
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(bulk_read(ends[0], &doc, NULL), -ERR_BAD_FRAME);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(bulk_read(-1, &doc, NULL), -ERR_BAD_FRAME);
}

static void sizes_at_their_bounds(void **state)
{
	AUTO(auto_close) int empty = memfd("", SEALS);
	AUTO(auto_close) int longest = memfd("[]", 0);
	AUTO(auto_close) int longer = memfd("[]", 0);
	struct json_doc *doc = NULL;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(bulk_read(empty, &doc, &err), -ERR_BAD_FRAME);
	/* Sparse: the bytes after the two are NUL, which no JSON may hold. */
	assert_int_equal(ftruncate(longest, LIMIT_PARAMS_BYTES), 0);
	assert_int_equal(fcntl(longest, F_ADD_SEALS, SEALS), 0);
	assert_int_equal(bulk_read(longest, &doc, &err), -ERR_BAD_JSON);
	assert_int_equal(ftruncate(longer, LIMIT_PARAMS_BYTES + 1), 0);
	assert_int_equal(fcntl(longer, F_ADD_SEALS, SEALS), 0);
	assert_int_equal(bulk_read(longer, &doc, &err), -ERR_BAD_FRAME);
}

static void bad_json_is_said(void **state)
{
	AUTO(auto_close) int fd = memfd("[1,", SEALS);
	struct json_doc *doc = NULL;
	size_t before = fd_count();

	(void)state;
	assert_int_equal(bulk_read(fd, &doc, NULL), -ERR_BAD_JSON);
	assert_int_equal(fd_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_is_read),
		cmocka_unit_test(each_seal_is_needed),
		cmocka_unit_test(other_descriptors_are_refused),
		cmocka_unit_test(sizes_at_their_bounds),
		cmocka_unit_test(bad_json_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
