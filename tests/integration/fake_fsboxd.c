/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/fake_fsboxd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static bool is_ready(int fd, short events, int within_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return poll(&pfd, 1, within_ms) > 0;
}

/* ---- the broker ----------------------------------------------------------------------- */

static void set_path(char ret[256], const struct fake *fake, const char *name)
{
	(void)snprintf(ret, 256, "%s/%s", fake->dir, name);
	assert_int_equal(mkdir(ret, 0755), 0);
}

void fake_init(struct fake *fake)
{
	struct link_config *config = &fake->config;
	char made[] = "/tmp/fsbox-broker.XXXXXX";
	char *real;
	int fd;

	memset(fake, 0, sizeof(*fake));
	(void)signal(SIGPIPE, SIG_IGN);
	assert_non_null(mkdtemp(made));
	real = realpath(made, NULL);
	assert_non_null(real);
	(void)snprintf(fake->dir, sizeof(fake->dir), "%s", real);
	free(real);
	assert_int_equal(chmod(fake->dir, 0755), 0);
	(void)snprintf(fake->cwd, sizeof(fake->cwd), "%s/p", fake->dir);
	assert_int_equal(mkdir(fake->cwd, 0755), 0);
	config->version = SPAWNOP_VERSION;
	config->mode = MODE_USER;
	config->engines = 1u << ENGINE_BWRAP;
	config->uid = getuid();
	config->gid = getgid();
	set_path(config->run_dir, fake, "run");
	set_path(config->state_dir, fake, "state");
	set_path(config->config_dir, fake, "etc");
	set_path(config->exec_dir, fake, "exec");
	(void)snprintf(config->mask_dir, sizeof(config->mask_dir), "%s/run/mask", fake->dir);
	(void)snprintf(config->mask_file, sizeof(config->mask_file), "%s/run/maskf", fake->dir);
	assert_int_equal(mkdir(config->mask_dir, 0000), 0);
	fd = open(config->mask_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0000);
	assert_true(fd >= 0);
	(void)close(fd);
	/* Not the tester's own: XDG directories of this test. */
	(void)snprintf(config->text, sizeof(config->text), "XDG_CONFIG_HOME=%s/config", fake->dir);
	(void)snprintf(config->text + strlen(config->text) + 1, 200, "XDG_CACHE_HOME=%s/.cache",
		       fake->dir);
}

void fake_start(struct fake *fake)
{
	const char *program = getenv("FSBOX_BROKER");
	struct link_message message;
	struct op_message ready;
	int sockets[2];
	int pipes[2];

	assert_non_null(program);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(shutdown(sockets[0], SHUT_RD), 0);
	fake->pid = fork();
	if (fake->pid == 0) {
		char *argv[] = { (char *)(uintptr_t)program, NULL };
		char *envp[] = { NULL };
		int link = fcntl(sockets[1], F_DUPFD, 20);
		int requests = fcntl(pipes[1], F_DUPFD, 20);
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(link, BROKER_FD_LINK) < 0 ||
		    dup2(requests, BROKER_FD_REQUEST) < 0 || chdir("/") < 0)
			_exit(126);
		(void)execve(program, argv, envp);
		_exit(127);
	}
	(void)close(sockets[1]);
	(void)close(pipes[1]);
	fake->link = sockets[0];
	fake->requests = pipes[0];
	memset(&message, 0, sizeof(message));
	message.kind = LINK_CONFIG;
	message.u.config = fake->config;
	fake_send(fake, &message, NULL, 0);
	fake_expect_op(fake, OP_READY, &ready);
}

void fake_die(struct fake *fake)
{
	(void)close(fake->link);
	(void)close(fake->requests);
	fake->link = -1;
	fake->requests = -1;
}

bool fake_is_alive(const struct fake *fake)
{
	return waitpid(fake->pid, NULL, WNOHANG) == 0;
}

int fake_wait_exit(struct fake *fake)
{
	for (int i = 0; i < FAKE_PATIENCE_MS / 10; i++) {
		int status;

		if (waitpid(fake->pid, &status, WNOHANG) == fake->pid) {
			fake->pid = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
		}
		(void)usleep(10000);
	}
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void fake_stop(struct fake *fake)
{
	if (fake->pid > 0) {
		assert_true(fake_is_alive(fake));
		if (fake->link >= 0)
			fake_die(fake);
		else
			(void)kill(fake->pid, SIGTERM);
		if (fake_wait_exit(fake) != 0) {
			(void)kill(fake->pid, SIGKILL);
			fail_msg("the broker does not end cleanly");
		}
	}
	if (fake->link >= 0)
		fake_die(fake);
	(void)nftw(fake->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

unsigned fake_open_descriptors(const struct fake *fake)
{
	char path[64];
	unsigned count = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", fake->pid);
	dir = opendir(path);
	if (dir == NULL)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += entry->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

void fake_expect_descriptors(const struct fake *fake, unsigned count)
{
	unsigned now = fake_open_descriptors(fake);

	for (int i = 0; i < FAKE_PATIENCE_MS / 10 && now != count; i++) {
		if (now == 0)
			return; /* another user's: not to be seen */
		(void)usleep(10000);
		now = fake_open_descriptors(fake);
	}
	assert_int_equal(now, count);
}

void fake_write(const struct fake *fake, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", fake->dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* ---- messages ------------------------------------------------------------------------- */

bool fake_op_waits(struct fake *fake, int within_ms)
{
	return is_ready(fake->requests, POLLIN, within_ms);
}

static void read_op(struct fake *fake, struct op_message *ret_op)
{
	size_t done = 0;
	size_t wanted = 2 * sizeof(uint32_t);
	struct error err = ERROR_INIT;

	memset(ret_op, 0, sizeof(*ret_op));
	while (done < wanted) {
		ssize_t n;

		assert_true(fake_op_waits(fake, FAKE_PATIENCE_MS));
		n = read(fake->requests, (char *)ret_op + done, wanted - done);
		assert_true(n > 0);
		done += (size_t)n;
		if (done == 2 * sizeof(uint32_t))
			wanted = ret_op->size;
	}
	if (op_message_check(ret_op, done, &err) < 0)
		fail_msg("a malformed message: %s", err.message);
}

void fake_expect_op(struct fake *fake, enum op_kind kind, struct op_message *ret_op)
{
	/* That a plan is right comes with the start message, and is no answer to anything. */
	do
		read_op(fake, ret_op);
	while (ret_op->kind == OP_JOB_CONFIRM && kind != OP_JOB_CONFIRM);
	assert_int_equal(ret_op->kind, kind);
}

void fake_send(struct fake *fake, struct link_message *message, const int *fds, size_t count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * LINK_MESSAGE_FDS)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = message };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct error err = ERROR_INIT;

	message->size = (uint32_t)link_message_size((enum link_kind)message->kind);
	iov.iov_len = message->size;
	if (link_message_check(message, message->size, &err) < 0)
		fail_msg("the test sends nonsense: %s", err.message);
	if (count > 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	assert_int_equal(sendmsg(fake->link, &msg, MSG_NOSIGNAL), (ssize_t)message->size);
}

void fake_send_error(struct fake *fake, const struct op_message *op, enum error_kind kind,
		     const char *stage, const char *text)
{
	struct link_message message = { .kind = LINK_ERROR, .seq = op->seq, .job = op->job };
	struct error err = ERROR_INIT;

	(void)error_set(&err, kind, 0, "%s", text);
	failure_set(&message.u.failure, &err, stage);
	fake_send(fake, &message, NULL, 0);
}

void fake_know_nothing(struct fake *fake, uint64_t job)
{
	struct op_message op;

	fake_expect_op(fake, OP_JOB_FIND, &op);
	assert_int_equal(op.job, job);
	fake_send_error(fake, &op, ERR_JOB_UNKNOWN, NULL, "no such job");
}

/* ---- a client ------------------------------------------------------------------------- */

void client_connect(struct fake *fake, struct fake_client *client)
{
	struct link_message message = { .kind = LINK_CONN, .conn = ++fake->last_conn };
	int ends[2];
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	assert_true(pidfd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	memset(client, 0, sizeof(*client));
	assert_int_equal(channel_init_take(&client->channel, ends[0], true, NULL), 0);
	client->number = message.conn;
	message.u.conn.pid = getpid();
	message.u.conn.uid = getuid();
	message.u.conn.gid = getgid();
	fake_send(fake, &message, (int[]){ ends[1], pidfd }, 2);
	(void)close(ends[1]);
	(void)close(pidfd);
}

void client_hello(struct fake *fake, struct fake_client *client)
{
	union method_params params;
	union method_result result;
	int64_t id;

	client_connect(fake, client);
	method_params_init(METHOD_HELLO, &params);
	params.hello.protocol = PROTOCOL_VERSION;
	params.hello.client = strdup("test");
	id = client_ask(client, METHOD_HELLO, &params);
	method_params_deinit(METHOD_HELLO, &params);
	client_expect_result(client, id, METHOD_HELLO, &result);
	method_result_deinit(METHOD_HELLO, &result);
}

void client_disconnect(struct fake_client *client)
{
	channel_deinit(&client->channel);
	client->channel = (struct channel)CHANNEL_INIT;
}

static void send_all(struct fake_client *client)
{
	while (channel_wants_write(&client->channel)) {
		assert_true(is_ready(client->channel.fd, POLLOUT, FAKE_PATIENCE_MS));
		assert_int_equal(channel_flush(&client->channel, NULL), 0);
	}
}

int64_t client_ask(struct fake_client *client, enum method method,
		   const union method_params *params)
{
	struct message_id id = MESSAGE_ID(++client->last_id);
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;

	if (message_encode_request(&out, &fds, &id, method, params, &err) < 0 ||
	    channel_send(&client->channel, out.data, out.size, &fds, &err) < 0)
		fail_msg("%s", err.message);
	send_all(client);
	buf_deinit(&out);
	fdset_deinit(&fds);
	return client->last_id;
}

void client_send_text(struct fake_client *client, const char *json)
{
	assert_int_equal(channel_send(&client->channel, json, strlen(json), NULL, NULL), 0);
	send_all(client);
}

void client_send_raw(struct fake_client *client, const void *data, size_t size, const int *fds,
		     size_t fd_count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count > 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	assert_int_equal(sendmsg(client->channel.fd, &msg, MSG_NOSIGNAL), (ssize_t)size);
}

void client_receive(struct fake_client *client, struct message *ret_message)
{
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct error err = ERROR_INIT;
	int r;

	while ((r = channel_receive(&client->channel, &frame, &err)) == 0) {
		if (client->channel.eof || !is_ready(client->channel.fd, POLLIN, FAKE_PATIENCE_MS))
			fail_msg("no message came");
	}
	if (r < 0)
		fail_msg("receive: %s", err.message);
	memset(ret_message, 0, sizeof(*ret_message));
	if (message_parse(ret_message, frame.payload.data, frame.payload.size, &frame.fds, &err) <
	    0)
		fail_msg("parse: %s in %s", err.message, frame.payload.data);
	channel_frame_deinit(&frame);
}

bool client_is_closed(struct fake_client *client)
{
	for (;;) {
		char bytes[4096];
		ssize_t n;

		if (!is_ready(client->channel.fd, POLLIN, FAKE_PATIENCE_MS))
			return false;
		n = recv(client->channel.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0 && errno != EAGAIN)
			return false;
	}
}

static void receive_reply(struct fake_client *client, int64_t id, struct message *ret_message)
{
	client_receive(client, ret_message);
	assert_true(ret_message->kind == MESSAGE_RESULT || ret_message->kind == MESSAGE_ERROR);
	if (id == 0) {
		assert_int_equal(ret_message->id.kind, MESSAGE_ID_NONE);
	} else {
		assert_int_equal(ret_message->id.kind, MESSAGE_ID_NUMBER);
		assert_int_equal(ret_message->id.number, id);
	}
}

void client_expect_result(struct fake_client *client, int64_t id, enum method method,
			  union method_result *ret_result)
{
	struct message message;
	struct error err = ERROR_INIT;

	receive_reply(client, id, &message);
	if (message.kind == MESSAGE_ERROR)
		fail_msg("%s: %s (%s)", method_name(method), message.error.message,
			 error_name(message.error.kind));
	if (message_decode_result(&message, method, ret_result, &err) < 0)
		fail_msg("%s: %s", method_name(method), err.message);
	message_deinit(&message);
}

void client_expect_error(struct fake_client *client, int64_t id, enum error_kind kind,
			 struct error_reply *ret_reply)
{
	struct message message;

	receive_reply(client, id, &message);
	assert_int_equal(message.kind, MESSAGE_ERROR);
	if (message.error.kind != kind)
		fail_msg("%s instead of %s: %s", error_name(message.error.kind), error_name(kind),
			 message.error.message);
	if (ret_reply != NULL) {
		*ret_reply = message.error;
		memset(&message.error, 0, sizeof(message.error));
	}
	message_deinit(&message);
}

/* ---- a job ---------------------------------------------------------------------------- */

void fake_open_job(struct fake *fake, struct fake_job *job)
{
	struct link_message message = { .kind = LINK_JOB_OPENED };
	struct op_message op;
	int ends[2];
	int plan = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(job, 0, sizeof(*job));
	fake_expect_op(fake, OP_JOB_OPEN, &op);
	assert_true(plan >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	job->id = ++fake->last_job;
	job->conn = op.conn;
	job->plan_fd = plan;
	job->channel = ends[0];
	message.seq = op.seq;
	message.conn = op.conn;
	message.job = job->id;
	fake_send(fake, &message, (int[]){ plan, ends[1] }, 2);
	(void)close(ends[1]);
}

void fake_take_start(struct fake *fake, struct fake_job *job)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = &job->start, .iov_len = sizeof(job->start) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct error err = ERROR_INIT;
	ssize_t n;

	fake_expect_op(fake, OP_JOB_START, &job->op);
	assert_int_equal(job->op.job, job->id);
	/* Not before the policy is known to be right. */
	assert_int_equal(poll(&(struct pollfd){ .fd = job->channel, .events = POLLIN }, 1, 10000),
			 1);
	n = recvmsg(job->channel, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	assert_int_equal(n, sizeof(job->start));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		job->fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		assert_true(job->fd_count <= 5);
		memcpy(job->fds, CMSG_DATA(c), job->fd_count * sizeof(int));
	}
	if (start_message_check(&job->start, (size_t)n, job->fd_count, &err) < 0)
		fail_msg("start: %s", err.message);
}

void fake_job_report(struct fake_job *job, enum report_kind kind, const struct exit_record *record)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct report_message report = { .size = (uint32_t)report_message_size(kind),
					 .kind = kind };
	struct iovec iov = { .iov_base = &report, .iov_len = report.size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (record != NULL)
		report.u.exited = *record;
	if (kind == REPORT_STARTED) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &pidfd, sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
	}
	assert_int_equal(sendmsg(job->channel, &msg, MSG_NOSIGNAL), (ssize_t)report.size);
	(void)close(pidfd);
}

void fake_job_started(struct fake *fake, struct fake_job *job)
{
	struct link_message message = { .kind = LINK_JOB_UP, .conn = job->conn, .job = job->id };

	message.u.up.pid = getpid();
	fake_send(fake, &message, NULL, 0);
	fake_job_report(job, REPORT_STARTED, NULL);
}

void fake_job_ended(struct fake *fake, struct fake_job *job, const struct exit_record *record)
{
	struct link_message message = { .kind = LINK_JOB_ENDED, .conn = job->conn, .job = job->id };

	message.u.ended = *record;
	fake_send(fake, &message, NULL, 0);
}

void fake_job_deinit(struct fake_job *job)
{
	for (size_t i = 0; i < job->fd_count; i++)
		(void)close(job->fds[i]);
	if (job->channel > 0)
		(void)close(job->channel);
	if (job->plan_fd > 0)
		(void)close(job->plan_fd);
	memset(job, 0, sizeof(*job));
}
