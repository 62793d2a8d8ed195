/* SPDX-License-Identifier: Apache-2.0 */
/* A pid 1 that is made before its job (zygote.h): a native job's leader, cut where the job comes in. */
#include "daemon/spawner/builder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"
#include "daemon/spawner/builderwork.h"
#include "daemon/spawner/init.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/result.h"
#include "proto/wire/zygoteop.h"

/*
 * @mounts_fd  tells of changes to our own mounts (poll on mountinfo, proc_pid_mountinfo(5))
 * @own_fd     our mount namespace, for the guard
 * @setup      for init; what depends on the job is still missing
 */
struct waiting {
	int mounts_fd;
	int own_fd;
	struct buf setup;
	struct init_born born;
};

/*
 * Holds all of fsboxd's, in the end the peer's ids and nothing else: what a job's leader gives up and init
 * gives up. Nobody can look into this process, and it has read nothing of anybody's.
 */
static int bear(struct builder *builder, struct waiting *waiting, struct error *err)
{
	const struct builder_input *input = builder->input;
	struct report_message message;
	int r = 0;

	builder->plan = *input->plan;
	builder->inherit = *input->inherit;
	builder->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (builder->root_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /");
	if ((r = builder_map_shared(builder, err)) < 0 ||
	    (r = builder_leave_host(builder, err)) < 0 || (r = builder_become(builder, err)) < 0 ||
	    (r = builder_enter_template(builder, err)) < 0)
		return r;
	waiting->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	waiting->own_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (waiting->mounts_fd < 0 || waiting->own_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /proc/self/mountinfo");
	builder->stage = "inherit";
	if ((r = inherit_limit(&builder->inherit, err)) < 0 ||
	    (r = builder_encode_setup(builder, &waiting->setup, err)) < 0 ||
	    (r = init_bear(waiting->setup.data, INIT_FD_DEV, builder->ruleset_fd, &waiting->born,
			   &builder->stage, err)) < 0)
		return r;
	auto_close(&builder->ruleset_fd);
	builder->ruleset_fd = -1;
	(void)close(INIT_FD_DEV);
	(void)prctl(PR_SET_NAME, "fsbox-zygote", 0L, 0L, 0L);
	/* Fsboxd's end is the end of this, also while its user has stopped it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
	report_begin(&message, REPORT_BUILT);
	message.u.built.mounts = 1; /* fsboxd counts by what its template's builder said */
	return report_write(INIT_FD_REPORT, &message, err);
}

/*
 * Whether all is still as it was: every path of the plan on the host, by the descriptor of its root, and our own
 * mounts, which a rename outside detaches in copies too.
 */
static int look(struct builder *builder, const struct waiting *waiting, struct error *err)
{
	const struct native_input native = { .plan = builder->input->plan,
					     .identity = builder->input->identity,
					     .user_ns_fd = -1,
					     .shared = builder->shared };
	struct pollfd changed = { .fd = waiting->mounts_fd, .events = POLLPRI };

	builder->stage = NATIVE_STAGE_TEMPLATE;
	if (native_still_valid(&native, BUILDER_FD_ROOT, err) != 1)
		return -(int)err->kind;
	if (poll(&changed, 1, 0) < 0 || changed.revents & (POLLPRI | POLLERR))
		return error_set(err, ERR_PATH_NOT_FOUND, 0, "a mount of the zygote is gone");
	return 0;
}

/* What the job has of its own, as init wants it. */
static void complete_setup(struct waiting *waiting, const struct zygote_message *message)
{
	struct setup_header header;

	memcpy(&header, waiting->setup.data, sizeof(header));
	header.flags |= message->flags;
	header.forward_count = message->forward_count;
	memcpy(header.forwards, message->forwards, sizeof(header.forwards));
	header.grant = message->grant;
	memcpy(waiting->setup.data, &header, sizeof(header));
}

/* The job's page, of which only the mapping is kept. */
static int map_result(struct builder *builder, int *fd, struct error *err)
{
	int r = 0;

	builder->stage = "result";
	if (*fd < 0)
		return 0;
	r = result_map(*fd, &builder->result, err);
	auto_close(fd);
	*fd = -1;
	return r;
}

/*
 * There is a job. Nothing of the client's is read before all that was only there for waiting is gone: the
 * socket, the host's root, what the template's processes share.
 */
static int begin(struct builder *builder, struct waiting *waiting,
		 const struct zygote_message *message, int fds[ZYGOTE_FD_COUNT], int *ret_end_fd,
		 struct error *err)
{
	const struct builder_guard guard = { .order_fd = fds[2],
					     .plan = message->guard_plan,
					     .job = message->job,
					     .flags = message->guard_flags };
	int r = 0;

	(void)prctl(PR_SET_PDEATHSIG, 0L, 0L, 0L, 0L);
	(void)prctl(PR_SET_NAME, "fsbox-init", 0L, 0L, 0L);
	(void)close(INIT_FD_CHANNEL);
	if ((r = look(builder, waiting, err)) < 0)
		return r;
	auto_close(&waiting->mounts_fd);
	(void)close(BUILDER_FD_ROOT);
	if ((r = builder_forget_shared(builder, err)) < 0 ||
	    (r = map_result(builder, &fds[3], err)) < 0)
		return r;
	builder->stage = "guard";
	return builder_enrol_take(&guard, waiting->own_fd, ret_end_fd, err);
}

/* It is of no use: no job ends by that, and no role failed. */
static _Noreturn void fail(const struct builder *builder, const struct error *err)
{
	struct report_message message;

	report_begin(&message, REPORT_FAILED);
	failure_set(&message.u.failure, err, builder->stage);
	(void)report_write(builder->report_fd, &message, NULL);
	_exit(0);
}

_Noreturn void builder_run_zygote(const struct builder_input *input)
{
	struct builder builder = BUILDER_INIT(input);
	struct waiting waiting = { .mounts_fd = -1,
				   .own_fd = -1,
				   .setup = BUF_INIT(LIMIT_PLAN_BYTES) };
	struct error err = ERROR_INIT;
	struct zygote_message message;
	int fds[ZYGOTE_FD_COUNT];
	int end_fd = -1;
	int r = 0;

	if (builder_shut(&builder, &err) < 0 || bear(&builder, &waiting, &err) < 0)
		fail(&builder, &err);
	r = zygote_message_receive(INIT_FD_CHANNEL, &message, fds, &err);
	if (r == 0) /* the template, or fsboxd, is gone */
		_exit(0);
	if (r > 0 && begin(&builder, &waiting, &message, fds, &end_fd, &err) == 0) {
		const struct init_input init = {
			.report_fd = INIT_FD_REPORT,
			.go_fd = INIT_FD_GO,
			.channel_fd = fds[0],
			.dev_fd = -1,
			.ruleset_fd = -1,
			.egress_fd = fds[1],
			.guard_fd = end_fd,
			.result = { .page = builder.result, .scribe_fd = -1 },
			.setup = waiting.setup.data,
			.setup_bytes = waiting.setup.size,
		};

		complete_setup(&waiting, &message);
		init_run_born(&waiting.born, &init);
	}
	fail(&builder, &err);
}
