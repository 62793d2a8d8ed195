/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/facts.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static void test_configured(void **state)
{
	static const char empty[LINK_TEXT_BYTES] = "";
	static const char text[LINK_TEXT_BYTES] = "A=/a\0AB=/ab\0A=/second\0REL=rel\0";

	(void)state;
	assert_string_equal(facts_configured(text, "A"), "/second"); /* the last one counts */
	assert_string_equal(facts_configured(text, "AB"), "/ab");
	assert_null(facts_configured(text, "REL"));
	assert_null(facts_configured(text, "NONE"));
	assert_null(facts_configured(empty, "A"));
}

/* The home is the passwd entry's, whatever the environment says; directories are canonical. */
static void test_home_R4(void **state)
{
	static const char text[LINK_TEXT_BYTES] =
		"XDG_CACHE_HOME=/tmp/./x//y\0XDG_STATE_HOME=rel\0";
	const struct passwd *entry = getpwuid(getuid());
	struct resolver_pool pool;
	struct facts facts;
	struct env_list list = { 0 };
	struct error err = ERROR_INIT;
	char *home;

	(void)state;
	if (entry == NULL || (home = realpath(entry->pw_dir, NULL)) == NULL)
		skip();
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(setenv("HOME", "/elsewhere", 1), 0);
	assert_int_equal(resolver_pool_init(&pool, NULL), 0);
	if (facts_init(&facts, &pool, text, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(facts.home, home);
	assert_string_equal(facts.user, entry->pw_name);
	assert_string_equal(facts.cache_home, "/tmp/x/y");
	assert_int_equal(strncmp(facts.state_home, home, strlen(home)), 0);
	assert_int_equal(facts_list(&facts, &list, NULL), 0);
	assert_string_equal(env_list_get(&list, "home"), home);
	assert_string_equal(env_list_get(&list, "XDG_CACHE_HOME"), "/tmp/x/y");
	for (size_t i = 0; i < facts.link_count; i++) {
		char target[256];
		ssize_t n = readlink(facts.links[i].path, target, sizeof(target));

		assert_true(n > 0);
		assert_memory_equal(target, facts.links[i].target, (size_t)n);
	}
	env_list_deinit(&list);
	facts_deinit(&facts);
	resolver_pool_deinit(&pool);
	free(home);
}

/* A uid without a passwd entry has no home: an error that says so. */
static void test_no_entry_R4(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (getuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		static const char text[LINK_TEXT_BYTES] = "";
		struct resolver_pool pool;
		struct facts facts;
		struct error err = ERROR_INIT;

		if (setgid(61999) < 0 || setuid(61999) < 0 || resolver_pool_init(&pool, NULL) < 0)
			_exit(10);
		if (facts_init(&facts, &pool, text, &err) != -ERR_CONFIG)
			_exit(11);
		_exit(strstr(err.message, "61999") != NULL ? 0 : 12);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configured),
		cmocka_unit_test(test_home_R4),
		cmocka_unit_test(test_no_entry_R4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
