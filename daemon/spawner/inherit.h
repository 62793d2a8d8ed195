/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_INHERIT_H
#define FSBOX_DAEMON_SPAWNER_INHERIT_H

/*
 * What a job would have inherited, had its client forked it: resource limits, niceness, scheduling,
 * I/O priority, processors, how likely it is to be killed for memory (R20). Never fsboxd's own, never
 * more than the client has.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/error.h"

#define INHERIT_CPU_BYTES 1024 /* 8192 processors */

/* As sched_getattr(2) has it, first version. */
struct inherit_scheduling {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/*
 * @limits      by RLIMIT_*; RLIMIT_CORE is what jobs get, not the client's
 * @has         which of them this process had before, by inherit_raise()
 * @cpu_bytes   of @cpus, a bit mask
 */
struct inherit {
	struct rlimit limits[RLIM_NLIMITS];
	bool has[RLIM_NLIMITS];
	struct inherit_scheduling scheduling;
	int io_priority;
	int oom_score_adj;
	size_t cpu_bytes;
	uint8_t cpus[INHERIT_CPU_BYTES];
};

/*
 * Read the settings of process PID. PIDFD is the same process as the kernel named it when it
 * connected: looked at afterwards, so that another process with a reused number cannot answer.
 *
 * Fails with ERR_SETUP_FAILED when the process is gone or cannot be read.
 */
int inherit_read(pid_t pid, int pidfd, struct inherit *ret_inherit, struct error *err);

/*
 * Give them to this process in two steps, so that what it does in between is not yet under the
 * client's limits (a memfd counts for RLIMIT_FSIZE).
 *
 * inherit_raise() needs the privilege that this process is about to give up: everything but the limits, and
 * room for those. inherit_limit() needs none: the limits themselves. Without privilege (user mode) each
 * takes over what is not more than this process has already.
 *
 * Both fail with ERR_SETUP_FAILED where the job would otherwise keep more than the client has.
 */
int inherit_raise(struct inherit *inherit, struct error *err);
int inherit_limit(const struct inherit *inherit, struct error *err);

/* Whether a job would get the same of both. */
bool inherit_equal(const struct inherit *one, const struct inherit *other);

#endif
