/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fsbox.h"

#include "tests/test.h"

#include "client/test_server.h"

/* ---- a good daemon ------------------------------------------------------------------- */

static void exited(struct channel *channel, uint64_t job, enum exit_reason reason, uint32_t code)
{
	const struct wait_result result = { .job = job, .reason = reason, .code = code };

	server_exited(channel, &result);
}

/*
 * argv[0] says what becomes of a job: "exit" at once with status 3, "lifeline" when its lifeline is
 * closed, "signal" when it is sent one, "missing" is not there.
 */
static bool serve_spawn(struct channel *channel, struct message *message)
{
	static uint64_t job = 6;
	struct spawn_params *params = NULL;
	union method_params decoded;
	union method_result result;
	struct error err = ERROR_INIT;
	const char *command = NULL;

	if (message_decode_params(message, &decoded, &err) < 0) {
		(void)fprintf(stderr, "test server: %s\n", err.message);
		return false;
	}
	params = &decoded.spawn;
	command = params->argv.items[0];
	if (strcmp(command, "missing") == 0) {
		server_error(channel, &message->id, ERR_COMMAND_NOT_FOUND, "missing", "look again");
	} else {
		method_result_init(METHOD_SPAWN, &result);
		result.spawn.job = ++job;
		result.spawn.cookie = strdup("0123456789abcdef0123456789abcdef");
		result.spawn.pid = 4242;
		result.spawn.pidfd_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		result.spawn.engine = ENGINE_BWRAP;
		result.spawn.room = ROOM_EGRESS_DENIED;
		result.spawn.policy_digest =
			strdup("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
		(void)string_list_add(&result.spawn.withheld, "SECRET_TOKEN", NULL);
		server_reply(channel, message, &result);
		method_result_deinit(METHOD_SPAWN, &result);
	}
	if (strcmp(command, "exit") == 0)
		exited(channel, job, EXIT_EXITED, 3);
	if (strcmp(command, "lifeline") == 0) {
		struct pollfd entry = { .fd = params->lifeline_fd };

		if (params->lifeline_fd < 0 || poll(&entry, 1, 5000) != 1 ||
		    !(entry.revents & POLLHUP))
			_exit(9);
		exited(channel, job, EXIT_SIGNALED, 0);
	}
	method_params_deinit(METHOD_SPAWN, &decoded);
	return true;
}

static void serve_list(struct channel *channel, const struct message *message)
{
	struct msg_job job = {
		.job = 7,
		.uid = 1000,
		.state = JOB_RUNNING,
		.profile = (char *)"generic",
		.command = (char *)"make",
		.engine = ENGINE_BWRAP,
		.room = ROOM_EGRESS_DENIED,
	};
	union method_result result;

	method_result_init(METHOD_LIST, &result);
	result.list.jobs.items = &job;
	result.list.jobs.count = 1;
	server_reply(channel, message, &result);
}

static bool serve_one(struct channel *channel, struct message *message)
{
	union method_params params;
	union method_result result;

	switch (message->method) {
	case METHOD_HELLO:
		server_hello(channel, message);
		return true;
	case METHOD_SPAWN:
		return serve_spawn(channel, message);
	case METHOD_SIGNAL:
		if (message_decode_params(message, &params, NULL) < 0)
			return false;
		method_result_init(METHOD_SIGNAL, &result);
		server_reply(channel, message, &result);
		exited(channel, params.signal.job, EXIT_TIMEOUT, 0);
		method_params_deinit(METHOD_SIGNAL, &params);
		return true;
	case METHOD_WAIT:
		method_result_init(METHOD_WAIT, &result);
		result.wait.job = 99;
		result.wait.reason = EXIT_SIGNALED;
		result.wait.signal = SIGKILL;
		server_reply(channel, message, &result);
		return true;
	case METHOD_LIST:
		serve_list(channel, message);
		return true;
	case METHOD_WHY:
		method_result_init(METHOD_WHY, &result);
		result.why.access = strdup("deny");
		result.why.hint = strdup("leave it");
		server_reply(channel, message, &result);
		method_result_deinit(METHOD_WHY, &result);
		return true;
	case METHOD_STATUS:
	case METHOD_LEDGER:
		return true; /* never answered */
	case METHOD_NONE:
	case METHOD_INSPECT:
	case METHOD_DETECT:
	case METHOD_POLICY:
	case METHOD_EVENTS:
	case METHOD_GRANT_CREATE:
	case METHOD_GRANT_LIST:
	case METHOD_GRANT_REVOKE:
	case METHOD_COUNT:
		server_error(channel, &message->id, ERR_UNKNOWN_METHOD, "no", NULL);
		return true;
	}
	return false;
}

static void serve(struct channel *channel)
{
	struct message message;
	bool more = true;

	while (more && server_receive(channel, &message)) {
		more = serve_one(channel, &message);
		message_deinit(&message);
	}
}

static struct server server;
static struct fsbox *box;

static int setup(void **state)
{
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_error err;

	(void)state;
	server_start(&server, serve);
	options.socket = server.socket;
	options.timeout_ms = 3000;
	if (fsbox_open(&box, &options, &err) == 0)
		return 0;
	print_error("%s\n", err.message);
	return -1;
}

static int teardown(void **state)
{
	(void)state;
	box = fsbox_close(box);
	server_stop(&server);
	return 0;
}

/* ---- calls that wait ----------------------------------------------------------------- */

static struct fsbox_spawn command(const char *const *argv)
{
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;

	spawn.argv = argv;
	return spawn;
}

static void server_is_described(void **state)
{
	const struct fsbox_server *who = fsbox_server(box);

	(void)state;
	assert_string_equal(who->server, "fsbox 0.1.0");
	assert_string_equal(who->mode, "user");
	assert_string_equal(who->socket, server.socket);
	assert_string_equal(who->place, "explicit");
	assert_int_equal(who->uid, getuid());
	assert_string_equal(who->features[1], "policy");
	assert_null(who->features[2]);
}

static void run_gives_the_status(void **state)
{
	const char *const argv[] = { "exit", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;

	(void)state;
	assert_int_equal(fsbox_run(box, &spawn, &end, &err), 0);
	assert_int_equal(end->reason, FSBOX_EXITED);
	assert_string_equal(end->reason_name, "exited");
	assert_int_equal(end->code, 3);
	assert_int_equal(fsbox_exit_status(end), 3);
	assert_null(end->planted[0]);
	(void)fsbox_exit_free(end);
	assert_null(fsbox_event_next(box)); /* nothing is left over */
}

static void spawn_describes_the_job(void **state)
{
	const char *const argv[] = { "signal", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_job *job = NULL;
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	int before = count_fds();

	(void)state;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), 0);
	assert_int_equal(job->pid, 4242);
	assert_true(job->pidfd >= 0);
	assert_true(job->lifeline >= 0);
	assert_int_equal(fcntl(job->lifeline, F_GETFD), FD_CLOEXEC);
	assert_string_equal(job->engine, "bwrap");
	assert_string_equal(job->room, "egress-denied");
	assert_string_equal(job->withheld[0], "SECRET_TOKEN");
	assert_null(job->withheld[1]);
	assert_null(job->warnings[0]);
	assert_int_equal(fsbox_signal(box, job->id, NULL, SIGTERM, &err), 0);
	assert_int_equal(fsbox_wait(box, job->id, NULL, 3000, &end, &err), 0);
	assert_int_equal(end->reason, FSBOX_TIMEOUT);
	assert_int_equal(fsbox_exit_status(end), 124);
	(void)fsbox_exit_free(end);
	(void)fsbox_job_free(job);
	assert_int_equal(count_fds(), before);
}

static void lifeline_ends_the_job(void **state)
{
	const char *const argv[] = { "lifeline", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_job *job = NULL;
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;

	(void)state;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), 0);
	fsbox_job_end(job);
	assert_int_equal(job->lifeline, -1);
	assert_int_equal(fsbox_wait(box, job->id, NULL, 3000, &end, &err), 0);
	assert_int_equal(end->reason, FSBOX_SIGNALED);
	(void)fsbox_exit_free(end);
	(void)fsbox_job_free(job);
}

static void detached_jobs_have_no_lifeline(void **state)
{
	const char *const argv[] = { "signal", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_job *job = NULL;

	(void)state;
	spawn.detach = true;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, NULL), 0);
	assert_int_equal(job->lifeline, -1);
	(void)fsbox_job_free(job);
}

static void errors_carry_kind_and_hint(void **state)
{
	const char *const argv[] = { "missing", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_job *job = NULL;
	struct fsbox_error err;
	int before = count_fds();

	(void)state;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.kind, "command-not-found");
	assert_string_equal(err.message, "missing");
	assert_string_equal(err.hint, "look again");
	assert_int_equal(fsbox_error_exit_status(err.kind), 127);
	assert_int_equal(count_fds(), before);
	assert_int_equal(fsbox_spawn(box, &spawn, &job, NULL), -1); /* nobody has to ask why */
}

static void requests_are_checked_before_they_are_sent(void **state)
{
	const char *const argv[] = { "exit", NULL };
	const char *const env[] = { "NOTAVARIABLE", NULL };
	const struct fsbox_rule rule = { .path = "/x", .access = FSBOX_DENY, .absent = "never" };
	struct fsbox_spawn spawn = command(NULL);
	struct fsbox_job *job = NULL;
	struct fsbox_error err;

	(void)state;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.message, "no command");
	spawn = command(argv);
	spawn.env_set = env;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.message, "'NOTAVARIABLE' is not NAME=VALUE");
	spawn = command(argv);
	spawn.rules = &rule;
	spawn.rule_count = 1;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.message, "'never' says nothing about absent paths");
	spawn = command(argv);
	spawn.net = "wide-open";
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.message, "'wide-open' is no network mode");
	spawn = command(argv);
	spawn.stdout_fd = 200;
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.kind, "bad-request");
	spawn = command(argv);
	spawn.context = "{\"homeDir\":\"/root\"}";
	assert_int_equal(fsbox_spawn(box, &spawn, &job, &err), -1);
	assert_string_equal(err.kind, "bad-request");
}

static void jobs_of_others_are_asked_about(void **state)
{
	struct fsbox_exit *end = NULL;

	(void)state;
	assert_int_equal(fsbox_wait(box, 99, "00112233445566778899aabbccddeeff", 3000, &end, NULL),
			 0);
	assert_int_equal(end->job, 99);
	assert_int_equal(end->signal, SIGKILL);
	assert_int_equal(fsbox_exit_status(end), 137);
	(void)fsbox_exit_free(end);
}

static void list_and_why(void **state)
{
	struct fsbox_job_list *list = NULL;
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct fsbox_why *why = NULL;

	(void)state;
	assert_int_equal(fsbox_list(box, false, &list, NULL), 0);
	assert_int_equal(list->count, 1);
	assert_int_equal(list->jobs[0].id, 7);
	assert_string_equal(list->jobs[0].command, "make");
	assert_string_equal(list->jobs[0].state, "running");
	(void)fsbox_job_list_free(list);
	assert_int_equal(fsbox_why(box, &spawn, "/etc/shadow", &why, NULL), 0);
	assert_string_equal(why->access, "deny");
	assert_null(why->rule_path);
	assert_string_equal(why->hint, "leave it");
	(void)fsbox_why_free(why);
}

static void call_speaks_json(void **state)
{
	char *json = NULL;
	struct fsbox_error err;

	(void)state;
	assert_int_equal(fsbox_call(box, "list", "{\"all\":true}", &json, &err), 0);
	assert_non_null(strstr(json, "\"command\":\"make\""));
	free(json);
	assert_int_equal(fsbox_call(box, "list", "[]", &json, &err), -1);
	assert_string_equal(err.kind, "bad-request");
	assert_int_equal(fsbox_call(box, "list", "{", &json, &err), -1);
	assert_string_equal(err.kind, "bad-json");
	assert_int_equal(fsbox_call(box, "detect", NULL, &json, &err), -1);
	assert_string_equal(err.kind, "unknown-method");
}

static void no_answer_is_a_timeout(void **state)
{
	const char *const argv[] = { "exit", NULL };
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_exit *end = NULL;
	struct fsbox *impatient = NULL;
	struct fsbox_error err;
	char *json = NULL;

	(void)state;
	box = fsbox_close(box); /* the server has one client at a time */
	options.socket = server.socket;
	options.timeout_ms = 200;
	assert_int_equal(fsbox_open(&impatient, &options, &err), 0);
	assert_int_equal(fsbox_call(impatient, "status", NULL, &json, &err), -1);
	assert_string_equal(err.kind, "timeout");
	assert_string_equal(err.message, "the daemon has not answered for 0.2 s");
	/* The connection is still good. */
	assert_int_equal(fsbox_run(impatient, &spawn, &end, &err), 0);
	(void)fsbox_exit_free(end);
	(void)fsbox_close(impatient);
}

/* ---- without waiting ----------------------------------------------------------------- */

static struct fsbox_event *next_event(void)
{
	for (;;) {
		struct fsbox_event *event = NULL;
		struct pollfd entry = { .fd = fsbox_fd(box), .events = fsbox_poll_events(box) };

		assert_int_equal(fsbox_process(box, NULL), 0);
		event = fsbox_event_next(box);
		if (event)
			return event;
		assert_int_equal(poll(&entry, 1, 3000), 1);
	}
}

static void events_tell_the_same(void **state)
{
	const char *const argv[] = { "exit", NULL };
	struct fsbox_spawn spawn = command(argv);
	struct fsbox_event *event = NULL;
	struct fsbox_job *job = NULL;
	uint64_t requests[2];

	(void)state;
	assert_null(fsbox_event_next(box));
	assert_int_equal(fsbox_spawn_send(box, &spawn, &requests[0], NULL), 0);
	assert_int_equal(fsbox_wait_send(box, 99, NULL, &requests[1], NULL), 0);
	event = next_event();
	assert_int_equal(event->type, FSBOX_EVENT_REPLY);
	assert_int_equal(event->request, requests[0]);
	assert_null(event->error);
	job = fsbox_event_take_job(event);
	assert_non_null(job);
	assert_null(event->job);
	(void)fsbox_event_free(event);
	event = next_event();
	assert_int_equal(event->type, FSBOX_EVENT_EXITED);
	assert_int_equal(event->end->job, job->id);
	(void)fsbox_event_free(event);
	event = next_event();
	assert_int_equal(event->request, requests[1]);
	assert_int_equal(event->end->signal, SIGKILL);
	(void)fsbox_event_free(event);
	(void)fsbox_job_free(job);
}

static void a_dead_daemon_fails_what_is_under_way(void **state)
{
	struct fsbox_event *event = NULL;
	struct fsbox_error err;
	struct fsbox_exit *end = NULL;
	uint64_t request = 0;

	(void)state;
	assert_int_equal(fsbox_wait_send(box, 99, NULL, &request, NULL), 0);
	assert_int_equal(kill(server.pid, SIGKILL), 0);
	for (int i = 0; fsbox_process(box, &err) == 0; i++) {
		struct pollfd entry = { .fd = fsbox_fd(box), .events = POLLIN };

		assert_true(i < 100);
		(void)poll(&entry, 1, 1000);
	}
	assert_string_equal(err.kind, "daemon-unreachable");
	event = fsbox_event_next(box);
	assert_non_null(event);
	assert_int_equal(event->request, request);
	if (event->error) { /* it may have been answered first */
		assert_string_equal(event->error->kind, "daemon-unreachable");
	}
	(void)fsbox_event_free(event);
	assert_int_equal(fsbox_wait(box, 1, NULL, 100, &end, &err), -1);
	assert_string_equal(err.kind, "daemon-unreachable");
}

static void free_functions_take_null(void **state)
{
	(void)state;
	assert_null(fsbox_close(NULL));
	assert_null(fsbox_job_free(NULL));
	assert_null(fsbox_exit_free(NULL));
	assert_null(fsbox_job_list_free(NULL));
	assert_null(fsbox_why_free(NULL));
	assert_null(fsbox_event_free(NULL));
	assert_null(fsbox_relay_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(server_is_described, setup, teardown),
		cmocka_unit_test_setup_teardown(run_gives_the_status, setup, teardown),
		cmocka_unit_test_setup_teardown(spawn_describes_the_job, setup, teardown),
		cmocka_unit_test_setup_teardown(lifeline_ends_the_job, setup, teardown),
		cmocka_unit_test_setup_teardown(detached_jobs_have_no_lifeline, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_carry_kind_and_hint, setup, teardown),
		cmocka_unit_test_setup_teardown(requests_are_checked_before_they_are_sent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(jobs_of_others_are_asked_about, setup, teardown),
		cmocka_unit_test_setup_teardown(list_and_why, setup, teardown),
		cmocka_unit_test_setup_teardown(call_speaks_json, setup, teardown),
		cmocka_unit_test_setup_teardown(no_answer_is_a_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(events_tell_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(a_dead_daemon_fails_what_is_under_way, setup,
						teardown),
		cmocka_unit_test(free_functions_take_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
