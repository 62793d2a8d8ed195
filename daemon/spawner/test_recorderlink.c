/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/recorderlink.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/fdcount.h"
#include "tests/test.h"

/* ---- played fsbox-recorder: this program, executed under its name ------------------------------ */

#define FD_EVENTS 3
#define FD_CONTROL 4
#define FD_ACK 5

/* What it does with an event is what the event's detail says. */
static int play(int argc, char **argv)
{
	struct event_message event;

	if (argc < 6 || strcmp(argv[1], "--events") != 0 || getpid() != getsid(0))
		return 1;
	/* Nobody takes what is sent the wrong way. */
	if (send(FD_CONTROL, "x", 1, MSG_NOSIGNAL) >= 0)
		return 2;
	while (read(FD_EVENTS, &event, sizeof(event)) == (ssize_t)sizeof(event)) {
		struct recorder_ack ack = { .first = event.seq, .last = event.seq, .durable = 1 };

		if (event_message_check(&event, sizeof(event), NULL) < 0)
			return 3;
		if (strcmp(event.detail, "die") == 0)
			return 4;
		if (strcmp(event.detail, "garbage") == 0)
			memset(&ack, 0xff, sizeof(ack));
		if (strcmp(event.detail, "disk full") == 0)
			ack.durable = 0;
		if (strcmp(event.detail, "silence") == 0)
			continue;
		/* In two pieces: the reader must put them together. */
		(void)!write(FD_ACK, &ack, 5);
		(void)!write(FD_ACK, (const char *)&ack + 5, sizeof(ack) - 5);
	}
	return 0;
}

/* ---- the scene ----------------------------------------------------------------------------- */

struct scene {
	struct loop loop;
	struct children children;
	struct recorderlink link;
	struct loop_source signals;
	struct loop_timer limit;
	int signal_fd;
	struct recorder_wait wait;
	int told; /* -1: not yet */
};

static void on_signal(uint32_t events, void *arg)
{
	struct scene *scene = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(scene->signal_fd, &info, sizeof(info)) > 0)
		children_reap(&scene->children);
}

static void on_told(void *arg, bool durable)
{
	struct scene *scene = arg;

	assert_int_equal(scene->told, -1);
	scene->told = durable;
	loop_stop(&scene->loop);
}

static void on_limit(void *arg)
{
	(void)arg;
	fail_msg("nobody was told");
}

static void scene_init(struct scene *scene, int exec_fd)
{
	sigset_t child;

	*scene = (struct scene){ .loop = LOOP_INIT, .signals = LOOP_SOURCE_INIT, .told = -1 };
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
	assert_int_equal(loop_init(&scene->loop, NULL), 0);
	scene->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	assert_int_equal(loop_add(&scene->loop, &scene->signals, scene->signal_fd, EPOLLIN,
				  on_signal, scene, NULL),
			 0);
	assert_int_equal(recorderlink_init_take(&scene->link, &scene->loop, &scene->children,
						exec_fd, "/nowhere", 1 << 20, NULL),
			 0);
}

static void scene_deinit(struct scene *scene)
{
	recorderlink_deinit(&scene->link);
	loop_remove(&scene->loop, &scene->signals);
	(void)close(scene->signal_fd);
	loop_deinit(&scene->loop);
}

static int self(void)
{
	return open("/proc/self/exe", O_PATH | O_CLOEXEC);
}

/* Send one that must be durable, and wait until it is told that it is, or is not. */
static bool durable(struct scene *scene, const char *detail)
{
	struct event_message event = { .job = 1 };

	(void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
	scene->told = -1;
	recorderlink_send_durable(&scene->link, EVENT_EXECUTION_STARTED, &event, &scene->wait,
				  on_told, scene);
	assert_int_equal(scene->told, -1);
	scene->loop.stop = false;
	loop_arm(&scene->loop, &scene->limit, LIMIT_AUDIT_MS + 10000, on_limit, scene);
	assert_int_equal(loop_run(&scene->loop, NULL), 0);
	loop_disarm(&scene->loop, &scene->limit);
	assert_false(scene->wait.waits);
	return scene->told;
}

static void R30_who_waits_is_told_what_became_of_it(void **state)
{
	size_t fds = fd_count();
	struct scene scene;

	(void)state;
	scene_init(&scene, self());
	assert_false(recorderlink_up(&scene.link));
	assert_true(durable(&scene, "fine"));
	assert_true(recorderlink_up(&scene.link));
	assert_false(durable(&scene, "disk full"));
	assert_true(durable(&scene, "fine again"));
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

static void R30_one_that_dies_fails_who_waits_and_is_replaced(void **state)
{
	static const char *const ends[] = { "die", "garbage" };
	size_t fds = fd_count();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct scene scene;
		uint64_t seq = 0;

		scene_init(&scene, self());
		assert_true(durable(&scene, "fine"));
		assert_false(durable(&scene, ends[i]));
		/* What is sent meanwhile waits for the next one. */
		seq = scene.link.last_seq;
		assert_true(durable(&scene, "fine"));
		assert_true(scene.link.last_seq > seq);
		scene_deinit(&scene);
	}
	assert_int_equal(fd_count(), fds);
}

static void R30_without_one_nothing_is_durable(void **state)
{
	struct event_message event = { .job = 1 };
	struct scene scene;

	(void)state;
	scene_init(&scene, -1);
	assert_int_equal(recorderlink_send(&scene.link, EVENT_EXECUTION_STARTED, &event), 0);
	assert_false(durable(&scene, "fine"));
	assert_false(recorderlink_ready(&scene.link));
	scene_deinit(&scene);
}

static void R30_who_is_gone_is_not_told(void **state)
{
	struct event_message event = { .job = 1 };
	struct scene scene;
	struct recorder_wait gone;

	(void)state;
	scene_init(&scene, self());
	(void)snprintf(event.detail, sizeof(event.detail), "silence");
	recorderlink_send_durable(&scene.link, EVENT_EXECUTION_STARTED, &event, &gone, on_told,
				  &scene);
	recorderlink_forget(&scene.link, &gone);
	assert_true(durable(&scene, "fine"));
	/* Nobody is left who waits for silence. */
	assert_null(scene.link.waits);
	scene_deinit(&scene);
}

static void R13_its_queue_has_a_bound(void **state)
{
	struct event_message event = { .job = 1 };
	struct scene scene;
	uint64_t last = 0;

	(void)state;
	scene_init(&scene, self());
	/* It is started and reads nothing before the loop runs: the pipe fills, then the queue. */
	for (size_t i = 0; i < 2 * LIMIT_EVENT_QUEUE; i++) {
		struct event_message copy = event;
		uint64_t seq = recorderlink_send(&scene.link, EVENT_EXECUTION_STARTED, &copy);

		if (seq == 0)
			break;
		assert_int_equal(seq, last + 1);
		last = seq;
		(void)kill(scene.link.child.pid, SIGSTOP);
	}
	assert_int_equal(scene.link.queued, LIMIT_EVENT_QUEUE);
	assert_false(recorderlink_ready(&scene.link));
	assert_int_equal(recorderlink_send(&scene.link, EVENT_EXECUTION_STARTED, &event), 0);
	assert_true(scene.link.dropped > 0);
	(void)kill(scene.link.child.pid, SIGCONT);
	scene_deinit(&scene);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R30_who_waits_is_told_what_became_of_it),
		cmocka_unit_test(R30_one_that_dies_fails_who_waits_and_is_replaced),
		cmocka_unit_test(R30_without_one_nothing_is_durable),
		cmocka_unit_test(R30_who_is_gone_is_not_told),
		cmocka_unit_test(R13_its_queue_has_a_bound),
	};

	if (argc > 0 && strcmp(argv[0], "fsbox-recorder") == 0)
		return play(argc, argv);
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
