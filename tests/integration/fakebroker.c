/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/fakebroker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/plan.h"
#include "common/scope.h"

static uint64_t last_seq;

void fake_die(const char *what)
{
	(void)dprintf(STDERR_FILENO, "fake broker: %s: %s\n", what, strerror(errno));
	_exit(3);
}

int fake_wait(struct fake_news *news, int timeout_ms)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(news->fds))];
	} control;
	struct iovec bytes = { &news->message, sizeof(news->message) };
	struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd readable = { .fd = BROKER_FD_LINK, .events = POLLIN };
	ssize_t got = 0;

	for (size_t i = 0; i < LINK_MESSAGE_FDS; i++)
		news->fds[i] = -1;
	if (poll(&readable, 1, timeout_ms) == 0)
		return 0;
	got = recvmsg(BROKER_FD_LINK, &header, MSG_CMSG_CLOEXEC);
	if (got <= 0)
		return -1;
	if (link_message_check(&news->message, (size_t)got, NULL) < 0)
		fake_die("fsboxd sent a malformed message");
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header); cmsg; cmsg = CMSG_NXTHDR(&header, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			memcpy(news->fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	return 1;
}

void fake_next(struct fake_news *news)
{
	if (fake_wait(news, -1) < 0)
		_exit(0);
}

void fake_op_init(struct op_message *op, enum op_kind kind, uint64_t conn, uint64_t job)
{
	memset(op, 0, sizeof(*op));
	op->size = (uint32_t)op_message_size(kind);
	op->kind = kind;
	op->conn = conn;
	op->job = job;
}

uint64_t fake_send(struct op_message *op)
{
	op->seq = ++last_seq;
	if (write(BROKER_FD_REQUEST, op, op->size) != (ssize_t)op->size)
		fake_die("write to fsboxd");
	return op->seq;
}

static void drop(struct fake_news *news)
{
	for (size_t i = 0; i < LINK_MESSAGE_FDS; i++)
		if (news->fds[i] >= 0)
			(void)close(news->fds[i]);
}

void fake_answer(uint64_t seq, struct fake_news *news)
{
	for (;;) {
		fake_next(news);
		if (news->message.seq == seq)
			return;
		drop(news);
	}
}

void fake_plan_with(struct buf *out, enum net_mode net)
{
	static const struct plan_symlink links[] = {
		{ "/bin", "usr/bin" },
		{ "/lib", "usr/lib" },
		{ "/lib64", "usr/lib64" },
	};
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct plan_options options = {
		.harden = PLAN_HARDEN_ALL,
		.symlinks = links,
		.symlink_count = ARRAY_SIZE(links),
		.chdir = "/",
	};
	struct error err = ERROR_INIT;
	struct rule *rule =
		rule_list_add(&policy.rules, "/usr", ACCESS_READ_ONLY, RULE_USER, NULL, &err);

	policy.net = net;
	if (rule)
		rule->type = NODE_DIRECTORY;
	if (!rule || plan_build(&plan, &policy, &options, &err) < 0 ||
	    plan_encode(&plan, out, &err) < 0)
		fake_die(err.message);
}

void fake_plan(struct buf *out)
{
	fake_plan_with(out, NET_NONE);
}

void fake_fill(int memfd, const void *data, size_t size, int seal)
{
	if (write(memfd, data, size) != (ssize_t)size)
		fake_die("write to a memfd");
	if (seal &&
	    fcntl(memfd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		fake_die("seal a memfd");
}

void fake_args(const char *script, struct buf *out)
{
	char shell[] = "/bin/sh";
	char option[] = "-c";
	char path[] = "PATH=/usr/bin:/bin";
	AUTO(auto_free) char *copy = strdup(script);
	char *argv[] = { shell, option, copy, NULL };
	char *envp[] = { path, NULL };

	if (!copy || args_encode(out, "/", argv, envp, NULL) < 0)
		fake_die("args");
}

static int args_memfd(const char *script)
{
	AUTO(buf_deinit) struct buf args = BUF_INIT(65536);
	int fd = memfd_create("args", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		fake_die("memfd");
	fake_args(script, &args);
	fake_fill(fd, args.data, args.size, 1);
	return fd;
}

void fake_send_start(int channel, const char *script, int out_fd)
{
	int args = args_memfd(script);
	int fds[] = { out_fd, out_fd, args };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(fds)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct start_message start = {
		.size = sizeof(start),
		.fds = START_FD_STDOUT | START_FD_STDERR | START_FD_ARGS,
		.umask = 022,
	};
	struct iovec bytes = { &start, sizeof(start) };
	struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	if (sendmsg(channel, &header, MSG_NOSIGNAL) < 0)
		fake_die("send the start message");
	(void)close(args);
}

uint64_t fake_open(uint64_t conn, const char *script, int out_fd, uint32_t *ret_plan_bytes,
		   int *ret_channel)
{
	AUTO(buf_deinit) struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	struct fake_news news;
	struct op_message op;

	fake_op_init(&op, OP_JOB_OPEN, conn, 0);
	fake_answer(fake_send(&op), &news);
	if (news.message.kind != LINK_JOB_OPENED)
		fake_die(news.message.u.failure.message);
	fake_plan(&plan);
	fake_fill(news.fds[0], plan.data, plan.size, 1);
	(void)close(news.fds[0]);
	if (script)
		fake_send_start(news.fds[1], script, out_fd);
	*ret_plan_bytes = (uint32_t)plan.size;
	*ret_channel = news.fds[1];
	return news.message.job;
}

void fake_start_init(struct op_message *op, uint64_t conn, uint64_t job, uint32_t plan_bytes)
{
	fake_op_init(op, OP_JOB_START, conn, job);
	op->u.start.plan_bytes = plan_bytes;
	op->u.start.engine = ENGINE_BWRAP;
	op->u.start.room = ROOM_EGRESS_DENIED;
	op->u.start.detached = 1;
	op->u.start.argc = 3;
	(void)snprintf(op->u.start.profile, sizeof(op->u.start.profile), "fake");
	(void)snprintf(op->u.start.command, sizeof(op->u.start.command), "sh");
}

_Noreturn void fake_serve(void (*serve)(uint64_t conn, int fd))
{
	struct fake_news news;
	struct op_message op;

	(void)signal(SIGPIPE, SIG_IGN);
	for (;;) {
		fake_next(&news);
		if (news.message.kind != LINK_CONN)
			continue;
		(void)close(news.fds[1]);
		(void)fcntl(news.fds[0], F_SETFL, 0);
		serve(news.message.conn, news.fds[0]);
		(void)close(news.fds[0]);
		fake_op_init(&op, OP_CONN_CLOSED, news.message.conn, 0);
		(void)fake_send(&op);
	}
}
