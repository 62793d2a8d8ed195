/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawnlink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

/* Messages taken in one turn of the loop, so that clients get theirs. */
#define MESSAGES_PER_TURN 64

int spawnlink_init_take(struct spawnlink *link, int link_fd, int request_fd, struct error *err)
{
	struct stat st;

	*link = (struct spawnlink)SPAWNLINK_INIT;
	link->link_fd = link_fd;
	link->request_fd = request_fd;
	buf_init(&link->queue, SPAWNLINK_QUEUE_BYTES);
	if (fstat(link_fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return error_set(err, ERR_SYSTEM, 0, "descriptor %d is not fsboxd's socket",
				 link_fd);
	if (fstat(request_fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return error_set(err, ERR_SYSTEM, 0, "descriptor %d is not fsboxd's pipe",
				 request_fd);
	if (fcntl(link_fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(request_fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(link_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(request_fd, F_SETFL, O_NONBLOCK | O_WRONLY) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare the link to fsboxd");
	return 0;
}

void spawnlink_deinit(struct spawnlink *link)
{
	if (link == NULL)
		return;
	while (link->first != NULL) {
		struct spawnlink_question *question = link->first;

		link->first = question->next;
		free(question);
	}
	if (link->readable != NULL)
		event_free(link->readable);
	if (link->writable != NULL)
		event_free(link->writable);
	link->readable = NULL;
	link->writable = NULL;
	auto_close(&link->link_fd);
	auto_close(&link->request_fd);
	link->link_fd = -1;
	link->request_fd = -1;
	buf_deinit(&link->queue);
}

/* ---- receiving ------------------------------------------------------------------------- */

static size_t fds_due(enum link_kind kind)
{
	if (kind == LINK_EVENTS)
		return 1;
	return kind == LINK_CONN || kind == LINK_JOB_OPENED ? 2 : 0;
}

static size_t take_descriptors(struct msghdr *msg, int fds[LINK_MESSAGE_FDS])
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (count < LINK_MESSAGE_FDS)
				fds[count] = fd;
			else
				(void)close(fd);
			count++;
		}
	}
	return count;
}

/* 1: a message; 0: none now; ERR_UNREACHABLE: fsboxd is gone; ERR_BAD_FRAME: garbage. */
static int receive(struct spawnlink *link, struct link_message *message, int fds[LINK_MESSAGE_FDS],
		   struct error *err)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * (LINK_MESSAGE_FDS + 1))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	size_t count;
	ssize_t n;
	int r;

	for (int i = 0; i < LINK_MESSAGE_FDS; i++)
		fds[i] = -1;
	do
		n = recvmsg(link->link_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return error_set(err, ERR_UNREACHABLE, n < 0 ? errno : 0, "fsboxd is gone");
	count = take_descriptors(&msg, fds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return error_set(err, ERR_BAD_FRAME, 0, "a truncated message from fsboxd");
	r = link_message_check(message, (size_t)n, err);
	if (r < 0)
		return r;
	if (count != fds_due((enum link_kind)message->kind))
		return error_set(err, ERR_BAD_FRAME, 0,
				 "a message of kind %u from fsboxd with %zu descriptors",
				 message->kind, count);
	return 1;
}

static void close_fds(int fds[LINK_MESSAGE_FDS])
{
	for (int i = 0; i < LINK_MESSAGE_FDS; i++) {
		auto_close(&fds[i]);
		fds[i] = -1;
	}
}

/* Nothing more is sent or received; what was asked fails. */
static void go_down(struct spawnlink *link, const struct error *why)
{
	struct error err = ERROR_INIT;
	int none[LINK_MESSAGE_FDS] = { -1, -1 };

	if (link->down)
		return;
	link->down = true;
	if (link->readable != NULL)
		(void)event_del(link->readable);
	if (link->writable != NULL)
		(void)event_del(link->writable);
	(void)error_set(&err, ERR_UNREACHABLE, 0, "fsboxd is gone; jobs that run go on");
	while (link->first != NULL) {
		struct spawnlink_question *question = link->first;

		link->first = question->next;
		if (question->answer != NULL)
			question->answer(question->arg, NULL, none, &err);
		free(question);
	}
	if (link->on_down != NULL)
		link->on_down(link->arg, why->kind == ERR_BAD_FRAME, why);
}

static bool is_last_answer(enum link_kind kind)
{
	return kind != LINK_JOB_ENTRY && kind != LINK_GRANT_ENTRY && kind != LINK_LEDGER_ENTRY;
}

static int dispatch_answer(struct spawnlink *link, const struct link_message *message,
			   int fds[LINK_MESSAGE_FDS], struct error *err)
{
	struct spawnlink_question **at = &link->first;
	struct spawnlink_question *question;
	struct error failure = ERROR_INIT;

	while (*at != NULL && (*at)->seq != message->seq)
		at = &(*at)->next;
	question = *at;
	if (question == NULL && message->kind == LINK_ERROR && message->seq <= link->last_seq)
		return 0; /* withdrawn when fsboxd had refused it already */
	if (question == NULL)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "fsboxd answers question %llu that was not asked",
				 (unsigned long long)message->seq);
	if (message->kind == LINK_ERROR)
		(void)failure_to_error(&message->u.failure, &failure);
	if (is_last_answer((enum link_kind)message->kind))
		*at = question->next;
	if (question->answer != NULL)
		question->answer(question->arg, message, fds,
				 message->kind == LINK_ERROR ? &failure : NULL);
	if (is_last_answer((enum link_kind)message->kind))
		free(question);
	return 0;
}

static int dispatch(struct spawnlink *link, const struct link_message *message,
		    int fds[LINK_MESSAGE_FDS], struct error *err)
{
	switch ((enum link_kind)message->kind) {
	case LINK_CONN:
	case LINK_JOB_UP:
	case LINK_JOB_FAILED:
	case LINK_JOB_ENDED:
	case LINK_JOB_GUARD:
		link->news(link->arg, message, fds);
		return 0;
	case LINK_JOB_OPENED:
		if (message->seq == 0) {
			link->news(link->arg, message, fds);
			return 0;
		}
		return dispatch_answer(link, message, fds, err);
	case LINK_JOB_ENTRY:
	case LINK_DONE:
	case LINK_ERROR:
	case LINK_STATUS:
	case LINK_JOB_FOUND:
	case LINK_EVENTS:
	case LINK_GRANT:
	case LINK_GRANT_ENTRY:
	case LINK_LEDGER_ENTRY:
	case LINK_LEDGER:
		return dispatch_answer(link, message, fds, err);
	case LINK_CONFIG:
	case LINK_KIND_COUNT:
		break;
	}
	return error_set(err, ERR_BAD_FRAME, 0, "a message of kind %u from fsboxd, now",
			 message->kind);
}

static void link_readable(evutil_socket_t fd, short what, void *arg)
{
	struct spawnlink *link = arg;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	for (int i = 0; i < MESSAGES_PER_TURN && !link->down; i++) {
		int fds[LINK_MESSAGE_FDS];
		struct link_message message;
		int r = receive(link, &message, fds, &err);

		if (r > 0)
			r = dispatch(link, &message, fds, &err);
		else if (r == 0)
			return;
		close_fds(fds);
		if (r < 0)
			go_down(link, &err);
	}
}

bool spawnlink_has_news(const struct spawnlink *link)
{
	struct pollfd pfd = { .fd = link->link_fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

int spawnlink_wait_config(struct spawnlink *link, struct link_config *ret_config, struct error *err)
{
	struct pollfd pfd = { .fd = link->link_fd, .events = POLLIN };
	struct link_message message;
	int fds[LINK_MESSAGE_FDS];
	int r;

	do
		r = poll(&pfd, 1, LIMIT_SETUP_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return error_set(err, ERR_TIMEOUT, r < 0 ? errno : 0,
				 "fsboxd sends no configuration");
	r = receive(link, &message, fds, err);
	close_fds(fds);
	if (r < 0)
		return r;
	if (r == 0 || message.kind != LINK_CONFIG)
		return error_set(err, ERR_BAD_FRAME, 0, "fsboxd does not begin with LINK_CONFIG");
	if (message.u.config.version != SPAWNOP_VERSION)
		return error_set(err, ERR_BAD_FRAME, 0, "fsboxd speaks version %u, we %d",
				 message.u.config.version, SPAWNOP_VERSION);
	*ret_config = message.u.config;
	return 0;
}

/* ---- sending --------------------------------------------------------------------------- */

/*
 * Write what the pipe takes: whole messages only, since each is at most PIPE_BUF. Returns how many
 * bytes of the queue were written; *ret_errno is 0 when all were.
 */
static size_t write_messages(const struct spawnlink *link, int *ret_errno)
{
	size_t done = 0;

	*ret_errno = 0;
	while (done < link->queue.size) {
		struct op_message op;
		ssize_t n;

		memcpy(&op, link->queue.data + done, offsetof(struct op_message, seq));
		n = write(link->request_fd, link->queue.data + done, op.size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*ret_errno = errno;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

static int flush_queue(struct spawnlink *link, struct error *err)
{
	int errnum;

	buf_consume(&link->queue, write_messages(link, &errnum));
	if (errnum == 0)
		return 0;
	if (errnum != EAGAIN)
		return error_set(err, ERR_UNREACHABLE, errnum, "write to fsboxd");
	if (link->writable != NULL && event_add(link->writable, NULL) < 0)
		return error_set(err, ERR_NOMEM, 0, "event");
	return 0;
}

static void link_writable(evutil_socket_t fd, short what, void *arg)
{
	struct spawnlink *link = arg;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (flush_queue(link, &err) < 0)
		go_down(link, &err);
}

int spawnlink_attach(struct spawnlink *link, struct event_base *base, spawnlink_news_fn *news,
		     spawnlink_down_fn *on_down, void *arg, struct error *err)
{
	link->news = news;
	link->on_down = on_down;
	link->arg = arg;
	link->readable = event_new(base, link->link_fd, EV_READ | EV_PERSIST, link_readable, link);
	link->writable = event_new(base, link->request_fd, EV_WRITE, link_writable, link);
	if (link->readable == NULL || link->writable == NULL || event_add(link->readable, NULL) < 0)
		return error_set(err, ERR_NOMEM, 0, "event");
	return 0;
}

void spawnlink_op_init(struct op_message *op, enum op_kind kind)
{
	memset(op, 0, sizeof(*op));
	op->size = (uint32_t)op_message_size(kind);
	op->kind = kind;
}

int spawnlink_tell(struct spawnlink *link, struct op_message *op, struct error *err)
{
	if (link->down)
		return error_set(err, ERR_UNREACHABLE, 0, "fsboxd is gone; jobs that run go on");
	if (op->seq == 0)
		op->seq = ++link->last_seq;
	if (buf_add(&link->queue, op, op->size) < 0)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "fsboxd does not read its messages");
	if (link->queue.size > op->size)
		return 0; /* others wait before it */
	if (flush_queue(link, err) < 0) {
		/*
		 * The end of file on the socket will tell everybody: nothing is called from here.
		 * Until then what is asked waits.
		 */
		buf_clear(&link->queue);
		error_clear(err);
	}
	return 0;
}

int spawnlink_ask(struct spawnlink *link, struct op_message *op, spawnlink_answer_fn *answer,
		  void *arg, struct spawnlink_question **ret_question, struct error *err)
{
	struct spawnlink_question *question = calloc(1, sizeof(*question));
	struct spawnlink_question **last = &link->first;
	int r;

	if (question == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "ask fsboxd");
	op->seq = ++link->last_seq;
	question->seq = op->seq;
	question->answer = answer;
	question->arg = arg;
	r = spawnlink_tell(link, op, err);
	if (r < 0) {
		free(question);
		return r;
	}
	while (*last != NULL)
		last = &(*last)->next;
	*last = question;
	if (ret_question != NULL)
		*ret_question = question;
	return 0;
}

void spawnlink_withdraw(struct spawnlink *link, struct spawnlink_question *question)
{
	struct spawnlink_question **at = &link->first;

	while (*at != NULL && *at != question)
		at = &(*at)->next;
	if (question == NULL || *at == NULL)
		return;
	*at = question->next;
	free(question);
}
