/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs as the command inside sees them, and what a hostile broker can send. See test_init.c. */

#include "daemon/spawner/builder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/sealed.h"
#include "tests/test.h"
#include "tests/unit/run_init.h"

#define PIPE_TOTAL_BYTES (100u << 20)

/* ---- input and output ---------------------------------------------------------------- */

static _Noreturn void feed(int fd)
{
	static char block[65536];

	for (unsigned sent = 0; sent < PIPE_TOTAL_BYTES;) {
		ssize_t n = write(fd, block, sizeof(block));

		if (n <= 0)
			_exit(1);
		sent += (unsigned)n;
	}
	_exit(0);
}

static void a_hundred_megabytes_pass(void **state)
{
	static char block[65536];
	struct script *script =
		script_new(geteuid(), "cat | cat | cat | cat | cat | cat | cat | cat | cat | cat");
	unsigned long total = 0;
	pid_t feeder = 0;
	ssize_t n = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	feeder = fork();
	if (feeder == 0) {
		(void)close(fds[0]);
		feed(fds[1]);
	}
	(void)close(fds[1]);
	script->options.stdio[0] = fds[0];
	script_begin(script);
	(void)close(fds[0]);
	while ((n = read(script->output_fd, block, sizeof(block))) > 0)
		total += (unsigned long)n;
	script_end(script);
	(void)waitpid(feeder, NULL, 0);
	assert_int_equal(total, PIPE_TOTAL_BYTES);
	assert_exited(&script->run, 0);
	script_free(script);
}

/* Programs open what they were given again by name: pipes, files, terminals, devices. */
static void standard_descriptors_can_be_opened_again(void **state)
{
	static const char text[] =
		"set -e; echo a >/dev/stdout; echo b >/dev/stderr; : </dev/stdin;"
		"echo c >/proc/self/fd/1; echo gone >/dev/null";

	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_new(uid, text);
		char path[256];
		int terminal = -1;
		int master = -1;
		int fd = -1;

		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		script->options.stdio[0] = fd;
		script_begin(script);
		script_end(script);
		assert_string_equal(script->output, "a\nb\nc\n");
		assert_exited(&script->run, 0);
		(void)close(fd);
		script_free(script);

		script = script_new(uid, text);
		(void)snprintf(path, sizeof(path), "%s/file", script->work);
		fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		assert_int_equal(fchmod(fd, 0666), 0);
		script->options.stdio[0] = script->options.stdio[2] = fd;
		script_begin(script);
		script_end(script);
		assert_exited(&script->run, 0);
		(void)close(fd);
		script_free(script);

		script =
			script_new(uid, "test -t 0 && echo terminal >/dev/stderr && stty size <&0");
		assert_int_equal(openpty(&master, &terminal, NULL, NULL,
					 &(struct winsize){ .ws_row = 33, .ws_col = 77 }),
				 0);
		assert_int_equal(fchmod(terminal, 0666), 0);
		script->options.stdio[0] = script->options.stdio[2] = terminal;
		script_begin(script);
		script_end(script);
		assert_exited(&script->run, 0);
		assert_string_equal(script->output, "33 77\n");
		assert_true(read(master, path, sizeof(path)) > 0);
		assert_memory_equal(path, "terminal", 8);
		(void)close(master);
		(void)close(terminal);
		script_free(script);
	}
}

static void arguments_are_bytes(void **state)
{
	static const char *const argv[] = { "printf", "%s|", "a b", "\xff\xfe\n", "", NULL };
	static const char *const envp[] = { "PATH=/usr/bin:/bin", "X=\xc3(", NULL };
	struct script *script = script_new(geteuid(), "");

	(void)state;
	script->options.argv = argv;
	script->options.envp = envp;
	script_begin(script);
	script_end(script);
	assert_string_equal(script->output, "a b|\xff\xfe\n||");
	script_free(script);
}

static void arguments_past_the_kernels_limit(void **state)
{
	struct script *script = script_new(geteuid(), NULL);
	char *huge = malloc(200000);

	(void)state;
	memset(huge, 'x', 199999);
	huge[199999] = '\0';
	script->argv[0] = "true";
	script->argv[1] = huge; /* one string may have 128 KiB */
	script_fail(script);
	assert_failed(&script->run, ERR_COMMAND_NOT_EXECUTABLE, "exec");
	assert_int_equal(script->run.pipe.failure.errnum, E2BIG);
	free(huge);
	script_free(script);
}

/* ---- descriptors and memfds of a hostile broker -------------------------------------- */

static void refused(int fd, int place, const char *what)
{
	struct script *script = script_new(geteuid(), "echo ran");

	assert_true(fd >= 0);
	if (place < 3)
		script->options.stdio[place] = fd;
	else
		script->options.lifeline = fd;
	script_fail(script);
	assert_failed(&script->run, ERR_DESCRIPTOR_REFUSED, "descriptors");
	if (!strstr(script->run.channel.failure.message, what))
		fail_msg("'%s' does not say '%s'", script->run.channel.failure.message, what);
	assert_string_equal(script->output, "");
	(void)close(fd);
	script_free(script);
}

static void R7_descriptors_that_may_not_enter(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX }; /* the kernel chooses a name */
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address.sun_family)),
			 0);
	assert_int_equal(listen(listener, 1), 0);
	refused(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, "stdin: a directory");
	refused(open("/etc/passwd", O_PATH | O_CLOEXEC), 2, "stderr: an O_PATH descriptor");
	refused((int)syscall(SYS_pidfd_open, getpid(), 0), 0, "stdin: a");
	refused(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), 0, "a namespace");
	refused(open("/proc/self/mem", O_RDWR | O_CLOEXEC), 0, "a file of /proc");
	refused(epoll_create1(EPOLL_CLOEXEC), 0, "kernel object");
	refused(listener, 0, "a listening socket");
	refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 0, "internet socket");
	refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC), 3, "lifeline must be");
}

static void args_refused(int fd, const char *what)
{
	struct script *script = script_new(geteuid(), "echo ran");

	assert_true(fd >= 0);
	script->options.args_fd = fd;
	script_fail(script);
	assert_failed(&script->run, ERR_BAD_FRAME, "args");
	if (!strstr(script->run.pipe.failure.message, what))
		fail_msg("'%s' does not say '%s'", script->run.pipe.failure.message, what);
	(void)close(fd);
	script_free(script);
}

static void R15_args_must_be_sealed(void **state)
{
	struct args_header header = { .magic = ARGS_MAGIC, .argc = 1 };
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int fds[2];

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	args_refused(fd, "not a sealed memfd");
	args_refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC), "not a sealed memfd");
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)close(fds[1]);
	args_refused(fds[0], "not a sealed memfd");
	assert_int_equal(sealed_create("args", "garbage", 7, 0400, &fd, NULL), 0);
	args_refused(fd, "args");
	header.size = sizeof(header);
	assert_int_equal(sealed_create("args", &header, sizeof(header), 0400, &fd, NULL), 0);
	args_refused(fd, "args");
}

/* ---- the room ------------------------------------------------------------------------ */

static void R16_landlock_and_mounts_hold(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_run(
			uid,
			"for p in / /usr /etc /proc/sys/kernel /sys; do\n"
			"  (: >$p/fsbox-test-x) 2>/dev/null && echo wrote $p; done\n"
			"for p in . /tmp /run /var/tmp /dev/shm; do\n"
			"  : >$p/x && mv $p/x $p/y && mkdir $p/d && mv $p/y $p/d/z && rm -r $p/d\n"
			"  test $? = 0 || echo broken $p; done\n"
			"cat /proc/net/dev | tail -n +3 | cut -d: -f1");

		assert_string_equal(script->output, "    lo\n");
		script_free(script);
	}
}

static void R19_root_cannot_write_proc(void **state)
{
	struct script *script = NULL;

	(void)state;
	if (geteuid() != 0)
		skip();
	script = script_run(
		0, "echo x >/proc/sys/kernel/core_pattern; echo 1 >/proc/self/oom_score_adj;"
		   "cat /proc/timer_list /proc/kallsyms | wc -c");
	assert_non_null(strstr(script->output, "core_pattern: Read-only"));
	assert_non_null(strstr(script->output, "oom_score_adj: Read-only"));
	assert_non_null(strstr(script->output, "\n0\n"));
	script_free(script);
	script = script_run(1234567, "echo 500 >/proc/self/oom_score_adj && echo ok");
	assert_string_equal(script->output, "ok\n");
	script_free(script);
}

/* Tools without which nobody would want a sandbox. Each says its name when it works. */
static const char tools[] =
	"export HOME=$PWD\n"
	"has() { command -v $1 >/dev/null; }\n"
	"if has git; then git init -q a && cd a && git config user.email a@b && git config user.name n &&"
	" echo x >f && git add f && git commit -qm x && cd .. && git clone -q --local a b &&"
	" cd b && git worktree add -q ../wt && git mv f g && git stash -q && git gc -q && cd .. &&"
	" echo git; fi\n"
	"if has gcc && has make; then printf 'int main(void){return 0;}' >h.c &&"
	" printf 'h: h.c\\n\\tgcc -o h h.c\\n' >Makefile && make -s -j2 && ./h && echo make; fi\n"
	"if has python3; then python3 -c '\n"
	"import multiprocessing as m, sqlite3, os, tempfile, socket, subprocess, threading\n"
	"def sq(x): return x * x\n"
	"if __name__ == \"__main__\":\n"
	"  assert sum(m.Pool(3).map(sq, range(9))) == 204\n"
	"  q = m.Queue(); l = m.Lock(); s = m.Semaphore(2); s.acquire(); q.put(1); assert q.get() == 1\n"
	"  c = sqlite3.connect(\"db\"); c.execute(\"create table t(a)\"); c.commit()\n"
	"  os.mkfifo(\"fifo\"); os.symlink(\"db\", \"ln\"); os.link(\"db\", \"hard\")\n"
	"  u = socket.socket(socket.AF_UNIX); u.bind(\"sock\"); u.listen(1)\n"
	"  t = socket.socket(); t.bind((\"127.0.0.1\", 0)); t.listen(1)\n"
	"  w = threading.Thread(target=lambda: socket.create_connection(t.getsockname())); w.start()\n"
	"  t.accept(); w.join()\n"
	"  f = open(\"new\", \"w\"); f.write(\"x\"); f.close(); os.makedirs(\"d/e\"); os.rename(\"new\", \"d/e/n\")\n"
	"  os.truncate(\"d/e/n\", 0); os.posix_openpt(os.O_RDWR) if hasattr(os, \"posix_openpt\") else os.openpty()\n"
	"  subprocess.run([\"true\"], check=True, start_new_session=True); print(\"python\")\n"
	"'; fi\n"
	"if has node; then node -e '\n"
	"const {Worker} = require(\"worker_threads\"); const cp = require(\"child_process\");\n"
	"const fs = require(\"fs\"); fs.watch(\".\", () => {}).close();\n"
	"cp.execFileSync(\"true\"); require(\"dns\").lookup(\"localhost\", () => {});\n"
	"new Worker(\"1\", {eval: true}).on(\"exit\", () => { console.log(\"node\"); process.exit(0); });\n"
	"'; fi\n"
	"if has strace; then strace -f -o tr true && grep -q execve tr && echo strace; fi\n"
	"if has gdb; then gdb -nx -batch -ex run -ex quit true 2>&1 | grep -q 'exited normally' &&"
	" echo gdb; fi\n";

static void R17_R22_developer_tools_work(void **state)
{
	static const char *const programs[][2] = { { "git", "git" },        { "gcc", "make" },
						   { "python3", "python" }, { "node", "node" },
						   { "strace", "strace" },  { "gdb", "gdb" } };

	(void)state;
	FOR_EACH_USER(uid)
	{
		struct script *script = script_run(uid, tools);

		for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
			char path[64];
			char line[64];

			(void)snprintf(path, sizeof(path), "/usr/bin/%s", programs[i][0]);
			(void)snprintf(line, sizeof(line), "%s\n", programs[i][1]);
			if (access(path, X_OK) == 0 && !strstr(script->output, line))
				fail_msg("%s does not work: %s", programs[i][1], script->output);
		}
		script_free(script);
	}
}

/* ---- what is inherited --------------------------------------------------------------- */

static pid_t start_peer(uid_t uid)
{
	const struct rlimit files = { 333, 444 };
	const struct rlimit size = { 1 << 20, 1 << 20 }; /* less than our own memfds */
	cpu_set_t one;
	int ready[2];
	char byte = 0;
	pid_t pid = 0;
	int fd = -1;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		CPU_ZERO(&one);
		CPU_SET(0, &one);
		if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_FSIZE, &size) < 0 ||
		    setpriority(PRIO_PROCESS, 0, 7) < 0 ||
		    sched_setaffinity(0, sizeof(one), &one) < 0 ||
		    syscall(SYS_ioprio_set, 1, 0, 3 << 13) < 0)
			_exit(1);
		fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		if (write(fd, "321", 3) != 3)
			_exit(1);
		if (geteuid() == 0 &&
		    (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(1);
		(void)!write(ready[1], "r", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void R20_limits_are_the_peers(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		pid_t peer = start_peer(uid); /* before there is a pipe that it could keep open */
		struct script *script = script_new(
			uid,
			"ulimit -Sn; ulimit -Hn; ulimit -c; nice; cat /proc/self/oom_score_adj;"
			"grep Cpus_allowed_list /proc/self/status; ulimit -f");

		script->options.peer = peer;
		script_begin(script);
		script_end(script);
		(void)kill(peer, SIGKILL);
		(void)waitpid(peer, NULL, 0);
		/* dash counts core and file sizes in blocks of 512 bytes. */
		assert_string_equal(script->output,
				    "333\n444\n0\n7\n321\nCpus_allowed_list:\t0\n2048\n");
		script_free(script);
	}
}

static void R20_a_vanished_peer_is_not_asked(void **state)
{
	struct script *script = script_new(geteuid(), "echo ran");

	(void)state;
	script->options.peer = start_peer(geteuid());
	(void)kill(script->options.peer, SIGKILL); /* a zombie: still there, but not alive */
	(void)usleep(50000);
	script_fail(script);
	assert_failed(&script->run, ERR_SETUP_FAILED, "inherit");
	(void)waitpid(script->options.peer, NULL, 0);
	script_free(script);
}

/* ---- placeholders -------------------------------------------------------------------- */

static struct script *script_with_absent(uid_t uid, struct plan *plan, const char *name,
					 const char *text)
{
	struct script *script = script_new(uid, text);
	char path[256];

	run_plan(plan, script->work);
	(void)snprintf(path, sizeof(path), "%s/%s", script->work, name);
	run_plan_add(plan, PLAN_MASK_DIR, PLAN_PLACEHOLDER, path, NULL);
	script->options.plan = plan;
	return script;
}

static void R26_absent_denies_are_held(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct plan plan;
		struct script *script = script_with_absent(
			uid, &plan, ".ssh/deep",
			"ls -A .; ls .ssh/deep; echo x >.ssh/deep/id; rmdir .ssh/deep; mkdir .ssh/deep/y;"
			"test -d .ssh/deep && echo there; test -e .ssh/deep/y || echo held");
		struct stat st;

		script_begin(script);
		script_end(script);
		assert_non_null(strstr(script->output, ".ssh\n"));
		assert_non_null(strstr(script->output, "there\n"));
		assert_non_null(strstr(script->output, "held\n"));
		assert_int_equal(script->run.intent_count, 2);
		assert_int_equal(script->run.placeholder_count, 2);
		assert_int_equal(script->run.skipped_count, 0);
		assert_int_equal(lstat(script->run.placeholders[1].path, &st), 0);
		assert_int_equal(st.st_uid, uid);
		plan_deinit(&plan);
		script_free(script);
	}
}

static void R26_nothing_is_made_before_the_ledger_knows(void **state)
{
	struct plan plan;
	struct script *script = script_with_absent(geteuid(), &plan, "absent", "echo ran");
	struct pollfd readable = { .events = POLLIN };
	char path[256];
	struct stat st;

	(void)state;
	script->options.hold_go = true;
	run_begin(&script->run, &script->options);
	(void)close(script->options.stdio[1]);
	(void)snprintf(path, sizeof(path), "%s/absent", script->work);
	readable.fd = script->run.report_fd;
	assert_int_equal(poll(&readable, 1, RUN_TIMEOUT_MS), 1);
	(void)usleep(200000);
	assert_int_equal(lstat(path, &st), -1);
	/* fsboxd dies instead of answering. */
	(void)close(script->run.go_fd);
	script->run.go_fd = -1;
	run_end(&script->run);
	assert_failed(&script->run, ERR_UNREACHABLE, "placeholder");
	assert_int_equal(lstat(path, &st), -1);
	plan_deinit(&plan);
	script_free(script);
}

static void absent_where_nobody_can_create(void **state)
{
	(void)state;
	FOR_EACH_USER(uid)
	{
		struct plan plan;
		struct script *script = script_with_absent(uid, &plan, "closed/x", "echo ran");
		char path[256];

		if (uid == 0) { /* creates anywhere */
			plan_deinit(&plan);
			(void)close(script->options.stdio[1]);
			script_free(script);
			continue;
		}
		(void)snprintf(path, sizeof(path), "%s/closed", script->work);
		assert_int_equal(mkdir(path, 0555), 0);
		script_begin(script);
		script_end(script);
		assert_string_equal(script->output, "ran\n");
		assert_int_equal(script->run.placeholder_count, 0);
		assert_true(script->run.skipped_count > 0);
		plan_deinit(&plan);
		script_free(script);
	}
}

static void a_mask_whose_path_became_a_file(void **state)
{
	struct plan plan;
	struct script *script =
		script_with_absent(geteuid(), &plan, "secret", "cat secret || ls -A");
	char path[256];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/secret", script->work);
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
	script_begin(script);
	script_end(script);
	assert_non_null(strstr(script->output, "secret: Permission denied\nsecret\n"));
	plan_deinit(&plan);
	script_free(script);
}

/* The plan was made while something was there; bubblewrap must not make a mountpoint of its own. */
static void R26_masks_that_lost_their_object(void **state)
{
	static const enum plan_op_kind kinds[] = { PLAN_MASK_DIR, PLAN_MASK_FILE };

	(void)state;
	FOR_EACH_USER(uid)
	{
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			struct plan plan;
			struct script *script =
				script_with_absent(uid, &plan, "gone", "echo x >gone/x; ls gone");

			plan.ops[plan.count - 1].kind = kinds[i];
			plan.ops[plan.count - 1].flags = 0;
			/* In a fresh directory nothing of the host's is meant. */
			run_plan_add(&plan, PLAN_MASK_DIR, 0, "/tmp/fsbox-test-nowhere", NULL);
			script_begin(script);
			script_end(script);
			assert_int_equal(script->run.intent_count, 1);
			assert_int_equal(script->run.placeholder_count, 1);
			assert_non_null(strstr(script->run.placeholders[0].path, "/gone"));
			assert_int_equal(access("/tmp/fsbox-test-nowhere", F_OK), -1);
			plan_deinit(&plan);
			script_free(script);
		}
	}
}

static void engines_own_failures_are_told(void **state)
{
	struct script *script = script_new(geteuid(), "echo ran");
	struct plan plan;

	(void)state;
	run_plan(&plan, script->work);
	run_plan_add(&plan, PLAN_BIND, 0, "/no/such/source", "/no/such/source");
	script->options.plan = &plan;
	run_begin(&script->run, &script->options);
	(void)close(script->options.stdio[1]);
	assert_false(run_until_started(&script->run));
	assert_non_null(strstr(run_stderr(&script->run), "/no/such/source"));
	run_end(&script->run);
	assert_false(script->run.pipe.up);
	plan_deinit(&plan);
	script_free(script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_megabytes_pass),
		cmocka_unit_test(standard_descriptors_can_be_opened_again),
		cmocka_unit_test(arguments_are_bytes),
		cmocka_unit_test(arguments_past_the_kernels_limit),
		cmocka_unit_test(R7_descriptors_that_may_not_enter),
		cmocka_unit_test(R15_args_must_be_sealed),
		cmocka_unit_test(R16_landlock_and_mounts_hold),
		cmocka_unit_test(R19_root_cannot_write_proc),
		cmocka_unit_test(R17_R22_developer_tools_work),
		cmocka_unit_test(R20_limits_are_the_peers),
		cmocka_unit_test(R20_a_vanished_peer_is_not_asked),
		cmocka_unit_test(R26_absent_denies_are_held),
		cmocka_unit_test(R26_nothing_is_made_before_the_ledger_knows),
		cmocka_unit_test(absent_where_nobody_can_create),
		cmocka_unit_test(a_mask_whose_path_became_a_file),
		cmocka_unit_test(R26_masks_that_lost_their_object),
		cmocka_unit_test(engines_own_failures_are_told),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
