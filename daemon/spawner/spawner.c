/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/accept.h"
#include "daemon/spawner/adopt.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/egressevent.h"
#include "daemon/spawner/endjobs.h"
#include "daemon/spawner/engine.h"
#include "daemon/spawner/guardadopt.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/listener.h"
#include "daemon/spawner/nativeprobe.h"
#include "daemon/spawner/notify.h"

uint64_t spawner_real_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- idleness ------------------------------------------------------------------------ */

static void on_idle(void *arg)
{
	struct spawner *spawner = arg;

	log_write(LOG_INFO, "no jobs and no clients for %llu seconds: ending",
		  (unsigned long long)spawner->options.idle_exit_ms / 1000);
	loop_stop(&spawner->loop);
}

void spawner_touch(struct spawner *spawner)
{
	if (spawner->options.idle_exit_ms == 0)
		return;
	if (spawner->job_count > 0 || brokerlinks_conn_count(spawner) > 0)
		loop_disarm(&spawner->loop, &spawner->idle_timer);
	else if (!spawner->idle_timer.armed)
		loop_arm(&spawner->loop, &spawner->idle_timer, spawner->options.idle_exit_ms,
			 on_idle, spawner);
}

/* ---- signals ------------------------------------------------------------------------- */

static void reload(struct spawner *spawner)
{
	struct quota_limits limits;
	struct error err = ERROR_INIT;

	if (config_load(&spawner->config, &spawner->options, &spawner->paths, spawner->mode, &err) <
	    0) {
		log_failure(&err, "the configuration stays as it was");
		return;
	}
	limits = config_quota_limits(&spawner->config);
	quota_set_limits(&spawner->quota, &limits);
	log_set_level((enum log_level)spawner->config.host.log_level);
	/* What was verified before was verified against the old one. */
	templates_drop_all(&spawner->templates, "the configuration changed");
	spawner->protected_paths.is_current = false;
	log_write(LOG_INFO, "configuration read again");
}

static void on_signal(uint32_t events, void *arg)
{
	struct spawner *spawner = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(spawner->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			children_reap(&spawner->children);
			guardlinks_check(spawner);
			break;
		case SIGHUP:
			reload(spawner);
			break;
		default:
			/* SIGTERM, SIGINT: jobs keep running. */
			loop_stop(&spawner->loop);
			break;
		}
	}
}

static int watch_signals(struct spawner *spawner, struct error *err)
{
	static const int watched[] = { SIGCHLD, SIGHUP, SIGTERM, SIGINT };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		(void)sigaddset(&set, watched[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "sigprocmask");
	spawner->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (spawner->signal_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "signalfd");
	return loop_add(&spawner->loop, &spawner->signal_source, spawner->signal_fd, EPOLLIN,
			on_signal, spawner, err);
}

/* ---- start --------------------------------------------------------------------------- */

static int prepare_process(struct spawner *spawner, struct error *err)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &spawner->nofile) < 0)
		return error_set(err, ERR_SYSTEM, errno, "getrlimit");
	raised = spawner->nofile;
	raised.rlim_cur = raised.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &raised);
	(void)umask(0077);

	/* Orphans of our children come to us, not to whoever is pid 1 here. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "become a subreaper");

	/* Children that become a user carry a copy of this memory. A user's own daemon is the user's. */
	if (spawner->mode != MODE_USER && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "become not dumpable");
	return 0;
}

static int prepare_own_paths(struct spawner *spawner, struct error *err)
{
	const struct paths *paths = &spawner->paths;
	const char *denied[] = { paths->run_dir, paths->state_dir, paths->log_dir,
				 paths->config_dir, paths->cache_dir };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(denied); i++)
		if (denied[i][0] != '\0' &&
		    (r = string_list_add(&spawner->own_deny, denied[i], err)) < 0)
			return r;
	return string_list_add(&spawner->own_read_only, paths->exec_dir, err);
}

static int open_role(const struct spawner *spawner, const char *name, struct error *err)
{
	char path[PATHS_BYTES + 32];
	int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", spawner->paths.exec_dir, name);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd >= 0 ? fd : error_set(err, ERR_SYSTEM, errno, "open '%s'", path);
}

/* The lock of the runtime directory, and of a socket that lies elsewhere. */
static int take_locks(struct spawner *spawner, bool make_socket, struct error *err)
{
	char path[PATHS_BYTES + 32];
	size_t length = strlen(spawner->paths.run_dir);
	const char *socket_path = spawner->paths.socket;

	(void)snprintf(path, sizeof(path), "%s/lock", spawner->paths.run_dir);
	spawner->lock_fd = paths_lock(path, err);
	if (spawner->lock_fd < 0)
		return spawner->lock_fd;
	if (!make_socket || (strncmp(socket_path, spawner->paths.run_dir, length) == 0 &&
			     socket_path[length] == '/'))
		return 0;
	(void)snprintf(path, sizeof(path), "%s.lock", socket_path);
	spawner->socket_lock_fd = paths_lock(path, err);
	return spawner->socket_lock_fd < 0 ? spawner->socket_lock_fd : 0;
}

static int open_socket(struct spawner *spawner, int listen_count, struct error *err)
{
	mode_t mode = 0600;
	gid_t gid = (gid_t)-1;

	if (listen_count > 0) {
		spawner->listen_fd = listener_adopt(listen_count, err);
		/* Ours, kept for us over a restart. */
		spawner->socket_made = spawner->fdstore.had_listen;
		return spawner->listen_fd < 0 ? spawner->listen_fd : 0;
	}
	if (spawner->mode == MODE_SYSTEM) {
		gid = spawner->config.served_gid;
		if (gid != (gid_t)-1)
			mode = 0660;
		else
			log_write(LOG_WARNING,
				  "there is no group '%s' in /etc/group: only root can connect",
				  CONFIG_SERVED_GROUP);
	}
	spawner->listen_fd = listener_open(spawner->paths.socket, mode, gid, err);
	if (spawner->listen_fd < 0)
		return spawner->listen_fd;
	spawner->socket_made = true;
	return 0;
}

/* As whom to try: root's namespaces say nothing about those of others. */
static struct identity probe_identity(const struct spawner *spawner)
{
	if (spawner->mode == MODE_SYSTEM)
		return (struct identity){ .uid = FSBOX_RECORDER_UID, .gid = FSBOX_RECORDER_UID };
	return (struct identity){ .uid = geteuid(), .gid = getegid() };
}

static int prepare_native(struct spawner *spawner, const struct identity *identity,
			  struct error *err)
{
	if (spawner->mode == MODE_USER) {
		spawner->user_ns_fd = nativeprobe_user_namespace(identity, err);
		if (spawner->user_ns_fd < 0) {
			spawner->user_ns_fd = -1;
			return -(int)ERR_ENGINE_UNAVAILABLE;
		}
	}
	return nativeprobe_run(identity, spawner->user_ns_fd, err);
}

/* Try each engine; the reason is of those that do not work. Fails when none does. */
static int probe_engines(void *arg, enum mechanism mechanism, struct error *err)
{
	struct spawner *spawner = arg;
	struct identity identity = probe_identity(spawner);
	struct engine_probe probe = {
		.init_fd = spawner->init_fd,
		.identity = spawner->mode == MODE_SYSTEM ? &identity : NULL,
	};
	struct error no_native = ERROR_INIT;
	struct engine_info info;

	(void)mechanism; /* there is one on Linux; the engines are two ways to it */
	if (prepare_native(spawner, &identity, &no_native) == 0)
		spawner->engines |= 1u << ENGINE_NATIVE;
	else
		log_failure(&no_native, "engine native is not available");
	engine_probe(ENGINE_BWRAP, &probe, &info);
	if (info.available)
		spawner->engines |= 1u << ENGINE_BWRAP;
	else
		log_write(LOG_WARNING, "engine bwrap is not available: %s", info.reason);
	(void)snprintf(spawner->engine_reason, sizeof(spawner->engine_reason), "%.120s%s%.100s",
		       no_native.kind ? no_native.message : "",
		       no_native.kind && !info.available ? "; bwrap: " : "",
		       info.available ? "" : info.reason);
	if (spawner->engines == 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "%s", spawner->engine_reason);
	return 0;
}

/* The switches were read from our own environment when we began, never from a caller's. */
static const char *switch_value(void *arg, const char *name)
{
	const struct options *options = arg;

	if (strcmp(name, posture_terms.force_unavailable) == 0)
		return options->unavailable ? "1" : NULL;
	return strcmp(name, posture_terms.required) == 0 && options->required ? "1" : NULL;
}

static int prepare_engines(struct spawner *spawner, struct error *err)
{
	const struct posture_env env = { .get = switch_value, .arg = &spawner->options };
	const struct posture_probe probe = { .run = probe_engines, .arg = spawner };
	const struct detection *detection =
		posture_detect_cached(&spawner->detection, "linux", &env, &probe);

	if (detection->available)
		return 0;
	if (spawner->engine_reason[0] == '\0')
		(void)snprintf(spawner->engine_reason, sizeof(spawner->engine_reason), "%s",
			       detection->reason);
	log_write(LOG_WARNING, "nothing can be confined here: %s", detection->reason);
	if (posture_required(&posture_terms, &env))
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0,
				 "%s is set and no engine works: %s", posture_terms.required,
				 spawner->engine_reason);
	return 0;
}

static int prepare_templates(struct spawner *spawner, struct error *err)
{
	if ((spawner->engines & 1u << ENGINE_NATIVE) == 0)
		return 0;
	netpool_init(&spawner->netpool, &spawner->loop, &spawner->children,
		     spawner->config.host.net_pool, spawner->user_ns_fd);
	return templates_init(&spawner->templates, spawner, err);
}

/* Now rather than in the first job's time. What is wrong then refuses jobs, not this start. */
static void prepare_protected_paths(struct spawner *spawner)
{
	struct error err = ERROR_INIT;

	if (protected_paths_refresh(spawner, &err) < 0)
		log_failure(&err, "other names of what is protected");
}

/* Not root, whoever we are: it parses what comes out of sandboxes. */
static int prepare_egress(struct spawner *spawner, struct error *err)
{
	const struct hostconf *host = &spawner->config.host;
	struct egress_config config = { .required = host->audit == AUDIT_REQUIRED };
	struct error none = ERROR_INIT;
	int exec_fd = open_role(spawner, "fsbox-egress", &none);
	int r = 0;

	if (exec_fd < 0) {
		log_failure(&none, "no network 'proxy'");
		exec_fd = -1;
	}
	r = egress_upstream_parse(host->upstream_proxy, &config, err);
	egresslink_init_take(&spawner->egress, &spawner->loop, &spawner->children, exec_fd, &config,
			     egressevent_record, egressevent_died, spawner);
	if (spawner->mode != MODE_USER)
		egresslink_set_owner(&spawner->egress, FSBOX_EGRESS_UID, FSBOX_EGRESS_UID);
	egresslink_set_files(&spawner->egress, &spawner->jobfiles);
	return r;
}

/* Without them jobs run as ever, only none gets more than the rest. */
static void prepare_grants(struct spawner *spawner)
{
	struct error err = ERROR_INIT;
	bool damaged = false;

	if (spawner->mode != MODE_SYSTEM)
		return;
	if (grants_open(&spawner->grants, spawner->paths.state_dir, spawner_real_ms(), &damaged,
			&err) < 0)
		log_failure(&err, "there are no grants");
	else if (damaged)
		log_write(LOG_ERROR, "the file of grants is damaged: those in it are revoked");
}

static int prepare_roles(struct spawner *spawner, struct error *err)
{
	struct error no_recorder = ERROR_INIT;
	char path[PATHS_BYTES + 32];
	int recorder_fd = -1;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/fsbox-init", spawner->paths.exec_dir);
	if ((r = builder_load_init(path, &spawner->init_fd, err)) < 0)
		return r;
	spawner->broker_exec_fd = open_role(spawner, "fsbox-broker", err);
	if (spawner->broker_exec_fd < 0)
		return spawner->broker_exec_fd;
	recorder_fd = open_role(spawner, "fsbox-recorder", &no_recorder);
	if (recorder_fd < 0) {
		log_failure(&no_recorder, "nothing will be recorded");
		recorder_fd = -1;
	}
	r = recorderlink_init_take(&spawner->recorder, &spawner->loop, &spawner->children,
				   recorder_fd, spawner->paths.log_dir,
				   spawner->config.host.events_max_bytes, err);
	if (r == 0 && spawner->mode == MODE_SYSTEM)
		recorderlink_set_owner(&spawner->recorder, FSBOX_RECORDER_UID, FSBOX_RECORDER_UID);
	return r < 0 ? r : prepare_egress(spawner, err);
}

static gid_t log_group(const struct spawner *spawner)
{
	return spawner->config.admin_gid != (gid_t)-1 ? spawner->config.admin_gid
						      : (gid_t)FSBOX_RECORDER_UID;
}

static int open_ledger(struct spawner *spawner, struct error *err)
{
	uid_t uid = spawner->mode == MODE_SYSTEM ? (uid_t)-1 : geteuid();
	int r = ledger_open(&spawner->ledger, spawner->paths.state_dir, uid, err);

	if (r < 0)
		return r;
	jobfiles_go_above(&spawner->jobfiles, ledger_last_job(spawner->ledger));
	return 0;
}

static bool is_known_job(uint64_t job, void *arg)
{
	return job_find(arg, job) != NULL;
}

/*
 * Placeholders of jobs that are over, but not for a predecessor of ours. All jobs that still run are in the
 * table by now.
 */
static void replay_ledger(struct spawner *spawner)
{
	const struct ledger_replay *replay = ledger_replayed(spawner->ledger);
	struct event_message event = { .uid = geteuid(), .pid = getpid() };

	ledger_settle(spawner->ledger, is_known_job, spawner);
	if (replay->entries > 0 || replay->damaged > 0 || replay->why[0] != '\0') {
		(void)snprintf(event.detail, sizeof(event.detail),
			       "%zu placeholders, %zu damaged lines%s%s", replay->entries,
			       replay->damaged, replay->why[0] ? "; " : "", replay->why);
		log_write(replay->damaged > 0 || replay->why[0] ? LOG_WARNING : LOG_INFO,
			  "ledger: %s", event.detail);
		recorderlink_send(&spawner->recorder, EVENT_LEDGER_REPLAYED, &event);
	}
	sweep_others(spawner, (uid_t)-1, false);
	sweep_touch(spawner);
}

int spawner_init(struct spawner *spawner, const struct options *options, enum daemon_mode mode,
		 int listen_count, struct fdstore *store, struct error *err)
{
	struct quota_limits limits;
	int r = 0;

	*spawner = (struct spawner)SPAWNER_INIT;
	spawner->options = *options;
	spawner->fdstore = *store;
	spawner->mode = mode;
	spawner->started_ms = spawner_real_ms();

	if ((r = paths_choose(&spawner->paths, options, mode, geteuid(), err)) < 0 ||
	    (r = config_load(&spawner->config, options, &spawner->paths, mode, err)) < 0 ||
	    (r = prepare_process(spawner, err)) < 0 || (r = loop_init(&spawner->loop, err)) < 0)
		return r;
	log_set_level((enum log_level)spawner->config.host.log_level);
	limits = config_quota_limits(&spawner->config);
	quota_init(&spawner->quota, &limits);
	closing_init(&spawner->closing, &spawner->loop, &spawner->children, &spawner->quota);

	if ((r = peer_home_read(&spawner->home, err)) < 0 ||
	    (r = paths_prepare(&spawner->paths, mode, FSBOX_RECORDER_UID, log_group(spawner),
			       err)) < 0 ||
	    (r = take_locks(spawner, listen_count == 0 && !options->end_jobs, err)) < 0 ||
	    (r = jobfiles_open(&spawner->jobfiles, spawner->paths.run_dir, err)) < 0 ||
	    (r = open_ledger(spawner, err)) < 0 || (r = prepare_own_paths(spawner, err)) < 0 ||
	    (r = prepare_roles(spawner, err)) < 0 || (r = watch_signals(spawner, err)) < 0)
		return r;
	if (options->end_jobs)
		return adopt_jobs(spawner, err);
	if ((r = prepare_engines(spawner, err)) < 0 || (r = prepare_templates(spawner, err)) < 0)
		return r;
	prepare_protected_paths(spawner);
	prepare_grants(spawner);
	/* Before anybody can ask for them. */
	if ((r = adopt_jobs(spawner, err)) < 0 ||
	    (r = egressfiles_take_over(&spawner->egressfiles, &spawner->jobfiles, &spawner->loop,
				       egressevent_record, egressevent_may, spawner, err)) < 0)
		return r;
	return open_socket(spawner, listen_count, err);
}

/* ---- serving ------------------------------------------------------------------------- */

static void tell_ready(struct spawner *spawner)
{
	struct error err = ERROR_INIT;

	if (notify_send("READY=1\nSTATUS=Serving", &err) < 0)
		log_failure(&err, "readiness");
	if (spawner->options.ready_fd < 0)
		return;
	if (write(spawner->options.ready_fd, "R", 1) != 1)
		log_write(LOG_WARNING, "nobody reads --ready-fd");
	(void)close(spawner->options.ready_fd);
	spawner->options.ready_fd = -1;
}

static void tell_stopping(struct spawner *spawner)
{
	struct event_message event = { .uid = geteuid(), .pid = getpid() };

	fdstore_all(spawner);
	(void)notify_send("STOPPING=1", NULL);
	if (recorderlink_up(&spawner->recorder))
		recorderlink_send(&spawner->recorder, EVENT_DAEMON_STOPPED, &event);
}

int spawner_run(struct spawner *spawner, struct error *err)
{
	int r = 0;

	if (spawner->options.end_jobs) {
		replay_ledger(spawner);
		return endjobs_run(spawner, err);
	}
	r = accept_begin(spawner, err);
	if (r < 0)
		return r;
	replay_ledger(spawner);
	tell_ready(spawner);
	fdstore_all(spawner);
	log_write(LOG_INFO, "serving (%s mode)", daemon_mode_name(spawner->mode));
	spawner_touch(spawner);
	r = loop_run(&spawner->loop, err);
	accept_end(spawner);
	tell_stopping(spawner);
	return r;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void spawner_deinit(struct spawner *spawner)
{
	spawner->ending = true;
	/* What is stored with the service manager can be connected to until another one accepts. */
	if (spawner->socket_made && !notify_is_there())
		(void)unlink(spawner->paths.socket);
	close_one(&spawner->listen_fd);

	/* Closing the links tells the brokers: they see their jobs through and end. */
	jobs_deinit(spawner);
	sweeps_deinit(spawner);
	templates_deinit(&spawner->templates);
	guardadopt_deinit(spawner);
	guardlinks_deinit(spawner);
	netpool_deinit(&spawner->netpool);
	egresslink_deinit(&spawner->egress);
	egressfiles_deinit(&spawner->egressfiles);
	brokerlinks_deinit(spawner);
	recorderlink_deinit(&spawner->recorder);
	grants_close(&spawner->grants);
	closing_deinit(&spawner->closing);
	loop_remove(&spawner->loop, &spawner->signal_source);
	close_one(&spawner->signal_fd);
	close_one(&spawner->init_fd);
	close_one(&spawner->user_ns_fd);
	close_one(&spawner->broker_exec_fd);
	loop_deinit(&spawner->loop);
	spawner->ledger = ledger_free(spawner->ledger);
	free(spawner->fdstore.items);
	jobfiles_close(&spawner->jobfiles);
	unshared_pool_deinit(&spawner->ended_pool);
	unshared_pool_deinit(&spawner->job_pool);
	quota_deinit(&spawner->quota);
	string_list_deinit(&spawner->own_deny);
	string_list_deinit(&spawner->own_read_only);
	protected_paths_deinit(&spawner->protected_paths);
	config_deinit(&spawner->config);

	/* Last: whoever waits for the lock finds everything free. */
	close_one(&spawner->socket_lock_fd);
	close_one(&spawner->lock_fd);
}
