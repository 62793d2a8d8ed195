/* SPDX-License-Identifier: Apache-2.0 */

/* fsbox-broker when fsboxd or init dies, or fsboxd goes mad: jobs that run keep their exact results. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

static void spawn_params_init(const struct fake *fake, union method_params *params)
{
	method_params_init(METHOD_SPAWN, params);
	assert_int_equal(string_list_add(&params->spawn.argv, "/bin/sh", NULL), 0);
	assert_int_equal(string_list_add(&params->spawn.argv, "-c", NULL), 0);
	assert_int_equal(string_list_add(&params->spawn.argv, "exit 7", NULL), 0);
	params->spawn.cwd = strdup(fake->cwd);
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

static const struct exit_record seven = { .reason = EXIT_EXITED, .code = 7, .wall_ms = 12 };

static void test_fsboxd_dies(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_result result;
	struct wait_result exited;
	struct fake_job job;
	struct error_reply reply;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	run_job(fake, &client, &job, &result);
	method_result_deinit(METHOD_SPAWN, &result);
	fake_die(fake);

	/* New ones are refused, naming why; the running one's result still comes, from init. */
	id = spawn(fake, &client);
	client_expect_error(&client, id, ERR_UNREACHABLE, &reply);
	assert_non_null(strstr(reply.message, "fsboxd"));
	error_reply_deinit(&reply);
	fake_job_report(&job, REPORT_EXITED, &seven);
	expect_exited(&client, job.id, &exited);
	assert_int_equal(exited.reason, EXIT_EXITED);
	assert_int_equal(exited.code, 7);
	wait_result_deinit(&exited);
	assert_true(fake_is_alive(fake));
	fake_job_deinit(&job);

	/* With nobody left the broker ends. */
	client_disconnect(&client);
	assert_int_equal(fake_wait_exit(fake), 0);
}

static void test_fsboxd_and_init_die_R24(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_result result;
	struct wait_result exited;
	struct fake_job job;

	fake_start(fake);
	client_hello(fake, &client);
	run_job(fake, &client, &job, &result);
	method_result_deinit(METHOD_SPAWN, &result);
	fake_die(fake);
	fake_job_deinit(&job);
	expect_exited(&client, result.spawn.job != 0 ? result.spawn.job : 1, &exited);
	assert_int_equal(exited.reason, EXIT_LOST);
	wait_result_deinit(&exited);
	client_disconnect(&client);
	assert_int_equal(fake_wait_exit(fake), 0);
}

/* Init told fsboxd that the command ran, and was killed before it could tell the broker. */
static void test_killed_when_it_began_R24(void **state)
{
	static const struct exit_record record = { .reason = EXIT_SIGNALED, .signal = SIGKILL };
	struct fake *fake = *state;
	struct fake_client client;
	struct wait_result exited;
	union method_result result;
	struct fake_job job;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	for (int with_channel = 0; with_channel < 2; with_channel++) {
		struct link_message up = { .kind = LINK_JOB_UP };

		id = spawn(fake, &client);
		fake_open_job(fake, &job);
		fake_take_start(fake, &job);
		up.conn = job.conn;
		up.job = job.id;
		up.u.up.pid = getpid();
		fake_send(fake, &up, NULL, 0);
		if (!with_channel)
			assert_int_equal(shutdown(job.channel, SHUT_RDWR), 0);
		fake_job_ended(fake, &job, &record);
		client_expect_result(&client, id, METHOD_SPAWN, &result);
		assert_int_equal(result.spawn.job, job.id);
		assert_int_equal(result.spawn.pid, getpid());
		assert_int_equal(result.spawn.pidfd_fd, -1);
		method_result_deinit(METHOD_SPAWN, &result);
		expect_exited(&client, job.id, &exited);
		assert_int_equal(exited.reason, EXIT_SIGNALED);
		assert_int_equal(exited.signal, SIGKILL);
		wait_result_deinit(&exited);
		fake_job_deinit(&job);
	}
	client_disconnect(&client);
}

static void test_fsboxd_dies_while_starting(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct fake_job job;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	id = spawn(fake, &client);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	fake_die(fake);
	fake_job_deinit(&job);
	client_expect_error(&client, id, ERR_UNREACHABLE, NULL);
	client_disconnect(&client);
	assert_int_equal(fake_wait_exit(fake), 0);
}

/* It was so short that init has said everything before the broker was told that fsboxd knows it. */
static void test_a_short_job_ends_while_fsboxd_dies_R24(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_result result;
	struct wait_result exited;
	struct fake_job job;
	int64_t id;

	fake_start(fake);
	client_hello(fake, &client);
	id = spawn(fake, &client);
	fake_open_job(fake, &job);
	fake_take_start(fake, &job);
	fake_job_report(&job, REPORT_STARTED, NULL);
	fake_job_report(&job, REPORT_EXITED, &seven);
	fake_die(fake);
	client_expect_result(&client, id, METHOD_SPAWN, &result);
	method_result_deinit(METHOD_SPAWN, &result);
	expect_exited(&client, job.id, &exited);
	assert_int_equal(exited.reason, EXIT_EXITED);
	assert_int_equal(exited.code, 7);
	wait_result_deinit(&exited);
	fake_job_deinit(&job);
	client_disconnect(&client);
	assert_int_equal(fake_wait_exit(fake), 0);
}

/* Garbage from fsboxd: nothing good can follow, the broker ends. */
static void test_garbage_from_fsboxd(void **state)
{
	struct fake *fake = *state;

	fake_start(fake);
	assert_int_equal(write(fake->link, "garbage", 7), 7);
	assert_int_equal(fake_wait_exit(fake), 1);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_fsboxd_dies),
		T(test_fsboxd_and_init_die_R24),
		T(test_killed_when_it_began_R24),
		T(test_fsboxd_dies_while_starting),
		T(test_a_short_job_ends_while_fsboxd_dies_R24),
		T(test_garbage_from_fsboxd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
