/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker in the hands of an attacker who wants more network than the host allows, started by fsboxd in
 * fsbox-broker's place. Whoever connects is told what came of each try; the jobs that do run run "true".
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/netpolicy.h"
#include "common/plan.h"
#include "common/scope.h"
#include "tests/integration/fakebroker.h"

static uint64_t conn;
static int say_fd;

static void say_end(const char *what, uint64_t job)
{
	struct fake_news news;

	do
		fake_next(&news);
	while (news.message.job != job ||
	       (news.message.kind != LINK_JOB_FAILED && news.message.kind != LINK_JOB_ENDED &&
		news.message.kind != LINK_ERROR));
	if (news.message.kind == LINK_JOB_ENDED)
		(void)dprintf(say_fd, "%s: ran\n", what);
	else
		(void)dprintf(say_fd, "%s: %s (%s)\n", what,
			      error_name((enum error_kind)news.message.u.failure.kind),
			      news.message.u.failure.message);
}

struct wish {
	const char *what;
	enum net_mode net;
	enum room_kind room;
	const char *policy;
	size_t policy_bytes;
	int64_t announced; /* that many bytes more than there are */
};

static void try_wish(const struct wish *wish)
{
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_PLAN_BYTES);
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(auto_close) int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct fake_news news;
	struct op_message op;
	uint32_t plan_bytes = 0;

	fake_plan(&bytes);
	if (plan_decode(&plan, bytes.data, bytes.size, NULL) < 0)
		fake_die("decode");
	plan.net = wish->net;
	plan.unshare = PLAN_UNSHARE_ALL & ~(uint32_t)(wish->net == NET_HOST ? PLAN_UNSHARE_NET : 0);
	buf_deinit(&bytes);
	buf_init(&bytes, LIMIT_PLAN_BYTES);
	if (plan_encode(&plan, &bytes, NULL) < 0)
		fake_die("encode");
	plan_bytes = (uint32_t)bytes.size;
	(void)buf_add(&bytes, wish->policy, wish->policy_bytes);

	fake_op_init(&op, OP_JOB_OPEN, conn, 0);
	fake_answer(fake_send(&op), &news);
	if (news.message.kind != LINK_JOB_OPENED)
		fake_die(news.message.u.failure.message);
	fake_fill(news.fds[0], bytes.data, bytes.size, 1);
	fake_send_start(news.fds[1], "true", null_fd);
	fake_start_init(&op, conn, news.message.job, plan_bytes);
	op.u.start.net_bytes = (uint32_t)((int64_t)wish->policy_bytes + wish->announced);
	op.u.start.room = wish->room;
	(void)fake_send(&op);
	say_end(wish->what, news.message.job);
	(void)close(news.fds[0]);
	(void)close(news.fds[1]);
}

/* The bytes of a policy that allows one host; the caller frees. */
static char *good_policy(size_t *ret_bytes)
{
	struct buf out = BUF_INIT(4096);
	struct netpolicy policy = NETPOLICY_INIT;

	if (netpolicy_allow(&policy, "example.org", 11, NULL) < 0 ||
	    netpolicy_forward(&policy, 8080, NULL) < 0 || netpolicy_encode(&policy, &out, NULL) < 0)
		fake_die("encode a network policy");
	netpolicy_deinit(&policy);
	*ret_bytes = out.size;
	return buf_steal(&out);
}

static void serve(uint64_t number, int fd)
{
	size_t size = 0;
	AUTO(auto_free) char *good = good_policy(&size);
	AUTO(auto_free) char *noise = calloc(1, 4096);
	const struct wish wishes[] = {
		{ "good", NET_PROXY, ROOM_EGRESS_ALLOWLIST, good, size, 0 },
		{ "none with a policy", NET_NONE, ROOM_EGRESS_DENIED, good, size, 0 },
		{ "host with a policy", NET_HOST, ROOM_EGRESS_OPEN, good, size, 0 },
		{ "host", NET_HOST, ROOM_EGRESS_OPEN, "", 0, 0 },
		{ "proxy without", NET_PROXY, ROOM_EGRESS_ALLOWLIST, "", 0, 0 },
		{ "called denied", NET_PROXY, ROOM_EGRESS_DENIED, good, size, 0 },
		{ "cut", NET_PROXY, ROOM_EGRESS_ALLOWLIST, good, size - 1, 0 },
		{ "announced longer", NET_PROXY, ROOM_EGRESS_ALLOWLIST, good, size, 1 },
		{ "announced shorter", NET_PROXY, ROOM_EGRESS_ALLOWLIST, good, size, -1 },
		{ "noise", NET_PROXY, ROOM_EGRESS_ALLOWLIST, noise, 4096, 0 },
	};

	conn = number;
	say_fd = fd;
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
		try_wish(&wishes[i]);
	/* Every byte changed, one at a time: what it is then may run or not, fsboxd stays. */
	for (size_t i = 0; i < size; i++) {
		const struct wish bent = {
			"bent", NET_PROXY, ROOM_EGRESS_ALLOWLIST, good, size, 0
		};

		good[i] = (char)(good[i] ^ 0x81);
		try_wish(&bent);
		good[i] = (char)(good[i] ^ 0x81);
	}
	try_wish(&wishes[0]);
}

int main(void)
{
	fake_serve(serve);
}
