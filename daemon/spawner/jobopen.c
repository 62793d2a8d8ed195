/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobopen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/adopt.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/spawner.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

static int plan_memfd(struct error *err)
{
	int fd = memfd_create("fsbox-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("fsbox-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd >= 0 ? fd : error_set(err, ERR_SYSTEM, errno, "memfd_create");
}

/* Whether one more may begin now. */
static int check_room(struct spawner *spawner, uid_t uid, struct error *err)
{
	if (quota_held(&spawner->quota, uid, QUOTA_STUCK) >= LIMIT_STUCK_PER_UID)
		return error_set(err, ERR_RESOLVER_BUSY, 0,
				 "%d helpers of user %u hang on file systems that do not answer",
				 LIMIT_STUCK_PER_UID, uid);
	if (spawner->config.host.audit == AUDIT_REQUIRED && !recorderlink_ready(&spawner->recorder))
		return error_set(err, ERR_AUDIT_UNAVAILABLE, 0,
				 "records are required, and fsbox-recorder does not take them");
	return quota_spawn(&spawner->quota, uid, loop_now_ms(), err);
}

static int take_room(const struct brokerlink *broker, struct error *err)
{
	struct spawner *spawner = broker->spawner;
	int r = check_room(spawner, broker->identity.uid, err);

	return r < 0 ? r : quota_take(&spawner->quota, broker->identity.uid, QUOTA_JOBS, err);
}

/* A job with its own two descriptors; @ret_fds are the broker's: plan memfd, channel. */
static int make(struct brokerlink *broker, int *ret_fds, struct job **ret_job, struct error *err)
{
	struct job *job = NULL;
	AUTO(auto_close) int plan_fd = -1;
	AUTO(auto_close) int their_plan_fd = -1;
	uint64_t id = 0;
	int ends[2];
	int r = jobfiles_number(&broker->spawner->jobfiles, &id, err);

	if (r < 0)
		return r;
	plan_fd = plan_memfd(err);
	if (plan_fd < 0)
		return plan_fd;
	their_plan_fd = fcntl(plan_fd, F_DUPFD_CLOEXEC, 0);
	if (their_plan_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "dup");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");

	r = job_make(broker, id, &job, err);
	if (r < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return r;
	}
	job->plan_fd = steal_fd(&plan_fd);
	job->channel_fd = ends[0];
	ret_fds[0] = steal_fd(&their_plan_fd);
	ret_fds[1] = ends[1];
	*ret_job = job;
	return 0;
}

/* JOB, for which room was taken, is a job of connection CONN's. */
static void enter(struct job *job, uint64_t conn)
{
	job->conn = conn;
	job_enter(job);
	job_await_plan(job);
	spawner_touch(job->spawner);
}

int jobopen(struct brokerlink *broker, const struct conn *conn, uint64_t seq, struct error *err)
{
	struct spawner *spawner = broker->spawner;
	struct link_message message;
	struct job *job = NULL;
	int fds[2];
	int r = take_room(broker, err);

	if (r < 0)
		return r;
	r = make(broker, fds, &job, err);
	if (r < 0) {
		quota_give(&spawner->quota, broker->identity.uid, QUOTA_JOBS);
		return r;
	}
	enter(job, conn->id);

	link_message_init(&message, LINK_JOB_OPENED, seq, conn->id, job->id);
	brokerlink_send_take(broker, &message, fds, 2);

	/* While the broker works, if it still does; what is wrong shows when the job starts. */
	job = job_find(spawner, message.job);
	if (job)
		(void)adopt_note_start(job, NULL);
	return 0;
}

void jobopen_ahead(struct brokerlink *broker)
{
	struct link_message message;
	struct error err = ERROR_INIT;
	int fds[2];

	/* What is wrong is told when it is asked for. */
	if (broker->ahead || broker->link_fd < 0 || broker->spawner->ending ||
	    make(broker, fds, &broker->ahead, &err) < 0)
		return;
	link_message_init(&message, LINK_JOB_OPENED, 0, 0, broker->ahead->id);
	brokerlink_send_take(broker, &message, fds, 2);
	if (broker->ahead)
		adopt_note_ahead(broker->ahead);
}

int jobopen_claim(struct brokerlink *broker, uint64_t job, uint64_t conn, struct error *err)
{
	struct job *ahead = broker->ahead;
	int r = 0;

	if (!ahead || ahead->id != job)
		return 0;
	broker->ahead = NULL;
	/* The configuration may be another one than when it was made. */
	r = config_job_identity(&broker->spawner->config, &broker->identity, &ahead->identity, err);
	if (r == 0)
		r = take_room(broker, err);
	if (r < 0) {
		job_discard(ahead);
		return r;
	}
	enter(ahead, conn);
	adopt_note_claimed(ahead);
	return 0;
}

void jobopen_forget(struct brokerlink *broker)
{
	if (broker->ahead)
		job_discard(broker->ahead);
	broker->ahead = NULL;
}
