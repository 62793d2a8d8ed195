/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/kernelmounts.h"

#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static void test_unusual_places_R19(void **state)
{
	static const char text[] =
		"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
		"23 27 0:22 / /sys rw,relatime shared:7 master:1 - sysfs sysfs rw\n"
		"24 23 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
		"25 27 0:6 / /dev rw - devtmpfs dev rw\n"
		"30 27 0:21 / /srv/jail/proc rw,relatime - proc proc rw\n"
		"31 27 0:22 / /srv/jail/odd\\040name\\134 rw - sysfs sysfs rw\n"
		"32 27 254:0 / /srv/data rw - ext4 /dev/vda rw\n"
		"33 27 0:21 / /srv/jail/proc rw,relatime - proc proc rw\n"
		"34 27 0:9 / /devices rw - devtmpfs dev rw\n"
		"broken line\n"
		"35 27 0:9 / /short rw\n";
	struct mount_table table = MOUNT_TABLE_INIT;
	struct string_list paths = { 0 };

	(void)state;
	assert_int_equal(mount_table_parse(&table, text, NULL), 0);
	assert_int_equal(kernelmounts_list(&paths, &table, NULL), 0);
	mount_table_deinit(&table);
	assert_int_equal(paths.count, 3);
	assert_string_equal(paths.items[0], "/devices");
	assert_string_equal(paths.items[1], "/srv/jail/odd name\\");
	assert_string_equal(paths.items[2], "/srv/jail/proc");
	string_list_deinit(&paths);
}

static void test_refresh(void **state)
{
	struct kernelmounts mounts = KERNELMOUNTS_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(kernelmounts_refresh(&mounts, &err), 0);
	assert_true(mounts.fd >= 0);
	assert_true(mounts.table.count > 0);
	for (size_t i = 0; i < mounts.paths.count; i++) {
		assert_int_not_equal(strcmp(mounts.paths.items[i], "/proc"), 0);
		assert_int_equal(mounts.paths.items[i][0], '/');
	}
	assert_int_equal(kernelmounts_refresh(&mounts, &err), 0);
	kernelmounts_deinit(&mounts);
	assert_int_equal(mounts.fd, -1);
	kernelmounts_deinit(&mounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unusual_places_R19),
		cmocka_unit_test(test_refresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
