/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/builder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/bwrap.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/rule.h"
#include "common/scope.h"
#include "daemon/spawner/builderwork.h"
#include "daemon/spawner/engine.h"
#include "daemon/spawner/inherit.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/placeholder.h"
#include "daemon/spawner/quote.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/result.h"
#include "daemon/spawner/sealed.h"

/* The static init program is about 1 MB. */
#define INIT_MAX_BYTES (16 << 20)

/* Above every number that a descriptor is given for good. */
#define HIGH_FD 32

/* How often a placeholder that was removed under way is made again. */
#define PLACEHOLDER_ROUNDS 4

/* Where announce() notes what it passed on. */
struct announcer {
	char last_made[LIMIT_PATH_BYTES + 1];
};

_Noreturn void builder_fail(const struct builder *builder, const struct error *err)
{
	struct report_message message;

	report_begin(&message, REPORT_FAILED);
	failure_set(&message.u.failure, err, builder->stage);
	(void)report_write(builder->report_fd, &message, NULL);
	_exit(125);
}

/* ---- step 1: as fsboxd's copy -------------------------------------------------------- */

/*
 * Holds: every descriptor and all memory of fsboxd, its ids and capabilities. Nothing is read yet that
 * a peer can influence.
 */
int builder_shut(struct builder *builder, struct error *err)
{
	builder->stage = "builder";
	builder->report_fd = fcntl(builder->input->report_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(err, ERR_SYSTEM, errno, "prepare the builder");
	(void)setsid();
	(void)umask(077);
	if (chdir("/") < 0)
		return error_set(err, ERR_SYSTEM, errno, "chdir /");
	return 0;
}

/* Holds the same. Read through the peer's pidfd. */
static int builder_read_peer(struct builder *builder, struct error *err)
{
	builder->stage = "inherit";
	return inherit_read(builder->input->peer_pid, builder->input->peer_pidfd, &builder->inherit,
			    err);
}

static int place(int fd, int number, struct error *err)
{
	/* dup2() onto itself would leave close-on-exec set. */
	if (fd == number ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, number) < 0)
		return error_set(err, ERR_SYSTEM, errno, "place descriptor %d", number);
	return 0;
}

int builder_keep_descriptors(const struct builder_placed *wanted, size_t count, struct error *err)
{
	int high[BUILDER_PLACED_MAX];
	unsigned int next = 0;

	for (size_t i = 0; i < count; i++) {
		high[i] = wanted[i].fd < 0 ? -1 : fcntl(wanted[i].fd, F_DUPFD_CLOEXEC, HIGH_FD);
		if (wanted[i].fd >= 0 && high[i] < 0)
			return error_set(err, ERR_SYSTEM, errno, "descriptor for %d",
					 wanted[i].number);
	}
	for (size_t i = 0; i < count; i++) {
		unsigned int number = (unsigned int)wanted[i].number;

		if (high[i] < 0)
			continue;
		if (number > next && syscall(SYS_close_range, next, number - 1, 0) < 0)
			return error_set(err, ERR_SYSTEM, errno, "close other descriptors");
		if (place(high[i], wanted[i].number, err) < 0)
			return -(int)ERR_SYSTEM;
		next = number + 1;
	}
	if (syscall(SYS_close_range, next, ~0u, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "close other descriptors");
	return 0;
}

bool builder_has_egress(const struct builder_input *input)
{
	return input->net.proxy || input->net.forward_count > 0;
}

int builder_map_result(struct builder *builder, struct error *err)
{
	builder->stage = "result";
	return builder->input->result_fd < 0
		       ? 0
		       : result_map(builder->input->result_fd, &builder->result, err);
}

/* For bwrap: our own few, at the numbers of INIT_FD_*. */
static int builder_place_descriptors(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct builder_placed wanted[] = {
		{ null_fd, STDIN_FILENO },
		{ null_fd, STDOUT_FILENO },
		{ input->stderr_fd, STDERR_FILENO },
		{ input->report_fd, INIT_FD_REPORT },
		{ input->go_fd, INIT_FD_GO },
		{ input->channel_fd, INIT_FD_CHANNEL },
		{ null_fd, INIT_FD_SETUP }, /* taken, until it is made */
		{ input->init_fd, INIT_FD_SELF },
		{ dev_fd, INIT_FD_DEV },
		{ builder_has_egress(input) ? input->egress_fd : -1, INIT_FD_EGRESS },
		{ null_fd, INIT_FD_RESULT }, /* likewise */
	};

	if (null_fd < 0 || dev_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /dev");
	if (builder_keep_descriptors(wanted, ARRAY_SIZE(wanted), err) < 0)
		return -(int)ERR_SYSTEM;
	builder->report_fd = INIT_FD_REPORT;
	return 0;
}

/*
 * Holds the same, but of descriptors only our own. The network that bwrap makes has no second address
 * and no low ports; in user mode there is none but that.
 */
static int builder_leave_network(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;

	builder->stage = "network";
	builder->own_network = input->switch_ids && input->plan->net != NET_HOST;
	return builder->own_network ? native_new_network(err) : 0;
}

/* ---- step 2: becoming the peer ------------------------------------------------------- */

/*
 * Holds: our own descriptors only; ids and capabilities of fsboxd, until the last line. Memory is
 * still a copy of fsboxd's, which holds no secrets, and cannot be looked at.
 */
int builder_become(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	int r = 0;

	builder->stage = "identity";
	/*
	 * Before the peer's ids, so that at no moment the peer can look in; not earlier, since an ordinary
	 * user may not write his own oom_score_adj afterwards.
	 */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	if (input->switch_ids && input->engine == ENGINE_NATIVE) {
		r = native_become(input->identity, err);
		if (r < 0)
			return r;
	} else if (input->switch_ids) {
		r = identity_become(input->identity, err);
		if (r < 0)
			return r;
	} else if (geteuid() != input->identity->uid) {
		return error_set(err, ERR_SYSTEM, 0, "runs as user %u, not %u", geteuid(),
				 input->identity->uid);
	}
	/* Again: going from one user to another resets it to what suid_dumpable says. */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	return 0;
}

/* ---- step 3: placeholders, as the peer ----------------------------------------------- */

static int announce(enum report_kind kind, const struct report_placeholder *what, void *arg,
		    struct error *err)
{
	struct announcer *announcer = arg;
	struct report_message message;
	int r = 0;

	report_begin(&message, kind);
	message.u.placeholder = *what;
	r = report_write(INIT_FD_REPORT, &message, err);
	/*
	 * In the ledger before it is on the disk (R26). And what is there already may be a placeholder that is
	 * just being removed: then the answer comes when it is gone.
	 */
	if (r == 0 && kind != REPORT_PLACEHOLDER_MADE)
		r = report_wait_go(INIT_FD_GO, err);
	if (r == 0 && kind == REPORT_PLACEHOLDER_MADE)
		memcpy(announcer->last_made, what->path, sizeof(announcer->last_made));
	return r;
}

/* What stands at the path of OP now decides with what it is masked. */
static int settle_kind(struct plan_op *op, struct error *err)
{
	struct stat st;

	if (lstat(op->path, &st) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "placeholder %s",
				 quote(op->path).text);
	if (S_ISLNK(st.st_mode))
		return error_set(err, ERR_SETUP_FAILED, 0, "%s has become a link meanwhile",
				 quote(op->path).text);
	if (!S_ISDIR(st.st_mode) && op->kind == PLAN_MASK_DIR)
		op->kind = PLAN_MASK_FILE;
	if (S_ISDIR(st.st_mode) && op->kind == PLAN_MASK_FILE)
		op->kind = PLAN_MASK_DIR;
	return 0;
}

/* Nothing is there and nobody inside can make it: nothing to mount on, and a seal has no object. */
static void leave_out(struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_op *op = &plan->ops[i];

		if (strcmp(op->path, path) == 0 &&
		    (op->kind == PLAN_SEAL || op->flags & PLAN_PLACEHOLDER))
			op->flags |= PLAN_WATCH;
	}
}

/* What is there may be known by another name, of a mount that shows the same directory. */
static void identify(struct report_placeholder *what)
{
	AUTO(auto_close) int fd = open(what->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	what->node = (struct node_identity){ 0 };
	if (fd >= 0)
		(void)node_identity_read(fd, &what->node, NULL);
}

static int make_placeholder(struct plan *plan, struct plan_op *op, struct error *err)
{
	struct announcer announcer = { .last_made = "" };
	struct report_placeholder skipped = { .path = "" };
	int r = 1;

	for (int round = 0; r == 1 && round < PLACEHOLDER_ROUNDS; round++) {
		r = placeholder_make(op->path, announce, &announcer, err);
		if (r < 0 || strcmp(announcer.last_made, op->path) == 0)
			break;
		/* So that fsboxd knows on what of others' this job stands. */
		(void)snprintf(skipped.path, sizeof(skipped.path), "%s", op->path);
		identify(&skipped);
		if (announce(REPORT_PLACEHOLDER_SKIPPED, &skipped, &announcer, err) < 0)
			return -(int)err->kind;
		/* From now on it stays, unless it went just before. */
		if (r == 0 || faccessat(AT_FDCWD, op->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			break;
	}
	if (r < 0)
		return r;
	if (r == 1)
		return settle_kind(op, err);
	leave_out(plan, op->path);
	return 0;
}

/*
 * Whether the mask at INDEX had something to stand on when the plan was made, and has not any more: a file
 * of the user's, or a placeholder of a job that has ended since. Bubblewrap would make a directory
 * there that nobody knows of. Or what is there now may be a placeholder of another job's, which must stay as
 * long as this one: fsboxd knows, if it is told.
 */
static bool lost_its_object(const struct plan *plan, size_t index)
{
	const struct plan_op *mask = &plan->ops[index];

	if ((mask->kind != PLAN_MASK_DIR && mask->kind != PLAN_MASK_FILE &&
	     mask->kind != PLAN_MASK_TREE) ||
	    mask->flags & (PLAN_PLACEHOLDER | PLAN_WATCH | PLAN_NODE_LINK))
		return false;
	if (!builder_may_be_placeholder(mask->path))
		return false;
	/* Only where the host's own tree is shown at its own place, to be written to. */
	while (index-- > 0) {
		const struct plan_op *below = &plan->ops[index];

		if (below->kind == PLAN_SYMLINK || below->kind == PLAN_SEAL ||
		    below->kind == PLAN_PIN || below->kind == PLAN_NOTICE)
			continue; /* puts nothing there */
		if (path_covers(below->path, mask->path))
			return below->kind == PLAN_BIND &&
			       !(below->flags & (PLAN_READ_ONLY | PLAN_PRIVATE_SOURCE));
	}
	return false;
}

/*
 * Holds: our own descriptors; the peer's ids and no capability. What is walked here is the peer's to
 * shape; it may hang for ever, and fsboxd abandons us then.
 */
int builder_make_placeholders(struct builder *builder, struct error *err)
{
	const struct plan *plan = builder->input->plan;
	int r = 0;

	builder->stage = "placeholder";
	builder->plan = *plan;
	/* Init goes to the working directory, since it can say that it is gone. */
	builder->plan.chdir = (char *)"/";
	builder->plan.ops = calloc(plan->count + 1, sizeof(*plan->ops));
	if (!builder->plan.ops)
		return error_set(err, ERR_NOMEM, 0, "plan");
	if (plan->count > 0)
		memcpy(builder->plan.ops, plan->ops, plan->count * sizeof(*plan->ops));
	for (size_t i = 0; r == 0 && i < plan->count; i++) {
		struct plan_op *op = &builder->plan.ops[i];

		if (lost_its_object(&builder->plan, i))
			op->flags |= PLAN_PLACEHOLDER;
		if (op->flags & PLAN_PLACEHOLDER && !(op->flags & PLAN_WATCH))
			r = make_placeholder(&builder->plan, op, err);
		if (op->kind == PLAN_PIN)
			builder_settle_pin(op);
		builder_settle_mask(op);
	}
	return r;
}

/* ---- step 4: turning into the engine ------------------------------------------------- */

/* Those of the names below /proc to be masked that this kernel has. */
static int list_proc_masks(struct string_list *ret_list, struct error *err)
{
	size_t count = 0;
	const char *const *names = bwrap_proc_masks(&count);
	char path[64];

	for (size_t i = 0; i < count; i++) {
		int r = 0;

		(void)snprintf(path, sizeof(path), "/proc/%s", names[i]);
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = string_list_add(ret_list, names[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int builder_compile(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PLAN_BYTES);
	AUTO(string_list_deinit) struct string_list proc_masks = { 0 };
	struct bwrap_options options = {
		.mask_dir = input->mask_dir,
		.mask_file = input->mask_file,
		.proc_masks = &proc_masks,
		.root_peer = input->identity->uid == 0,
		.own_network = builder->own_network,
	};
	int r = 0;

	builder->stage = "compile";
	r = list_proc_masks(&proc_masks, err);
	if (r < 0)
		return r;
	r = bwrap_compile(&builder->plan, &options, &out, err);
	if (r < 0)
		return r;
	(void)buf_add(&out, "--as-pid-1", sizeof("--as-pid-1"));
	r = buf_check(&out, "arguments of bubblewrap", err);
	if (r < 0)
		return r;
	return sealed_create("bwrap arguments", out.data, out.size, 0400, &builder->args_fd, err);
}

int builder_encode_setup(struct builder *builder, struct buf *out, struct error *err)
{
	const struct builder_input *input = builder->input;
	struct setup_header header = { .magic = SETUP_MAGIC, .engine = input->engine };
	int r = 0;

	builder->stage = "setup";
	header.flags = (builder->plan.net == NET_HOST ? SETUP_NET_HOST : 0) |
		       (input->detached ? SETUP_DETACHED : 0) |
		       (input->net.proxy ? SETUP_PROXY : 0) | (input->granted ? SETUP_GRANTED : 0);
	header.forward_count = input->net.forward_count;
	memcpy(header.forwards, input->net.forwards, sizeof(header.forwards));
	if (input->granted)
		header.grant = input->grant;
	(void)buf_add(out, &header, sizeof(header));
	for (size_t i = 0; i < builder->plan.count; i++) {
		const struct plan_op *op = &builder->plan.ops[i];

		if (!builder_is_writable(op))
			continue;
		(void)buf_add_byte(out, ACCESS_READ_WRITE);
		(void)buf_add(out, op->path, strlen(op->path) + 1);
		header.path_count++;
	}
	r = buf_check(out, "setup of init", err);
	if (r < 0)
		return r;
	header.size = (uint32_t)out->size;
	memcpy(out->data, &header, sizeof(header));
	return 0;
}

static int builder_write_setup(struct builder *builder, struct error *err)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_PLAN_BYTES);
	AUTO(auto_close) int fd = -1;
	int r = builder_encode_setup(builder, &out, err);

	if (r < 0)
		return r;
	r = sealed_create("fsbox setup", out.data, out.size, 0400, &fd, err);
	if (r < 0)
		return r;
	r = place(fd, INIT_FD_SETUP, err);
	if (fd == INIT_FD_SETUP)
		(void)steal_fd(&fd);
	return r;
}

/*
 * Holds the same. Init cannot take a mapping through exec, and a descriptor of the file would be too
 * much for whoever can look into bwrap: so a process beside it keeps the page, and init writes to that.
 */
static int builder_fork_scribe(struct builder *builder, struct error *err)
{
	int ends[2];
	pid_t pid = 0;

	builder->stage = "result";
	if (!builder->result)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork");
	if (pid == 0) {
		if (dup2(ends[0], 0) == 0 && syscall(SYS_close_range, 1u, ~0u, 0) == 0)
			result_scribe(0, builder->result);
		_exit(0);
	}
	(void)close(ends[0]);
	if (place(ends[1], INIT_FD_RESULT, err) < 0)
		return -(int)ERR_SYSTEM;
	if (ends[1] != INIT_FD_RESULT)
		(void)close(ends[1]);
	return 0;
}

/*
 * Holds: our own descriptors and two memfds; the peer's ids. bwrap closes the one with its arguments and
 * hands the rest to init; its outer process keeps only 0 to 2.
 */
static int builder_exec(struct builder *builder, struct error *err)
{
	static char *const envp[] = { NULL };
	const char *path = builder->input->engine_path;
	char init_path[32];
	char *argv[] = { (char *)"bwrap", (char *)"--args", builder->args_number,
			 (char *)"--",    init_path,        NULL };
	int r = 0;

	builder->stage = "bwrap";
	path = path ? path : engine_find_bwrap();
	if (!path)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "bubblewrap is not installed");
	if (fcntl(builder->args_fd, F_SETFD, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "bwrap arguments");
	(void)snprintf(builder->args_number, sizeof(builder->args_number), "%d", builder->args_fd);
	(void)snprintf(init_path, sizeof(init_path), "/proc/self/fd/%d", INIT_FD_SELF);
	/* From here on as the client is limited; nothing but exec is left to do. */
	r = inherit_limit(&builder->inherit, err);
	if (r < 0)
		return r;
	(void)execve(path, argv, envp);
	return error_set(err, ERR_ENGINE_UNAVAILABLE, errno, "execute %s", quote(path).text);
}

/* ---- jobs ----------------------------------------------------------------------------- */

_Noreturn void builder_run(const struct builder_input *input)
{
	struct builder builder = BUILDER_INIT(input);
	struct error err = ERROR_INIT;
	int r = builder_shut(&builder, &err);

	if (r == 0 && input->engine == ENGINE_NATIVE)
		builder_run_native(&builder);
	if (r == 0 && input->engine != ENGINE_BWRAP)
		r = error_set(&err, ERR_ENGINE_UNAVAILABLE, 0, "engine '%s' has no builder",
			      engine_name(input->engine));
	if (r == 0 && (r = builder_read_peer(&builder, &err)) == 0 &&
	    (r = builder_map_result(&builder, &err)) == 0 &&
	    (r = builder_place_descriptors(&builder, &err)) == 0 &&
	    (r = inherit_raise(&builder.inherit, &err)) == 0 &&
	    (r = builder_leave_network(&builder, &err)) == 0 &&
	    (r = builder_become(&builder, &err)) == 0 &&
	    (r = builder_make_placeholders(&builder, &err)) == 0 &&
	    (r = builder_compile(&builder, &err)) == 0 &&
	    (r = builder_write_setup(&builder, &err)) == 0 &&
	    (r = builder_fork_scribe(&builder, &err)) == 0)
		(void)builder_exec(&builder, &err);
	builder_fail(&builder, &err);
}

int builder_load_init(const char *path, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	AUTO(auto_free) char *data = NULL;
	struct stat st;
	size_t done = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, ERR_SYSTEM, errno, "open %s", quote(path).text);
	if (!S_ISREG(st.st_mode) || st.st_size < 1 || st.st_size > INIT_MAX_BYTES)
		return error_set(err, ERR_SYSTEM, 0, "%s is no program", quote(path).text);
	data = malloc((size_t)st.st_size);
	if (!data)
		return error_set(err, ERR_NOMEM, 0, "%s", quote(path).text);
	while (done < (size_t)st.st_size) {
		ssize_t n = read(fd, data + done, (size_t)st.st_size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_set(err, ERR_SYSTEM, n < 0 ? errno : 0, "read %s",
					 quote(path).text);
		done += (size_t)n;
	}
	return sealed_create("fsbox-init", data, done, 0555, ret_fd, err);
}
