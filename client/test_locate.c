/* SPDX-License-Identifier: Apache-2.0 */
#include "client/locate.h"

#include "tests/ordinary.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];
static char paths[8][128];

/* Facts in which nothing exists yet; tests make what they need below TOP. */
static struct locate_facts facts_of(uid_t uid)
{
	static const char *const names[] = { "system.sock", "root", "run", "xdg", "state", "home" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", top, names[i]);
	return (struct locate_facts){
		.uid = uid,
		.system_socket = paths[0],
		.root_dir = paths[1],
		.run_user_dir = paths[2],
		.runtime_dir = paths[3],
		.state_home = paths[4],
		.home = paths[5],
	};
}

static void touch(const char *path)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/fsbox-test-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/run/%lu", top, (unsigned long)getuid());
	(void)rmdir(path);
	for (int i = 0; i < 6; i++)
		if (rmdir(paths[i]) < 0)
			(void)unlink(paths[i]);
	return rmdir(top);
}

static const char *decide(const struct locate_facts *facts, enum locate_place place)
{
	static struct location location;
	struct error err = ERROR_INIT;

	if (locate_decide(&location, facts, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(location.place, place);
	assert_memory_equal(location.socket, location.dir, strlen(location.dir));
	return location.socket +
	       (strncmp(location.socket, top, strlen(top)) == 0 ? strlen(top) : 0);
}

static void what_was_asked_for_comes_first(void **state)
{
	struct locate_facts facts = facts_of(getuid());

	(void)state;
	touch(paths[0]);
	facts.socket = "/a/b.sock";
	facts.env_socket = "/c/d.sock";
	assert_string_equal(decide(&facts, LOCATE_EXPLICIT), "/a/b.sock");
	facts.socket = NULL;
	assert_string_equal(decide(&facts, LOCATE_EXPLICIT), "/c/d.sock");
	facts.user = true; /* FSBOX_SOCKET is more exact than --user */
	assert_string_equal(decide(&facts, LOCATE_EXPLICIT), "/c/d.sock");
	facts.env_socket = "";
	facts.user = false;
	assert_string_equal(decide(&facts, LOCATE_SYSTEM), "/system.sock");
	facts.user = true;
	assert_string_equal(decide(&facts, getuid() == 0 ? LOCATE_ROOT : LOCATE_USER),
			    getuid() == 0 ? "/root/fsbox.sock"
					  : "/home/.local/state/fsbox/run/fsbox.sock");
}

static void root_has_a_place_of_its_own(void **state)
{
	struct locate_facts facts = facts_of(0);

	(void)state;
	assert_string_equal(decide(&facts, LOCATE_ROOT), "/root/fsbox.sock");
	touch(paths[0]);
	assert_string_equal(decide(&facts, LOCATE_SYSTEM), "/system.sock");
}

static void users_have_three_places(void **state)
{
	/* Somebody who is not root, whoever runs this: directories are ours, so they count as his only
	 * when he is us. */
	uid_t uid = getuid() == 0 ? 12345 : getuid();
	struct locate_facts facts = facts_of(uid);
	char run_user[160];

	(void)state;
	assert_string_equal(decide(&facts, LOCATE_USER), "/home/.local/state/fsbox/run/fsbox.sock");

	assert_int_equal(mkdir(paths[2], 0700), 0);
	(void)snprintf(run_user, sizeof(run_user), "%s/%lu", paths[2], (unsigned long)uid);
	assert_int_equal(mkdir(run_user, 0700), 0);
	if (getuid() == 0) {
		/* Root's directory is not his. */
		assert_string_equal(decide(&facts, LOCATE_USER),
				    "/home/.local/state/fsbox/run/fsbox.sock");
		assert_int_equal(chown(run_user, uid, (gid_t)-1), 0);
	}
	(void)snprintf(paths[6], sizeof(paths[6]), "/run/%lu/fsbox.sock", (unsigned long)uid);
	assert_non_null(strstr(decide(&facts, LOCATE_USER), "/fsbox/fsbox.sock"));
	assert_int_equal(strncmp(decide(&facts, LOCATE_USER), "/run/", 5), 0);
	assert_int_equal(rmdir(run_user), 0);

	assert_int_equal(mkdir(paths[3], 0700), 0);
	if (getuid() == 0)
		assert_int_equal(chown(paths[3], uid, (gid_t)-1), 0);
	assert_string_equal(decide(&facts, LOCATE_USER), "/xdg/fsbox/fsbox.sock");
	facts.runtime_dir = "xdg"; /* relative: not to be used */
	assert_string_equal(decide(&facts, LOCATE_USER), "/home/.local/state/fsbox/run/fsbox.sock");
}

static void a_hidden_system_socket_counts_as_there(void **state)
{
	struct locate_facts facts = facts_of(getuid());
	char inside[160];
	bool was_root = false;

	(void)state;
	assert_int_equal(mkdir(paths[1], 0), 0);
	(void)snprintf(inside, sizeof(inside), "%s/fsbox.sock", paths[1]);
	facts.system_socket = inside;
	was_root = ordinary_begin();
	assert_string_equal(decide(&facts, LOCATE_SYSTEM), "/root/fsbox.sock");
	ordinary_end(was_root);
}

static void nonsense_is_refused(void **state)
{
	struct locate_facts facts = facts_of(getuid() == 0 ? 12345 : getuid());
	struct location location;
	struct error err = ERROR_INIT;
	char long_path[LIMIT_PATH_BYTES + 10];

	(void)state;
	facts.socket = "relative.sock";
	assert_int_equal(locate_decide(&location, &facts, &err), -ERR_INVALID);
	assert_string_equal(err.message, "socket 'relative.sock' is not an absolute path");
	facts.socket = "/directory/";
	assert_int_equal(locate_decide(&location, &facts, &err), -ERR_INVALID);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	facts.socket = long_path;
	assert_int_equal(locate_decide(&location, &facts, &err), -ERR_INVALID);
	long_path[LIMIT_PATH_BYTES] = '\0';
	assert_int_equal(locate_decide(&location, &facts, &err), 0);
	assert_string_equal(location.dir, "/");

	facts.socket = NULL;
	facts.home = NULL;
	assert_int_equal(locate_decide(&location, &facts, &err), -ERR_UNREACHABLE);
}

static void the_process_is_read(void **state)
{
	struct locate_facts facts;

	(void)state;
	assert_int_equal(setenv("FSBOX_SOCKET", "/x/y", 1), 0);
	locate_facts_read(&facts);
	assert_string_equal(facts.env_socket, "/x/y");
	assert_int_equal(facts.uid, geteuid());
	assert_string_equal(facts.system_socket, "/run/fsbox/fsbox.sock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_asked_for_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(root_has_a_place_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(users_have_three_places, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hidden_system_socket_counts_as_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
		cmocka_unit_test(the_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
