/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that asks for grants and uses them, honestly or not, started by fsboxd in fsbox-broker's
 * place. The client sends one line; what came of it goes back as text.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "common/sha256.h"
#include "tests/integration/fakebroker.h"

static uint64_t conn;
static int say_fd;
static int out_fds[2]; /* what jobs write; a connection of the client's may not go in */

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

static void open_plan(struct buf *out)
{
	fake_plan_with(out, NET_HOST);
}

static void hash_script(const char *script, uint8_t args[HASH_BYTES], uint8_t env[HASH_BYTES])
{
	struct buf bytes = BUF_INIT(65536);

	fake_args(script, &bytes);
	args_hash(bytes.data, args, env);
	buf_deinit(&bytes);
}

static void hash_file(const char *path, uint8_t hash[HASH_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct sha256 sha;
	char block[65536];
	ssize_t got = 0;

	sha256_init(&sha);
	while ((got = read(fd, block, sizeof(block))) > 0)
		sha256_add(&sha, block, (size_t)got);
	sha256_finish(&sha, hash);
	(void)close(fd);
}

/* "UID SCRIPT" */
static void fill_terms(struct grant_terms *terms, const char *line)
{
	struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	char *script = NULL;
	struct sha256 sha;

	memset(terms, 0, sizeof(*terms));
	terms->uid = (uint32_t)strtoul(line, &script, 10);
	terms->net = NET_HOST;
	terms->expires_ms = (uint64_t)(time(NULL) + 60) * 1000;
	hash_script(script + 1, terms->args_hash, terms->env_hash);
	hash_file("/bin/sh", terms->exec_hash);
	open_plan(&plan);
	sha256_init(&sha);
	sha256_add(&sha, plan.data, plan.size);
	sha256_finish(&sha, terms->plan_hash);
	buf_deinit(&plan);
	for (int i = 0; i < 3; i++)
		terms->stdio[i] = STDIO_KIND_NULL | STDIO_KIND_PIPE;
	(void)snprintf(terms->command, sizeof(terms->command), "sh");
}

static void grant_for(const char *line, uint64_t as_conn, const char *what)
{
	struct fake_news news;
	struct op_message op;

	fake_op_init(&op, OP_GRANT_CREATE, as_conn, 0);
	fill_terms(&op.u.grant, line);
	fake_answer(fake_send(&op), &news);
	if (news.message.kind != LINK_GRANT) {
		say_answer(what, &news);
		return;
	}
	SAY("token ");
	for (size_t i = 0; i < GRANT_TOKEN_BYTES; i++)
		SAY("%02x", news.message.u.grant.token[i]);
	SAY("\n");
}

static void grant(const char *line)
{
	grant_for(line, conn, "grant");
}

/* In the name of connections that are not this broker's. */
static void borrow(const char *line)
{
	grant_for(line, 0, "conn 0");
	grant_for(line, conn + 1, "next conn");
}

static void list(const char *line)
{
	struct fake_news news;
	struct op_message op;

	(void)line;
	fake_op_init(&op, OP_GRANT_LIST, conn, 0);
	fake_answer(fake_send(&op), &news);
	while (news.message.kind == LINK_GRANT_ENTRY)
		fake_next(&news);
	say_answer("list", &news);
}

static void take_back(const char *line)
{
	struct fake_news news;
	struct op_message op;

	fake_op_init(&op, OP_GRANT_REVOKE, conn, 0);
	op.u.grant_id.id = strtoull(line, NULL, 10);
	fake_answer(fake_send(&op), &news);
	say_answer("revoke", &news);
}

/* The token at the beginning of LINE; what stands behind it. */
static const char *take_token(const char *line, uint8_t token[GRANT_TOKEN_BYTES])
{
	for (size_t i = 0; i < GRANT_TOKEN_BYTES; i++) {
		char byte[3] = { line[2 * i], line[2 * i + 1], '\0' };

		token[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return line + (size_t)2 * GRANT_TOKEN_BYTES + 1;
}

/* A job whose START claims CLAIMED and whose init gets REAL (NULL: nothing). TOKEN NULL: no grant. */
static uint64_t begin(const uint8_t *token, const char *claimed, const char *real, int *ret_channel)
{
	struct buf plan = BUF_INIT(LIMIT_PLAN_BYTES);
	struct fake_news news;
	struct op_message op;
	uint64_t job = 0;

	fake_op_init(&op, OP_JOB_OPEN, conn, 0);
	fake_answer(fake_send(&op), &news);
	if (news.message.kind != LINK_JOB_OPENED)
		fake_die(news.message.u.failure.message);
	job = news.message.job;
	open_plan(&plan);
	fake_fill(news.fds[0], plan.data, plan.size, 1);
	(void)close(news.fds[0]);
	*ret_channel = news.fds[1];
	if (real)
		fake_send_start(*ret_channel, real, out_fds[1]);
	fake_start_init(&op, conn, job, (uint32_t)plan.size);
	op.u.start.room = ROOM_GRANTED_EGRESS;
	if (token) {
		op.u.start.grant.has_grant = 1;
		memcpy(op.u.start.grant.token, token, GRANT_TOKEN_BYTES);
		hash_script(claimed, op.u.start.grant.args_hash, op.u.start.grant.env_hash);
	}
	(void)fake_send(&op);
	buf_deinit(&plan);
	return job;
}

/* How COUNT jobs end. */
static void watch(int count)
{
	struct fake_news news;
	char text[512];
	ssize_t got = 0;

	while (count > 0 && fake_wait(&news, 15000) > 0) {
		if (news.message.kind == LINK_JOB_FAILED) {
			say_answer("job", &news);
			count--;
		} else if (news.message.kind == LINK_JOB_ENDED) {
			SAY("reports exited %d\n", news.message.u.ended.code);
			count--;
		}
	}
	if (count > 0)
		SAY("nothing more\n");
	while ((got = read(out_fds[0], text, sizeof(text))) > 0)
		SAY("output %.*s", (int)got, text);
}

static void use(const char *line)
{
	uint8_t token[GRANT_TOKEN_BYTES];
	const char *script = take_token(line, token);
	int channel = -1;

	(void)begin(token, script, script, &channel);
	watch(1);
	(void)close(channel);
}

/* "TOKEN CLAIMED|REAL" */
static void lie(const char *line)
{
	uint8_t token[GRANT_TOKEN_BYTES];
	AUTO(auto_free) char *claimed = strdup(take_token(line, token));
	char *bar = strchr(claimed, '|');
	int channel = -1;

	*bar = '\0';
	(void)begin(token, claimed, bar + 1, &channel);
	watch(1);
	(void)close(channel);
}

static void twice(const char *line)
{
	uint8_t token[GRANT_TOKEN_BYTES];
	const char *script = take_token(line, token);
	int channels[2] = { -1, -1 };

	(void)begin(token, script, script, &channels[0]);
	(void)begin(token, script, script, &channels[1]);
	watch(2);
	(void)close(channels[0]);
	(void)close(channels[1]);
}

/* Init never gets its arguments: reserved, and not started. */
static void hang(const char *line)
{
	uint8_t token[GRANT_TOKEN_BYTES];
	const char *script = take_token(line, token);
	struct fake_news news = { .message = { .kind = 0 } };
	int channel = -1;

	(void)begin(token, script, NULL, &channel);
	while (news.message.kind != LINK_JOB_UP && fake_wait(&news, 15000) > 0)
		;
	SAY(news.message.kind == LINK_JOB_UP ? "reserved\n" : "not up\n");
	_exit(0);
}

static void nothing(const char *line)
{
	int channel = -1;

	(void)begin(NULL, line, line, &channel);
	watch(1);
	(void)close(channel);
}

static void badterms(const char *line)
{
	struct fake_news news;
	struct op_message op;

	fake_op_init(&op, OP_GRANT_CREATE, conn, 0);
	fill_terms(&op.u.grant, "1 true");
	memset(op.u.grant.command, 'x', sizeof(op.u.grant.command));
	(void)line;
	(void)fake_send(&op);
	SAY(fake_wait(&news, 15000) < 0 ? "not linked\n" : "still linked\n");
	_exit(0);
}

static void serve(uint64_t number, int fd)
{
	static const struct {
		const char *name;
		void (*run)(const char *line);
	} orders[] = {
		{ "grant ", grant },      { "borrow ", borrow }, { "list", list },
		{ "revoke ", take_back }, { "use ", use },       { "lie ", lie },
		{ "twice ", twice },      { "hang ", hang },     { "nothing ", nothing },
		{ "badterms", badterms },
	};
	char line[1024];
	size_t used = 0;

	conn = number;
	say_fd = fd;
	while (used < sizeof(line) - 1 && read(say_fd, line + used, 1) == 1 && line[used] != '\n')
		used++;
	line[used] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (strncmp(line, orders[i].name, strlen(orders[i].name)) == 0)
			orders[i].run(line + strlen(orders[i].name));
}

int main(void)
{
	if (pipe2(out_fds, O_CLOEXEC) < 0 || fcntl(out_fds[0], F_SETFL, O_NONBLOCK) < 0)
		fake_die("pipe");
	fake_serve(serve);
}
