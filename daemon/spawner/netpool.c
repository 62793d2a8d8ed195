/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/netpool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/nsfd.h"

/* After so many makers in a row that made nothing we leave it to the jobs. */
#define FAILURES_MAX 3

/* So long nothing must have been taken before what was is made anew, and what was used is let go. */
#define QUIET_MS 20

struct maker_input {
	int user_ns_fd;
	int ready_fd;
	int next_fd;
};

/* ---- the child ------------------------------------------------------------------------ */

static int maker_main(void *arg)
{
	const struct maker_input *input = arg;
	const int keep[] = { input->ready_fd, input->next_fd, input->user_ns_fd };
	static const struct native_set none = NATIVE_SET_INIT;
	size_t keep_count = input->user_ns_fd >= 0 ? 3 : 2;
	struct error err = ERROR_INIT;
	char byte = 'r';

	/* Fsboxd's end is the end of this, whatever else it holds. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
	(void)prctl(PR_SET_NAME, "fsbox-netns", 0L, 0L, 0L);
	if (child_arrange_fds(keep, keep_count, true, &err) < 0 ||
	    (input->user_ns_fd >= 0 && setns(CHILD_FIRST_FD + 2, CLONE_NEWUSER) < 0))
		return 1;
	do {
		if (native_enter_set(&none, false, &err) < 0 ||
		    write(CHILD_FIRST_FD, &byte, 1) != 1)
			return 1;
	} while (read(CHILD_FIRST_FD + 1, &byte, 1) == 1);
	return 0;
}

/* ---- fsboxd --------------------------------------------------------------------------- */

static void stop_maker(struct netpool *pool)
{
	loop_remove(pool->loop, &pool->ready_source);
	auto_close(&pool->ready_fd);
	pool->ready_fd = -1;
	auto_close(&pool->next_fd);
	pool->next_fd = -1;
	native_set_deinit(&pool->standing);
	pool->asked = false;
}

static void start_maker(struct netpool *pool);

/* Have one more made, and then those that are still missing. */
static void make_more(struct netpool *pool)
{
	if (pool->count >= pool->wanted || pool->asked)
		return;
	if (pool->maker.pid == 0) {
		start_maker(pool);
		return;
	}
	/* A maker whose pipes are gone ends, and that leads to another. */
	if (pool->next_fd >= 0 && write(pool->next_fd, "n", 1) == 1)
		pool->asked = true;
	else
		stop_maker(pool);
}

static void on_maker_exit(int status, void *arg)
{
	struct netpool *pool = arg;

	stop_maker(pool);
	if (status != 0 && ++pool->failures == FAILURES_MAX)
		log_write(LOG_WARNING, "network namespaces cannot be made in advance");
	make_more(pool);
}

/* What the maker stands in now. */
static bool take_set(const struct child *maker, struct native_set *ret_set)
{
	*ret_set = (struct native_set){
		.net_fd = nsfd_open(maker->pidfd, maker->pid, NSFD_NET),
		.ipc_fd = nsfd_open(maker->pidfd, maker->pid, NSFD_IPC),
		.uts_fd = nsfd_open(maker->pidfd, maker->pid, NSFD_UTS),
		.cgroup_fd = nsfd_open(maker->pidfd, maker->pid, NSFD_CGROUP),
	};
	if (ret_set->net_fd >= 0 && ret_set->ipc_fd >= 0 && ret_set->uts_fd >= 0 &&
	    ret_set->cgroup_fd >= 0)
		return true;
	native_set_deinit(ret_set);
	return false;
}

static void on_ready(uint32_t events, void *arg)
{
	struct netpool *pool = arg;
	char byte = 0;

	(void)events;
	if (read(pool->ready_fd, &byte, 1) != 1) {
		stop_maker(pool);
		return;
	}
	pool->asked = false;
	if (pool->standing.net_fd >= 0)
		pool->sets[pool->count++] = pool->standing;
	if (!take_set(&pool->maker, &pool->standing)) {
		stop_maker(pool);
		return;
	}
	pool->failures = 0;
	make_more(pool);
}

static void start_maker(struct netpool *pool)
{
	AUTO(auto_close) int their_ready_fd = -1;
	AUTO(auto_close) int their_next_fd = -1;
	struct maker_input input;
	int ready[2];
	int next[2];

	if (pool->maker.pid != 0 || pool->failures >= FAILURES_MAX)
		return;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return;
	pool->ready_fd = ready[0];
	their_ready_fd = ready[1];
	if (pipe2(next, O_CLOEXEC) < 0) {
		stop_maker(pool);
		return;
	}
	their_next_fd = next[0];
	pool->next_fd = next[1];

	input = (struct maker_input){ pool->user_ns_fd, their_ready_fd, their_next_fd };
	if (fcntl(pool->ready_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(pool->next_fd, F_SETFL, O_NONBLOCK) < 0 ||
	    loop_add(pool->loop, &pool->ready_source, pool->ready_fd, EPOLLIN, on_ready, pool,
		     NULL) < 0 ||
	    child_start(pool->children, &pool->maker, maker_main, &input, on_maker_exit, pool,
			NULL) < 0)
		stop_maker(pool);
	else
		pool->asked = true; /* the first one it makes unasked */
}

static void let_go(struct netpool *pool)
{
	while (pool->used_count > 0)
		native_set_deinit(&pool->used[--pool->used_count]);
}

static void on_quiet(void *arg)
{
	let_go(arg);
	make_more(arg);
}

void netpool_init(struct netpool *pool, struct loop *loop, struct children *children, size_t wanted,
		  int user_ns_fd)
{
	struct rlimit nofile;

	pool->loop = loop;
	pool->children = children;
	pool->wanted = wanted < NETPOOL_MAX ? wanted : NETPOOL_MAX;
	/* Four descriptors each: not more than a quarter of what this process may have. */
	if (getrlimit(RLIMIT_NOFILE, &nofile) == 0 && nofile.rlim_cur / 16 < pool->wanted)
		pool->wanted = nofile.rlim_cur / 16;
	pool->user_ns_fd = user_ns_fd;
	if (pool->wanted > 0)
		start_maker(pool);
}

void netpool_deinit(struct netpool *pool)
{
	if (!pool->loop)
		return;
	loop_disarm(pool->loop, &pool->quiet);
	stop_maker(pool);
	if (pool->maker.pid != 0)
		child_forget(pool->children, &pool->maker);
	let_go(pool);
	while (pool->count > 0)
		native_set_deinit(&pool->sets[--pool->count]);
}

bool netpool_take(struct netpool *pool, struct native_set *ret_set)
{
	const bool ready = pool->count > 0;

	*ret_set = ready ? pool->sets[--pool->count] : (struct native_set)NATIVE_SET_INIT;

	if (pool->wanted > 0)
		loop_arm(pool->loop, &pool->quiet, QUIET_MS, on_quiet, pool);
	if (pool->count <= pool->wanted / 4)
		make_more(pool);
	return ready;
}

void netpool_give_back(struct netpool *pool, struct native_set *set)
{
	if (pool->wanted == 0 || set->net_fd < 0) {
		native_set_deinit(set);
		return;
	}
	if (pool->used_count == NETPOOL_USED_MAX)
		let_go(pool);
	pool->used[pool->used_count++] = *set;
	*set = (struct native_set)NATIVE_SET_INIT;
}
