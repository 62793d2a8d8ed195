/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker in the hands of an attacker, started by fsboxd in fsbox-broker's place. The client sends
 * the name of an attack; what came of it goes back as text. Every attack is bounded in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/plan.h"
#include "common/scope.h"
#include "tests/integration/fakebroker.h"

/* The connection whose attack runs. */
static uint64_t conn;
static int say_fd;

#define SAY(...) ((void)dprintf(say_fd, __VA_ARGS__))

static void say_answer(const char *what, const struct fake_news *news)
{
	if (news->message.kind == LINK_ERROR || news->message.kind == LINK_JOB_FAILED)
		SAY("%s: %s (%s)\n", what,
		    error_name((enum error_kind)news->message.u.failure.kind),
		    news->message.u.failure.message);
	else
		SAY("%s: kind %u\n", what, news->message.kind);
}

/* Until the link is closed, which is what a broker that misbehaves gets; at most 20 seconds. */
static void wait_for_the_end(void)
{
	struct fake_news news;
	int r = 1;

	for (int i = 0; i < 1000 && r > 0; i++)
		r = fake_wait(&news, 20000);
	if (r == 0)
		SAY("still linked\n");
	_exit(0);
}

/* ---- bytes --------------------------------------------------------------------------- */

static void garbage(void)
{
	unsigned char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 167 + 13);
	(void)!write(BROKER_FD_REQUEST, bytes, sizeof(bytes));
	wait_for_the_end();
}

static void huge(void)
{
	struct op_message op;

	fake_op_init(&op, OP_STATUS, conn, 0);
	op.size = 0xffffffffu;
	(void)!write(BROKER_FD_REQUEST, &op, sizeof(op));
	wait_for_the_end();
}

static void zero(void)
{
	struct op_message op;

	fake_op_init(&op, OP_STATUS, conn, 0);
	op.size = 0;
	(void)!write(BROKER_FD_REQUEST, &op, sizeof(op));
	wait_for_the_end();
}

static void kinds(void)
{
	struct op_message op;

	fake_op_init(&op, OP_STATUS, conn, 0);
	op.kind = OP_KIND_COUNT;
	(void)!write(BROKER_FD_REQUEST, &op, op.size);
	wait_for_the_end();
}

static void strings(void)
{
	struct op_message op;

	fake_start_init(&op, conn, 1, 1);
	memset(op.u.start.profile, 'x', sizeof(op.u.start.profile));
	(void)fake_send(&op);
	wait_for_the_end();
}

/* A plan announced as one byte more than there may be. */
static void announced(void)
{
	struct op_message op;

	fake_start_init(&op, conn, 1, LIMIT_PLAN_BYTES + 1);
	(void)fake_send(&op);
	wait_for_the_end();
}

/* Half a message, then silence: fsboxd must neither wait for the rest nor mind. */
static void truncated(void)
{
	struct op_message op;

	fake_op_init(&op, OP_STATUS, conn, 0);
	(void)!write(BROKER_FD_REQUEST, &op, op.size / 2);
	(void)usleep(300000);
	SAY("sent half\n");
}

/* One message in pieces of a byte. */
static void bytewise(void)
{
	struct op_message op;
	struct fake_news news;

	fake_op_init(&op, OP_STATUS, conn, 0);
	op.seq = 4711;
	for (size_t i = 0; i < op.size; i++)
		(void)!write(BROKER_FD_REQUEST, (const char *)&op + i, 1);
	fake_answer(4711, &news);
	say_answer("status", &news);
}

/* ---- numbers ------------------------------------------------------------------------- */

static void ask(const char *what, enum op_kind kind, uint64_t of_conn, uint64_t job, uint32_t signo)
{
	struct op_message op;
	struct fake_news news;

	fake_op_init(&op, kind, of_conn, job);
	if (kind == OP_JOB_SIGNAL)
		op.u.signal.signo = signo;
	if (kind == OP_JOB_START)
		fake_start_init(&op, of_conn, job, 100);
	fake_answer(fake_send(&op), &news);
	say_answer(what, &news);
}

static void numbers(void)
{
	struct op_message op;

	ask("open for connection 0", OP_JOB_OPEN, 0, 0, 0);
	ask("open for the next connection", OP_JOB_OPEN, conn + 1, 0, 0);
	ask("open for the last connection", OP_JOB_OPEN, UINT64_MAX, 0, 0);
	ask("start of job 0", OP_JOB_START, conn, 0, 0);
	ask("start of the last job", OP_JOB_START, conn, UINT64_MAX, 0);
	ask("signal to the last job", OP_JOB_SIGNAL, conn, UINT64_MAX, 9);
	ask("list for connection 0", OP_JOB_LIST, 0, 0, 0);
	for (uint64_t other = 0; other < 64; other++) {
		fake_op_init(&op, OP_JOB_ABANDON, other, other);
		(void)fake_send(&op);
	}
	fake_op_init(&op, OP_CONN_CLOSED, UINT64_MAX, 0);
	(void)fake_send(&op);
	ask("status", OP_STATUS, 0, 0, 0);
}

/* Everybody's jobs: start, signal, list. The test has jobs of another user running. */
static void others(void)
{
	struct fake_news news;
	struct op_message op;
	unsigned allowed = 0;
	unsigned listed = 0;

	for (uint64_t job = 1; job < 200; job++) {
		fake_op_init(&op, OP_JOB_SIGNAL, conn, job);
		op.u.signal.signo = SIGKILL;
		fake_answer(fake_send(&op), &news);
		allowed += news.message.kind != LINK_ERROR;
		fake_start_init(&op, conn, job, 100);
		fake_answer(fake_send(&op), &news);
		allowed += news.message.kind != LINK_ERROR;
	}
	fake_op_init(&op, OP_JOB_LIST, conn, 0);
	for (fake_answer(fake_send(&op), &news); news.message.kind == LINK_JOB_ENTRY;
	     fake_answer(op.seq, &news))
		listed++;
	SAY("allowed %u, listed %u\n", allowed, listed);
}

/* ---- plans --------------------------------------------------------------------------- */

static uint64_t open_job(int *ret_memfd, int *ret_channel)
{
	struct op_message op;
	struct fake_news news;

	fake_op_init(&op, OP_JOB_OPEN, conn, 0);
	fake_answer(fake_send(&op), &news);
	if (news.message.kind != LINK_JOB_OPENED) {
		say_answer("open", &news);
		return 0;
	}
	*ret_memfd = news.fds[0];
	*ret_channel = news.fds[1];
	return news.message.job;
}

static void wait_for_job(const char *what, uint64_t job)
{
	struct fake_news news;

	do
		fake_next(&news);
	while (news.message.job != job ||
	       (news.message.kind != LINK_JOB_FAILED && news.message.kind != LINK_JOB_ENDED));
	say_answer(what, &news);
}

static void try_plan(const char *what, const void *data, size_t size, int seal, uint32_t announced)
{
	struct op_message op;
	int memfd = -1;
	int channel = -1;
	uint64_t job = open_job(&memfd, &channel);

	if (job == 0)
		return;
	if (size > 0)
		fake_fill(memfd, data, size, seal);
	fake_start_init(&op, conn, job, announced);
	(void)fake_send(&op);
	wait_for_job(what, job);
	(void)close(memfd);
	(void)close(channel);
}

static void plans(void)
{
	AUTO(buf_deinit) struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	char noise[8192];
	char *large = calloc(1, LIMIT_PLAN_BYTES + 4096);

	fake_plan(&plan);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 31 + 7);
	try_plan("empty", NULL, 0, 0, 1);
	try_plan("unsealed", plan.data, plan.size, 0, (uint32_t)plan.size);
	try_plan("noise", noise, sizeof(noise), 1, sizeof(noise));
	try_plan("cut", plan.data, plan.size - 1, 1, (uint32_t)plan.size - 1);
	try_plan("announced shorter", plan.data, plan.size, 1, (uint32_t)plan.size - 1);
	try_plan("announced longer", plan.data, plan.size, 1, (uint32_t)plan.size + 1);
	if (large)
		try_plan("one past the limit", large, LIMIT_PLAN_BYTES + 1, 1, LIMIT_PLAN_BYTES);
	free(large);

	/* Every byte of a good plan changed, one at a time: whatever it is then, fsboxd stays. */
	for (size_t i = 0; i < plan.size && i < 60; i++) {
		plan.data[i] = (char)(plan.data[i] ^ 0x41);
		try_plan("bent", plan.data, plan.size, 1, (uint32_t)plan.size);
		plan.data[i] = (char)(plan.data[i] ^ 0x41);
	}
}

/* Shrinking and changing the file while fsboxd looks at it. */
static void shrink(void)
{
	AUTO(buf_deinit) struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	struct op_message op;
	char *mapped = MAP_FAILED;
	int memfd = -1;
	int channel = -1;
	uint64_t job = 0;

	fake_plan(&plan);
	for (int round = 0; round < 20; round++) {
		job = open_job(&memfd, &channel);
		if (job == 0)
			return;
		fake_fill(memfd, plan.data, plan.size, 0);
		mapped = mmap(NULL, plan.size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
		if (mapped != MAP_FAILED &&
		    fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0)
			SAY("a mapped file could be sealed against writing\n");
		fake_start_init(&op, conn, job, (uint32_t)plan.size);
		(void)fake_send(&op);
		(void)!ftruncate(memfd, 0);
		wait_for_job("shrunk", job);
		(void)munmap(mapped, plan.size);
		(void)close(memfd);
		(void)close(channel);
	}
}

/* A plan that is well formed and asks for too much. */
static void try_greedy(const char *what, const struct plan *plan)
{
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);
	struct error err = ERROR_INIT;

	if (plan_encode(plan, &bytes, &err) < 0)
		SAY("%s: not encoded: %s\n", what, err.message);
	else
		try_plan(what, bytes.data, bytes.size, 1, (uint32_t)bytes.size);
}

static void decode_good(struct plan *plan)
{
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);

	*plan = (struct plan)PLAN_INIT;
	fake_plan(&bytes);
	if (plan_decode(plan, bytes.data, bytes.size, NULL) < 0)
		fake_die("decode");
}

static void greedy(void)
{
	static const struct plan_op grabs[] = {
		{ PLAN_BIND, 0, (char *)(uintptr_t) "/tmp/x", (char *)(uintptr_t) "/etc", -1 },
		{ PLAN_BIND, PLAN_PRIVATE_SOURCE, (char *)(uintptr_t) "/tmp/x",
		  (char *)(uintptr_t) "/etc", -1 },
		{ PLAN_BIND, PLAN_PRIVATE_SOURCE, (char *)(uintptr_t) "/tmp/x",
		  (char *)(uintptr_t) "/var/lib/fsbox", -1 },
		{ PLAN_BIND, PLAN_READ_ONLY, (char *)(uintptr_t) "/var/lib/fsbox",
		  (char *)(uintptr_t) "/var/lib/fsbox", -1 },
		{ PLAN_BIND, 0, (char *)(uintptr_t) "/run", (char *)(uintptr_t) "/run", -1 },
		{ PLAN_BIND, 0, (char *)(uintptr_t) "/proc", (char *)(uintptr_t) "/proc", -1 },
		{ PLAN_BIND, 0, (char *)(uintptr_t) "/srv/secret",
		  (char *)(uintptr_t) "/srv/secret", -1 },
		{ PLAN_BIND, 0, (char *)(uintptr_t) "/run/alias", (char *)(uintptr_t) "/run/alias",
		  -1 }, /* of the same, by then */
	};
	struct plan plan;

	for (uint32_t bit = 1; bit < PLAN_UNSHARE_ALL; bit <<= 1) {
		decode_good(&plan);
		plan.unshare &= ~bit;
		try_greedy("not unshared", &plan);
		plan_deinit(&plan);
	}
	decode_good(&plan);
	plan.net = NET_HOST;
	plan.unshare &= ~(uint32_t)PLAN_UNSHARE_NET;
	try_greedy("network above the cap", &plan);
	plan_deinit(&plan);
	for (size_t i = 0; i < ARRAY_SIZE(grabs); i++) {
		decode_good(&plan);
		if (plan_add(&plan, &grabs[i], NULL) == 0)
			try_greedy(grabs[i].source, &plan);
		plan_deinit(&plan);
	}
}

static void engines(void)
{
	AUTO(buf_deinit) struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	static const uint32_t asked[] = { ENGINE_SEATBELT };

	fake_plan(&plan);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		struct op_message op;
		int memfd = -1;
		int channel = -1;
		uint64_t job = open_job(&memfd, &channel);

		fake_fill(memfd, plan.data, plan.size, 1);
		fake_start_init(&op, conn, job, (uint32_t)plan.size);
		op.u.start.engine = asked[i];
		(void)fake_send(&op);
		wait_for_job(engine_name((enum engine_kind)asked[i]), job);
	}
}

/* ---- descriptors --------------------------------------------------------------------- */

static int push_fd(int socket_fd, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	char byte = 'x';
	struct iovec bytes = { &byte, 1 };
	struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

static void push(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int memfd = -1;
	int channel = -1;
	uint64_t job = open_job(&memfd, &channel);
	struct op_message op;

	SAY("link: %s\n", strerror(push_fd(BROKER_FD_LINK, null_fd)));
	SAY("pipe: %s\n", strerror(push_fd(BROKER_FD_REQUEST, null_fd)));

	/* Into the channel, whose other end fsboxd keeps until a leader has it: never received. */
	for (int i = 0; i < 10; i++)
		(void)push_fd(channel, null_fd);
	fake_op_init(&op, OP_JOB_ABANDON, conn, job);
	(void)fake_send(&op);
	ask("abandoned", OP_STATUS, conn, 0, 0);
}

/* ---- floods -------------------------------------------------------------------------- */

/* Never reads an answer. */
static void deaf(void)
{
	struct op_message op;

	(void)fcntl(BROKER_FD_REQUEST, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 150; i++) {
		fake_op_init(&op, OP_STATUS, conn, 0);
		while (write(BROKER_FD_REQUEST, &op, op.size) > 0)
			continue;
		(void)usleep(100000);
	}
	SAY("fsboxd still listens to who never reads\n");
	_exit(0);
}

static void flood_open(void)
{
	unsigned opened = 0;
	unsigned refused = 0;

	for (int i = 0; i < 3000; i++) {
		struct op_message op;
		struct fake_news news;

		fake_op_init(&op, OP_JOB_OPEN, conn, 0);
		fake_answer(fake_send(&op), &news);
		if (news.message.kind != LINK_JOB_OPENED) {
			refused += news.message.u.failure.kind == ERR_QUOTA_EXCEEDED;
			continue;
		}
		opened++;
		(void)close(news.fds[0]);
		(void)close(news.fds[1]);
	}
	SAY("opened %u, refused %u\n", opened, refused);
}

/* ---- who we are ---------------------------------------------------------------------- */

static void self(void)
{
	char path[64];
	char words[4096];
	int fd = -1;
	ssize_t got = 0;

	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	got = read(fd, words, sizeof(words) - 1);
	words[got > 0 ? got : 0] = '\0';
	(void)close(fd);
	SAY("%s", words);
	fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	SAY("environ %zd\n", read(fd, words, sizeof(words)));
	(void)close(fd);
	SAY("session %d\n", getsid(0) == getpid());
	SAY("cwd %s\n", getcwd(words, sizeof(words)));
	for (int number = 0; number < 64; number++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
		got = readlink(path, words, sizeof(words) - 1);
		if (got > 0 && number != say_fd) {
			words[got] = '\0';
			SAY("fd %d %s\n", number, words);
		}
	}
	SAY("setuid %s\n", setuid(0) == 0 ? "became root" : strerror(errno));
	SAY("kill %s\n", kill(getppid(), 0) == 0 ? "allowed" : strerror(errno));
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	SAY("memory %s\n", open(path, O_RDONLY | O_CLOEXEC) >= 0 ? "open" : strerror(errno));
}

/* ---- jobs that outlive us ------------------------------------------------------------ */

/* A job runs; then the broker ends. "leave SCRIPT". */
static void leave(const char *script)
{
	struct fake_news news;
	struct op_message op;
	uint32_t plan_bytes = 0;
	int channel = -1;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t job = fake_open(conn, script, null_fd, &plan_bytes, &channel);
	struct report_message report;

	fake_start_init(&op, conn, job, plan_bytes);
	op.u.start.limits.wall_ms = 3000;
	(void)fake_send(&op);
	do
		fake_next(&news);
	while (news.message.job != job || news.message.kind == LINK_JOB_OPENED);
	say_answer("up", &news);
	if (recv(channel, &report, sizeof(report), 0) > 0)
		SAY("report %u\n", report.kind);
	_exit(0);
}

/* Never tells init what to run. */
static void silent(void)
{
	struct fake_news news;
	struct op_message op;
	uint32_t plan_bytes = 0;
	int channel = -1;
	uint64_t job = fake_open(conn, NULL, -1, &plan_bytes, &channel);

	fake_start_init(&op, conn, job, plan_bytes);
	(void)fake_send(&op);
	do
		fake_next(&news);
	while (news.message.job != job || news.message.kind != LINK_JOB_UP);
	say_answer("up", &news);
	(void)close(channel);
	wait_for_job("channel closed", job);
}

/* Children that keep our descriptors and go on when we are gone. */
static void children(void)
{
	for (int i = 0; i < 20; i++)
		if (fork() == 0) {
			(void)close(say_fd);
			(void)sleep(2);
			_exit(0);
		}
	SAY("left 20\n");
	_exit(0);
}

static const struct attack {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "garbage", garbage },     { "huge", huge },         { "zero", zero },
	{ "kinds", kinds },         { "strings", strings },   { "announced", announced },
	{ "truncated", truncated }, { "bytewise", bytewise }, { "numbers", numbers },
	{ "others", others },       { "plans", plans },       { "shrink", shrink },
	{ "greedy", greedy },       { "engines", engines },   { "push", push },
	{ "deaf", deaf },           { "flood", flood_open },  { "self", self },
	{ "silent", silent },       { "children", children },
};

static void serve(uint64_t number, int fd)
{
	char line[1024];
	size_t used = 0;

	conn = number;
	say_fd = fd;
	while (used < sizeof(line) - 1 && read(say_fd, line + used, 1) == 1 && line[used] != '\n')
		used++;
	line[used] = '\0';
	if (strncmp(line, "leave ", 6) == 0)
		leave(line + 6);
	for (size_t i = 0; i < ARRAY_SIZE(attacks); i++)
		if (strcmp(attacks[i].name, line) == 0)
			attacks[i].run();
}

int main(void)
{
	fake_serve(serve);
}
