/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sbpl.h"

#include "common/buf.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "tests/test.h"

static void check_rule(uint32_t harden, const char *path, enum access access, const char *want)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(65536);
	struct sbpl sbpl = { .out = &out, .harden = harden };

	sbpl_rule(&sbpl, path, access);
	assert_string_equal(buf_text(&out), want);
}

static void plain_rules(void **state)
{
	(void)state;
	check_rule(0, "/a\"b\\", ACCESS_READ_WRITE,
		   "(allow file-read* (subpath \"/a\\\"b\\\\\"))\n"
		   "(allow file-write* (subpath \"/a\\\"b\\\\\"))\n");
	check_rule(0, "/", ACCESS_READ_ONLY,
		   "(allow file-read* (subpath \"/\"))\n(deny file-write* (subpath \"/\"))\n");
	check_rule(0, "/a", ACCESS_DENY,
		   "(deny file-read* (subpath \"/a\"))\n(deny file-write* (subpath \"/a\"))\n");
}

/* What each flag adds to the lines of a rule, by itself. */
static void flags_of_a_rule(void **state)
{
	(void)state;
	check_rule(SEATBELT_HARDEN_OPERATIONS, "/a", ACCESS_READ_WRITE,
		   "(allow file-read* file-read-data file-read-metadata file-read-xattr"
		   " file-map-executable (literal \"/a\") (subpath \"/a\"))\n"
		   "(allow file-write* file-write-data file-write-create file-write-unlink"
		   " file-write-mode file-write-owner file-write-flags file-write-times"
		   " file-write-xattr (literal \"/a\") (subpath \"/a\"))\n");
	check_rule(SEATBELT_HARDEN_LINKS, "/a", ACCESS_READ_ONLY,
		   "(allow file-read* (subpath \"/a\"))\n"
		   "(deny file-write* file-link (subpath \"/a\"))\n");
	check_rule(SEATBELT_HARDEN_SOCKETS, "/a", ACCESS_READ_WRITE,
		   "(allow file-read* (subpath \"/a\"))\n"
		   "(allow file-write* network-bind network-outbound (subpath \"/a\"))\n");
	check_rule(SEATBELT_HARDEN_SOCKETS, "/a", ACCESS_DENY,
		   "(deny file-read* (subpath \"/a\"))\n"
		   "(deny file-write* network-bind network-outbound (subpath \"/a\"))\n");
	check_rule(SEATBELT_HARDEN_BASE, "/a", ACCESS_READ_ONLY,
		   "(allow file-read* process-exec* process-exec-interpreter (subpath \"/a\"))\n"
		   "(deny file-write* file-ioctl (subpath \"/a\"))\n");
}

static void denies_have_a_twin(void **state)
{
	(void)state;
	check_rule(SEATBELT_HARDEN_DATA_VOLUME, "/a", ACCESS_DENY,
		   "(deny file-read* (subpath \"/a\") (subpath \"/System/Volumes/Data/a\"))\n"
		   "(deny file-write* (subpath \"/a\") (subpath \"/System/Volumes/Data/a\"))\n");
	check_rule(SEATBELT_HARDEN_DATA_VOLUME, "/", ACCESS_DENY,
		   "(deny file-read* (subpath \"/\") (subpath \"/System/Volumes/Data\"))\n"
		   "(deny file-write* (subpath \"/\") (subpath \"/System/Volumes/Data\"))\n");
	check_rule(SEATBELT_HARDEN_DATA_VOLUME, "/System/Volumes/Data/a", ACCESS_DENY,
		   "(deny file-read* (subpath \"/System/Volumes/Data/a\"))\n"
		   "(deny file-write* (subpath \"/System/Volumes/Data/a\"))\n");
	check_rule(SEATBELT_HARDEN_DATA_VOLUME, "/System", ACCESS_READ_ONLY,
		   "(allow file-read* (subpath \"/System\"))\n"
		   "(deny file-write* (subpath \"/System\"))\n"
		   "(deny file-read* (subpath \"/System/Volumes/Data\"))\n"
		   "(deny file-write* (subpath \"/System/Volumes/Data\"))\n");
}

static void filters_by_kind(void **state)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(65536);
	struct sbpl sbpl = { .out = &out, .harden = SEATBELT_HARDEN_OPERATIONS };
	const struct sbpl_place literal = { PATH_PATTERN_LITERAL, "/l" };
	const struct sbpl_place subpath = { PATH_PATTERN_SUBPATH, "/s" };
	const struct sbpl_place prefix = { PATH_PATTERN_PREFIX, "/p" };

	(void)state;
	sbpl_filters(&sbpl, &literal, true);
	sbpl_filters(&sbpl, &subpath, true);
	sbpl_filters(&sbpl, &prefix, true);
	assert_string_equal(buf_text(&out), " (literal \"/l\") (literal \"/s\") (subpath \"/s\")"
					    " (prefix \"/p\")");
	assert_int_equal(sbpl_filter_bytes(&sbpl, "/abc", true), 2 * (4 + 8));
	sbpl.harden |= SEATBELT_HARDEN_DATA_VOLUME;
	assert_int_equal(sbpl_filter_bytes(&sbpl, "/abc", false), 2 * (4 + 8));
	assert_int_equal(sbpl_filter_bytes(&sbpl, "/abc", true), 2 * (4 + 8 + 20 + 4 + 8));
}

static void expressions_are_verbatim(void **state)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(65536);
	struct sbpl sbpl = { .out = &out };

	(void)state;
	sbpl_allow_write_regex(&sbpl, "^/a\"\\.b");
	sbpl_deny_regex(&sbpl, "x");
	assert_string_equal(buf_text(&out), "(allow file-write* (regex #\"^/a.\\.b\"))\n"
					    "(deny file-read* (regex #\"x\"))\n"
					    "(deny file-write* (regex #\"x\"))\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_rules),
		cmocka_unit_test(flags_of_a_rule),
		cmocka_unit_test(denies_have_a_twin),
		cmocka_unit_test(filters_by_kind),
		cmocka_unit_test(expressions_are_verbatim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
