/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/run_init.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/sealed.h"
#include "tests/test.h"

#define OTHER_UID 1234567

size_t run_users(uid_t ret_users[2])
{
	ret_users[0] = geteuid() == 0 ? OTHER_UID : geteuid();
	ret_users[1] = 0;
	return geteuid() == 0 ? 2 : 1;
}

char *run_make_dir(uid_t uid)
{
	char path[] = "/tmp/fsbox-test-XXXXXX";

	assert_non_null(mkdtemp(path));
	if (geteuid() == 0)
		assert_int_equal(chown(path, uid, (gid_t)uid), 0);
	assert_int_equal(chmod(path, 0755), 0);
	return strdup(path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void run_remove_dir(char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
	free(path);
}

void run_plan_add(struct plan *plan, enum plan_op_kind kind, uint32_t flags, const char *path,
		  const char *source)
{
	if (plan->count == plan->capacity) {
		plan->capacity = plan->capacity ? plan->capacity * 2 : 16;
		plan->ops = reallocarray(plan->ops, plan->capacity, sizeof(*plan->ops));
		assert_non_null(plan->ops);
	}
	plan->ops[plan->count++] = (struct plan_op){ .kind = kind,
						     .flags = flags,
						     .path = strdup(path),
						     .source = source ? strdup(source) : NULL,
						     .rule = -1 };
}

void run_plan(struct plan *ret_plan, const char *work)
{
	static const char *const system_dirs[] = {
		"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64"
	};
	static const char *const fresh[] = { "/tmp", "/run", "/var/tmp", "/dev/shm" };

	*ret_plan = (struct plan)PLAN_INIT;
	ret_plan->chdir = strdup("/");
	run_plan_add(ret_plan, PLAN_ROOT, 0, "/", NULL);
	run_plan_add(ret_plan, PLAN_PROC, 0, "/proc", NULL);
	run_plan_add(ret_plan, PLAN_DEV, 0, "/dev", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(fresh); i++)
		run_plan_add(ret_plan, PLAN_TMPFS, 0, fresh[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(system_dirs); i++) {
		char target[256];
		ssize_t n = readlink(system_dirs[i], target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			run_plan_add(ret_plan, PLAN_SYMLINK, 0, system_dirs[i], target);
		} else if (access(system_dirs[i], F_OK) == 0) {
			run_plan_add(ret_plan, PLAN_BIND, PLAN_READ_ONLY, system_dirs[i],
				     system_dirs[i]);
		}
	}
	if (work)
		run_plan_add(ret_plan, PLAN_BIND, 0, work, work);
	run_plan_add(ret_plan, PLAN_SEAL, 0, "/", NULL);
}

/* ---- the broker's part --------------------------------------------------------------- */

static int make_args(const struct run_options *options)
{
	static const char *const plain_env[] = { "PATH=/usr/bin:/bin", NULL };
	AUTO(buf_deinit) struct buf out = BUF_INIT((size_t)2 * LIMIT_ARGS_BYTES);
	struct error err = ERROR_INIT;
	int fd = -1;

	if (options->args_fd >= 0)
		return fcntl(options->args_fd, F_DUPFD_CLOEXEC, 0);
	if (args_encode(&out, options->cwd ? options->cwd : options->work,
			(char *const *)options->argv,
			(char *const *)(options->envp ? options->envp : plain_env), &err) < 0 ||
	    sealed_create("args", out.data, out.size, 0400, &fd, &err) < 0)
		fail_msg("%s", err.message);
	return fd;
}

static void send_start(int channel_fd, const struct run_options *options)
{
	AUTO(auto_close) int args_fd = make_args(options);
	const int candidates[] = { options->stdio[0], options->stdio[1], options->stdio[2],
				   options->lifeline, args_fd };
	struct start_message start = { .size = sizeof(start), .umask = options->umask };
	union {
		char bytes[CMSG_SPACE(sizeof(candidates))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { .iov_base = &start, .iov_len = sizeof(start) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
	struct cmsghdr *cmsg = &control.align;
	int fds[ARRAY_SIZE(candidates)];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
		if (candidates[i] < 0)
			continue;
		start.fds |= 1u << i;
		fds[count++] = candidates[i];
	}
	msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
	assert_int_equal(sendmsg(channel_fd, &msg, 0), sizeof(start));
}

/* ---- fsboxd's part ------------------------------------------------------------------- */

static _Noreturn void leader(const struct run_options *options, const char *masks, const int fds[4])
{
	char mask_dir[64];
	char mask_file[64];
	struct identity identity = { .uid = options->uid, .gid = (gid_t)options->uid };
	struct builder_input input = {
		.identity = &identity,
		.mode = geteuid() == 0 ? MODE_SYSTEM : MODE_USER,
		.engine = ENGINE_BWRAP,
		.peer_pid = options->peer ? options->peer : getppid(),
		.mask_dir = mask_dir,
		.mask_file = mask_file,
		.report_fd = fds[0],
		.go_fd = fds[1],
		.channel_fd = fds[2],
		.stderr_fd = fds[3],
		.result_fd = options->result_fd > 0 ? options->result_fd : -1,
		.switch_ids = geteuid() == 0,
		.detached = options->detached,
	};
	struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	if (options->plan) {
		plan = *options->plan;
		plan.net = options->host_net ? NET_HOST : plan.net;
	} else {
		run_plan(&plan, options->work);
		plan.net = options->host_net ? NET_HOST : NET_NONE;
	}
	if (geteuid() != 0)
		identity.gid = getegid();
	(void)snprintf(mask_dir, sizeof(mask_dir), "%s/dir", masks);
	(void)snprintf(mask_file, sizeof(mask_file), "%s/file", masks);
	input.plan = &plan;
	input.peer_pidfd = (int)syscall(SYS_pidfd_open, input.peer_pid, 0);
	if (builder_load_init(getenv("FSBOX_INIT"), &input.init_fd, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.message);
		_exit(99);
	}
	builder_run(&input);
}

static void make_masks(struct run *run)
{
	char path[64];

	memcpy(run->masks, "/tmp/fsbox-masks-XXXXXX", sizeof("/tmp/fsbox-masks-XXXXXX"));
	assert_non_null(mkdtemp(run->masks));
	assert_int_equal(chmod(run->masks, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/dir", run->masks);
	assert_int_equal(mkdir(path, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/file", run->masks);
	assert_int_equal(mknod(path, S_IFREG, 0), 0);
}

void run_begin(struct run *run, const struct run_options *options)
{
	int report[2];
	int go[2];
	int channel[2];

	memset(run, 0, sizeof(*run));
	make_masks(run);
	run->pid1_fd = -1;
	run->hold_go = options->hold_go;
	run->fsboxd_gone = options->fsboxd_gone;
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
	run->stderr_fd = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(run->stderr_fd >= 0);
	run->report_fd = report[0];
	run->go_fd = go[1];
	run->channel_fd = channel[0];

	run->leader = fork();
	assert_true(run->leader >= 0);
	if (run->leader == 0)
		leader(options, run->masks,
		       (const int[]){ report[1], go[0], channel[1], run->stderr_fd });
	(void)close(report[1]);
	(void)close(go[0]);
	(void)close(channel[1]);
	if (options->broker_gone) {
		(void)close(run->channel_fd);
		run->channel_fd = -1;
	} else {
		send_start(run->channel_fd, options);
	}
}

static void note(struct run *run, struct run_side *side, const struct report_message *message)
{
	switch ((enum report_kind)message->kind) {
	case REPORT_PLACEHOLDER_INTENT:
		run->intent_count++;
		if (!run->hold_go)
			assert_int_equal(write(run->go_fd, "g", 1), 1);
		return;
	case REPORT_PLACEHOLDER_MADE:
		assert_true(run->placeholder_count < RUN_PLACEHOLDERS);
		run->placeholders[run->placeholder_count++] = message->u.placeholder;
		return;
	case REPORT_PLACEHOLDER_SKIPPED:
		run->skipped_count++;
		assert_int_equal(write(run->go_fd, "g", 1), 1);
		return;
	case REPORT_PID1_UP:
	case REPORT_BUILT:
		side->up = true;
		if (run->fsboxd_gone) {
			(void)close(run->go_fd);
			run->go_fd = -1;
		} else {
			assert_int_equal(write(run->go_fd, "g", 1), 1);
		}
		return;
	case REPORT_STARTED:
		side->started = true;
		return;
	case REPORT_FAILED:
		side->failed = true;
		side->failure = message->u.failure;
		return;
	case REPORT_EXITED:
		side->exited = true;
		side->record = message->u.exited;
		return;
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
	case REPORT_MASK_GONE:
	case REPORT_KIND_COUNT:
		break;
	}
	fail_msg("report of kind %u", message->kind);
}

/* False at the end of the pipe. */
static bool read_pipe(struct run *run)
{
	struct report_message message;
	struct error err = ERROR_INIT;
	size_t done = 0;
	size_t wanted = offsetof(struct report_message, u);

	while (done < wanted) {
		ssize_t n = read(run->report_fd, (char *)&message + done, wanted - done);

		assert_true(n >= 0);
		if (n == 0) {
			assert_int_equal(done, 0);
			return false;
		}
		done += (size_t)n;
		if (done == offsetof(struct report_message, u))
			wanted = report_message_size(message.kind);
	}
	if (report_message_check(&message, done, &err) < 0)
		fail_msg("from the pipe: %s", err.message);
	note(run, &run->pipe, &message);
	return true;
}

static bool read_channel(struct run *run)
{
	struct report_message message;
	struct error err = ERROR_INIT;
	struct cmsghdr *cmsg = NULL;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(run->channel_fd, &msg, MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	if (report_message_check(&message, (size_t)n, &err) < 0)
		fail_msg("from the channel: %s", err.message);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg) {
		assert_int_equal(message.kind, REPORT_STARTED);
		memcpy(&run->pid1_fd, CMSG_DATA(cmsg), sizeof(int));
	}
	note(run, &run->channel, &message);
	return true;
}

static bool is_over(const struct run *run)
{
	bool over = run->pipe.failed || run->pipe.exited;

	if (run->channel_fd < 0 || (run->pipe.failed && !run->pipe.up))
		return over; /* the builder tells fsboxd alone */
	return over && (run->channel.failed || run->channel.exited);
}

/* Serve until DONE says so or both sides are closed. */
static void serve(struct run *run, bool until_started)
{
	while (run->report_fd >= 0 || run->channel_fd >= 0) {
		struct pollfd fds[] = { { .fd = run->report_fd, .events = POLLIN },
					{ .fd = run->channel_fd, .events = POLLIN } };

		if (is_over(run) || (until_started && run->pipe.started &&
				     (run->channel_fd < 0 || run->channel.started)))
			return;
		if (poll(fds, 2, RUN_TIMEOUT_MS) == 0) {
			(void)kill(run->leader, SIGKILL);
			fail_msg("nothing happens any more; bwrap: %s", run_stderr(run));
		}
		if (fds[0].revents && !read_pipe(run)) {
			(void)close(run->report_fd);
			run->report_fd = -1;
		}
		if (fds[1].revents && !read_channel(run)) {
			(void)close(run->channel_fd);
			run->channel_fd = -1;
		}
	}
}

bool run_until_started(struct run *run)
{
	serve(run, true);
	return run->pipe.started;
}

void run_until_over(struct run *run)
{
	serve(run, false);
}

void run_end(struct run *run)
{
	int fds[] = { run->pid1_fd, run->go_fd };

	serve(run, false);
	if (run->report_fd >= 0)
		(void)close(run->report_fd);
	if (run->channel_fd >= 0)
		(void)close(run->channel_fd);
	assert_int_equal(waitpid(run->leader, NULL, 0), run->leader);
	if (run->pid1_fd >= 0) {
		struct pollfd gone = { .fd = run->pid1_fd, .events = POLLIN };

		assert_int_equal(poll(&gone, 1, RUN_TIMEOUT_MS), 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	if (!run->pipe.exited && !run->pipe.failed)
		print_message("bwrap: %s\n", run_stderr(run));
	(void)close(run->stderr_fd);
	run_remove_dir(strdup(run->masks));
}

void run_job(struct run *run, const struct run_options *options)
{
	run_begin(run, options);
	run_end(run);
}

const char *run_stderr(const struct run *run)
{
	static char text[1024];
	ssize_t n = pread(run->stderr_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* ---- scripts -------------------------------------------------------------------------- */

struct script *script_new(uid_t uid, const char *text)
{
	struct script *script = calloc(1, sizeof(*script));
	int fds[2];

	assert_non_null(script);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	/* As if the client had made it: it may open its own pipe again. */
	if (geteuid() == 0)
		assert_int_equal(fchown(fds[1], uid, (gid_t)uid), 0);
	script->work = run_make_dir(uid);
	script->options = (struct run_options)RUN_OPTIONS_INIT;
	script->options.uid = uid;
	script->options.work = script->work;
	script->options.argv = script->argv;
	script->options.stdio[1] = fds[1];
	script->options.stdio[2] = fds[1];
	script->argv[0] = "/bin/sh";
	script->argv[1] = "-c";
	script->argv[2] = text;
	script->output_fd = fds[0];
	return script;
}

void script_begin(struct script *script)
{
	run_begin(&script->run, &script->options);
	(void)close(script->options.stdio[1]);
	if (!run_until_started(&script->run))
		fail_msg("not started: %s: %s; bwrap: %s", script->run.pipe.failure.stage,
			 script->run.pipe.failure.message, run_stderr(&script->run));
}

/* What is in the output pipe now; after the end all of it, since nobody is left to write. */
static void script_read(struct script *script)
{
	size_t length = strlen(script->output);
	ssize_t n = 0;

	while ((n = read(script->output_fd, script->output + length,
			 sizeof(script->output) - 1 - length)) > 0)
		length += (size_t)n;
	script->output[length] = '\0';
}

void script_end(struct script *script)
{
	run_end(&script->run);
	script_read(script);
}

void script_fail(struct script *script)
{
	run_job(&script->run, &script->options);
	(void)close(script->options.stdio[1]);
	script_read(script);
}

struct script *script_free(struct script *script)
{
	(void)close(script->output_fd);
	run_remove_dir(script->work);
	free(script);
	return NULL;
}

struct script *script_run(uid_t uid, const char *text)
{
	struct script *script = script_new(uid, text);

	script_begin(script);
	script_end(script);
	return script;
}

/* Wait until the job printed WORD. */
void script_wait_for(struct script *script, const char *word)
{
	struct pollfd readable = { .fd = script->output_fd, .events = POLLIN };

	while (!strstr(script->output, word)) {
		size_t length = strlen(script->output);
		ssize_t n = 0;

		assert_int_equal(poll(&readable, 1, RUN_TIMEOUT_MS), 1);
		n = read(script->output_fd, script->output + length,
			 sizeof(script->output) - 1 - length);
		assert_true(n > 0);
		script->output[length + (size_t)n] = '\0';
	}
}

void assert_exited(const struct run *run, int code)
{
	const struct run_side *const sides[] = { &run->pipe, &run->channel };

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
		assert_true(sides[i]->exited);
		assert_int_equal(sides[i]->record.reason, EXIT_EXITED);
		assert_int_equal(sides[i]->record.code, code);
		assert_int_equal(sides[i]->record.signal, 0);
	}
}

void assert_signaled(const struct run *run, int signo)
{
	assert_true(run->pipe.exited);
	assert_int_equal(run->pipe.record.reason, EXIT_SIGNALED);
	assert_int_equal(run->pipe.record.signal, signo);
	assert_int_equal(run->pipe.record.code, 0);
}

void assert_failed(const struct run *run, enum error_kind kind, const char *stage)
{
	assert_true(run->pipe.failed);
	assert_string_equal(error_name((enum error_kind)run->pipe.failure.kind), error_name(kind));
	assert_string_equal(run->pipe.failure.stage, stage);
	assert_false(run->pipe.started);
	assert_false(run->pipe.exited);
}
