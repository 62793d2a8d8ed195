/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alias.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "tests/test.h"

/*
 * /home (30) of device 8:1 shows its /h; bound: u's home at /srv/alias, a whole disk at /mnt, a folder
 * inside of the configuration at "/srv/a b", another disk's folder of the same name at /srv/other.
 */
static const char mounts[] =
	"20 1 8:0 / / rw,relatime shared:1 - ext4 /dev/sda rw\n"
	"30 20 8:1 /h /home rw - ext4 /dev/sdb rw\n"
	"31 20 8:1 /h/u /srv/alias rw,nosuid shared:3 master:2 - ext4 /dev/sdb rw\n"
	"32 20 8:1 / /mnt rw - ext4 /dev/sdb rw\n"
	"33 20 8:1 /h/u/.config/fsbox/profiles /srv/a\\040b rw - ext4 /dev/sdb rw\n"
	"34 20 8:2 /h/u /srv/other rw - ext4 /dev/sdc rw\n"
	"35 20 8:1 /h/uu /srv/neighbour rw - ext4 /dev/sdb rw\n"
	"not a line\n"
	"36 20 8:1 /h /short rw\n";

static void expect_aliases(const char *text, const char *path, const char *expected)
{
	struct mount_table table = MOUNT_TABLE_INIT;
	struct alias_list list = ALIAS_LIST_INIT;
	struct string_list paths = { .items = NULL };
	struct buf found = BUF_INIT(65536);

	assert_int_equal(mount_table_parse(&table, text, NULL), 0);
	assert_int_equal(string_list_add(&paths, path, NULL), 0);
	/* Each once, however often it is asked for. */
	assert_int_equal(string_list_add(&paths, path, NULL), 0);
	assert_int_equal(alias_list_find(&list, &table, &paths, NULL), 0);
	for (size_t i = 0; i < list.count; i++) {
		assert_string_equal(list.items[i].of, path);
		assert_int_equal(buf_printf(&found, "%s%s", i > 0 ? "|" : "", list.items[i].path),
				 0);
	}
	assert_string_equal(buf_text(&found), expected);
	buf_deinit(&found);
	string_list_deinit(&paths);
	alias_list_deinit(&list);
	mount_table_deinit(&table);
}

static void test_bound_R11(void **state)
{
	(void)state;
	expect_aliases(mounts, "/home/u/.config/fsbox",
		       "/srv/alias/.config/fsbox|/mnt/h/u/.config/fsbox|/srv/a b");
	expect_aliases(mounts, "/home/u", "/srv/alias|/mnt/h/u|/srv/a b");
	/* Asked for by the other name. */
	expect_aliases(mounts, "/srv/alias/.ssh", "/home/u/.ssh|/mnt/h/u/.ssh");
	/* A mount as a whole. */
	expect_aliases(mounts, "/srv/a b",
		       "/home/u/.config/fsbox/profiles|"
		       "/srv/alias/.config/fsbox/profiles|"
		       "/mnt/h/u/.config/fsbox/profiles");
	expect_aliases(mounts, "/etc/fsbox", "");
	expect_aliases(mounts, "/home/uuu", "/mnt/h/uuu");
	expect_aliases("", "/home/u", "");
}

static void test_of_the_root(void **state)
{
	static const char text[] = "1 0 8:0 / / rw - ext4 a rw\n"
				   "2 1 8:0 / /host rw - ext4 a rw\n"
				   "3 1 8:0 /etc /srv/jail/etc rw - ext4 a rw\n"
				   "4 1 8:0 /etc/fsbox /etc/fsbox ro - ext4 a rw\n";

	(void)state;
	/* What is bound onto itself has no other name by that. */
	expect_aliases(text, "/etc/fsbox", "/host/etc/fsbox|/srv/jail/etc/fsbox");
	expect_aliases(text, "/etc", "/host/etc|/srv/jail/etc");
}

/* Mounts on mounts: only what can be reached has a name. */
static void test_covered(void **state)
{
	static const char text[] = "1 0 8:0 / / rw - ext4 a rw\n"
				   "2 1 8:1 / /home rw - ext4 b rw\n"
				   "3 1 8:1 /u /srv/x rw - ext4 b rw\n"
				   "4 3 0:9 / /srv/x rw - tmpfs c rw\n" /* stacked */
				   "5 1 8:1 /u /opt/y/z rw - ext4 b rw\n"
				   "6 1 0:8 / /opt/y rw - tmpfs d rw\n" /* above, later */
				   "7 6 8:1 /u /opt/y/w rw - ext4 b rw\n"
				   "8 7 0:7 / /opt/y/w/.config rw - tmpfs e rw\n";

	(void)state;
	expect_aliases(text, "/home/u/.config", "");
	expect_aliases(text, "/home/u/.ssh", "/opt/y/w/.ssh");
	/* The last one on a place is what is there. */
	expect_aliases("1 0 8:0 / / rw - ext4 a rw\n"
		       "2 1 8:1 / /home rw - ext4 b rw\n"
		       "3 2 8:2 / /home rw - ext4 b rw\n"
		       "4 1 8:1 / /one rw - ext4 b rw\n"
		       "5 1 8:2 / /two rw - ext4 b rw\n",
		       "/home/u", "/two/u");
	/* So of the root itself. */
	expect_aliases("9 8 0:1 / / rw - rootfs a rw\n"
		       "1 9 8:0 / / rw - ext4 a rw\n"
		       "2 1 0:1 / /below rw - rootfs a rw\n"
		       "3 1 8:0 / /again rw - ext4 a rw\n",
		       "/x", "/again/x");
}

static void test_numbers_in_a_circle(void **state)
{
	(void)state;
	expect_aliases("1 1 8:0 / / rw - ext4 a rw\n", "/x", "");
	expect_aliases("1 2 8:0 / / rw - ext4 a rw\n2 1 8:0 / / rw - ext4 a rw\n", "/x", "");
	expect_aliases("1 0 8:0 / / rw - a a a\n2 3 8:0 / /a rw - a a a\n3 2 8:0 / /a rw - a a a\n",
		       "/x", "");
	expect_aliases("99999999999 0 8:0 / / rw - a a a\n", "/x", "");
}

static void test_too_many(void **state)
{
	struct buf text = BUF_INIT(1u << 20);
	struct mount_table table = MOUNT_TABLE_INIT;
	struct alias_list list = ALIAS_LIST_INIT;
	struct string_list paths = { .items = NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(buf_add_string(&text, "1 0 8:0 / / rw - ext4 a rw\n"), 0);
	for (int i = 0; i <= ALIAS_MAX; i++)
		assert_int_equal(buf_printf(&text, "%d 1 8:0 / /m/%d rw - ext4 a rw\n", i + 2, i),
				 0);
	assert_int_equal(mount_table_parse(&table, buf_text(&text), NULL), 0);
	assert_int_equal(string_list_add(&paths, "/etc/fsbox", NULL), 0);
	assert_int_equal(alias_list_find(&list, &table, &paths, &err), -ERR_POLICY_INVALID);
	assert_non_null(strstr(err.message, "'/etc/fsbox'"));
	assert_int_equal(list.count, ALIAS_MAX);
	string_list_deinit(&paths);
	alias_list_deinit(&list);
	mount_table_deinit(&table);
	buf_deinit(&text);
}

static void test_this_machine(void **state)
{
	struct mount_table table = MOUNT_TABLE_INIT;
	const struct mount_entry *proc = NULL;
	int fd = mountinfo_open(NULL);

	(void)state;
	assert_true(fd >= 0);
	(void)mountinfo_is_stale(fd);
	assert_int_equal(mount_table_read(&table, fd, NULL), 0);
	assert_true(table.count > 0);
	proc = mount_table_find(&table, "/proc/self");
	assert_non_null(proc);
	assert_string_equal(proc->point, "/proc");
	assert_string_equal(proc->type, "proc");
	mount_table_deinit(&table);
	(void)close(fd);
	assert_int_equal(mount_table_read(&table, fd, NULL), -ERR_SYSTEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound_R11),
		cmocka_unit_test(test_of_the_root),
		cmocka_unit_test(test_covered),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_numbers_in_a_circle),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
