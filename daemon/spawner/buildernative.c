/* SPDX-License-Identifier: Apache-2.0 */
/* The native engine's part of builder.h: making a template, and a job that enters one. */
#include "daemon/spawner/builder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"
#include "daemon/spawner/builderwork.h"
#include "daemon/spawner/inherit.h"
#include "daemon/spawner/init.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/nsfd.h"
#include "daemon/spawner/report.h"
#include "proto/wire/guardop.h"

/* ---- a job ---------------------------------------------------------------------------- */

/* Descriptors of a native job besides INIT_FD_*: namespaces to enter. */
#define NATIVE_FD_USER (BUILDER_FD_RULESET + 1)
#define NATIVE_FD_MOUNT (BUILDER_FD_RULESET + 2)
#define NATIVE_FD_SET (BUILDER_FD_RULESET + 3)

static int native_place(struct builder *builder, const struct native_set *set, struct error *err)
{
	const struct builder_input *input = builder->input;
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int ruleset_fd = builder_find_ruleset(builder);
	const struct builder_placed wanted[] = {
		{ null_fd, STDIN_FILENO },
		{ null_fd, STDOUT_FILENO },
		{ null_fd, STDERR_FILENO },
		{ input->report_fd, INIT_FD_REPORT },
		{ input->go_fd, INIT_FD_GO },
		{ input->channel_fd, INIT_FD_CHANNEL },
		{ dev_fd, INIT_FD_DEV },
		{ builder_has_egress(input) ? input->egress_fd : -1, INIT_FD_EGRESS },
		{ input->guard.order_fd, BUILDER_FD_GUARD },
		{ builder->root_fd, BUILDER_FD_ROOT },
		{ ruleset_fd, BUILDER_FD_RULESET },
		{ input->namespaces.user_ns_fd, NATIVE_FD_USER },
		{ input->namespaces.mount_ns_fd, NATIVE_FD_MOUNT },
		{ set->net_fd, NATIVE_FD_SET },
		{ set->ipc_fd, NATIVE_FD_SET + 1 },
		{ set->uts_fd, NATIVE_FD_SET + 2 },
		{ set->cgroup_fd, NATIVE_FD_SET + 3 },
	};

	if (null_fd < 0 || dev_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /dev");
	if (builder_keep_descriptors(wanted, ARRAY_SIZE(wanted), err) < 0)
		return -(int)ERR_SYSTEM;
	builder->report_fd = INIT_FD_REPORT;
	builder->ruleset_fd = ruleset_fd >= 0 ? BUILDER_FD_RULESET : -1;
	return 0;
}

int builder_enrol_take(const struct builder_guard *guard, int mount_ns_fd, int *ret_end_fd,
		       struct error *err)
{
	AUTO(auto_close) int own_fd = mount_ns_fd;
	AUTO(auto_close) int end_read = -1;
	AUTO(auto_close) int end_write = -1;
	struct guard_order order;
	struct timespec now = { 0 };
	int ends[2];
	int fds[GUARD_ORDER_FDS];

	*ret_end_fd = -1;
	if (guard->order_fd < 0)
		return 0;
	if (own_fd < 0) {
		AUTO(auto_close) int self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

		own_fd = nsfd_open(self_fd, getpid(), NSFD_MOUNT);
	}
	if (own_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare for the guard");
	end_read = fds[1] = ends[0];
	end_write = ends[1];
	fds[0] = own_fd;
	guard_order_init(&order, GUARD_ORDER_JOB);
	order.plan = guard->plan;
	order.job = guard->job;
	order.flags = guard->flags;
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	order.begun_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	/* To fsboxd a guard that went down is one more reason to begin again. */
	if (guard_order_send(guard->order_fd, &order, fds, true, err) < 0)
		return error_set(err, ERR_PATH_NOT_FOUND, 0, "the guard of this user is gone");
	(void)close(guard->order_fd);
	*ret_end_fd = steal_fd(&end_write);
	return 0;
}

int builder_enter_template(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	struct native_input native = {
		.plan = input->plan,
		.identity = input->identity,
		.switch_ids = input->switch_ids,
		.user_ns_fd = input->namespaces.user_ns_fd < 0 ? -1 : NATIVE_FD_USER,
		.shared = builder->shared,
	};
	/* In user mode all of it is entered now, from inside the user namespace. */
	struct native_namespaces placed = { .mount_ns_fd = NATIVE_FD_MOUNT,
					    .is_copy = input->namespaces.is_copy,
					    .set = NATIVE_SET_INIT,
					    .net_host = input->namespaces.net_host };
	int r = 0;

	if (!input->switch_ids && input->namespaces.set.net_fd >= 0)
		placed.set = (struct native_set){ NATIVE_FD_SET, NATIVE_FD_SET + 1,
						  NATIVE_FD_SET + 2, NATIVE_FD_SET + 3 };

	builder->stage = NATIVE_STAGE_TEMPLATE;
	if (native_still_valid(&native, -1, err) != 1)
		return -(int)err->kind;
	r = native_enter(&native, &placed, err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0 ||
	    syscall(SYS_close_range, (unsigned int)NATIVE_FD_USER, ~0u, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "shut the job");
	return 0;
}

int builder_map_shared(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	void *shared = mmap(NULL, native_shared_bytes(input->plan), PROT_READ | PROT_WRITE,
			    MAP_SHARED, input->shared_fd, 0);

	builder->stage = "memory";
	if (shared == MAP_FAILED)
		return error_set(err, ERR_SYSTEM, errno, "map what a template's processes share");
	builder->shared = shared;
	return 0;
}

int builder_forget_shared(struct builder *builder, struct error *err)
{
	if (munmap(builder->shared, native_shared_bytes(builder->input->plan)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "let go what templates share");
	builder->shared = NULL;
	return 0;
}

static int native_enter_job(struct builder *builder, int *ret_end_fd, struct error *err)
{
	struct builder_guard guard = builder->input->guard;
	int r = builder_enter_template(builder, err);

	if (guard.order_fd >= 0)
		guard.order_fd = BUILDER_FD_GUARD;
	if (r < 0 || (r = builder_enrol_take(&guard, -1, ret_end_fd, err)) < 0 ||
	    (r = builder_forget_shared(builder, err)) < 0)
		return r;
	builder->stage = "inherit";
	return inherit_limit(&builder->inherit, err);
}

int builder_leave_host(struct builder *builder, struct error *err)
{
	static const struct native_set none = NATIVE_SET_INIT;
	const struct builder_input *input = builder->input;
	int r = 0;

	if (input->switch_ids) {
		builder->stage = "network";
		r = native_enter_set(&input->namespaces.set, input->namespaces.net_host, err);
		if (r < 0)
			return r;
	}
	builder->stage = "inherit";
	r = native_place(builder, input->switch_ids ? &none : &input->namespaces.set, err);
	return r < 0 ? r : inherit_raise(&builder->inherit, err);
}

_Noreturn void builder_run_native(struct builder *builder)
{
	struct buf setup = BUF_INIT(LIMIT_PLAN_BYTES);
	struct error err = ERROR_INIT;
	const struct builder_input *input = builder->input;
	int end_fd = -1;
	int r = 0;

	builder->plan = *input->plan;
	builder->inherit = *input->inherit;
	r = builder_map_result(builder, &err);
	if (r == 0 && (r = builder_map_shared(builder, &err)) == 0)
		r = builder_leave_host(builder, &err);
	if (r == 0 && (r = builder_become(builder, &err)) == 0 &&
	    (r = native_enter_job(builder, &end_fd, &err)) == 0 &&
	    (r = builder_encode_setup(builder, &setup, &err)) == 0) {
		const struct init_input init = {
			.report_fd = INIT_FD_REPORT,
			.go_fd = INIT_FD_GO,
			.channel_fd = INIT_FD_CHANNEL,
			.dev_fd = INIT_FD_DEV,
			.ruleset_fd = builder->ruleset_fd,
			.egress_fd = builder_has_egress(input) ? INIT_FD_EGRESS : -1,
			.guard_fd = end_fd,
			.result = { .page = builder->result, .scribe_fd = -1 },
			.setup = setup.data,
			.setup_bytes = setup.size,
		};

		init_run(&init);
	}
	builder_fail(builder, &err);
}

/* ---- templates ------------------------------------------------------------------------ */

static int template_place(struct builder *builder, struct error *err)
{
	const struct builder_input *input = builder->input;
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct builder_placed wanted[] = {
		{ null_fd, STDIN_FILENO },
		{ null_fd, STDOUT_FILENO },
		{ null_fd, STDERR_FILENO },
		{ input->report_fd, INIT_FD_REPORT },
		{ input->go_fd, INIT_FD_GO },
		{ dev_fd, INIT_FD_DEV },
		{ input->namespaces.user_ns_fd, NATIVE_FD_USER },
	};

	if (null_fd < 0 || dev_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /dev");
	if (builder_keep_descriptors(wanted, ARRAY_SIZE(wanted), err) < 0)
		return -(int)ERR_SYSTEM;
	builder->report_fd = INIT_FD_REPORT;
	return 0;
}

static uint32_t bounded(size_t mounts)
{
	return (uint32_t)(mounts < LIMIT_TEMPLATE_MOUNTS ? mounts : LIMIT_TEMPLATE_MOUNTS);
}

/*
 * Whether ERR is what the kernel says of a place that was removed, or lost a mount, between being opened and
 * being mounted on: perhaps all looks as before by now, and another try finds it whole.
 */
static bool may_pass(struct error *err)
{
	if (err->kind != ERR_SETUP_FAILED || (err->errnum != EINVAL && err->errnum != ENOENT &&
					      err->errnum != ENOTDIR && err->errnum != ESTALE))
		return false;
	err->kind = ERR_PATH_NOT_FOUND;
	return true;
}

static int template_build(struct builder *builder, struct native_input *ret_native,
			  struct error *err)
{
	const struct builder_input *input = builder->input;
	struct native_input native = {
		.plan = &builder->plan,
		.identity = input->identity,
		.switch_ids = input->switch_ids,
		.user_ns_fd = input->namespaces.user_ns_fd < 0 ? -1 : NATIVE_FD_USER,
		.shared = builder->shared,
	};
	struct report_message message;
	int r = 0;

	builder->stage = "mounts";
	/* A user's own daemon may take the namespace only of a process that it could look into. */
	if (!input->switch_ids && prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	r = native_build(&native, err);
	if (r < 0) {
		if (native_changed_meanwhile(&native, err) || may_pass(err))
			builder->stage = NATIVE_STAGE_TEMPLATE;
		return r;
	}
	*ret_native = native;
	report_begin(&message, REPORT_BUILT);
	message.u.built.mounts = bounded(builder->shared->mounts);
	return report_write(INIT_FD_REPORT, &message, err);
}

/*
 * Holds, as the peer, what mounting takes: copies, each when it is asked for, until fsboxd closes its end.
 */
static int template_copy(struct builder *builder, const struct native_input *native, int ns_dir_fd,
			 int count_fd, struct error *err)
{
	const int template_fd = openat(ns_dir_fd, "mnt", O_RDONLY | O_CLOEXEC);
	const struct sched_param plain = { 0 };
	struct report_message message;
	int r = 0;

	/* Nobody waits for a copy while jobs run: it takes the processor from none of them. */
	(void)sched_setscheduler(0, SCHED_BATCH, &plain);
	while (report_wait_go(INIT_FD_GO, NULL) == 0) {
		report_begin(&message, REPORT_BUILT);
		if ((r = native_copy(native, template_fd, count_fd, err)) < 0)
			return r;
		builder_keep_ruleset(builder, ns_dir_fd, INIT_FD_DEV);
		message.u.built.mounts = bounded(native->shared->copied);
		if ((r = report_write(INIT_FD_REPORT, &message, err)) < 0)
			return r;
	}
	return 0;
}

_Noreturn void builder_run_template(const struct builder_input *input)
{
	struct builder builder = BUILDER_INIT(input);
	struct native_input native;
	struct error err = ERROR_INIT;
	int own_fd = -1;
	int count_fd = -1;

	(void)prctl(PR_SET_NAME, "fsbox-builder", 0L, 0L, 0L);
	if (builder_shut(&builder, &err) == 0 && builder_map_shared(&builder, &err) == 0 &&
	    template_place(&builder, &err) == 0 && builder_become(&builder, &err) == 0 &&
	    builder_make_placeholders(&builder, &err) == 0) {
		/* Where /proc is the host's still. */
		own_fd = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (mountapi_count_begin(&count_fd, &err) == 0 &&
		    template_build(&builder, &native, &err) == 0 &&
		    template_copy(&builder, &native, own_fd, count_fd, &err) == 0)
			_exit(0);
	}
	builder_fail(&builder, &err);
}
