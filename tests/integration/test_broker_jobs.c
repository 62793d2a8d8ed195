/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs as fsbox-broker sees them: from `spawn` to the exit record, with fsboxd and init played. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plan.h"
#include "common/sha256.h"
#include "tests/integration/fake_fsboxd.h"
#include "tests/test.h"

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

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

static void spawn_params_init(const struct fake *fake, union method_params *params)
{
	method_params_init(METHOD_SPAWN, params);
	assert_int_equal(string_list_add(&params->spawn.argv, "/bin/sh", NULL), 0);
	assert_int_equal(string_list_add(&params->spawn.argv, "-c", NULL), 0);
	assert_int_equal(string_list_add(&params->spawn.argv, "exit 7", NULL), 0);
	params->spawn.cwd = strdup(fake->cwd);
	assert_int_equal(env_list_add(&params->spawn.env, "PATH", "/bin", NULL), 0);
	assert_int_equal(env_list_add(&params->spawn.env, "HOME", "/elsewhere", NULL), 0);
	assert_int_equal(env_list_add(&params->spawn.env, "GITHUB_TOKEN", "hunter2", NULL), 0);
}

static int64_t spawn(struct fake *fake, struct fake_client *client)
{
	union method_params params;
	int64_t id;

	spawn_params_init(fake, &params);
	id = client_ask(client, METHOD_SPAWN, &params);
	method_params_deinit(METHOD_SPAWN, &params);
	return id;
}

/* Through to a running job. */
static void run_job(struct fake *fake, struct fake_client *client, struct fake_job *job,
		    union method_result *ret_result)
{
	int64_t id = spawn(fake, client);

	fake_open_job(fake, job);
	fake_take_start(fake, job);
	fake_job_started(fake, job);
	client_expect_result(client, id, METHOD_SPAWN, ret_result);
	assert_int_equal(ret_result->spawn.job, job->id);
}

static void expect_exited(struct fake_client *client, uint64_t job, struct wait_result *ret_exited)
{
	struct message message;
	struct error err = ERROR_INIT;

	client_receive(client, &message);
	assert_int_equal(message.kind, MESSAGE_EXITED);
	if (message_decode_exited(&message, ret_exited, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(ret_exited->job, job);
	message_deinit(&message);
}

static void expect_conn_closed(struct fake *fake, const struct fake_client *client)
{
	struct op_message op;

	fake_expect_op(fake, OP_CONN_CLOSED, &op);
	assert_int_equal(op.conn, client->number);
}

static const struct exit_record seven = { .reason = EXIT_EXITED, .code = 7, .wall_ms = 12 };

/* ---- the good case --------------------------------------------------------------------------- */

static void check_args(const struct fake *fake, int fd)
{
	struct stat st;
	void *data;
	const char *cwd;
	char **argv;
	char **envp;
	bool home = false;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & ALL_SEALS, ALL_SEALS);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(data != MAP_FAILED);
	assert_int_equal(args_check(data, (size_t)st.st_size, NULL), 0);
	assert_int_equal(args_split(data, &cwd, &argv, &envp, NULL), 0);
	assert_string_equal(cwd, fake->cwd);
	assert_string_equal(argv[2], "exit 7");
	assert_null(argv[3]);
	for (size_t i = 0; envp[i] != NULL; i++) {
		assert_null(strstr(envp[i], "hunter2"));
		assert_int_not_equal(strcmp(envp[i], "HOME=/elsewhere"), 0);
		home = home || strncmp(envp[i], "HOME=/", 6) == 0;
	}
	assert_true(home);
	free(argv);
	free(envp);
	(void)munmap(data, (size_t)st.st_size);
}

static void read_plan(const struct fake_job *job, struct plan *ret_plan)
{
	const struct op_start *start = &job->op.u.start;
	struct error err = ERROR_INIT;
	void *data;

	assert_int_equal(fcntl(job->plan_fd, F_GET_SEALS) & ALL_SEALS, ALL_SEALS);
	data = mmap(NULL, start->plan_bytes, PROT_READ, MAP_PRIVATE, job->plan_fd, 0);
	assert_true(data != MAP_FAILED);
	if (plan_decode(ret_plan, data, start->plan_bytes, &err) < 0)
		fail_msg("%s", err.message);
	(void)munmap(data, start->plan_bytes);
}

static void check_plan(const struct fake *fake, const struct fake_job *job)
{
	struct plan plan = PLAN_INIT;

	read_plan(job, &plan);
	assert_string_equal(plan.chdir, fake->cwd);
	assert_int_equal(plan.net, NET_NONE);
	assert_int_equal(plan_access(&plan, fake->cwd), ACCESS_READ_WRITE);
	assert_int_equal(plan_access(&plan, "/usr/bin"), ACCESS_READ_ONLY);
	plan_deinit(&plan);
}

static void test_spawn_to_exit_R15(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_job job;
	union method_result result;
	struct wait_result exited;

	fake_start(fake);
	client_hello(fake, &client);
	run_job(fake, &client, &job, &result);
	assert_int_equal(strlen(result.spawn.cookie), 32);
	assert_int_equal(strlen(result.spawn.policy_digest), 64);
	assert_true(result.spawn.pidfd_fd >= 0);
	assert_int_equal(result.spawn.pid, getpid());
	assert_true(result.spawn.rules > 10);
	assert_int_equal(result.spawn.engine, ENGINE_BWRAP);
	assert_int_equal(result.spawn.room, ROOM_EGRESS_DENIED);
	assert_true(string_list_has(&result.spawn.withheld, "GITHUB_TOKEN"));
	assert_int_equal(job.op.u.start.argc, 3);
	assert_string_equal(job.op.u.start.command, "sh");
	assert_string_equal(job.op.u.start.profile, "generic");
	assert_int_equal(job.start.fds, START_FD_ARGS);
	check_args(fake, job.fds[0]);
	check_plan(fake, &job);
	fake_job_report(&job, REPORT_EXITED, &seven);
	fake_job_ended(fake, &job, &seven);
	expect_exited(&client, job.id, &exited);
	assert_int_equal(exited.reason, EXIT_EXITED);
	assert_int_equal(exited.code, 7);
	wait_result_deinit(&exited);
	method_result_deinit(METHOD_SPAWN, &result);
	fake_job_deinit(&job);
	client_disconnect(&client);
}

/* Standard descriptors and lifeline reach init; the broker keeps none of them. */
static void test_descriptors_are_handed_on_R7(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_job job;
	union method_params params;
	union method_result result;
	unsigned before;
	int pipes[2];
	int64_t id;
	char byte;

	fake_start(fake);
	client_hello(fake, &client);
	before = fake_open_descriptors(fake);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	spawn_params_init(fake, &params);
	params.spawn.stdio.out_fd = fcntl(pipes[1], F_DUPFD_CLOEXEC, 0);
	params.spawn.lifeline_fd = fcntl(pipes[0], F_DUPFD_CLOEXEC, 0);
	id = client_ask(&client, METHOD_SPAWN, &params);
	method_params_deinit(METHOD_SPAWN, &params);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	assert_int_equal(job.start.fds, START_FD_STDOUT | START_FD_LIFELINE | START_FD_ARGS);
	assert_int_equal(job.fd_count, 3);
	assert_int_equal(write(job.fds[0], "x", 1), 1);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	fake_job_started(fake, &job);
	client_expect_result(&client, id, METHOD_SPAWN, &result);
	method_result_deinit(METHOD_SPAWN, &result);
	fake_job_ended(fake, &job, &seven);
	fake_job_deinit(&job);
	{
		struct wait_result exited;

		expect_exited(&client, job.id != 0 ? job.id : 1, &exited);
		wait_result_deinit(&exited);
	}
	/* Only a broken pipe is left: nobody else holds the reading end. */
	(void)close(pipes[0]);
	assert_int_equal(write(pipes[1], "x", 1), -1);
	(void)close(pipes[1]);
	/* /proc/self/mountinfo stays open from the first spawn on. */
	fake_expect_descriptors(fake, before + 1);
	client_disconnect(&client);
}

static int64_t ask_wait(struct fake_client *client, uint64_t job, const char *cookie)
{
	union method_params params;
	int64_t id;

	method_params_init(METHOD_WAIT, &params);
	params.wait.job = job;
	params.wait.cookie = cookie != NULL ? strdup(cookie) : NULL;
	id = client_ask(client, METHOD_WAIT, &params);
	method_params_deinit(METHOD_WAIT, &params);
	return id;
}

static void test_wait(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_client later;
	struct fake_job job;
	union method_result result;
	union method_result waited;
	struct wait_result exited;
	int64_t early;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	client_hello(fake, &later);
	run_job(fake, &client, &job, &result);
	early = ask_wait(&later, job.id, result.spawn.cookie);
	id = ask_wait(&client, job.id + 1, NULL);
	fake_know_nothing(fake, job.id + 1);
	client_expect_error(&client, id, ERR_JOB_UNKNOWN, NULL);
	client_expect_error(&client, ask_wait(&client, job.id, "0123456789abcdef0123456789abcdef"),
			    ERR_JOB_UNKNOWN, NULL);
	fake_job_ended(fake, &job, &seven);
	client_expect_result(&later, early, METHOD_WAIT, &waited);
	assert_int_equal(waited.wait.code, 7);
	method_result_deinit(METHOD_WAIT, &waited);
	expect_exited(&client, job.id, &exited);
	wait_result_deinit(&exited);

	/* Also afterwards, and again. */
	for (int i = 0; i < 2; i++) {
		id = ask_wait(&later, job.id, result.spawn.cookie);
		client_expect_result(&later, id, METHOD_WAIT, &waited);
		assert_int_equal(waited.wait.code, 7);
		method_result_deinit(METHOD_WAIT, &waited);
	}
	method_result_deinit(METHOD_SPAWN, &result);
	fake_job_deinit(&job);
	client_disconnect(&client);
	client_disconnect(&later);
}

/* A job that another broker started: fsboxd tells of it, and of its end. */
static void test_jobs_of_another_broker(void **state)
{
	struct fake *fake = *state;
	struct link_message found = { .kind = LINK_JOB_FOUND, .job = 7 };
	struct link_message ended = { .kind = LINK_JOB_ENDED,
				      .job = 7,
				      .u = { .ended = { .reason = EXIT_EXITED, .code = 7 } } };
	const char cookie[] = "00112233445566778899aabbccddeeff";
	struct fake_client client;
	union method_result waited;
	struct op_message op;
	struct sha256 sha;
	int64_t first;
	int64_t second;

	fake_start(fake);
	client_hello(fake, &client);
	sha256_init(&sha);
	sha256_add(&sha, cookie, strlen(cookie));
	sha256_finish(&sha, found.u.found.cookie_hash);
	found.u.found.entry.state = JOB_RUNNING;

	/* Asked twice before the answer; one of the cookies is wrong. */
	first = ask_wait(&client, 7, cookie);
	fake_expect_op(fake, OP_JOB_FIND, &op);
	second = ask_wait(&client, 7, "0123456789abcdef0123456789abcdef");
	found.seq = op.seq;
	fake_send(fake, &found, NULL, 0);
	fake_expect_op(fake, OP_JOB_FIND, &op);
	found.seq = op.seq;
	fake_send(fake, &found, NULL, 0);
	client_expect_error(&client, second, ERR_JOB_UNKNOWN, NULL);
	fake_send(fake, &ended, NULL, 0);
	client_expect_result(&client, first, METHOD_WAIT, &waited);
	assert_int_equal(waited.wait.code, 7);
	method_result_deinit(METHOD_WAIT, &waited);

	/* One that is over already. */
	first = ask_wait(&client, 8, cookie);
	fake_expect_op(fake, OP_JOB_FIND, &op);
	found.seq = op.seq;
	found.job = 8;
	found.u.found.is_over = 1;
	found.u.found.ended = seven;
	fake_send(fake, &found, NULL, 0);
	client_expect_result(&client, first, METHOD_WAIT, &waited);
	assert_int_equal(waited.wait.code, 7);
	method_result_deinit(METHOD_WAIT, &waited);

	/* When fsboxd dies only its successor can tell. */
	first = ask_wait(&client, 9, cookie);
	fake_expect_op(fake, OP_JOB_FIND, &op);
	found.seq = op.seq;
	found.job = 9;
	found.u.found.is_over = 0;
	fake_send(fake, &found, NULL, 0);
	fake_die(fake);
	client_expect_error(&client, first, ERR_UNREACHABLE, NULL);
	client_disconnect(&client);
}

/* fsboxd alone knows of time limits; a killed pid 1 is lost; init's exact word beats "lost". */
static void test_who_says_how_it_ended_R24(void **state)
{
	static const struct {
		bool init_says;
		enum exit_reason fsboxd_says;
		enum exit_reason expected;
	} cases[] = {
		{ false, EXIT_LOST, EXIT_LOST },
		{ true, EXIT_LOST, EXIT_EXITED },
		{ true, EXIT_TIMEOUT, EXIT_TIMEOUT },
		{ true, EXIT_EXITED, EXIT_EXITED },
	};
	struct fake *fake = *state;
	struct fake_client client;

	fake_start(fake);
	client_hello(fake, &client);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exit_record record = { .reason = cases[i].fsboxd_says };
		struct wait_result exited;
		union method_result result;
		struct fake_job job;

		run_job(fake, &client, &job, &result);
		method_result_deinit(METHOD_SPAWN, &result);
		if (cases[i].init_says)
			fake_job_report(&job, REPORT_EXITED, &seven);
		if (cases[i].fsboxd_says == EXIT_EXITED)
			record.code = 7;
		fake_job_ended(fake, &job, &record);
		expect_exited(&client, job.id, &exited);
		assert_int_equal(exited.reason, cases[i].expected);
		assert_int_equal(exited.code, cases[i].expected == EXIT_EXITED ? 7 : 0);
		wait_result_deinit(&exited);
		fake_job_deinit(&job);
	}
	client_disconnect(&client);
}

/* fsbox's own directories are closed, its programs not writable, whatever is granted around them. */
static void test_own_directories_R25(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	struct plan plan = PLAN_INIT;
	struct fake_job job;
	char inside[300];
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	spawn_params_init(fake, &params);
	assert_int_equal(path_entry_list_add(&params.spawn.paths.read_write, fake->dir, NULL), 0);
	assert_int_equal(path_entry_list_add(&params.spawn.paths.read_write, fake->config.state_dir,
					     NULL),
			 0);
	id = client_ask(&client, METHOD_SPAWN, &params);
	method_params_deinit(METHOD_SPAWN, &params);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	fake_job_started(fake, &job);
	client_expect_result(&client, id, METHOD_SPAWN, &result);
	assert_true(result.spawn.suppressed.count >= 1);
	method_result_deinit(METHOD_SPAWN, &result);
	read_plan(&job, &plan);
	assert_int_equal(plan_access(&plan, fake->dir), ACCESS_READ_WRITE);
	(void)snprintf(inside, sizeof(inside), "%s/ledger", fake->config.state_dir);
	assert_int_equal(plan_access(&plan, inside), ACCESS_DENY);
	assert_int_equal(plan_access(&plan, fake->config.run_dir), ACCESS_DENY);
	assert_int_equal(plan_access(&plan, fake->config.config_dir), ACCESS_DENY);
	assert_int_equal(plan_access(&plan, fake->config.exec_dir), ACCESS_READ_ONLY);
	plan_deinit(&plan);
	fake_job_deinit(&job);
	client_disconnect(&client);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_failures_are_errors_of_the_request(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct link_message failed = { .kind = LINK_JOB_FAILED };
	struct error_reply reply;
	struct error err = ERROR_INIT;
	struct fake_job job;
	struct op_message op;
	unsigned before;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);

	/* Not opened. */
	id = spawn(fake, &client);
	fake_expect_op(fake, OP_JOB_OPEN, &op);
	fake_send_error(fake, &op, ERR_QUOTA_EXCEEDED, "quota", "1024 jobs run");
	client_expect_error(&client, id, ERR_QUOTA_EXCEEDED, NULL);
	(void)usleep(200000); /* what it still closes after it has answered */
	before = fake_open_descriptors(fake);

	/* Opened, refused by verify. */
	id = spawn(fake, &client);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	fake_send_error(fake, &job.op, ERR_POLICY_INVALID, "verify", "operation 3");
	client_expect_error(&client, id, ERR_POLICY_INVALID, NULL);
	fake_job_deinit(&job);

	/* Failed on the way. */
	id = spawn(fake, &client);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	failed.job = job.id;
	failed.conn = job.conn;
	(void)error_set(&err, ERR_COMMAND_NOT_FOUND, 2, "/bin/sh");
	failure_set(&failed.u.failure, &err, "exec");
	fake_send(fake, &failed, NULL, 0);
	client_expect_error(&client, id, ERR_COMMAND_NOT_FOUND, &reply);
	assert_string_equal(reply.stage, "exec");
	assert_int_equal(reply.errnum, 2);
	error_reply_deinit(&reply);
	fake_job_deinit(&job);
	fake_expect_descriptors(fake, before);
	client_disconnect(&client);
}

static void test_garbage_on_the_job_channel(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_result result;
	struct wait_result exited;
	struct fake_job job;

	fake_start(fake);
	client_hello(fake, &client);
	run_job(fake, &client, &job, &result);
	assert_int_equal(write(job.channel, "garbage", 7), 7);
	fake_job_ended(fake, &job, &seven);
	expect_exited(&client, job.id, &exited);
	assert_int_equal(exited.code, 7);
	wait_result_deinit(&exited);
	method_result_deinit(METHOD_SPAWN, &result);
	fake_job_deinit(&job);
	client_disconnect(&client);
}

/* ---- clients that leave ------------------------------------------------------------------------ */

static void test_client_leaves_a_running_job(void **state)
{
	struct fake *fake = *state;

	fake_start(fake);
	for (int detach = 0; detach < 2; detach++) {
		struct fake_client client;
		union method_params params;
		union method_result result;
		struct fake_job job;
		struct op_message op;
		int64_t id;

		client_hello(fake, &client);
		spawn_params_init(fake, &params);
		params.spawn.detach = detach != 0;
		id = client_ask(&client, METHOD_SPAWN, &params);
		method_params_deinit(METHOD_SPAWN, &params);
		fake_open_job(fake, &job);
		fake_take_start(fake, &job);
		fake_job_started(fake, &job);
		client_expect_result(&client, id, METHOD_SPAWN, &result);
		method_result_deinit(METHOD_SPAWN, &result);
		client_disconnect(&client);
		if (!detach) {
			fake_expect_op(fake, OP_JOB_SIGNAL, &op);
			assert_int_equal(op.job, job.id);
			assert_int_equal(op.u.signal.signo, SIGKILL);
		}
		expect_conn_closed(fake, &client);
		fake_job_ended(fake, &job, &seven);
		fake_job_deinit(&job);
	}
}

static void test_client_leaves_while_starting(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_job job;
	struct op_message op;

	fake_start(fake);

	/* Before fsboxd opened it: given back. */
	client_hello(fake, &client);
	(void)spawn(fake, &client);
	while (!fake_op_waits(fake, 100))
		continue;
	client_disconnect(&client);
	(void)usleep(50000);
	memset(&job, 0, sizeof(job));
	fake_open_job(fake, &job);
	expect_conn_closed(fake, &client);
	fake_expect_op(fake, OP_JOB_ABANDON, &op);
	assert_int_equal(op.job, job.id);
	fake_job_deinit(&job);

	/* After it was handed over: killed as soon as it runs. */
	client_hello(fake, &client);
	(void)spawn(fake, &client);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	client_disconnect(&client);
	expect_conn_closed(fake, &client);
	fake_job_started(fake, &job);
	fake_expect_op(fake, OP_JOB_SIGNAL, &op);
	assert_int_equal(op.job, job.id);
	fake_job_ended(fake, &job, &seven);
	fake_job_deinit(&job);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_spawn_to_exit_R15),
		T(test_descriptors_are_handed_on_R7),
		T(test_wait),
		T(test_jobs_of_another_broker),
		T(test_own_directories_R25),
		T(test_who_says_how_it_ended_R24),
		T(test_failures_are_errors_of_the_request),
		T(test_garbage_on_the_job_channel),
		T(test_client_leaves_a_running_job),
		T(test_client_leaves_while_starting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
