/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/netpool.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/identity.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/nativeprobe.h"
#include "tests/fdcount.h"
#include "tests/test.h"

struct scene {
	struct loop loop;
	struct children children;
	struct netpool pool;
	struct loop_source signals;
	int signal_fd;
	int user_ns_fd;
};

static void on_signal(uint32_t events, void *arg)
{
	struct scene *scene = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(scene->signal_fd, &info, sizeof(info)) > 0)
		children_reap(&scene->children);
}

/* False: neither root nor user namespaces here. */
static bool scene_init(struct scene *scene, size_t wanted)
{
	const struct identity identity = { .uid = geteuid(), .gid = getegid() };
	struct error err = ERROR_INIT;
	sigset_t set;

	*scene = (struct scene){ .loop = LOOP_INIT,
				 .pool = NETPOOL_INIT,
				 .signals = LOOP_SOURCE_INIT,
				 .user_ns_fd = -1 };
	if (geteuid() != 0) {
		scene->user_ns_fd = nativeprobe_user_namespace(&identity, &err);
		if (scene->user_ns_fd < 0) {
			print_message("needs root or user namespaces: %s\n", err.message);
			return false;
		}
	}
	/* As fsboxd does: a maker may be gone before it is told to make more. */
	assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	assert_int_equal(loop_init(&scene->loop, NULL), 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	scene->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	assert_int_equal(loop_add(&scene->loop, &scene->signals, scene->signal_fd, EPOLLIN,
				  on_signal, scene, NULL),
			 0);
	netpool_init(&scene->pool, &scene->loop, &scene->children, wanted, scene->user_ns_fd);
	return true;
}

static void on_stop(void *arg)
{
	loop_stop(arg);
}

/* Serve until COUNT are ready, at most five seconds. */
static void serve_until(struct scene *scene, size_t count)
{
	for (int turn = 0; turn < 500 && scene->pool.count != count; turn++) {
		struct loop_timer stop = { .armed = false };

		scene->loop.stop = false;
		loop_arm(&scene->loop, &stop, 10, on_stop, &scene->loop);
		assert_int_equal(loop_run(&scene->loop, NULL), 0);
	}
	assert_int_equal(scene->pool.count, count);
}

static void scene_deinit(struct scene *scene)
{
	netpool_deinit(&scene->pool);
	loop_remove(&scene->loop, &scene->signals);
	(void)close(scene->signal_fd);
	if (scene->user_ns_fd >= 0)
		(void)close(scene->user_ns_fd);
	loop_deinit(&scene->loop);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Whether this process, having entered FD, stands in a namespace of KIND that it did not before. */
static bool enters_another(int fd, int kind, const char *path)
{
	struct stat before;
	struct stat after;

	return stat(path, &before) == 0 && setns(fd, kind) == 0 && stat(path, &after) == 0 &&
	       before.st_ino != after.st_ino;
}

/* In a child: enters SET; 0 if it is empty but for a loopback that is up and has two addresses. */
static int look_inside(const struct scene *scene, const struct native_set *set)
{
	struct ifreq lo = { .ifr_name = "lo" };
	struct ifreq alias = { .ifr_name = "lo:1" };
	struct sockaddr_in address;
	struct if_nameindex *names = NULL;
	size_t count = 0;
	int probe = -1;

	if (scene->user_ns_fd >= 0 && setns(scene->user_ns_fd, CLONE_NEWUSER) < 0)
		return 10;
	if (!enters_another(set->ipc_fd, CLONE_NEWIPC, "/proc/self/ns/ipc") ||
	    !enters_another(set->uts_fd, CLONE_NEWUTS, "/proc/self/ns/uts") ||
	    !enters_another(set->cgroup_fd, CLONE_NEWCGROUP, "/proc/self/ns/cgroup") ||
	    !enters_another(set->net_fd, CLONE_NEWNET, "/proc/self/ns/net"))
		return 11;
	names = if_nameindex();
	for (; names && names[count].if_index != 0; count++)
		if (strcmp(names[count].if_name, "lo") != 0 &&
		    strncmp(names[count].if_name, "tunl", 4) != 0 &&
		    strncmp(names[count].if_name, "sit", 3) != 0)
			return 12;
	probe = socket(AF_INET, SOCK_DGRAM, 0);
	if (count == 0 || ioctl(probe, SIOCGIFFLAGS, &lo) < 0)
		return 13;
	if (!(lo.ifr_flags & IFF_UP))
		return 14;
	/* Without it getaddrinfo() with AI_ADDRCONFIG would know no address at all. */
	if (ioctl(probe, SIOCGIFADDR, &alias) < 0)
		return 15;
	memcpy(&address, &alias.ifr_addr, sizeof(address));
	return ntohl(address.sin_addr.s_addr) == NATIVE_ALIAS_ADDRESS ? 0 : 16;
}

static void assert_empty_network(const struct scene *scene, const struct native_set *set)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_inside(scene, set));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void it_fills_and_each_is_given_once(void **state)
{
	size_t fds = fd_count();
	struct scene scene;
	struct native_set taken[3];
	struct native_set none;
	struct stat given[3];

	(void)state;
	if (!scene_init(&scene, 3))
		skip();
	serve_until(&scene, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(netpool_take(&scene.pool, &taken[i]));
		assert_int_equal(fstat(taken[i].net_fd, &given[i]), 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(given[k].st_ino, given[i].st_ino);
		assert_empty_network(&scene, &taken[i]);
	}
	/* None is ready at this moment: the caller makes one itself. */
	assert_false(netpool_take(&scene.pool, &none));
	assert_int_equal(none.net_fd, -1);
	serve_until(&scene, 3);
	for (int i = 0; i < 3; i++)
		native_set_deinit(&taken[i]);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

static void a_maker_that_is_killed_is_replaced(void **state)
{
	size_t fds = fd_count();
	struct scene scene;
	struct native_set set;

	(void)state;
	if (!scene_init(&scene, 2))
		skip();
	serve_until(&scene, 2);
	child_signal(&scene.pool.maker, SIGKILL);
	for (int i = 0; i < 2; i++) {
		assert_true(netpool_take(&scene.pool, &set));
		native_set_deinit(&set);
	}
	serve_until(&scene, 2);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

static void none_wanted_none_made(void **state)
{
	size_t fds = fd_count();
	struct native_set set;
	struct scene scene;

	(void)state;
	if (!scene_init(&scene, 0))
		skip();
	serve_until(&scene, 0);
	assert_false(netpool_take(&scene.pool, &set));
	assert_int_equal(scene.children.count, 0);
	scene_deinit(&scene);
	assert_int_equal(fd_count(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_fills_and_each_is_given_once),
		cmocka_unit_test(a_maker_that_is_killed_is_replaced),
		cmocka_unit_test(none_wanted_none_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
