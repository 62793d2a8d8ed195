/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fsbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/conn.h"
#include "client/convert.h"
#include "client/hint.h"
#include "common/scope.h"

/*
 * @options  as opened; @strings  what they point to
 */
struct fsbox {
	struct conn *conn;
	struct fsbox_server server;
	const char **features;
	struct fsbox_options options;
	char *strings[3];
};

/* How long a successor of a daemon that went is looked for, and how long to pause in between. */
#define RECONNECT_MS 30000
#define RECONNECT_PAUSE_MS 100
#define RECONNECT_STEADY_MS 1000

/* An event together with the public objects in it. */
struct event_object {
	struct fsbox_event event;
	struct fsbox_error error;
	struct fsbox_job *job;
	struct fsbox_exit *end;
};

int fsbox_error_exit_status(const char *kind)
{
	return error_exit_status(error_from_name(kind));
}

/* ---- connections --------------------------------------------------------------------- */

static const char *place_name(enum locate_place place)
{
	switch (place) {
	case LOCATE_EXPLICIT:
		return "explicit";
	case LOCATE_SYSTEM:
		return "system";
	case LOCATE_USER:
		return "user";
	case LOCATE_ROOT:
		return "root";
	}
	return "explicit";
}

/* What the new connection's daemon said of itself. */
static int take_server(struct fsbox *box, struct fsbox_error *err)
{
	const struct hello_result *hello = &box->conn->hello.hello;
	const char **features = calloc(hello->features.count + 1, sizeof(*features));

	if (!features)
		return convert_no_memory(err);
	free(box->features);
	box->features = features;
	for (size_t i = 0; i < hello->features.count; i++)
		box->features[i] = hello->features.items[i];
	box->server = (struct fsbox_server){
		.server = hello->server,
		.mode = daemon_mode_name(hello->mode),
		.socket = box->conn->location.socket,
		.place = place_name(box->conn->location.place),
		.protocol = hello->protocol,
		.uid = hello->uid,
		.features = box->features,
	};
	return 0;
}

static int keep_options(struct fsbox *box, const struct fsbox_options *options,
			struct fsbox_error *err)
{
	struct fsbox_options *kept = &box->options;
	const char **const texts[] = { &kept->socket, &kept->client, &kept->daemon };

	*kept = (struct fsbox_options)FSBOX_OPTIONS_INIT;
	if (options)
		memcpy(kept, options,
		       options->size < sizeof(*kept) ? options->size : sizeof(*kept));
	kept->size = sizeof(*kept);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!*texts[i])
			continue;
		box->strings[i] = strdup(*texts[i]);
		if (!box->strings[i])
			return convert_no_memory(err);
		*texts[i] = box->strings[i];
	}
	return 0;
}

int fsbox_open(struct fsbox **ret_box, const struct fsbox_options *options, struct fsbox_error *err)
{
	struct fsbox *box = calloc(1, sizeof(*box));

	if (!box)
		return convert_no_memory(err);
	if (keep_options(box, options, err) < 0 || conn_open(&box->conn, &box->options, err) < 0 ||
	    take_server(box, err) < 0) {
		(void)fsbox_close(box);
		return -1;
	}
	*ret_box = box;
	return 0;
}

int fsbox_reconnect(struct fsbox *box, int timeout_ms, struct fsbox_error *err)
{
	struct fsbox_options options = box->options;
	struct conn *broken = box->conn;
	struct conn *conn = NULL;
	int r = 0;

	if (!broken->failed)
		return 0;
	if (timeout_ms > 0)
		options.timeout_ms = timeout_ms;
	if (conn_open(&conn, &options, err) < 0)
		return -1;
	r = conn_resume(conn, broken, err);
	box->conn = conn;
	(void)conn_free(broken);
	return take_server(box, r < 0 ? NULL : err) < 0 ? -1 : r;
}

struct fsbox *fsbox_close(struct fsbox *box)
{
	if (!box)
		return NULL;
	(void)conn_free(box->conn);
	free(box->features);
	for (size_t i = 0; i < ARRAY_SIZE(box->strings); i++)
		free(box->strings[i]);
	free(box);
	return NULL;
}

struct conn *fsbox_conn(struct fsbox *box)
{
	return box->conn;
}

const struct fsbox_server *fsbox_server(const struct fsbox *box)
{
	return &box->server;
}

/* ---- sending ------------------------------------------------------------------------- */

/* The pipe that ends the job with us: the job's side into the message, ours to the caller. */
static int make_lifeline(struct spawn_params *params, int *ret_fd, struct fsbox_error *err)
{
	struct error fail = ERROR_INIT;
	int ends[2];

	if (params->detach)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		(void)error_set(&fail, ERR_SYSTEM, errno, "make the lifeline");
		return hint_fill(err, &fail, NULL);
	}
	params->lifeline_fd = ends[0];
	*ret_fd = ends[1];
	return 0;
}

int fsbox_spawn_send(struct fsbox *box, const struct fsbox_spawn *spawn, uint64_t *ret_request,
		     struct fsbox_error *err)
{
	union method_params params;
	int lifeline_fd = -1;
	int r = convert_spawn(&params.spawn, spawn, true, err);

	if (r == 0)
		r = make_lifeline(&params.spawn, &lifeline_fd, err);
	if (r == 0)
		r = conn_send(box->conn, METHOD_SPAWN, &params, lifeline_fd, ret_request, err);
	method_params_deinit(METHOD_SPAWN, &params);
	return r;
}

int fsbox_wait_send(struct fsbox *box, uint64_t job, const char *cookie, uint64_t *ret_request,
		    struct fsbox_error *err)
{
	const union method_params params = { .wait = { .job = job, .cookie = (char *)cookie } };

	return conn_send(box->conn, METHOD_WAIT, &params, -1, ret_request, err);
}

int fsbox_signal_send(struct fsbox *box, uint64_t job, const char *cookie, int signo,
		      uint64_t *ret_request, struct fsbox_error *err)
{
	const union method_params params = {
		.signal = { .job = job, .cookie = (char *)cookie, .signal = (uint32_t)signo }
	};

	return conn_send(box->conn, METHOD_SIGNAL, &params, -1, ret_request, err);
}

/* ---- events -------------------------------------------------------------------------- */

int fsbox_fd(const struct fsbox *box)
{
	return box->conn->channel.fd;
}

short fsbox_poll_events(const struct fsbox *box)
{
	return channel_wants_write(&box->conn->channel) ? POLLIN | POLLOUT : POLLIN;
}

int fsbox_process(struct fsbox *box, struct fsbox_error *err)
{
	return conn_process(box->conn, err);
}

/* Move what FROM holds into OBJECT. Running out of memory shows as the request's error. */
static void fill_event(struct event_object *object, struct conn_event *from)
{
	struct fsbox_event *event = &object->event;
	bool lost = false;

	event->type = from->request == 0 ? FSBOX_EVENT_EXITED : FSBOX_EVENT_REPLY;
	event->request = from->request;
	if (from->failed) {
		object->error = from->error;
		event->error = &object->error;
		(void)conn_event_free(from);
	} else if (from->request == 0 || from->method == METHOD_WAIT) {
		object->end = convert_exit_take(from, &object->error);
		event->end = object->end;
		lost = !object->end;
	} else if (from->method == METHOD_SPAWN) {
		object->job = convert_job_take(from, &object->error);
		event->job = object->job;
		lost = !object->job;
	} else {
		(void)conn_event_free(from);
	}
	if (lost)
		event->error = &object->error;
}

struct fsbox_event *fsbox_event_next(struct fsbox *box)
{
	struct event_object *object = NULL;

	if (!box->conn->first)
		return NULL;
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL; /* the event stays where it is */
	fill_event(object, conn_next(box->conn));
	return &object->event;
}

struct fsbox_job *fsbox_event_take_job(struct fsbox_event *event)
{
	struct event_object *object = (struct event_object *)event;
	struct fsbox_job *job = object->job;

	object->job = NULL;
	object->event.job = NULL;
	return job;
}

struct fsbox_exit *fsbox_event_take_end(struct fsbox_event *event)
{
	struct event_object *object = (struct event_object *)event;
	struct fsbox_exit *end = object->end;

	object->end = NULL;
	object->event.end = NULL;
	return end;
}

struct fsbox_event *fsbox_event_free(struct fsbox_event *event)
{
	struct event_object *object = (struct event_object *)event;

	if (!object)
		return NULL;
	(void)fsbox_job_free(object->job);
	(void)fsbox_exit_free(object->end);
	free(object);
	return NULL;
}

/* ---- calls that wait ----------------------------------------------------------------- */

int fsbox_spawn(struct fsbox *box, const struct fsbox_spawn *spawn, struct fsbox_job **ret_job,
		struct fsbox_error *err)
{
	struct conn_event *event = NULL;
	struct fsbox_job *job = NULL;
	uint64_t request = 0;

	if (fsbox_spawn_send(box, spawn, &request, err) < 0 ||
	    conn_await(box->conn, request, box->conn->timeout_ms, &event, err) < 0)
		return -1;
	job = convert_job_take(event, err);
	if (!job)
		return -1;
	*ret_job = job;
	return 0;
}

/* The end of a job of this connection comes unasked. */
static int wait_once(struct fsbox *box, uint64_t job, const char *cookie, int timeout_ms,
		     struct conn_event **ret_event, struct fsbox_error *err)
{
	uint64_t request = 0;

	if (conn_owns(box->conn, job))
		return conn_await_exited(box->conn, job, timeout_ms, ret_event, err);
	if (fsbox_wait_send(box, job, cookie, &request, err) < 0)
		return -1;
	return conn_await(box->conn, request, timeout_ms, ret_event, err);
}

/* Until when a successor is looked for, and when the last one was found; zero at first. */
struct search {
	int64_t give_up_ms;
	int64_t found_ms;
};

/*
 * The daemon went: until there is another one. One that goes as soon as it is found counts as none.
 *
 * @deadline_ms  negative: as long as usual
 */
static int find_successor(struct fsbox *box, int64_t deadline_ms, struct search *search,
			  struct fsbox_error *err)
{
	int64_t now_ms = clock_ms();
	int64_t give_up_ms = 0;

	if (search->give_up_ms == 0 || now_ms - search->found_ms > RECONNECT_STEADY_MS)
		search->give_up_ms = now_ms + RECONNECT_MS;
	else
		(void)poll(NULL, 0, RECONNECT_PAUSE_MS);
	give_up_ms = search->give_up_ms;
	if (deadline_ms >= 0 && deadline_ms < give_up_ms)
		give_up_ms = deadline_ms;
	if (clock_ms() > give_up_ms)
		return -1;
	while (fsbox_reconnect(box, 0, err) < 0) {
		if (clock_ms() + RECONNECT_PAUSE_MS > give_up_ms)
			return -1;
		(void)poll(NULL, 0, RECONNECT_PAUSE_MS);
	}
	search->found_ms = clock_ms();
	return 0;
}

int fsbox_wait(struct fsbox *box, uint64_t job, const char *cookie, int timeout_ms,
	       struct fsbox_exit **ret_end, struct fsbox_error *err)
{
	int64_t deadline_ms = timeout_ms < 0 ? -1 : clock_ms() + timeout_ms;
	struct conn_event *event = NULL;
	struct fsbox_exit *end = NULL;
	struct search search = { 0 };
	int left_ms = timeout_ms;

	while (wait_once(box, job, cookie, left_ms, &event, err) < 0) {
		if (!box->conn->failed || find_successor(box, deadline_ms, &search, err) < 0)
			return -1;
		if (timeout_ms >= 0)
			left_ms = deadline_ms > clock_ms() ? (int)(deadline_ms - clock_ms()) : 0;
	}
	end = convert_exit_take(event, err);
	if (!end)
		return -1;
	*ret_end = end;
	return 0;
}

int fsbox_run(struct fsbox *box, const struct fsbox_spawn *spawn, struct fsbox_exit **ret_end,
	      struct fsbox_error *err)
{
	struct fsbox_job *job = NULL;
	int r = fsbox_spawn(box, spawn, &job, err);

	if (r == 0)
		r = fsbox_wait(box, job->id, NULL, -1, ret_end, err);
	(void)fsbox_job_free(job);
	return r;
}

int fsbox_signal(struct fsbox *box, uint64_t job, const char *cookie, int signo,
		 struct fsbox_error *err)
{
	struct conn_event *event = NULL;
	uint64_t request = 0;

	if (fsbox_signal_send(box, job, cookie, signo, &request, err) < 0 ||
	    conn_await(box->conn, request, box->conn->timeout_ms, &event, err) < 0)
		return -1;
	(void)conn_event_free(event);
	return 0;
}

int fsbox_list(struct fsbox *box, bool all, struct fsbox_job_list **ret_list,
	       struct fsbox_error *err)
{
	const union method_params params = { .list = { .all = all } };
	struct conn_event *event = NULL;
	struct fsbox_job_list *list = NULL;

	if (conn_request(box->conn, METHOD_LIST, &params, &event, err) < 0)
		return -1;
	list = convert_list_take(event, err);
	if (!list)
		return -1;
	*ret_list = list;
	return 0;
}

int fsbox_why(struct fsbox *box, const struct fsbox_spawn *spawn, const char *path,
	      struct fsbox_why **ret_why, struct fsbox_error *err)
{
	union method_params params = { .why = WHY_PARAMS_INIT };
	struct conn_event *event = NULL;
	struct fsbox_why *why = NULL;
	int r = convert_spawn(&params.why.spawn, spawn, false, err);

	if (r == 0) {
		params.why.path = strdup(path);
		r = params.why.path ? 0 : convert_no_memory(err);
	}
	if (r == 0)
		r = conn_request(box->conn, METHOD_WHY, &params, &event, err);
	method_params_deinit(METHOD_WHY, &params);
	if (r < 0)
		return r;

	why = convert_why_take(event, err);
	if (!why)
		return -1;
	*ret_why = why;
	return 0;
}

int fsbox_call(struct fsbox *box, const char *method, const char *params, char **ret_json,
	       struct fsbox_error *err)
{
	struct conn_event *event = NULL;
	uint64_t request = 0;

	if (conn_send_text(box->conn, method, params, &request, err) < 0 ||
	    conn_await(box->conn, request, box->conn->timeout_ms, &event, err) < 0)
		return -1;
	*ret_json = steal_ptr(&event->json);
	(void)conn_event_free(event);
	return 0;
}
