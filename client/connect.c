/* SPDX-License-Identifier: Apache-2.0 */
#include "client/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/autostart.h"
#include "client/hint.h"
#include "client/trust.h"
#include "common/scope.h"

#define DEFAULT_TIMEOUT_MS 60000
#define START_TIMEOUT_MS 10000
#define ATTEMPTS 3 /* a daemon of one's own may end for idleness just when we connect */

static const char join_hint[] =
	"join the group (sudo usermod -aG fsbox \"$USER\", then log in again), or use a daemon of "
	"your own (--user)";
static const char service_hint[] =
	"start the service (sudo systemctl start fsboxd), or use a daemon of your own (--user)";
static const char no_autostart_hint[] = "leave out --no-autostart, and one is started";
static const char explicit_hint[] = "check --socket and FSBOX_SOCKET, or leave both out";

static const char *open_hint(const struct location *location, const struct error *err)
{
	bool absent = err->errnum == ENOENT || err->errnum == ECONNREFUSED;

	switch (location->place) {
	case LOCATE_SYSTEM:
		if (err->kind == ERR_NOT_AUTHORIZED)
			return join_hint;
		return absent ? service_hint : NULL;
	case LOCATE_EXPLICIT:
		return absent ? explicit_hint : NULL;
	case LOCATE_USER:
	case LOCATE_ROOT:
		return absent ? no_autostart_hint : NULL;
	}
	return NULL;
}

static const char *socket_name(const struct location *location)
{
	return strrchr(location->socket, '/') + 1;
}

/* The directory of a socket that we were told or that the system owns: R5 alone decides later. */
static int open_given_directory(const struct location *location, int *ret_fd, struct error *err)
{
	int fd = open(location->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_set(err,
				 errno == EACCES || errno == EPERM ? ERR_NOT_AUTHORIZED
								   : ERR_UNREACHABLE,
				 errno, "look at '%s'", location->dir);
	*ret_fd = fd;
	return 0;
}

/* Connect to a daemon that is there. */
static int connect_present(const struct location *location, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int dir_fd = -1;
	bool own = location->place == LOCATE_USER || location->place == LOCATE_ROOT;
	int r = own ? trust_directory(location->dir, geteuid(), &dir_fd, err)
		    : open_given_directory(location, &dir_fd, err);

	if (r < 0)
		return r;
	return trust_connect(dir_fd, socket_name(location), location->socket, geteuid(), ret_fd,
			     NULL, err);
}

/* Start a daemon of our own, unless another starter was faster, and connect to it. */
static int connect_started(const struct location *location, const char *daemon, int *ret_fd,
			   struct error *err)
{
	char path[LIMIT_PATH_BYTES + 1];
	AUTO(auto_close) int dir_fd = -1;
	AUTO(auto_close) int lock_fd = -1;
	int r = autostart_find_daemon(daemon, path, err);

	if (r < 0)
		return r;
	r = trust_make_private(location->dir, geteuid(), &dir_fd, err);
	if (r < 0)
		return r;
	r = autostart_lock(dir_fd, location->dir, START_TIMEOUT_MS, &lock_fd, err);
	if (r < 0)
		return r;

	if (trust_connect(dir_fd, socket_name(location), location->socket, geteuid(), ret_fd, NULL,
			  NULL) == 0)
		return 0;
	r = autostart_run(path, location, START_TIMEOUT_MS, err);
	if (r < 0)
		return r;
	return trust_connect(dir_fd, socket_name(location), location->socket, geteuid(), ret_fd,
			     NULL, err);
}

static int connect_location(const struct location *location, const struct fsbox_options *options,
			    int *ret_fd, struct fsbox_error *err)
{
	bool own = location->place == LOCATE_USER || location->place == LOCATE_ROOT;
	struct error fail = ERROR_INIT;
	int r = connect_present(location, ret_fd, &fail);

	if (r < 0 && own && !options->no_autostart && fail.kind == ERR_UNREACHABLE &&
	    (fail.errnum == ENOENT || fail.errnum == ECONNREFUSED)) {
		r = connect_started(location, options->daemon, ret_fd, &fail);
		if (r < 0)
			return hint_fill(err, &fail, NULL);
	}
	return r < 0 ? hint_fill(err, &fail, open_hint(location, &fail)) : 0;
}

static int say_hello(struct conn *conn, const char *client, struct fsbox_error *err)
{
	union method_params params = {
		.hello = { .protocol = PROTOCOL_VERSION,
			   .client = (char *)(client ? client : "libfsbox " FSBOX_VERSION) }
	};
	struct conn_event *event = NULL;
	struct error fail = ERROR_INIT;

	if (conn_request(conn, METHOD_HELLO, &params, &event, err) < 0)
		return -1;
	conn->hello = event->result;
	memset(&event->result, 0, sizeof(event->result)); /* moved */
	(void)conn_event_free(event);

	if (conn->hello.hello.protocol != PROTOCOL_VERSION) {
		(void)error_set(&fail, ERR_UNREACHABLE, 0,
				"the daemon speaks protocol %u, this program %d",
				conn->hello.hello.protocol, PROTOCOL_VERSION);
		return hint_fill(err, &fail, "install the same version of both");
	}
	return 0;
}

int conn_open_take(struct conn **ret_conn, int fd, const char *client, int timeout_ms,
		   struct fsbox_error *err)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	struct error fail = ERROR_INIT;

	if (!conn) {
		(void)close(fd);
		(void)error_set(&fail, ERR_NOMEM, 0, "open a connection");
		return hint_fill(err, &fail, NULL);
	}
	conn->next_request = 1;
	conn->timeout_ms = timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS;
	/* With credentials on this end, so that the kernel stamps our first byte (R2). */
	if (channel_init_take(&conn->channel, fd, false, &fail) < 0 ||
	    channel_show_sender(&conn->channel, &fail) < 0)
		(void)hint_fill(err, &fail, NULL);
	else if (say_hello(conn, client, err) == 0) {
		*ret_conn = conn;
		return 0;
	}
	(void)conn_free(conn);
	return -1;
}

int conn_open(struct conn **ret_conn, const struct fsbox_options *options, struct fsbox_error *err)
{
	struct fsbox_options given = FSBOX_OPTIONS_INIT;
	struct fsbox_error fail = { .kind = "" };
	struct location location;
	struct locate_facts facts;
	struct error error = ERROR_INIT;

	if (options)
		memcpy(&given, options,
		       options->size < sizeof(given) ? options->size : sizeof(given));
	locate_facts_read(&facts);
	facts.socket = given.socket;
	facts.user = given.user;
	if (locate_decide(&location, &facts, &error) < 0)
		return hint_fill(err, &error, NULL);

	for (int attempt = 1;; attempt++) {
		bool own = location.place == LOCATE_USER || location.place == LOCATE_ROOT;
		int fd = -1;

		if (connect_location(&location, &given, &fd, &fail) < 0)
			break;
		if (conn_open_take(ret_conn, fd, given.client, given.timeout_ms, &fail) == 0) {
			(*ret_conn)->location = location;
			return 0;
		}
		if (!own || given.no_autostart || attempt == ATTEMPTS ||
		    strcmp(fail.kind, error_name(ERR_UNREACHABLE)) != 0)
			break;
	}
	if (err)
		*err = fail;
	return -1;
}
