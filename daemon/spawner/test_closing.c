/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/closing.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/spawner/quota.h"
#include "tests/fdcount.h"
#include "tests/test.h"

#define SOMEBODY 1234

static const struct quota_limits limits = {
	.kinds = { [QUOTA_CLOSERS] = { 2, 100 } },
	.spawns_per_second = 1,
};

struct scene {
	struct loop loop;
	struct children children;
	struct quota quota;
	struct closing closing;
};

static void scene_init(struct scene *scene)
{
	*scene = (struct scene){ .loop = LOOP_INIT };
	assert_int_equal(loop_init(&scene->loop, NULL), 0);
	quota_init(&scene->quota, &limits);
	closing_init(&scene->closing, &scene->loop, &scene->children, &scene->quota);
}

static void scene_deinit(struct scene *scene)
{
	closing_deinit(&scene->closing);
	quota_deinit(&scene->quota);
	loop_deinit(&scene->loop);
}

/* Put the writing end of a pipe into the queue of OURS; the reading end tells when it is closed. */
static int push_pipe(int theirs)
{
	int ends[2];
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

	assert_int_equal(pipe(ends), 0);
	memcpy(CMSG_DATA(&control.header), &ends[1], sizeof(int));
	assert_int_equal(sendmsg(theirs, &header, MSG_NOSIGNAL), 1);
	(void)close(ends[1]);
	return ends[0];
}

/* Whether all writing ends of the pipe are closed, now or within two seconds. */
static bool pipe_ended(int read_end, int timeout_ms)
{
	struct pollfd ended = { .fd = read_end, .events = POLLIN };

	return poll(&ended, 1, timeout_ms) == 1 && (ended.revents & POLLHUP) != 0;
}

static void reap_all(struct scene *scene)
{
	for (int i = 0; i < 1000 && scene->children.count > 0; i++) {
		children_reap(&scene->children);
		(void)usleep(5000);
	}
	assert_int_equal(scene->children.count, 0);
}

static void on_stop(void *arg)
{
	loop_stop(arg);
}

static void serve_for(struct scene *scene, uint64_t ms)
{
	struct loop_timer stop = { .armed = false };

	scene->loop.stop = false;
	loop_arm(&scene->loop, &stop, ms, on_stop, &scene->loop);
	assert_int_equal(loop_run(&scene->loop, NULL), 0);
}

static void R7_an_empty_connection_is_closed_at_once(void **state)
{
	struct scene scene;
	int ends[2];

	(void)state;
	scene_init(&scene);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	closing_take_stream(&scene.closing, ends[0], SOMEBODY);
	assert_int_equal(scene.children.count, 0);
	assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	(void)close(ends[1]);
	scene_deinit(&scene);
}

static void R7_descriptors_in_a_queue_are_closed_by_a_child(void **state)
{
	struct scene scene;
	size_t fds = fd_count();
	int ends[2];
	int pipe_end = -1;

	(void)state;
	scene_init(&scene);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pipe_end = push_pipe(ends[1]);
	assert_false(pipe_ended(pipe_end, 0));
	closing_take_stream(&scene.closing, ends[0], SOMEBODY);
	assert_int_equal(scene.children.count, 1);
	assert_int_equal(quota_held(&scene.quota, SOMEBODY, QUOTA_CLOSERS), 1);
	assert_true(pipe_ended(pipe_end, 2000));
	reap_all(&scene);
	assert_int_equal(quota_held(&scene.quota, SOMEBODY, QUOTA_CLOSERS), 0);
	(void)close(ends[1]);
	(void)close(pipe_end);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

/* Somebody who hangs has the socket, too: what waits in it goes all the same, unless it is still wanted. */
static void R7_what_waits_for_somebody_who_hangs(void **state)
{
	struct scene scene;
	size_t fds = fd_count();

	(void)state;
	scene_init(&scene);
	for (int later = 0; later <= 1; later++) {
		int ends[2];
		int pipe_end = -1;
		int hanging = -1;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		hanging = dup(ends[0]);
		pipe_end = push_pipe(ends[1]);
		if (later) {
			closing_take_later(&scene.closing, ends[0], SOMEBODY);
			serve_for(&scene, CLOSING_LATER_MS + 100);
		} else {
			closing_take_channel(&scene.closing, ends[0], SOMEBODY);
		}
		reap_all(&scene);
		assert_int_equal(pipe_ended(pipe_end, 0), !later);
		(void)close(hanging);
		(void)close(ends[1]);
		(void)close(pipe_end);
	}
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

/* More than may be closed at a time: they wait, and are closed when their turn comes. */
static void R7_more_than_the_limit_wait(void **state)
{
	struct scene scene;
	size_t fds = fd_count();
	int ends[5][2];
	int pipes[5];

	(void)state;
	scene_init(&scene);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends[i]), 0);
		pipes[i] = push_pipe(ends[i][1]);
		closing_take_channel(&scene.closing, ends[i][0], SOMEBODY);
	}
	assert_int_equal(scene.children.count, 2);
	assert_int_equal(scene.closing.waiting_count, 3);
	assert_false(closing_full(&scene.closing));
	reap_all(&scene);
	assert_int_equal(scene.closing.waiting_count, 0);
	for (int i = 0; i < 5; i++) {
		assert_true(pipe_ended(pipes[i], 2000));
		(void)close(pipes[i]);
		(void)close(ends[i][1]);
	}
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

/* Those that init has as well: one child for all that were collected of one user. */
static void R7_channels_are_collected_and_closed_by_one_child(void **state)
{
	struct scene scene;
	size_t fds = fd_count();
	int ends[CLOSING_BATCH + 2][2];
	int pipes[CLOSING_BATCH + 2];

	(void)state;
	scene_init(&scene);
	for (int i = 0; i < CLOSING_BATCH + 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends[i]), 0);
		pipes[i] = push_pipe(ends[i][1]);
	}
	for (int i = 0; i < CLOSING_BATCH; i++)
		closing_take_later(&scene.closing, ends[i][0], SOMEBODY);
	assert_int_equal(scene.children.count, 0);
	closing_take_later(&scene.closing, ends[CLOSING_BATCH][0], SOMEBODY); /* one too many */
	assert_int_equal(scene.children.count, 1);
	closing_take_later(&scene.closing, ends[CLOSING_BATCH + 1][0], SOMEBODY + 1);
	assert_int_equal(scene.children.count, 2); /* never two users' by one child */
	for (int i = 0; i <= CLOSING_BATCH; i++)
		assert_true(pipe_ended(pipes[i], 2000));
	assert_false(pipe_ended(pipes[CLOSING_BATCH + 1], 0));
	serve_for(&scene, CLOSING_LATER_MS + 100);
	assert_true(pipe_ended(pipes[CLOSING_BATCH + 1], 2000));
	reap_all(&scene);
	for (int i = 0; i < CLOSING_BATCH + 2; i++) {
		(void)close(pipes[i]);
		(void)close(ends[i][1]);
	}
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R7_an_empty_connection_is_closed_at_once),
		cmocka_unit_test(R7_descriptors_in_a_queue_are_closed_by_a_child),
		cmocka_unit_test(R7_what_waits_for_somebody_who_hangs),
		cmocka_unit_test(R7_more_than_the_limit_wait),
		cmocka_unit_test(R7_channels_are_collected_and_closed_by_one_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
