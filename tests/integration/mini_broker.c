/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a broker must do, for tests of fsboxd alone: a client connects, sends one line, and
 * that runs as a shell script in a job. What the script says comes back, then one line with the result
 * as fsboxd knows it:
 *
 *	ended REASON CODE SIGNAL		failed KIND STAGE MESSAGE
 *
 * A line may begin with options, in this order: "native " (the engine), "provisional=MS " (confirmed after
 * so long; the first line that comes back says whether pid 1 was up by then, "early" or "held"), "wall=MS ",
 * "signal=N " (sent when the job runs).
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/integration/fakebroker.h"

/* What one client asked for. */
struct wish {
	char line[4096];
	const char *script;
	uint64_t wall_ms;
	uint32_t signo;
	uint32_t engine;
	int provisional_ms;
};

static void read_wish(int conn_fd, struct wish *wish)
{
	size_t used = 0;

	*wish = (struct wish){ .script = wish->line };
	(void)fcntl(conn_fd, F_SETFL, 0);
	while (used < sizeof(wish->line) - 1 && read(conn_fd, wish->line + used, 1) == 1 &&
	       wish->line[used] != '\n')
		used++;
	wish->line[used] = '\0';
	wish->engine = ENGINE_BWRAP;
	if (strncmp(wish->script, "native ", 7) == 0) {
		wish->engine = ENGINE_NATIVE;
		wish->script += 7;
	}
	if (strncmp(wish->script, "provisional=", 12) == 0) {
		wish->provisional_ms = (int)strtol(wish->script + 12, NULL, 10);
		wish->script = strchr(wish->script, ' ') + 1;
	}
	if (strncmp(wish->script, "wall=", 5) == 0) {
		wish->wall_ms = strtoull(wish->script + 5, NULL, 10);
		wish->script = strchr(wish->script, ' ') + 1;
	}
	if (strncmp(wish->script, "signal=", 7) == 0) {
		wish->signo = (uint32_t)strtoul(wish->script + 7, NULL, 10);
		wish->script = strchr(wish->script, ' ') + 1;
	}
}

static void copy_output(int from, int to)
{
	char data[4096];
	ssize_t got = 0;

	while ((got = read(from, data, sizeof(data))) > 0)
		if (write(to, data, (size_t)got) != got)
			return;
}

static void tell(int conn_fd, const struct link_message *message)
{
	const struct exit_record *ended = &message->u.ended;
	const struct failure *failure = &message->u.failure;

	if (message->kind == LINK_JOB_ENDED)
		(void)dprintf(conn_fd, "ended %s %d %d\n",
			      exit_reason_name((enum exit_reason)ended->reason), ended->code,
			      ended->signal);
	else
		(void)dprintf(conn_fd, "failed %s %s %s\n",
			      error_name((enum error_kind)failure->kind), failure->stage,
			      failure->message);
}

/* init says on the job channel when the command runs. */
static void wait_for_started(int channel)
{
	struct report_message report;

	if (recv(channel, &report, sizeof(report), 0) <= 0)
		return;
}

/* Confirm JOB, which was started provisionally, and say what fsboxd did before that. */
static void confirm_late(uint64_t job, int ms, int conn_fd)
{
	struct pollfd news = { .fd = BROKER_FD_LINK, .events = POLLIN };
	struct op_message op;
	bool early = poll(&news, 1, ms) == 1;

	(void)dprintf(conn_fd, early ? "early\n" : "held\n");
	fake_op_init(&op, OP_JOB_CONFIRM, 0, job);
	(void)fake_send(&op);
}

static void serve(uint64_t conn, int conn_fd)
{
	struct wish wish;
	struct fake_news news;
	struct op_message op;
	uint32_t plan_bytes = 0;
	uint64_t job = 0;
	int channel = -1;
	int output[2];

	read_wish(conn_fd, &wish);
	if (pipe2(output, O_CLOEXEC) < 0)
		fake_die("pipe");
	job = fake_open(conn, wish.script, output[1], &plan_bytes, &channel);
	(void)close(output[1]);
	fake_start_init(&op, conn, job, plan_bytes);
	op.u.start.limits.wall_ms = wish.wall_ms;
	op.u.start.engine = wish.engine;
	op.u.start.provisional = wish.provisional_ms > 0;
	(void)fake_send(&op);
	if (wish.provisional_ms > 0)
		confirm_late(job, wish.provisional_ms, conn_fd);
	if (wish.signo != 0) {
		wait_for_started(channel);
		fake_op_init(&op, OP_JOB_SIGNAL, conn, job);
		op.u.signal.signo = wish.signo;
		(void)fake_send(&op);
	}
	do
		fake_next(&news);
	while (news.message.job != job ||
	       (news.message.kind != LINK_JOB_ENDED && news.message.kind != LINK_JOB_FAILED));
	copy_output(output[0], conn_fd);
	tell(conn_fd, &news.message);
	(void)close(output[0]);
	(void)close(channel);
}

int main(void)
{
	struct fake_news news;
	struct op_message ready;

	fake_next(&news);
	if (news.message.kind != LINK_CONFIG)
		fake_die("the first message is not the configuration");
	fake_op_init(&ready, OP_READY, 0, 0);
	(void)fake_send(&ready);
	fake_serve(serve);
}
