/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that misuses the job which fsboxd opened ahead of a request; see test_spawner.py. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/fakebroker.h"

#include "common/error.h"

static uint64_t conn;
static int say_fd;

#define SAY(...) ((void)dprintf(say_fd, __VA_ARGS__))

/* A job from its request to its end; the one that was opened ahead meanwhile, 0: none was. */
static uint64_t run_one(void)
{
	struct fake_news news;
	struct op_message op;
	uint32_t plan_bytes = 0;
	int channel = -1;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t job = fake_open(conn, "exit 0", null_fd, &plan_bytes, &channel);
	uint64_t ahead = 0;

	fake_start_init(&op, conn, job, plan_bytes);
	(void)fake_send(&op);
	do {
		fake_next(&news);
		if (news.message.kind == LINK_JOB_OPENED && news.message.seq == 0)
			ahead = news.message.job;
		if (news.message.kind == LINK_ERROR || news.message.kind == LINK_JOB_FAILED)
			SAY("failed: %s\n", news.message.u.failure.message);
	} while (news.message.job != job || news.message.kind != LINK_JOB_ENDED);
	(void)close(channel);
	(void)close(null_fd);
	return ahead;
}

/* START of JOB, for which there is no plan. */
static void try_start(const char *what, uint64_t of_conn, uint64_t job)
{
	struct fake_news news;
	struct op_message op;

	fake_start_init(&op, of_conn, job, 100);
	(void)fake_send(&op);
	do
		fake_next(&news);
	while (news.message.job != job);
	SAY("%s: %s\n", what, error_name((enum error_kind)news.message.u.failure.kind));
}

static void misuse(void)
{
	struct op_message op;
	uint64_t ahead = run_one();

	SAY("%s\n", ahead != 0 ? "one ahead" : "none ahead");
	try_start("of a connection that is not ours", conn + 1, ahead);
	try_start("of ours, after that", conn, ahead);

	ahead = run_one();
	fake_op_init(&op, OP_JOB_ABANDON, 0, ahead);
	(void)fake_send(&op);
	try_start("abandoned", conn, ahead);

	ahead = run_one();
	try_start("without a plan", conn, ahead);
	try_start("again", conn, ahead);
}

/* As many as may be open, and then the one ahead. */
static void crowd(void)
{
	uint64_t ahead = run_one();
	struct fake_news news;
	struct op_message op;

	do {
		fake_op_init(&op, OP_JOB_OPEN, conn, 0);
		fake_answer(fake_send(&op), &news);
	} while (news.message.kind == LINK_JOB_OPENED);
	try_start("one too many", conn, ahead);
}

static void serve(uint64_t number, int fd)
{
	char word = 0;

	conn = number;
	say_fd = fd;
	if (read(say_fd, &word, 1) == 1 && word == 'm')
		misuse();
	else
		crowd();
}

int main(void)
{
	fake_serve(serve);
}
