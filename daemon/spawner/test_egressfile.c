/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/egressfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

struct fixture {
	char dir[32];
	struct jobfiles jobs;
	struct loop loop;
	struct egressfiles files;
	uint64_t seen[64];
	size_t count;
	size_t room; /* 0: any */
	size_t lost;
};

static void on_event(const struct egress_event *event, void *arg)
{
	struct fixture *fixture = arg;

	if (event->kind == EGRESS_EVENT_STATS) {
		fixture->lost++;
		return;
	}
	assert_true(fixture->count < 64);
	fixture->seen[fixture->count++] = event->connection;
}

static bool may(void *arg)
{
	const struct fixture *fixture = arg;

	return fixture->room == 0 || fixture->count < fixture->room;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* What happens within a moment. */
static void turn(struct fixture *fixture, uint64_t ms)
{
	struct loop_timer timer = { 0 };

	fixture->loop.stop = false;

	loop_arm(&fixture->loop, &timer, ms, stop, &fixture->loop);
	assert_int_equal(loop_run(&fixture->loop, NULL), 0);
}

static void begin(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	memcpy(fixture->dir, "/tmp/fsbox-test-XXXXXX", 23);
	assert_non_null(mkdtemp(fixture->dir));
	fixture->jobs = (struct jobfiles)JOBFILES_INIT;
	fixture->files = (struct egressfiles)EGRESSFILES_INIT;
	fixture->jobs.dir_fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memcpy(fixture->jobs.boot_id, "this boot", 10);
	assert_int_equal(loop_init(&fixture->loop, NULL), 0);
}

static void take_over(struct fixture *fixture)
{
	fixture->count = 0;
	assert_int_equal(egressfiles_take_over(&fixture->files, &fixture->jobs, &fixture->loop,
					       on_event, may, fixture, NULL),
			 0);
}

static void end(struct fixture *fixture)
{
	egressfiles_deinit(&fixture->files);
	loop_deinit(&fixture->loop);
	(void)close(fixture->jobs.dir_fd);
	assert_int_equal(rmdir(fixture->dir), 0);
}

static void append(int fd, uint64_t connection)
{
	const struct egress_event event = { .size = sizeof(event),
					    .kind = EGRESS_EVENT_DENIED,
					    .job = 7,
					    .connection = connection,
					    .via = EGRESS_VIA_HTTP,
					    .reason = NET_NOT_LISTED };

	assert_int_equal(write(fd, &event, sizeof(event)), sizeof(event));
}

/* The same with a file, whose writer's descriptor is returned. */
static int begin_with_file(struct fixture *fixture, char name[EGRESSFILE_NAME_BYTES])
{
	int fd = -1;

	begin(fixture);
	assert_int_equal(egressfile_make(&fixture->jobs, name, &fd, NULL), 0);
	return fd;
}

static void what_was_left_is_told_once(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name);
	append(fd, 1);
	append(fd, 2);
	/* The writer lives: the next one goes on where this one ended. */
	take_over(&fixture);
	assert_int_equal(fixture.count, 2);
	append(fd, 3);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 3);
	egressfiles_deinit(&fixture.files);
	append(fd, 4);
	take_over(&fixture);
	assert_int_equal(fixture.count, 1);
	assert_int_equal(fixture.seen[0], 4);
	/* Its last words, and the file is gone. */
	append(fd, 5);
	(void)close(fd);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 2);
	assert_int_equal(fixture.seen[1], 5);
	assert_null(fixture.files.first);
	end(&fixture);
}

static void a_writer_that_is_gone_leaves_what_it_wrote(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name);
	append(fd, 1);
	(void)close(fd);
	take_over(&fixture);
	assert_int_equal(fixture.count, 1);
	assert_null(fixture.files.first);
	assert_int_equal(fixture.files.notify_fd, -1);
	/* Without anything there is nothing to do. */
	take_over(&fixture);
	assert_int_equal(fixture.count, 0);
	end(&fixture);
}

static void R33_garbage_ends_the_reading_of_one(void **state)
{
	struct fixture fixture;
	char names[2][EGRESSFILE_NAME_BYTES];
	char garbage[sizeof(struct egress_event)];
	int fds[2] = { -1, -1 };

	(void)state;
	begin(&fixture);
	memset(garbage, 0xff, sizeof(garbage));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(egressfile_make(&fixture.jobs, names[i], &fds[i], NULL), 0);
		(void)usleep(2000); /* their names are times */
	}
	append(fds[0], 1);
	assert_int_equal(write(fds[0], garbage, sizeof(garbage)), sizeof(garbage));
	append(fds[0], 2);
	append(fds[1], 3);
	assert_int_equal(write(fds[1], garbage, 10), 10);
	take_over(&fixture);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 2);
	assert_int_equal(fixture.seen[0] + fixture.seen[1], 4);
	(void)close(fds[0]);
	(void)close(fds[1]);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 2);
	end(&fixture);
}

static void what_is_not_as_we_make_it_is_removed(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name); /* of another boot */
	append(fd, 1);
	memcpy(fixture.jobs.boot_id, "another", 8);
	take_over(&fixture);
	assert_int_equal(fixture.count, 0);
	(void)close(fd);
	/* Nothing in it; readable for others; a link. */
	fd = openat(fixture.jobs.dir_fd, "e1", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	(void)close(fd);
	assert_int_equal(egressfile_make(&fixture.jobs, name, &fd, NULL), 0);
	append(fd, 1);
	assert_int_equal(fchmod(fd, 0644), 0);
	(void)close(fd);
	assert_int_equal(symlinkat("/etc/passwd", fixture.jobs.dir_fd, "e2"), 0);
	take_over(&fixture);
	assert_int_equal(fixture.count, 0);
	end(&fixture);
}

/* Those who record have no room for so many at once: none is dropped, also when the writer is gone. */
static void R33_they_wait_for_room(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name);
	for (uint64_t i = 0; i < 40; i++)
		append(fd, i);
	(void)close(fd);
	fixture.room = 10;
	take_over(&fixture);
	assert_int_equal(fixture.count, 10);
	turn(&fixture, 100);
	assert_int_equal(fixture.count, 10);
	/* Another fsboxd goes on there. */
	egressfiles_deinit(&fixture.files);
	take_over(&fixture);
	assert_int_equal(fixture.count, 10);
	assert_int_equal(fixture.seen[0], 10);
	fixture.room = 25;
	turn(&fixture, 100);
	assert_int_equal(fixture.count, 25);
	fixture.room = 0;
	turn(&fixture, 100);
	assert_int_equal(fixture.count, 30);
	assert_int_equal(fixture.seen[29], 39);
	assert_null(fixture.files.first);
	end(&fixture);
}

/* As at a full disk, or at the limit: what is cut is the last that could be written. */
static void that_there_was_no_room_is_told_once(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name);
	append(fd, 1);
	assert_int_equal(write(fd, "cut", 3), 3);
	take_over(&fixture);
	turn(&fixture, 20);
	/* Perhaps it is being written. */
	assert_int_equal(fixture.lost, 0);
	(void)close(fd);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 1);
	assert_int_equal(fixture.lost, 1);
	end(&fixture);
}

/* A descriptor for writing that is not its writer's was closed. */
static void the_end_of_another_descriptor_is_no_end(void **state)
{
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int other = -1;
	int fd = -1;

	(void)state;
	fd = begin_with_file(&fixture, name);
	other = openat(fixture.jobs.dir_fd, name, O_RDWR | O_CLOEXEC);
	take_over(&fixture);
	(void)close(other);
	turn(&fixture, 20);
	append(fd, 1);
	turn(&fixture, 20);
	assert_int_equal(fixture.count, 1);
	assert_non_null(fixture.files.first);
	(void)close(fd);
	turn(&fixture, 20);
	assert_null(fixture.files.first);
	end(&fixture);
}

static void without_room_for_a_file_none_is_left(void **state)
{
	struct rlimit before;
	struct rlimit none;
	struct fixture fixture;
	char name[EGRESSFILE_NAME_BYTES];
	int fd = -1;

	(void)state;
	begin(&fixture);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_true(egressfile_make(&fixture.jobs, name, &fd, NULL) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	end(&fixture); /* nothing is in the folder */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_left_is_told_once),
		cmocka_unit_test(a_writer_that_is_gone_leaves_what_it_wrote),
		cmocka_unit_test(R33_garbage_ends_the_reading_of_one),
		cmocka_unit_test(what_is_not_as_we_make_it_is_removed),
		cmocka_unit_test(R33_they_wait_for_room),
		cmocka_unit_test(that_there_was_no_room_is_told_once),
		cmocka_unit_test(the_end_of_another_descriptor_is_no_end),
		cmocka_unit_test(without_room_for_a_file_none_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
