/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_TEST_SERVER_H
#define FSBOX_CLIENT_TEST_SERVER_H

/*
 * A daemon for the tests of the client: a child process that answers on a socket in a directory of its
 * own, well or badly. For test programs only.
 */

#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/json/message.h"
#include "proto/wire/channel.h"

struct server {
	char dir[64];
	char socket[96];
	pid_t pid;
};

/* What the child does with one connection; returning closes it. */
typedef void server_fn(struct channel *channel);

static inline void server_reply(struct channel *channel, const struct message *request,
				const union method_result *result)
{
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;

	if (message_encode_result(&out, &fds, &request->id, request->method, result, NULL) < 0)
		_exit(3);
	if (channel_send(channel, out.data, out.size, &fds, NULL) < 0)
		_exit(4);
	buf_deinit(&out);
}

static inline void server_error(struct channel *channel, const struct message_id *id,
				enum error_kind kind, const char *message, const char *hint)
{
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct error_reply reply;
	struct error err = ERROR_INIT;

	(void)error_set(&err, kind, 0, "%s", message);
	if (error_reply_set(&reply, &err, NULL, NULL, hint, NULL) < 0 ||
	    message_encode_error(&out, id, &reply, NULL) < 0 ||
	    channel_send(channel, out.data, out.size, NULL, NULL) < 0)
		_exit(5);
	error_reply_deinit(&reply);
	buf_deinit(&out);
}

static inline void server_exited(struct channel *channel, const struct wait_result *exited)
{
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);

	if (message_encode_exited(&out, exited, NULL) < 0 ||
	    channel_send(channel, out.data, out.size, NULL, NULL) < 0)
		_exit(6);
	buf_deinit(&out);
}

/* Wait for the next request; false when the client is gone. */
static inline bool server_receive(struct channel *channel, struct message *ret_message)
{
	for (;;) {
		struct pollfd entry = { .fd = channel->fd, .events = POLLIN };
		struct channel_frame frame = CHANNEL_FRAME_INIT;
		struct error err = ERROR_INIT;
		int r = channel_receive(channel, &frame, &err);

		if (r < 0 || (r == 0 && channel->eof))
			return false;
		if (r == 0) {
			(void)poll(&entry, 1, -1);
			continue;
		}
		r = message_parse(ret_message, buf_text(&frame.payload), frame.payload.size,
				  &frame.fds, &err);
		channel_frame_deinit(&frame);
		if (r < 0) {
			(void)fprintf(stderr, "test server: %s\n", err.message);
			_exit(7);
		}
		return true;
	}
}

/* Answer hello as a daemon in user mode would. */
static inline void server_hello(struct channel *channel, const struct message *request)
{
	char *features[] = { (char *)"spawn", (char *)"policy" };
	union method_result result;

	method_result_init(METHOD_HELLO, &result);
	result.hello = (struct hello_result){
		.protocol = 1,
		.server = (char *)"fsbox 0.1.0",
		.mode = MODE_USER,
		.features = { features, 2, 2 },
		.uid = (uint32_t)getuid(),
	};
	server_reply(channel, request, &result);
}

static inline int server_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 8) < 0)
		return -1;
	return fd;
}

/* Serve connections, one after the other, until killed. */
static inline void server_start(struct server *server, server_fn *serve)
{
	int listen_fd = -1;

	(void)snprintf(server->dir, sizeof(server->dir), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(server->dir));
	(void)snprintf(server->socket, sizeof(server->socket), "%s/fsbox.sock", server->dir);
	listen_fd = server_listen(server->socket);
	assert_true(listen_fd >= 0);
	server->pid = fork();
	assert_true(server->pid >= 0);
	if (server->pid > 0) {
		(void)close(listen_fd);
		return;
	}

	for (;;) {
		struct channel channel = CHANNEL_INIT;
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 || channel_init_take(&channel, fd, true, NULL) < 0)
			_exit(8);
		serve(&channel);
		channel_deinit(&channel);
	}
}

static inline void server_stop(struct server *server)
{
	(void)kill(server->pid, SIGKILL);
	(void)waitpid(server->pid, NULL, 0);
	(void)unlink(server->socket);
	(void)rmdir(server->dir);
}

/* How many descriptors this process has. */
static inline int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#endif
