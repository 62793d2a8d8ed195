/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/resolve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

struct room {
	struct resolver_pool pool;
	struct event_base *base;
	int answers;
	struct error err;
	char real[LIMIT_PATH_BYTES + 1];
	enum node_type type;
};

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));

	assert_non_null(room);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(resolver_pool_init(&room->pool, &room->err), 0);
	room->base = event_base_new();
	assert_non_null(room->base);
	room->pool.timeout_ms = 400;
	assert_int_equal(resolver_pool_attach(&room->pool, room->base, &room->err), 0);
	*state = room;
	return 0;
}

static int tear_down(void **state)
{
	struct room *room = *state;

	resolver_pool_deinit(&room->pool);
	event_base_free(room->base);
	free(room);
	return 0;
}

static void answered(void *arg, const void *values, size_t size, const struct error *err)
{
	struct room *room = arg;

	room->answers++;
	room->real[0] = '\0';
	error_clear(&room->err);
	if (err != NULL) {
		room->err = *err;
	} else {
		struct unpack in = UNPACK_INIT(values, size);
		struct lookup_path path;

		lookup_path_unpack(&in, &path);
		assert_int_equal(unpack_end(&in, &room->err), 0);
		(void)snprintf(room->real, sizeof(room->real), "%s", path.real);
		room->type = path.type;
	}
	(void)event_base_loopbreak(room->base);
}

static int ask(struct room *room, const char *path, struct lookup **ret_lookup)
{
	struct buf values = BUF_INIT(1 << 20);
	int r;

	pack_u32(&values, 1);
	pack_string(&values, path);
	r = resolver_pool_ask(&room->pool, LOOKUP_PATHS, &values, answered, room, ret_lookup,
			      &room->err);
	buf_deinit(&values);
	return r;
}

static void run_until(struct room *room, int answers)
{
	while (room->answers < answers)
		assert_int_equal(event_base_dispatch(room->base), 0);
}

static unsigned in_state(const struct room *room, enum resolver_state state)
{
	unsigned count = 0;

	for (size_t i = 0; i < RESOLVERS_MAX; i++)
		count += room->pool.slots[i].state == state;
	return count;
}

static void stop_children(struct room *room)
{
	for (size_t i = 0; i < RESOLVERS_MAX; i++) {
		pid_t pid = room->pool.slots[i].pid;
		int status;

		if (pid <= 0 || room->pool.slots[i].state != RESOLVER_IDLE)
			continue;
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	}
}

static void test_answers(void **state)
{
	struct room *room = *state;
	struct lookup *lookup;

	assert_int_equal(ask(room, "/usr/../usr/./bin", &lookup), 0);
	run_until(room, 1);
	assert_string_equal(room->real, "/usr/bin");
	assert_int_equal(room->type, NODE_DIRECTORY);
	assert_int_equal(ask(room, "/nothing/here", &lookup), 0);
	run_until(room, 2);
	assert_int_equal(room->type, NODE_ABSENT);
	assert_int_equal(in_state(room, RESOLVER_IDLE), RESOLVERS_READY);
}

static void test_call_before_the_loop(void **state)
{
	struct resolver_pool pool;
	struct buf values = BUF_INIT(4096);
	struct buf answer = BUF_INIT(4096);
	struct lookup_path path;
	struct unpack in;

	(void)state;
	assert_int_equal(resolver_pool_init(&pool, NULL), 0);
	pack_u32(&values, 1);
	pack_string(&values, "/");
	assert_int_equal(resolver_pool_call(&pool, LOOKUP_PATHS, &values, &answer, NULL), 0);
	in = (struct unpack)UNPACK_INIT(answer.data, answer.size);
	lookup_path_unpack(&in, &path);
	assert_int_equal(unpack_end(&in, NULL), 0);
	assert_int_equal(path.type, NODE_DIRECTORY);

	/* A child that hangs costs the time limit, not the program. */
	pool.timeout_ms = 100;
	for (size_t i = 0; i < RESOLVERS_READY; i++)
		assert_int_equal(kill(pool.slots[i].pid, SIGSTOP), 0);
	assert_int_equal(resolver_pool_call(&pool, LOOKUP_PATHS, &values, &answer, NULL),
			 -ERR_TIMEOUT);
	resolver_pool_deinit(&pool);
	buf_deinit(&values);
	buf_deinit(&answer);
}

/* A hung look-up times out, its child is replaced, others go on meanwhile. */
static void test_hung_child_R9(void **state)
{
	struct room *room = *state;
	struct lookup *hung;
	struct lookup *other;

	/* Both children hang: the second question gets a third child after a moment. */
	stop_children(room);
	assert_int_equal(ask(room, "/", &hung), 0);
	assert_int_equal(ask(room, "/", &hung), 0);
	assert_int_equal(ask(room, "/usr", &other), 0);
	run_until(room, 1);
	assert_int_equal(room->err.kind, ERR_NONE);
	assert_string_equal(room->real, "/usr");
	run_until(room, 3);
	assert_int_equal(room->err.kind, ERR_TIMEOUT);
	assert_int_equal(ask(room, "/usr", &other), 0);
	run_until(room, 4);
	assert_string_equal(room->real, "/usr");
	for (int i = 0; i < 100 && resolver_pool_stuck(&room->pool) > 0; i++) {
		(void)usleep(10000);
		(void)event_base_loop(room->base, EVLOOP_NONBLOCK);
	}
	assert_int_equal(resolver_pool_stuck(&room->pool), 0); /* SIGKILL ends stopped ones */
}

/* At the limit of hanging children and one past it. */
static void test_busy_R9(void **state)
{
	struct room *room = *state;
	struct lookup *lookup;
	pid_t forever = fork(); /* not killed below: stands for what SIGKILL does not end */

	if (forever == 0) {
		(void)pause();
		_exit(0);
	}
	for (int i = 0; i < LIMIT_STUCK_PER_UID - 1; i++) {
		struct resolver_slot *slot = &room->pool.slots[RESOLVERS_READY + i];

		slot->state = RESOLVER_STUCK;
		slot->pid = forever;
	}
	assert_int_equal(ask(room, "/usr", &lookup), 0);
	run_until(room, 1);
	assert_string_equal(room->real, "/usr");
	room->pool.slots[RESOLVERS_READY + LIMIT_STUCK_PER_UID - 1].state = RESOLVER_STUCK;
	room->pool.slots[RESOLVERS_READY + LIMIT_STUCK_PER_UID - 1].pid = forever;
	assert_int_equal(resolver_pool_stuck(&room->pool), LIMIT_STUCK_PER_UID);
	assert_int_equal(ask(room, "/usr", &lookup), -ERR_RESOLVER_BUSY);

	/* The kernel lets them go: all is well again. */
	assert_int_equal(kill(forever, SIGKILL), 0);
	for (int i = 0; i < 100 && ask(room, "/usr", &lookup) < 0; i++)
		(void)usleep(10000);
	run_until(room, 2);
	assert_string_equal(room->real, "/usr");
	assert_int_equal(resolver_pool_stuck(&room->pool), 0);
}

/* Nobody waits for more than the limit, also not in the queue behind hung ones. */
static void test_all_hang_R9(void **state)
{
	struct room *room = *state;
	struct lookup *lookup;

	room->pool.timeout_ms = 300;
	stop_children(room);
	for (int i = 0; i < RESOLVERS_MAX + 3; i++)
		assert_int_equal(ask(room, "/usr", &lookup), 0);
	run_until(room, RESOLVERS_MAX + 3);
	assert_null(room->pool.first);
	assert_int_equal(in_state(room, RESOLVER_BUSY), 0);
}

static void test_dead_child_R14(void **state)
{
	struct room *room = *state;
	struct lookup *lookup;

	for (size_t i = 0; i < RESOLVERS_READY; i++)
		assert_int_equal(kill(room->pool.slots[i].pid, SIGSTOP), 0);
	assert_int_equal(ask(room, "/", &lookup), 0);
	for (size_t i = 0; i < RESOLVERS_READY; i++)
		assert_int_equal(kill(room->pool.slots[i].pid, SIGKILL), 0);
	/* Both ready ones are dead: the first notices, the second too, a third would answer. */
	run_until(room, 1);
	assert_true(room->err.kind == ERR_SYSTEM || strcmp(room->real, "/") == 0);
	assert_int_equal(ask(room, "/", &lookup), 0);
	run_until(room, 2);
	assert_string_equal(room->real, "/");
}

static void test_cancel(void **state)
{
	struct room *room = *state;
	struct lookup *first;
	struct lookup *second;

	stop_children(room);
	assert_int_equal(ask(room, "/", &first), 0);
	assert_int_equal(ask(room, "/", &first), 0);
	assert_int_equal(ask(room, "/etc", &second), 0); /* queued */
	lookup_cancel(first);
	lookup_cancel(second);
	lookup_cancel(NULL);
	assert_null(room->pool.first);
	run_until(room, 1); /* only the one not cancelled */
	assert_int_equal(room->err.kind, ERR_TIMEOUT);
}

/* Children hold nothing of ours but their socket. */
static void test_children_hold_nothing_R9(void **state)
{
	struct room *room = *state;
	AUTO(auto_close) int secret = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
	struct resolver_pool pool;
	struct lookup *lookup;
	char path[64];
	int status;
	DIR *dir;
	unsigned count = 0;

	assert_true(secret >= 0);
	assert_int_equal(ask(room, "/", &lookup), 0);
	run_until(room, 1);
	assert_int_equal(resolver_pool_init(&pool, NULL), 0);
	(void)usleep(50000);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pool.slots[0].pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += entry->d_name[0] != '.';
	(void)closedir(dir);
	assert_int_equal(count, 4); /* /dev/null three times, the socket */

	/* They end when we close our end. */
	(void)close(pool.slots[0].fd);
	pool.slots[0].fd = -1;
	assert_int_equal(waitpid(pool.slots[0].pid, &status, 0), pool.slots[0].pid);
	assert_true(WIFEXITED(status));
	pool.slots[0].state = RESOLVER_NONE;
	resolver_pool_deinit(&pool);
}

/* 20,000 paths at once, larger than any socket buffer both ways. */
static void large_answer(void *arg, const void *values, size_t size, const struct error *err)
{
	struct room *room = arg;
	struct unpack in = UNPACK_INIT(values, size);

	assert_null(err);
	for (int i = 0; i < 20000; i++) {
		struct lookup_path path;

		lookup_path_unpack(&in, &path);
		assert_int_equal(path.type, NODE_ABSENT);
	}
	assert_int_equal(unpack_end(&in, NULL), 0);
	room->answers++;
	(void)event_base_loopbreak(room->base);
}

static void test_large_batch_R13(void **state)
{
	struct room *room = *state;
	struct buf values = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	struct lookup *lookup;

	room->pool.timeout_ms = 10000;
	pack_u32(&values, 20000);
	for (int i = 0; i < 20000; i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "/usr/share/none/%0100d", i);
		pack_string(&values, path);
	}
	assert_int_equal(resolver_pool_ask(&room->pool, LOOKUP_PATHS, &values, large_answer, room,
					   &lookup, NULL),
			 0);
	buf_deinit(&values);
	run_until(room, 1);
}

static void test_nonsense_is_refused(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	struct buf in = BUF_INIT(1 << 20);
	struct error err = ERROR_INIT;

	(void)state;
	pack_u32(&in, 2);
	pack_string(&in, "/");
	assert_int_equal(resolver_answer(LOOKUP_PATHS, in.data, in.size, &out, &err),
			 -ERR_BAD_FRAME);
	buf_clear(&in);
	pack_u32(&in, 1);
	pack_string(&in, "/");
	pack_u32(&in, 7);
	assert_int_equal(resolver_answer(LOOKUP_PATHS, in.data, in.size, &out, &err),
			 -ERR_BAD_FRAME);
	buf_clear(&in);
	pack_u32(&in, 1);
	pack_string(&in, "relative");
	assert_int_equal(resolver_answer(LOOKUP_PATHS, in.data, in.size, &out, &err), -ERR_INVALID);
	buf_deinit(&in);
	buf_deinit(&out);
}

static void ask_directly(enum lookup_kind kind, const struct buf *in, struct buf *out)
{
	buf_clear(out);
	assert_int_equal(resolver_answer(kind, in->data, in->size, out, NULL), 0);
}

static void test_read_and_make(void **state)
{
	char dir[] = "/tmp/fsbox-resolve.XXXXXX";
	char path[128];
	struct buf in = BUF_INIT(1 << 20);
	struct buf out = BUF_INIT(1 << 20);
	struct unpack answer;
	struct stat st;
	const char *text;
	size_t size;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a/b/c", dir);
	pack_u32(&in, 2);
	pack_string(&in, path);
	pack_string(&in, "/proc/none/x");
	ask_directly(LOOKUP_MAKE_DIRS, &in, &out);
	answer = (struct unpack)UNPACK_INIT(out.data, out.size);
	assert_int_equal(unpack_u32(&answer), 0);
	assert_int_not_equal(unpack_u32(&answer), 0);
	assert_int_equal(unpack_end(&answer, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	(void)snprintf(path, sizeof(path), "%s/a/file", dir);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite("a\0b", 1, 3, file), 3);
	(void)fclose(file);
	for (uint32_t most = 2; most <= 3; most++) {
		buf_clear(&in);
		pack_string(&in, path);
		pack_u32(&in, most);
		ask_directly(LOOKUP_READ, &in, &out);
		answer = (struct unpack)UNPACK_INIT(out.data, out.size);
		assert_int_equal(unpack_u32(&answer), most == 2 ? EFBIG : 0);
		text = unpack_bytes(&answer, &size);
		assert_int_equal(unpack_end(&answer, NULL), 0);
		assert_int_equal(size, most == 2 ? 0 : 3);
		if (most == 3)
			assert_memory_equal(text, "a\0b", 3);
	}
	/* A FIFO or device would block, or worse. */
	buf_clear(&in);
	pack_string(&in, "/dev/zero");
	pack_u32(&in, 100);
	ask_directly(LOOKUP_READ, &in, &out);
	answer = (struct unpack)UNPACK_INIT(out.data, out.size);
	assert_int_equal(unpack_u32(&answer), EINVAL);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/a/b/c", dir);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rmdir(path), 0);
		*strrchr(path, '/') = '\0';
	}
	buf_deinit(&in);
	buf_deinit(&out);
}

static void test_no_descriptor_leaks(void **state)
{
	unsigned before = open_descriptors();

	(void)state;
	for (int i = 0; i < 5; i++) {
		void *room = NULL;
		struct lookup *lookup;

		assert_int_equal(set_up(&room), 0);
		assert_int_equal(ask(room, "/", &lookup), 0);
		run_until(room, 1);
		assert_int_equal(tear_down(&room), 0);
	}
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_answers),
		cmocka_unit_test(test_call_before_the_loop),
		T(test_hung_child_R9),
		T(test_busy_R9),
		T(test_all_hang_R9),
		T(test_dead_child_R14),
		T(test_cancel),
		T(test_children_hold_nothing_R9),
		T(test_large_batch_R13),
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_read_and_make),
		cmocka_unit_test(test_no_descriptor_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
