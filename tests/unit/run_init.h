/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_UNIT_RUN_INIT_H
#define FSBOX_TESTS_UNIT_RUN_INIT_H

/*
 * Plays fsboxd and a broker for one job, with the real builder, the real bubblewrap and the real
 * fsbox-init: what the two of them say is what is tested.
 *
 * Needs FSBOX_INIT in the environment: the path of fsbox-init.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "proto/wire/spawnop.h"

#define RUN_TIMEOUT_MS 20000
#define RUN_PLACEHOLDERS 16

/*
 * @uid          as whom; the group has the same number
 * @argv, @envp  of the command; envp NULL: PATH only
 * @cwd          NULL: the work directory
 * @stdio        borrowed descriptors, -1: none is sent
 * @lifeline     likewise
 * @plan         NULL: system directories read-only, the work directory read-write
 * @args_fd      instead of argv, envp and cwd; -1: none
 * @peer         whose limits the job gets; 0: ours
 */
struct run_options {
	uid_t uid;
	const char *const *argv;
	const char *const *envp;
	const char *cwd;
	const char *work;
	int stdio[3];
	int lifeline;
	int args_fd;
	mode_t umask;
	pid_t peer;
	const struct plan *plan;
	bool host_net;
	bool detached;
	bool broker_gone; /* closes its end instead of sending START */
	bool fsboxd_gone; /* closes the go pipe instead of answering PID1_UP */
	int result_fd;    /* 0: none */
	bool hold_go;     /* do not answer placeholder intents */
};

#define RUN_OPTIONS_INIT                                                              \
	{                                                                             \
		.stdio = { -1, -1, -1 }, .lifeline = -1, .args_fd = -1, .umask = 022, \
	}

/*
 * @leader            what fsboxd forked; reaped by run_end()
 * @pid1_fd           as sent by init over the channel; -1: not yet
 * @pipe, @channel    what arrived where
 */
struct run {
	pid_t leader;
	int report_fd;
	int go_fd;
	int channel_fd;
	int stderr_fd;
	int pid1_fd;
	struct run_side {
		bool up;
		bool started;
		bool failed;
		bool exited;
		struct failure failure;
		struct exit_record record;
	} pipe, channel;
	struct report_placeholder placeholders[RUN_PLACEHOLDERS]; /* made */
	size_t placeholder_count;
	size_t intent_count;
	size_t skipped_count;
	bool hold_go;
	bool fsboxd_gone;
	char masks[32]; /* directory of mask sources */
};

/* Fork the leader and send START. Asserts on trouble of its own. */
void run_begin(struct run *run, const struct run_options *options);

/* Serve both sides until the command runs or never will; true when it runs. */
bool run_until_started(struct run *run);

/* Serve both sides until the end was told, or nobody is left to tell it. */
void run_until_over(struct run *run);

/* That, and then reap. */
void run_end(struct run *run);

/* A job of /bin/sh -c TEXT with its output in OUTPUT, in a work directory of its own. */
#define SCRIPT_OUTPUT_BYTES 65536
struct script {
	char *work;
	struct run_options options;
	struct run run;
	const char *argv[4];
	int output_fd;
	char output[SCRIPT_OUTPUT_BYTES];
};

struct script *script_new(uid_t uid, const char *text);
void script_begin(struct script *script);                      /* asserts that it runs */
void script_wait_for(struct script *script, const char *word); /* until it printed WORD */
void script_end(struct script *script);
struct script *script_run(uid_t uid, const char *text); /* all of these */
void script_fail(struct script *script);                /* a job that is expected not to run */
struct script *script_free(struct script *script);

void assert_exited(const struct run *run, int code); /* on both sides */
void assert_signaled(const struct run *run, int signo);
void assert_failed(const struct run *run, enum error_kind kind, const char *stage);

/* All at once. */
void run_job(struct run *run, const struct run_options *options);

/* What bwrap wrote on its stderr, for messages. Static. */
const char *run_stderr(const struct run *run);

/* A plan as @plan above says; plan_deinit() it. WORK may be NULL. */
void run_plan(struct plan *ret_plan, const char *work);
void run_plan_add(struct plan *plan, enum plan_op_kind kind, uint32_t flags, const char *path,
		  const char *source);

/* A new directory below /tmp that belongs to UID; run_remove_dir() removes all of it. */
char *run_make_dir(uid_t uid);
void run_remove_dir(char *path);

/* Users to run as: root and another when we are root, else ourselves. */
size_t run_users(uid_t ret_users[2]);

#define FOR_EACH_USER(uid)                                                              \
	for (uid_t users[2], uid, user_count = (uid_t)run_users(users), user_index = 0; \
	     user_index < user_count && (uid = users[user_index], true); user_index++)

#endif
