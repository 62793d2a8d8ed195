/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/egresslink.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/spawner/sealed.h"
#include "tests/fdcount.h"
#include "tests/test.h"

/* What the played fsbox-egress does with a job of this user. */
#define UID_SERVE 1000
#define UID_DIE 1001
#define UID_GARBAGE 1002
#define UID_HANG_UP 1003

/* ---- played fsbox-egress: this program, executed under its name --------------------------- */

static void tell(enum egress_event_kind kind, uint64_t job, uint32_t uid, const char *detail)
{
	struct egress_event event = { .size = sizeof(event), .kind = kind, .job = job, .uid = uid };

	(void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
	(void)!write(EGRESS_FD_EVENTS, &event, sizeof(event));
}

static ssize_t hear(struct egress_link_message *ret, int fds[EGRESS_LINK_FDS], size_t *ret_count)
{
	union {
		char bytes[CMSG_SPACE(EGRESS_LINK_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(EGRESS_FD_LINK, &msg, 0);
	struct cmsghdr *cmsg = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*ret_count = cmsg ? (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (cmsg)
		memcpy(fds, CMSG_DATA(cmsg), *ret_count * sizeof(int));
	return n;
}

static void serve(const struct egress_link_message *message, const int fds[EGRESS_LINK_FDS])
{
	char policy[32] = "";

	switch (message->u.job.uid) {
	case UID_DIE:
		_exit(3);
	case UID_GARBAGE:
		(void)!write(EGRESS_FD_EVENTS, "garbage", 7);
		break;
	case UID_HANG_UP:
		(void)close(EGRESS_FD_EVENTS);
		break;
	default:
		(void)!pread(fds[0], policy, sizeof(policy) - 1, 0);
		(void)!write(fds[1], "hello", 5);
		tell(EGRESS_EVENT_ALLOWED, message->job, message->u.job.uid, policy);
	}
}

static int play(void)
{
	struct egress_link_message message;
	int fds[EGRESS_LINK_FDS];
	size_t count = 0;
	ssize_t n = hear(&message, fds, &count);

	if (n != sizeof(message) || message.kind != EGRESS_CONFIG ||
	    message.u.config.version != EGRESSOP_VERSION || getpid() != getsid(0))
		return 1;
	/* Nobody takes what is sent the wrong way. */
	if (send(EGRESS_FD_LINK, "x", 1, MSG_NOSIGNAL) >= 0)
		return 2;
	tell(EGRESS_EVENT_READY, 0, 0, "");
	while ((n = hear(&message, fds, &count)) > 0) {
		if (egress_link_check(&message, (size_t)n, count, NULL) < 0)
			return 4;
		if (message.kind == EGRESS_JOB)
			serve(&message, fds);
		else
			tell(EGRESS_EVENT_STATS, message.job, 0, "ended");
	}
	return 0;
}

/* ---- the scene ----------------------------------------------------------------------------- */

struct scene {
	struct loop loop;
	struct children children;
	struct egresslink link;
	struct loop_source signals;
	struct loop_timer limit;
	int signal_fd;
	int policy_fd;
	size_t events;
	size_t deaths;
	struct egress_event last;
};

static void on_signal(uint32_t events, void *arg)
{
	struct scene *scene = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(scene->signal_fd, &info, sizeof(info)) > 0)
		children_reap(&scene->children);
}

static void on_event(const struct egress_event *event, void *arg)
{
	struct scene *scene = arg;

	scene->last = *event;
	scene->events++;
	loop_stop(&scene->loop);
}

static void on_died(int status, void *arg)
{
	struct scene *scene = arg;

	(void)status;
	scene->deaths++;
	loop_stop(&scene->loop);
}

static void on_limit(void *arg)
{
	(void)arg;
	fail_msg("nothing happened");
}

static void serve_loop(struct scene *scene)
{
	scene->loop.stop = false;
	loop_arm(&scene->loop, &scene->limit, 10000, on_limit, scene);
	assert_int_equal(loop_run(&scene->loop, NULL), 0);
	loop_disarm(&scene->loop, &scene->limit);
}

static void scene_init(struct scene *scene)
{
	const struct egress_config config = { .required = 1 };
	sigset_t child;

	*scene = (struct scene){ .loop = LOOP_INIT, .signals = LOOP_SOURCE_INIT };
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
	assert_int_equal(loop_init(&scene->loop, NULL), 0);
	scene->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	assert_int_equal(loop_add(&scene->loop, &scene->signals, scene->signal_fd, EPOLLIN,
				  on_signal, scene, NULL),
			 0);
	assert_int_equal(sealed_create("policy", "policy!", 7, 0400, &scene->policy_fd, NULL), 0);
	egresslink_init_take(&scene->link, &scene->loop, &scene->children,
			     open("/proc/self/exe", O_PATH | O_CLOEXEC), &config, on_event, on_died,
			     scene);
}

static void scene_deinit(struct scene *scene)
{
	egresslink_deinit(&scene->link);
	loop_remove(&scene->loop, &scene->signals);
	(void)close(scene->signal_fd);
	(void)close(scene->policy_fd);
	loop_deinit(&scene->loop);
}

static int begin(struct scene *scene, uint64_t job, uid_t uid, struct error *err)
{
	int fd = -1;
	int r = egresslink_job(&scene->link, job, uid, scene->policy_fd, &fd, err);

	return r < 0 ? r : fd;
}

static void a_job_is_served(void **state)
{
	size_t fds = fd_count();
	struct scene scene;
	char text[8] = "";
	int fd = -1;

	(void)state;
	scene_init(&scene);
	assert_false(egresslink_up(&scene.link));
	fd = begin(&scene, 7, UID_SERVE, NULL);
	assert_true(fd >= 0);
	serve_loop(&scene);
	assert_true(egresslink_up(&scene.link));
	assert_int_equal(scene.last.kind, EGRESS_EVENT_ALLOWED);
	assert_int_equal(scene.last.job, 7);
	assert_string_equal(scene.last.detail, "policy!");
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	(void)close(fd);
	egresslink_end(&scene.link, 7);
	serve_loop(&scene);
	assert_int_equal(scene.last.kind, EGRESS_EVENT_STATS);
	assert_int_equal(scene.deaths, 0);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

/* The first death costs nothing, those that follow a pause; what it served is over. */
static void one_that_dies_is_replaced_and_then_not_at_once(void **state)
{
	size_t fds = fd_count();
	struct scene scene;
	struct error err = ERROR_INIT;
	char byte = 0;
	int fd = -1;

	(void)state;
	scene_init(&scene);
	for (size_t i = 0; i < 2; i++) {
		fd = begin(&scene, i + 1, UID_DIE, NULL);
		assert_true(fd >= 0);
		serve_loop(&scene);
		assert_int_equal(scene.deaths, i + 1);
		assert_false(egresslink_up(&scene.link));
		assert_true(read(fd, &byte, 1) <= 0);
		(void)close(fd);
		egresslink_end(&scene.link, i + 1);
	}
	assert_int_equal(begin(&scene, 3, UID_SERVE, &err), -ERR_ENGINE_UNAVAILABLE);
	assert_non_null(strstr(err.message, "2 times"));
	scene.link.retry_ms = loop_now_ms(); /* the pause is over */
	fd = begin(&scene, 4, UID_SERVE, NULL);
	assert_true(fd >= 0);
	serve_loop(&scene);
	assert_int_equal(scene.last.job, 4);
	(void)close(fd);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

static void R33_garbage_from_it_is_its_end(void **state)
{
	static const uid_t uids[] = { UID_GARBAGE, UID_HANG_UP };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t fds = fd_count();
		struct scene scene;
		int fd = -1;

		scene_init(&scene);
		fd = begin(&scene, 1, uids[i], NULL);
		assert_true(fd >= 0);
		serve_loop(&scene);
		assert_int_equal(scene.deaths, 1);
		assert_int_equal(scene.events, 0);
		assert_false(egresslink_up(&scene.link));
		(void)close(fd);
		scene_deinit(&scene);
		assert_int_equal(fd_count(), fds);
	}
}

static void without_the_program_jobs_are_refused(void **state)
{
	struct scene scene;
	struct error err = ERROR_INIT;

	(void)state;
	scene_init(&scene);
	(void)close(scene.link.exec_fd);
	scene.link.exec_fd = -1;
	assert_int_equal(begin(&scene, 1, UID_SERVE, &err), -ERR_ENGINE_UNAVAILABLE);
	assert_non_null(strstr(err.message, "not installed"));
	egresslink_end(&scene.link, 1);
	scene_deinit(&scene);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_served),
		cmocka_unit_test(one_that_dies_is_replaced_and_then_not_at_once),
		cmocka_unit_test(R33_garbage_from_it_is_its_end),
		cmocka_unit_test(without_the_program_jobs_are_refused),
	};

	if (argc > 0 && strcmp(argv[0], "fsbox-egress") == 0)
		return play();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
