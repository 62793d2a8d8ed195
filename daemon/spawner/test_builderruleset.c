/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/builderwork.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/confine.h"
#include "daemon/spawner/landlock.h"
#include "tests/test.h"
#include "tests/unit/run_init.h"

/*
 * A builder, which is a process that made rule sets for the mount namespace of this one and waits, and what a
 * job's leader has to find them by.
 */
struct scene {
	char *work;
	char granted[256];
	char refused[256];
	struct plan plan;
	struct builder_input input;
	struct builder builder;
	pid_t pid;
	int said;
};

static void run_builder(struct scene *scene, int times, int say_fd)
{
	int ns_dir_fd = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L); /* also when a test fails */
	for (int i = 0; i < times; i++)
		builder_keep_ruleset(&scene->builder, ns_dir_fd, -1);
	(void)!write(say_fd, "x", 1);
	for (;;)
		(void)pause();
}

static void begin(struct scene *scene, int times)
{
	static const struct plan_op proc = { .kind = PLAN_PROC, .path = (char *)"/proc" };
	struct plan_op op = { .kind = PLAN_BIND };
	size_t bytes = 0;
	int ends[2];
	char byte = 0;

	*scene = (struct scene){ .plan = PLAN_INIT };
	scene->work = run_make_dir(geteuid());
	(void)snprintf(scene->granted, sizeof(scene->granted), "%s/granted", scene->work);
	(void)snprintf(scene->refused, sizeof(scene->refused), "%s/refused", scene->work);
	assert_int_equal(mkdir(scene->granted, 0700) | mkdir(scene->refused, 0700), 0);
	op.path = scene->granted;
	op.source = scene->granted;
	assert_int_equal(plan_add(&scene->plan, &op, NULL), 0);
	assert_int_equal(plan_add(&scene->plan, &proc, NULL), 0);
	scene->input.plan = &scene->plan;
	scene->input.namespaces.is_copy = true;
	scene->input.namespaces.mount_ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	scene->builder = (struct builder)BUILDER_INIT(&scene->input);
	scene->builder.plan = scene->plan;
	bytes = native_shared_bytes(&scene->plan);
	scene->builder.shared =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(scene->builder.shared != MAP_FAILED);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	scene->pid = fork();
	if (scene->pid == 0)
		run_builder(scene, times, ends[1]);
	assert_true(scene->pid > 0);
	scene->input.builder_pidfd = (int)syscall(SYS_pidfd_open, scene->pid, 0);
	assert_true(scene->input.builder_pidfd >= 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void end_builder(struct scene *scene)
{
	if (scene->pid == 0)
		return;
	assert_int_equal(kill(scene->pid, SIGKILL), 0);
	assert_int_equal(waitpid(scene->pid, NULL, 0), scene->pid);
	scene->pid = 0;
}

static void end(struct scene *scene)
{
	end_builder(scene);
	(void)munmap(scene->builder.shared, native_shared_bytes(&scene->plan));
	(void)close(scene->input.builder_pidfd);
	(void)close(scene->input.namespaces.mount_ns_fd);
	plan_deinit(&scene->plan);
	run_remove_dir(scene->work);
}

static bool may_write_in(const char *dir)
{
	char path[300];
	int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/x", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static void R22_a_job_is_confined_by_what_its_builder_made(void **state)
{
	struct scene scene;
	int status = 0;
	int fd = -1;
	pid_t pid = 0;

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	for (int times = 1; times <= 9; times += 4) { /* so that places are used again */
		begin(&scene, times);
		fd = builder_find_ruleset(&scene.builder);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		pid = fork();
		if (pid == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 ||
			    landlock_apply(fd, "/proc", NULL) < 0)
				_exit(3);
			_exit((may_write_in(scene.granted) ? 0 : 1) |
			      (may_write_in(scene.refused) ? 2 : 0) |
			      (open("/proc/self/comm", O_WRONLY | O_CLOEXEC) < 0 ? 4 : 0));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		(void)close(fd);
		end(&scene);
	}
}

static void none_is_found_for_another_namespace_or_without_a_builder(void **state)
{
	struct scene scene;
	int own = -1;

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	begin(&scene, 2);
	own = scene.input.namespaces.mount_ns_fd;

	scene.input.namespaces.is_copy = false;
	assert_int_equal(builder_find_ruleset(&scene.builder), -1);
	scene.input.namespaces.is_copy = true;
	scene.input.namespaces.mount_ns_fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	assert_int_equal(builder_find_ruleset(&scene.builder), -1);
	(void)close(scene.input.namespaces.mount_ns_fd);
	scene.input.namespaces.mount_ns_fd = own;

	/* What was given up for another copy's. */
	for (size_t i = 0; i < NATIVE_RULESETS; i++)
		scene.builder.shared->rulesets[i] = 0;
	assert_int_equal(builder_find_ruleset(&scene.builder), -1);
	end(&scene);

	begin(&scene, 1);
	end_builder(&scene);
	assert_int_equal(builder_find_ruleset(&scene.builder), -1);
	end(&scene);
}

static void one_copy_has_one(void **state)
{
	struct scene scene;
	size_t found = 0;

	(void)state;
	if (confine_landlock_abi() < LANDLOCK_ABI_MIN)
		skip();
	begin(&scene, NATIVE_RULESETS + 1);
	for (size_t i = 0; i < NATIVE_RULESETS; i++)
		found += scene.builder.shared->rulesets[i] != 0;
	assert_int_equal(found, 1);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R22_a_job_is_confined_by_what_its_builder_made),
		cmocka_unit_test(none_is_found_for_another_namespace_or_without_a_builder),
		cmocka_unit_test(one_copy_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
