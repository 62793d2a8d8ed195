/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SPAWNER_H
#define FSBOX_DAEMON_SPAWNER_SPAWNER_H

/*
 * fsboxd: accepts, asks the kernel who connects, hands the connection to that identity's broker, and
 * keeps the jobs.
 *
 * One thread, one loop, no waiting. To it every other process is hostile: garbage or death of a role
 * closes that link, fails what was under way on it, and nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "common/error.h"
#include "common/posture.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/closing.h"
#include "daemon/spawner/config.h"
#include "daemon/spawner/egressfile.h"
#include "daemon/spawner/egresslink.h"
#include "daemon/spawner/guardlink.h"
#include "daemon/spawner/heldmounts.h"
#include "daemon/spawner/fdstore.h"
#include "daemon/spawner/jobfile.h"
#include "daemon/spawner/grant.h"
#include "daemon/spawner/ledger.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/netpool.h"
#include "daemon/spawner/options.h"
#include "daemon/spawner/paths.h"
#include "daemon/spawner/peer.h"
#include "daemon/spawner/quota.h"
#include "daemon/spawner/recorderlink.h"
#include "daemon/spawner/sweep.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/unshared.h"
#include "daemon/spawner/verify.h"
#include "daemon/spawner/zygote.h"

struct brokerlink;
struct job;

#define SPAWNER_JOB_BUCKETS 256

/*
 * @own_deny, @own_read_only  paths that every plan must keep (R25)
 * @protected_paths           these, and their other names by the mounts as they are
 * @init_fd                   sealed memfd of the static init
 * @user_ns_fd                user mode: the user namespace that native jobs live in; else -1
 * @broker_exec_fd            O_PATH of fsbox-broker, so that only this binary is ever started
 * @detection                 whether anything can be confined here: tried once
 * @socket_made               we made it, so we remove it
 * @announced                 the recorder was told that we run
 * @brokers                   one for each identity that is served
 * @jobs                      by number, modulo
 * @ending       all of it ends: what jobs need afterwards stays
 * @adopted      how many jobs of a fsboxd before us were taken over
 * @refusal_tokens            how many refusals may still be recorded in this second
 */
struct spawner {
	struct options options;
	enum daemon_mode mode;
	struct paths paths;
	struct config config;
	struct string_list own_deny;
	struct string_list own_read_only;
	struct protected_paths protected_paths;
	struct peer_home home;
	struct loop loop;
	struct children children;
	struct quota quota;
	struct ledger *ledger;
	struct sweeps sweeps;
	struct grants grants; /* of the system mode */
	struct recorderlink recorder;
	struct egresslink egress;
	struct egressfiles egressfiles; /* of those before ours */
	struct closing closing;
	struct templates templates;
	struct zygotes zygotes;
	struct netpool netpool;
	struct guardlinks guards;
	struct heldmounts heldmounts;
	struct jobfiles jobfiles;
	struct fdstore fdstore;
	struct unshared_pool ended_pool;
	struct unshared_pool job_pool;

	int lock_fd;
	int socket_lock_fd;
	int listen_fd;
	int signal_fd;
	int init_fd;
	int user_ns_fd;
	int broker_exec_fd;
	bool socket_made;
	bool announced;
	bool ending;
	struct loop_source listen_source;
	struct loop_source signal_source;
	struct loop_timer accept_timer;
	struct loop_timer idle_timer;

	struct brokerlink *brokers;
	struct job *jobs[SPAWNER_JOB_BUCKETS];
	size_t job_count;
	size_t adopted;
	uint64_t last_conn;

	struct rlimit nofile; /* as it was before we raised it for ourselves */
	uint32_t engines;     /* bits 1 << enum engine_kind */
	char engine_reason[256];
	struct detection_cache detection;

	uint64_t started_ms; /* CLOCK_REALTIME */
	uint64_t spawns;
	uint64_t failures;
	uint64_t refused_peers;
	uint64_t refusal_second;
	uint32_t refusal_tokens;
};

#define SPAWNER_INIT                                                                              \
	{                                                                                         \
		.grants = GRANTS_INIT, .loop = LOOP_INIT, .recorder = RECORDERLINK_INIT,          \
		.egress = EGRESSLINK_INIT, .egressfiles = EGRESSFILES_INIT, .lock_fd = -1,        \
		.socket_lock_fd = -1, .listen_fd = -1, .signal_fd = -1, .init_fd = -1,            \
		.broker_exec_fd = -1, .listen_source = LOOP_SOURCE_INIT,                          \
		.signal_source = LOOP_SOURCE_INIT, .user_ns_fd = -1, .templates = TEMPLATES_INIT, \
		.netpool = NETPOOL_INIT, .jobfiles = JOBFILES_INIT,                               \
		.protected_paths = PROTECTED_PATHS_INIT,                                          \
	}

/*
 * Everything up to the point where the first client may be accepted. LISTEN_COUNT descriptors come
 * from the service manager, without those that STORE has of it, which is taken over. Fails with ERR_CONFIG, ERR_SYSTEM or ERR_ENGINE_UNAVAILABLE.
 */
int spawner_init(struct spawner *spawner, const struct options *options, enum daemon_mode mode,
		 int listen_count, struct fdstore *store, struct error *err);

/*
 * Serve until a signal or idleness ends it. Jobs that run then keep running: what happens to them is
 * the service manager's decision, not the signal's.
 */
int spawner_run(struct spawner *spawner, struct error *err);

void spawner_deinit(struct spawner *spawner);

/* A job or connection came or went: idleness is looked at again. */
void spawner_touch(struct spawner *spawner);

/* Milliseconds of CLOCK_REALTIME. */
uint64_t spawner_real_ms(void);

#endif
