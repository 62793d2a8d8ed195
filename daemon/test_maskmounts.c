/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/maskmounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"
#include "tests/test.h"

/* What comes of TEXT, as text again. Static. */
static const char *again(const char *text)
{
	static char result[4096];
	AUTO(mask_mounts_deinit) struct mask_mount_list list = { .items = NULL };
	AUTO(buf_deinit) struct buf out = BUF_INIT(sizeof(result) - 1);

	assert_int_equal(mask_mounts_read(&list, text, strlen(text), NULL), 0);
	mask_mounts_write(&list, &out);
	(void)snprintf(result, sizeof(result), "%s", buf_text(&out));
	return result;
}

#define ONE "{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":1,\"ino\":2}"

static void what_is_written_is_read(void **state)
{
	static const char *const same[] = {
		"[]",
		"[" ONE "]",
		"[" ONE "," ONE "]",
		"[{\"path\":\"/a\\\"\\\\\\u0001\xc3\xa9\",\"kind\":\"file\","
		"\"dev\":18446744073709551615,\"ino\":0}]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		assert_string_equal(again(same[i]), same[i]);
	assert_string_equal(again(" [ { \"ino\" : 2 , \"more\" : [ { } , [ 1 ] ] , \"path\":\"/p\","
				  "\"dev\":1,\"kind\":\"file\",\"kind\":\"dir\" } ] \n"),
			    "[" ONE "]");
}

static void what_is_no_entry_is_left_out(void **state)
{
	static const char *const odd[] = {
		"null",
		"1",
		"\"x\"",
		"{}",
		"[[]]",
		"{\"path\":5,\"kind\":\"dir\",\"dev\":1,\"ino\":1}",
		"{\"path\":\"/p\",\"kind\":\"tree\",\"dev\":1,\"ino\":1}",
		"{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":\"1\",\"ino\":1}",
		"{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":1.5,\"ino\":1}",
		"{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":-1,\"ino\":1}",
		"{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":1,\"ino\":null}",
		"{\"path\":\"/p\",\"kind\":\"dir\",\"dev\":1,\"ino\":18446744073709551616}",
		"{\"path\":\"/p\\u0000q\",\"kind\":\"dir\",\"dev\":1,\"ino\":1}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text), "[%s,%s]", odd[i], ONE);
		assert_string_equal(again(text), "[" ONE "]");
	}
}

static void what_is_no_list_is_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"{not json",
		"[",
		"[" ONE,
		"[" ONE ",]",
		"[" ONE "] x",
		"{}",
		ONE,
		"[" ONE "{}]",
		"[{\"path\"]",
		"[{\"path\":\"/p]",
		"[{1:2}]",
		"[\"\\q\"]",
		"[\"\\u12\"]",
		"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_string_equal(again(bad[i]), "[]");
}

static void made_and_reclaimed(void **state)
{
	AUTO(mask_mounts_deinit) struct mask_mount_list list = { .items = NULL };
	AUTO(mask_mounts_deinit) struct mask_mount_list loaded = { .items = NULL };
	char dir[] = "/tmp/fsbox-test-XXXXXX";
	char path[128];
	struct stat about;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a/b/f", dir);
	assert_int_equal(mask_mounts_create(&list, path, false, NULL), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0].path, path);
	assert_int_equal(lstat(path, &about), 0);
	assert_true(S_ISREG(about.st_mode) && (about.st_mode & 0777) == 0600);
	assert_int_equal(mask_mounts_create(&list, path, true, NULL), 0);
	assert_int_equal(list.count, 3);
	assert_int_equal(mask_mounts_create(&list, "relative", true, NULL), -ERR_SETUP_FAILED);
	assert_int_equal(mask_mounts_save(&list, dir, NULL), 0);
	assert_int_equal(mask_mounts_load(&loaded, dir, NULL), 0);
	assert_int_equal(loaded.count, 3);
	mask_mounts_reclaim(&loaded);
	(void)snprintf(path, sizeof(path), "%s/mask-mounts.json", dir);
	assert_int_equal(lstat(path, &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mask_mounts_save(&list, dir, NULL), -ERR_SYSTEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_is_no_entry_is_left_out),
		cmocka_unit_test(what_is_no_list_is_nothing),
		cmocka_unit_test(made_and_reclaimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
