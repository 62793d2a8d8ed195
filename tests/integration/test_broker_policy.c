/* SPDX-License-Identifier: Apache-2.0 */

/* What fsbox-broker makes of requests: policies, profiles, refusals; nothing is run here. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/fake_fsboxd.h"
#include "tests/test.h"

static int set_up(void **state)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake_init(fake);
	*state = fake;
	return 0;
}

static int tear_down(void **state)
{
	fake_stop(*state);
	free(*state);
	return 0;
}

static void policy_params_init(const struct fake *fake, union method_params *params)
{
	method_params_init(METHOD_POLICY, params);
	params->policy.spawn.cwd = strdup(fake->cwd);
}

static const struct msg_rule *rule_at(const struct policy_result *policy, const char *path)
{
	for (size_t i = 0; i < policy->rules.count; i++) {
		if (strcmp(policy->rules.items[i].path, path) == 0)
			return &policy->rules.items[i];
	}
	return NULL;
}

static void below(const struct fake *fake, const char *name, char ret[256])
{
	(void)snprintf(ret, 256, "%s/%s", fake->dir, name);
}

/* Ask for the policy of PARAMS, which are released. */
static void get_policy(struct fake_client *client, union method_params *params,
		       union method_result *ret_result)
{
	int64_t id = client_ask(client, METHOD_POLICY, params);

	method_params_deinit(METHOD_POLICY, params);
	client_expect_result(client, id, METHOD_POLICY, ret_result);
}

static void refuse_policy(struct fake_client *client, union method_params *params,
			  enum error_kind kind, const char *word)
{
	struct error_reply reply;
	int64_t id = client_ask(client, METHOD_POLICY, params);

	method_params_deinit(METHOD_POLICY, params);
	client_expect_error(client, id, kind, &reply);
	if (strstr(reply.message, word) == NULL)
		fail_msg("no '%s' in: %s", word, reply.message);
	error_reply_deinit(&reply);
}

static void test_policy_shows_everything(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];

	fake_write(fake, "p/.envrc", "x");
	below(fake, "linked", path);
	assert_int_equal(symlink("p/target", path), 0);
	fake_write(fake, "p/target", "x");
	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	assert_int_equal(path_entry_list_add(&params.policy.spawn.paths.deny, path, NULL), 0);
	assert_int_equal(env_list_add(&params.policy.spawn.env, "NPM_TOKEN", "x", NULL), 0);
	get_policy(&client, &params, &result);
	assert_int_equal(rule_at(&result.policy, fake->cwd)->access, ACCESS_READ_WRITE);
	assert_int_equal(rule_at(&result.policy, "/usr")->access, ACCESS_READ_ONLY);
	below(fake, "p/.envrc", path);
	assert_int_equal(rule_at(&result.policy, path)->access, ACCESS_READ_ONLY);
	/* A deny on a link denies what it leads to. */
	below(fake, "p/target", path);
	assert_int_equal(rule_at(&result.policy, path)->access, ACCESS_DENY);
	assert_int_equal(strlen(result.policy.policy_digest), 64);
	assert_true(string_list_has(&result.policy.withheld, "NPM_TOKEN"));
	assert_true(result.policy.plan.count > 10);
	assert_true(string_list_has(&result.policy.bwrap, "--unshare-user"));
	assert_true(string_list_has(&result.policy.bwrap, fake->cwd));
	method_result_deinit(METHOD_POLICY, &result);
	client_disconnect(&client);
}

static void test_dry_run_runs_nothing(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	method_params_init(METHOD_SPAWN, &params);
	assert_int_equal(string_list_add(&params.spawn.argv, "true", NULL), 0);
	params.spawn.cwd = strdup(fake->cwd);
	params.spawn.dry_run = true;
	id = client_ask(&client, METHOD_SPAWN, &params);
	method_params_deinit(METHOD_SPAWN, &params);
	client_expect_result(&client, id, METHOD_SPAWN, &result);
	assert_int_equal(result.spawn.job, 0);
	assert_non_null(result.spawn.policy);
	assert_true(result.spawn.policy->rules.count > 10);
	assert_false(fake_op_waits(fake, 100));
	method_result_deinit(METHOD_SPAWN, &result);

	/* Not even private directories are made. */
	below(fake, ".cache", path);
	assert_int_equal(access(path, F_OK), -1);
	client_disconnect(&client);
}

/* The same request gives the same digest; another rule another one. */
static void test_digest(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char digests[3][65];

	fake_start(fake);
	client_hello(fake, &client);
	for (int i = 0; i < 3; i++) {
		union method_params params;
		union method_result result;

		policy_params_init(fake, &params);
		if (i == 2)
			assert_int_equal(path_entry_list_add(&params.policy.spawn.paths.read_only,
							     "/srv", NULL),
					 0);
		get_policy(&client, &params, &result);
		memcpy(digests[i], result.policy.policy_digest, 65);
		method_result_deinit(METHOD_POLICY, &result);
	}
	assert_string_equal(digests[0], digests[1]);
	assert_string_not_equal(digests[0], digests[2]);
	client_disconnect(&client);
}

static void test_odd_names(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];
	char longest[LIMIT_PATH_BYTES + 2];

	below(fake, "p/new\nline \xff", path);
	assert_int_equal(mkdir(path, 0700), 0);
	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	assert_int_equal(path_entry_list_add(&params.policy.spawn.paths.deny, path, NULL), 0);
	get_policy(&client, &params, &result);
	assert_int_equal(rule_at(&result.policy, path)->access, ACCESS_DENY);
	method_result_deinit(METHOD_POLICY, &result);

	/* As long as a path can be; one byte more is refused where it is read. */
	memset(longest, 'x', sizeof(longest));
	for (size_t i = 0; i < LIMIT_PATH_BYTES; i += 200)
		longest[i] = '/';
	longest[LIMIT_PATH_BYTES] = '\0';
	policy_params_init(fake, &params);
	assert_int_equal(path_entry_list_add(&params.policy.spawn.paths.deny, longest, NULL), 0);
	get_policy(&client, &params, &result);
	method_result_deinit(METHOD_POLICY, &result);
	client_disconnect(&client);
}

static void test_bad_paths_are_refused(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;

	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	assert_int_equal(path_entry_list_add(&params.policy.spawn.paths.deny, "/a/../b", NULL), 0);
	refuse_policy(&client, &params, ERR_POLICY_INVALID, "params.paths.deny[0]");
	policy_params_init(fake, &params);
	assert_int_equal(
		path_entry_list_add(&params.policy.spawn.paths.read_only, "/none/such", NULL), 0);
	refuse_policy(&client, &params, ERR_PATH_NOT_FOUND, "/none/such");
	client_disconnect(&client);
}

static void test_working_directory(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];

	below(fake, "lp", path);
	assert_int_equal(symlink("p", path), 0);
	fake_write(fake, "file", "x");
	fake_start(fake);
	client_hello(fake, &client);

	/* Given by a link: where that leads. */
	policy_params_init(fake, &params);
	free(params.policy.spawn.cwd);
	params.policy.spawn.cwd = strdup(path);
	get_policy(&client, &params, &result);
	assert_int_equal(rule_at(&result.policy, fake->cwd)->access, ACCESS_READ_WRITE);
	method_result_deinit(METHOD_POLICY, &result);

	policy_params_init(fake, &params);
	free(params.policy.spawn.cwd);
	below(fake, "vanished", path);
	params.policy.spawn.cwd = strdup(path);
	refuse_policy(&client, &params, ERR_PATH_NOT_FOUND, "vanished");
	policy_params_init(fake, &params);
	free(params.policy.spawn.cwd);
	below(fake, "file", path);
	params.policy.spawn.cwd = strdup(path);
	refuse_policy(&client, &params, ERR_PATH_NOT_FOUND, "Not a directory");
	policy_params_init(fake, &params);
	free(params.policy.spawn.cwd);
	params.policy.spawn.cwd = NULL;
	refuse_policy(&client, &params, ERR_INVALID, "params.cwd");
	client_disconnect(&client);
}

/* ---- profiles ------------------------------------------------------------------------------- */

static void test_profile_files(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];

	below(fake, "etc/profiles", path);
	assert_int_equal(mkdir(path, 0755), 0);
	fake_write(fake, "etc/profiles/strict.json",
		   "{\"extends\": \"generic\", // for tests\n"
		   " \"paths\": {\"deny\": [\"${cwd}/closed\"]}, \"net\": \"host\","
		   " \"env\": {\"pass\": [\"NPM_TOKEN\"], \"withhold\": [\"LANG\"]}}");
	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	params.policy.spawn.profile = strdup("strict");
	assert_int_equal(env_list_add(&params.policy.spawn.env, "NPM_TOKEN", "x", NULL), 0);
	assert_int_equal(env_list_add(&params.policy.spawn.env, "LANG", "C", NULL), 0);
	if (getuid() == 0) {
		/* Not for root, whoever asks for it (R19). */
		refuse_policy(&client, &params, ERR_NOT_AUTHORIZED, "root");
		policy_params_init(fake, &params);
		params.policy.spawn.profile = strdup("strict");
		params.policy.spawn.net.mode = NET_CHOICE_NONE;
		assert_int_equal(env_list_add(&params.policy.spawn.env, "NPM_TOKEN", "x", NULL), 0);
		assert_int_equal(env_list_add(&params.policy.spawn.env, "LANG", "C", NULL), 0);
	}
	get_policy(&client, &params, &result);
	below(fake, "p/closed", path);
	assert_int_equal(rule_at(&result.policy, path)->access, ACCESS_DENY);
	assert_int_equal(result.policy.withheld.count, 1);
	assert_string_equal(result.policy.withheld.items[0], "LANG");
	method_result_deinit(METHOD_POLICY, &result);

	policy_params_init(fake, &params);
	params.policy.spawn.profile = strdup("missing");
	refuse_policy(&client, &params, ERR_CONFIG, "missing");
	client_disconnect(&client);
}

/* ---- configuration ---------------------------------------------------------------------------- */

/* A broken line refuses every spawn, naming file and line; everything else works. */
static void test_broken_configuration(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	int64_t id;

	fake_write(fake, "etc/fsboxd.conf", "# fine\nmax-net = none\nnonsense = 1\n");
	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	refuse_policy(&client, &params, ERR_CONFIG, "fsboxd.conf:3");
	id = client_ask(&client, METHOD_DETECT, &(union method_params){ 0 });
	client_expect_result(&client, id, METHOD_DETECT, &result);
	method_result_deinit(METHOD_DETECT, &result);
	client_disconnect(&client);
}

static void test_configuration_is_obeyed(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];
	char text[512];

	below(fake, "etc/fsboxd.conf.d", path);
	assert_int_equal(mkdir(path, 0755), 0);
	below(fake, "p/corp", path);
	(void)snprintf(text, sizeof(text), "mandatory-deny = %s\n", path);
	fake_write(fake, "etc/fsboxd.conf", text);
	fake_write(fake, "etc/fsboxd.conf.d/10.conf", "max-net = none\nenv-withhold = CORP_*\n");
	fake_write(fake, "etc/fsboxd.conf.d/ignored", "nonsense\n");
	fake_start(fake);
	client_hello(fake, &client);
	policy_params_init(fake, &params);
	assert_int_equal(env_list_add(&params.policy.spawn.env, "CORP_X", "x", NULL), 0);
	get_policy(&client, &params, &result);
	assert_int_equal(rule_at(&result.policy, path)->access, ACCESS_DENY);
	assert_int_equal(rule_at(&result.policy, path)->source, RULE_MANDATORY);
	assert_true(string_list_has(&result.policy.withheld, "CORP_X"));
	method_result_deinit(METHOD_POLICY, &result);
	policy_params_init(fake, &params);
	params.policy.spawn.net.mode = NET_CHOICE_HOST;
	refuse_policy(&client, &params, ERR_NOT_AUTHORIZED, "host");
	client_disconnect(&client);
}

/* ---- standard input and output ------------------------------------------------------------------ */

/* A regular file that the job could reopen beyond its rights is not passed on. */
static void test_regular_files_as_stdio_R8(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct error_reply reply;
	union method_params params;
	struct op_message op;
	char path[256];
	int64_t id;

	fake_write(fake, "outside", "x");
	fake_write(fake, "p/inside", "x");
	fake_start(fake);
	client_hello(fake, &client);
	method_params_init(METHOD_SPAWN, &params);
	assert_int_equal(string_list_add(&params.spawn.argv, "true", NULL), 0);
	params.spawn.cwd = strdup(fake->cwd);
	below(fake, "p/inside", path);
	params.spawn.stdio.in_fd = open(path, O_RDONLY | O_CLOEXEC);
	below(fake, "outside", path);
	params.spawn.stdio.out_fd = open(path, O_WRONLY | O_CLOEXEC);
	params.spawn.stdio.err_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	id = client_ask(&client, METHOD_SPAWN, &params);
	client_expect_error(&client, id, ERR_STDIO_RELAY, &reply);
	assert_int_equal(reply.indexes.count, 1);
	assert_int_equal(reply.indexes.items[0], 1);
	error_reply_deinit(&reply);

	/* One without a name any more. */
	below(fake, "outside", path);
	assert_int_equal(unlink(path), 0);
	id = client_ask(&client, METHOD_SPAWN, &params);
	client_expect_error(&client, id, ERR_STDIO_RELAY, NULL);

	/* What lies in readWrite is passed. */
	(void)close(params.spawn.stdio.out_fd);
	params.spawn.stdio.out_fd = -1;
	(void)client_ask(&client, METHOD_SPAWN, &params);
	fake_expect_op(fake, OP_JOB_OPEN, &op);
	fake_send_error(fake, &op, ERR_QUOTA_EXCEEDED, "quota", "enough");
	method_params_deinit(METHOD_SPAWN, &params);
	client_disconnect(&client);
}

/* ---- why ------------------------------------------------------------------------------------------ */

static void test_why(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	char path[256];
	char link[256];
	int64_t id;

	below(fake, "p/secret", path);
	fake_write(fake, "p/secret", "x");
	below(fake, "way", link);
	assert_int_equal(symlink("p/secret", link), 0);
	fake_start(fake);
	client_hello(fake, &client);
	method_params_init(METHOD_WHY, &params);
	params.why.spawn.cwd = strdup(fake->cwd);
	params.why.path = strdup(link);
	assert_int_equal(path_entry_list_add(&params.why.spawn.paths.deny, path, NULL), 0);
	id = client_ask(&client, METHOD_WHY, &params);
	client_expect_result(&client, id, METHOD_WHY, &result);
	assert_string_equal(result.why.access, "deny");
	assert_string_equal(result.why.real, path);
	assert_string_equal(result.why.rule->path, path);
	assert_int_equal(result.why.rule->source, RULE_USER);
	assert_string_equal(result.why.shadowed.items[0].path, fake->cwd);
	assert_string_equal(result.why.type, "file");
	method_result_deinit(METHOD_WHY, &result);

	params.why.host = strdup("example.org");
	free(params.why.path);
	params.why.path = NULL;
	id = client_ask(&client, METHOD_WHY, &params);
	client_expect_result(&client, id, METHOD_WHY, &result);
	assert_string_equal(result.why.access, "denied");
	method_result_deinit(METHOD_WHY, &result);
	method_params_deinit(METHOD_WHY, &params);
	client_disconnect(&client);
}

/* ---- file systems that hang ------------------------------------------------------------------------ */

static void signal_children(const struct fake *fake, int signo)
{
	char path[64];
	char line[4096] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", fake->pid, fake->pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	(void)fclose(file);
	for (char *at = line; *at > ' ';) {
		(void)kill((pid_t)strtol(at, &at, 10), signo);
		at += strspn(at, " ");
	}
}

/* The look-up of one request hangs: it times out; others of the same user are served meanwhile. */
static void test_hung_look_up_R9(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_client other;
	union method_params params;
	union method_result result;
	int64_t hung;

	fake_start(fake);
	client_hello(fake, &client);
	client_hello(fake, &other);
	signal_children(fake, SIGSTOP);
	policy_params_init(fake, &params);
	hung = client_ask(&client, METHOD_POLICY, &params);
	(void)usleep(100000);
	get_policy(&other, &params, &result);
	method_result_deinit(METHOD_POLICY, &result);
	client_expect_error(&client, hung, ERR_TIMEOUT, NULL);
	policy_params_init(fake, &params);
	get_policy(&client, &params, &result);
	method_result_deinit(METHOD_POLICY, &result);
	client_disconnect(&client);
	client_disconnect(&other);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_policy_shows_everything),
		T(test_dry_run_runs_nothing),
		T(test_digest),
		T(test_odd_names),
		T(test_bad_paths_are_refused),
		T(test_working_directory),
		T(test_profile_files),
		T(test_broken_configuration),
		T(test_configuration_is_obeyed),
		T(test_regular_files_as_stdio_R8),
		T(test_why),
		T(test_hung_look_up_R9),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
