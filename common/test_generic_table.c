/* SPDX-License-Identifier: Apache-2.0 */
#include "common/generic_table.h"

#include <stdbool.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "tests/test.h"

static bool has(struct name_list list, const char *name)
{
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.names[i], name) == 0)
			return true;
	return false;
}

static void check(struct name_list list, bool absolute)
{
	assert_true(list.count > 0);
	for (size_t i = 0; i < list.count; i++) {
		if (absolute)
			assert_null(path_refusal(list.names[i]));
		else
			assert_true(path_is_relative(list.names[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(list.names[i], list.names[j]);
	}
}

static void tables_are_well_formed(void **state)
{
	(void)state;
	check(generic_system(), true);
	check(generic_system_secrets(), true);
	check(generic_toolchains(), false);
	check(generic_jewels(), false);
	check(generic_caches(), false);
	check(generic_sockets(), true);
	check(generic_runtime_sockets(), false);
	check(generic_root_secrets(), true);
}

static void tables_do_not_contradict_each_other(void **state)
{
	struct name_list jewels = generic_jewels();

	(void)state;
	for (size_t i = 0; i < jewels.count; i++) {
		assert_false(has(generic_toolchains(), jewels.names[i]));
		assert_false(has(generic_caches(), jewels.names[i]));
	}
	/* No toolchain lies in what is denied: it would be a hole in it. */
	for (size_t i = 0; i < jewels.count; i++)
		for (size_t j = 0; j < generic_toolchains().count; j++)
			assert_false(path_covers(jewels.names[i], generic_toolchains().names[j]));
}

/* What must not be lost when somebody tidies the lists. */
static void the_best_known_secrets_are_there(void **state)
{
	static const char *const names[] = {
		".ssh",
		".gnupg",
		".aws",
		".kube",
		".azure",
		".config/gcloud",
		".docker/config.json",
		".netrc",
		".git-credentials",
		".npmrc",
		".pypirc",
		".config/gh",
		".cargo/credentials.toml",
		".gem/credentials",
		".m2/settings.xml",
		".gradle/gradle.properties",
		".password-store",
		".local/share/keyrings",
		".mozilla",
		".config/google-chrome",
		".claude/.credentials.json",
		".codex/auth.json",
		".gemini/oauth_creds.json",
		".config/github-copilot",
		".bash_history",
		".vault-token",
		".pgpass",
		".lark-cli",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(has(generic_jewels(), names[i]));
	assert_true(has(generic_system_secrets(), "/etc/shadow"));
	assert_true(has(generic_sockets(), "/run/docker.sock"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_well_formed),
		cmocka_unit_test(tables_do_not_contradict_each_other),
		cmocka_unit_test(the_best_known_secrets_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
