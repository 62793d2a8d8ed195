/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobfile.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/result.h"
#include "tests/test.h"

struct place {
	char dir[64];
	struct jobfiles files;
};

struct seen {
	size_t count;
	struct jobfile_record record;
	int fd;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct error err = ERROR_INIT;

	(void)snprintf(place->dir, sizeof(place->dir), "/tmp/fsbox-test-XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	place->files = (struct jobfiles)JOBFILES_INIT;
	assert_int_equal(jobfiles_open(&place->files, place->dir, &err), 0);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[128];
	pid_t pid;

	jobfiles_close(&place->files);
	(void)snprintf(command, sizeof(command), "%s", place->dir);
	pid = fork();
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", command, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(place);
	return 0;
}

static struct jobfile_record a_record(uint64_t job)
{
	struct jobfile_record record = { .job = job, .state = JOBFILE_STARTED, .pid = 4711 };

	record.broker = (struct identity){ .uid = geteuid(), .gid = getegid() };
	record.start = (struct op_start){ .plan_bytes = 1,
					  .engine = ENGINE_NATIVE,
					  .room = ROOM_EGRESS_DENIED,
					  .argc = 1,
					  .command = "true" };
	return record;
}

static void keep(struct place *place, struct jobfile_record record)
{
	struct error err = ERROR_INIT;
	int fd = -1;

	assert_int_equal(jobfile_make(&place->files, &record, &fd, &err), 0);
	(void)close(fd);
}

static void on_found(const struct jobfile_record *record, int *fd, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	seen->record = *record;
	seen->fd = steal_fd(fd);
}

static struct seen look(struct place *place)
{
	struct seen seen = { .fd = -1 };
	struct error err = ERROR_INIT;

	assert_int_equal(jobfiles_scan(&place->files, on_found, &seen, &err), 0);
	return seen;
}

static bool is_there(const struct place *place, const char *name)
{
	return faccessat(place->files.dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Change the file of job 7 in its bytes at OFFSET. */
static void tamper(struct place *place, size_t offset, const void *bytes, size_t count)
{
	AUTO(auto_close) int fd = openat(place->files.dir_fd, "7", O_WRONLY);

	assert_int_equal(pwrite(fd, bytes, count, (off_t)offset), (ssize_t)count);
}

static void a_record_is_found_again(void **state)
{
	struct place *place = *state;
	struct seen seen;

	keep(place, a_record(7));
	seen = look(place);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.record.job, 7);
	assert_int_equal(seen.record.pid, 4711);
	assert_string_equal(seen.record.start.command, "true");
	assert_true(seen.fd >= 0);
	(void)close(seen.fd);
	jobfile_remove(&place->files, 7);
	assert_false(is_there(place, "7"));
	assert_int_equal(look(place).count, 0);
}

static void one_without_a_name_is_found_once_it_has_one(void **state)
{
	struct place *place = *state;
	struct jobfile_record record = a_record(7);
	struct error err = ERROR_INIT;
	struct seen seen;
	int fd = -1;

	assert_int_equal(jobfile_prepare(&place->files, &record, &fd, &err), 0);
	assert_false(is_there(place, "7"));
	assert_int_equal(look(place).count, 0);
	assert_int_equal(jobfile_name(&place->files, 7, fd), 0);
	assert_int_equal(jobfile_name(&place->files, 7, fd), -1);
	(void)close(fd);
	seen = look(place);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.record.job, 7);
	(void)close(seen.fd);

	/* Nothing is left of one that never got one. */
	record = a_record(8);
	assert_int_equal(jobfile_prepare(&place->files, &record, &fd, &err), 0);
	(void)close(fd);
	jobfile_remove(&place->files, 7);
	assert_int_equal(look(place).count, 0);
}

static void numbers_are_never_used_twice(void **state)
{
	struct place *place = *state;
	struct error err = ERROR_INIT;
	uint64_t first = 0;
	uint64_t job = 0;

	assert_int_equal(jobfiles_number(&place->files, &first, &err), 0);
	assert_int_equal(first, 1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(jobfiles_number(&place->files, &job, &err), 0);
	assert_int_equal(job, 1001);
	jobfiles_close(&place->files);
	assert_int_equal(jobfiles_open(&place->files, place->dir, &err), 0);
	assert_int_equal(jobfiles_number(&place->files, &job, &err), 0);
	assert_true(job > 1001);

	/* Not even when that file was lost. */
	keep(place, a_record(99999));
	(void)close(look(place).fd);
	assert_int_equal(jobfiles_number(&place->files, &job, &err), 0);
	assert_int_equal(job, 100000);
}

static void tampered_records_are_removed(void **state)
{
	struct place *place = *state;
	const struct jobfile_record good = a_record(7);
	const uint32_t much = 0xffffffff;
	const uid_t other = geteuid() + 1;
	const struct {
		size_t offset;
		const void *bytes;
		size_t count;
	} changes[] = {
		{ offsetof(struct jobfile_record, magic), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, version), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, job), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, state), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, pid), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, killed), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, boot_id), "another boot", 12 },
		{ offsetof(struct jobfile_record, broker.group_count), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, broker.uid), &other, sizeof(other) },
		{ offsetof(struct jobfile_record, start.engine), &much, sizeof(much) },
		{ offsetof(struct jobfile_record, start.detached), &much, sizeof(much) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct seen seen;

		keep(place, good);
		tamper(place, changes[i].offset, changes[i].bytes, changes[i].count);
		seen = look(place);
		/* Root's daemon has jobs of any user. */
		if (changes[i].bytes == &other && geteuid() == 0) {
			assert_int_equal(seen.count, 1);
			(void)close(seen.fd);
			jobfile_remove(&place->files, 7);
			continue;
		}
		if (seen.count != 0)
			fail_msg("change %zu was not seen", i);
		assert_false(is_there(place, "7"));
	}
}

static void what_is_no_file_of_ours_is_not_read(void **state)
{
	struct place *place = *state;
	struct jobfile_record record = a_record(7);
	char target[128];

	/* A link to a good one. */
	keep(place, record);
	(void)snprintf(target, sizeof(target), "%s/good", place->dir);
	assert_int_equal(renameat(place->files.dir_fd, "7", AT_FDCWD, target), 0);
	assert_int_equal(symlinkat(target, place->files.dir_fd, "7"), 0);
	assert_int_equal(look(place).count, 0);
	assert_false(is_there(place, "7"));
	assert_int_equal(access(target, F_OK), 0);

	/* A second name of it, one that others could write, a pipe, names that are no numbers. */
	assert_int_equal(linkat(AT_FDCWD, target, place->files.dir_fd, "7", 0), 0);
	assert_int_equal(look(place).count, 0);
	keep(place, record);
	assert_int_equal(fchmodat(place->files.dir_fd, "7", 0666, 0), 0);
	assert_int_equal(look(place).count, 0);
	assert_int_equal(mkfifoat(place->files.dir_fd, "7", 0600), 0);
	assert_int_equal(look(place).count, 0);
	assert_int_equal(linkat(AT_FDCWD, target, place->files.dir_fd, "007", 0), 0);
	assert_int_equal(linkat(AT_FDCWD, target, place->files.dir_fd, "7x", 0), 0);
	assert_int_equal(mkdirat(place->files.dir_fd, "8", 0700), 0);
	assert_int_equal(look(place).count, 0);
	assert_false(is_there(place, "007"));
	assert_false(is_there(place, "7x"));
}

static void no_room_is_an_error_and_leaves_nothing(void **state)
{
	struct place *place = *state;
	struct jobfile_record record = a_record(7);
	struct rlimit small = { .rlim_cur = 5000, .rlim_max = RLIM_INFINITY };
	struct rlimit before;
	struct error err = ERROR_INIT;
	int fd = -1;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(jobfile_make(&place->files, &record, &fd, &err), -ERR_SYSTEM);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(fd, -1);
	assert_false(is_there(place, "7"));
}

/* ---- the page ------------------------------------------------------------------------ */

static int file_with_page(struct place *place, struct result_page **ret_page)
{
	struct jobfile_record record = a_record(7);
	struct error err = ERROR_INIT;
	int fd = -1;

	assert_int_equal(jobfile_make(&place->files, &record, &fd, &err), 0);
	assert_int_equal(result_map(fd, ret_page, &err), 0);
	return fd;
}

static const struct exit_record exited_42 = { .reason = EXIT_EXITED, .code = 42, .wall_ms = 5 };

static void a_result_is_read_as_it_was_written(void **state)
{
	struct result_page *page = NULL;
	struct result_page result;
	AUTO(auto_close) int fd = file_with_page(*state, &page);
	const struct result_to to = { .page = page, .scribe_fd = -1 };

	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_NONE);
	result_started(&to, 1234);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_STARTED);
	assert_int_equal(result.started_ms, 1234);
	result_exited(&to, &exited_42);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_EXITED);
	assert_int_equal(result.started_ms, 1234);
	assert_memory_equal(&result.record, &exited_42, sizeof(exited_42));
	result_failed(&to, ERR_COMMAND_NOT_FOUND);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_FAILED);
	assert_int_equal(result.error_kind, ERR_COMMAND_NOT_FOUND);
}

/* As engine bwrap has it: another process keeps the page. */
static void a_scribe_writes_before_init_goes_on(void **state)
{
	struct result_page *page = NULL;
	struct result_page result;
	AUTO(auto_close) int fd = file_with_page(*state, &page);
	struct result_to to = { .page = NULL };
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(ends[1]);
		result_scribe(ends[0], page);
		_exit(0);
	}
	(void)close(ends[0]);
	to.scribe_fd = ends[1];
	result_started(&to, 99);
	result_exited(&to, &exited_42);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_EXITED);
	assert_int_equal(result.started_ms, 99);
	assert_int_equal(result.record.code, 42);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* With nobody there it is not waited for. */
	result_exited(&to, &exited_42);
	(void)close(ends[1]);
}

static void R24_a_tampered_page_says_nothing(void **state)
{
	struct result_page *page = NULL;
	struct result_page result;
	AUTO(auto_close) int fd = file_with_page(*state, &page);
	const struct result_to to = { .page = page, .scribe_fd = -1 };
	const struct exit_record wrong[] = {
		{ .reason = 0 },
		{ .reason = EXIT_EXITED, .code = 256 },
		{ .reason = EXIT_EXITED, .code = -1 },
		{ .reason = EXIT_EXITED, .signal = 9 },
		{ .reason = EXIT_SIGNALED },
		{ .reason = EXIT_SIGNALED, .signal = 65 },
		{ .reason = EXIT_SIGNALED, .signal = 9, .core_dumped = 2 },
		/* Of these fsboxd alone knows. */
		{ .reason = EXIT_TIMEOUT },
		{ .reason = EXIT_OOM },
		{ .reason = EXIT_LOST },
		{ .reason = 99 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		result_exited(&to, &wrong[i]);
		result_read(fd, &result);
		if (result.state != RESULT_NONE)
			fail_msg("record %zu was believed", i);
	}
	result_exited(&to, &exited_42);
	page->state = 77;
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_NONE);
	page->state = RESULT_EXITED;
	page->version = 2;
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_NONE);
	result_failed(&to, (enum error_kind)12345);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_NONE);
	assert_int_equal(ftruncate(fd, 100), 0);
	result_read(fd, &result);
	assert_int_equal(result.state, RESULT_NONE);
}

/* ---- brokers ------------------------------------------------------------------------- */

static void brokers_of_before_are_ended_and_nobody_else(void **state)
{
	struct place *place = *state;
	pid_t pids[2];
	char name[32];
	int status = 0;

	for (size_t i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			for (;;)
				(void)pause();
	}
	for (size_t i = 0; i < 2; i++) {
		AUTO(auto_close) int pidfd = pidfd_open_pid(pids[i]);

		jobfiles_note_broker(&place->files, pids[i], pidfd);
	}
	/* The record of the second now names the number of the first: another birth. */
	(void)snprintf(name, sizeof(name), "b%d", (int)pids[1]);
	{
		AUTO(auto_close) int fd = openat(place->files.dir_fd, name, O_WRONLY);
		int32_t pid = pids[0];

		assert_int_equal(pwrite(fd, &pid, sizeof(pid), 4), sizeof(pid));
	}
	jobfiles_forget_broker(&place->files, pids[0]);
	jobfiles_end_brokers(&place->files);
	assert_false(is_there(place, name));
	assert_int_equal(waitpid(pids[0], &status, WNOHANG), 0);
	assert_int_equal(waitpid(pids[1], &status, WNOHANG), 0);

	{
		AUTO(auto_close) int pidfd = pidfd_open_pid(pids[0]);

		jobfiles_note_broker(&place->files, pids[0], pidfd);
	}
	jobfiles_end_brokers(&place->files);
	assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	(void)kill(pids[1], SIGKILL);
	assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_found_again),
		TEST(one_without_a_name_is_found_once_it_has_one),
		TEST(numbers_are_never_used_twice),
		TEST(tampered_records_are_removed),
		TEST(what_is_no_file_of_ours_is_not_read),
		TEST(no_room_is_an_error_and_leaves_nothing),
		TEST(a_result_is_read_as_it_was_written),
		TEST(a_scribe_writes_before_init_goes_on),
		TEST(R24_a_tampered_page_says_nothing),
		TEST(brokers_of_before_are_ended_and_nobody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
