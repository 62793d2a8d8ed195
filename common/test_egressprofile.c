/* SPDX-License-Identifier: Apache-2.0 */
#include "common/egressprofile.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

#define HEAD                        \
	"(version 1)\n"             \
	"(allow default)\n"         \
	"(deny network-outbound)\n" \
	"(allow network-outbound (regex #\"^/\"))\n"

static enum path_kind kind_of(void *arg, const char *path)
{
	(void)arg;
	if (strstr(path, "file"))
		return PATH_KIND_OTHER;
	return strstr(path, "dir") ? PATH_KIND_DIRECTORY : PATH_KIND_ABSENT;
}

/* Everything exists; /tmp is a link, as on macOS. */
static char *real_of(void *arg, const char *path)
{
	(void)arg;
	errno = 0;
	return strncmp(path, "/tmp/", 5) == 0 ? strdup("/private/tmp/dir") : strdup(path);
}

static const struct path_view view = { .cwd = "/", .kind = kind_of, .real = real_of };

static void check(const struct egress_allowance *allowance, const char *want)
{
	struct buf out = BUF_INIT(1u << 16);

	assert_int_equal(egress_profile(&out, allowance, &view, NULL), 0);
	assert_string_equal(buf_text(&out), want);
	buf_deinit(&out);
}

static void network_and_what_may_not_be_read(void **state)
{
	char dir[] = "/tmp/x";
	char file[] = "/a \"file";
	char gone[] = "/gone";
	char *items[] = { dir, file, gone };
	const struct string_list deny = { .items = items, .count = 3 };
	const struct egress_allowance nothing = { .loopback = false };
	const struct egress_allowance some = { .loopback = true, .deny_read = &deny };

	(void)state;
	check(&nothing, HEAD);
	check(&some, HEAD "(allow network-outbound (remote ip \"localhost:*\"))\n"
			  "(deny file-read* (subpath \"/private/tmp/dir\"))\n"
			  "(deny file-read* (literal \"/a \\\"file\"))\n"
			  "(deny file-read* (literal \"/gone\"))\n"
			  "(deny file-read* (subpath \"/gone\"))\n");
}

static void credential_denies_have_the_last_word_in_a_jail(void **state)
{
	char root[] = "/p/dir";
	char file[] = "/p/dir/file";
	char *roots[] = { root, root };
	char *files[] = { file };
	const struct string_list allow = { .items = roots, .count = 2 };
	const struct string_list deny = { .items = files, .count = 1 };
	const struct string_list none = { .items = NULL };
	const struct egress_allowance jail = { .allow_read = &allow,
					       .deny_read = &deny,
					       .runtime_roots = &none };
	const struct egress_allowance usual = { .allow_read = &allow };
	struct buf out = BUF_INIT(1u << 16);

	(void)state;
	check(&jail, HEAD "(deny file-read*)\n"
			  "(allow file-read* (subpath \"/p/dir\"))\n"
			  "(allow file-read* (literal \"/\"))\n"
			  "(allow file-read-metadata (literal \"/p\"))\n"
			  "(deny file-read* (literal \"/p/dir/file\"))\n");
	/* What programs need comes by itself. */
	assert_int_equal(egress_profile(&out, &usual, &view, NULL), 0);
	assert_non_null(strstr(buf_text(&out), "(allow file-read* (subpath \"/usr/lib\"))\n"));
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(network_and_what_may_not_be_read),
		cmocka_unit_test(credential_denies_have_the_last_word_in_a_jail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
