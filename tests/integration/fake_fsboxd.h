/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_INTEGRATION_FAKE_FSBOXD_H
#define FSBOX_TESTS_INTEGRATION_FAKE_FSBOXD_H

/*
 * fsboxd as fsbox-broker sees it: starts the real program named by FSBOX_BROKER with its link and
 * pipe, hands it connections, answers as the test wants, plays init on job channels. And a client.
 *
 * Everything here asserts: a test that goes on has what it asked for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/json/message.h"
#include "proto/wire/channel.h"
#include "proto/wire/spawnop.h"

/* Longer than anything should take, also under a sanitizer on a busy machine. */
#define FAKE_PATIENCE_MS 20000

/*
 * @dir     a directory of this test's own: etc/, run/ ... and p/, the working directory
 * @link    our end of the socket, -1 once fsboxd "died"
 * @config  what the broker was told; may be changed between fake_init() and fake_start()
 */
struct fake {
	char dir[64];
	char cwd[80];
	pid_t pid;
	int link;
	int requests;
	struct link_config config;
	uint64_t last_conn;
	uint64_t last_job;
};

void fake_init(struct fake *fake);  /* makes the directory */
void fake_start(struct fake *fake); /* starts the broker, waits for OP_READY */
void fake_die(struct fake *fake);   /* closes both ends of ours */

/* The broker must still live; it is ended, must end cleanly, and everything is removed. */
void fake_stop(struct fake *fake);

/* The broker's exit status after it ended by itself; -1: it did not within PATIENCE. */
int fake_wait_exit(struct fake *fake);
bool fake_is_alive(const struct fake *fake);
unsigned fake_open_descriptors(const struct fake *fake); /* 0: not to be seen by this user */

/* So many soon: replies are sent before what belonged to them is closed. */
void fake_expect_descriptors(const struct fake *fake, unsigned count);

/* The next message; fails the test when none comes, or another KIND does. */
void fake_expect_op(struct fake *fake, enum op_kind kind, struct op_message *ret_op);
bool fake_op_waits(struct fake *fake, int within_ms);

void fake_send(struct fake *fake, struct link_message *message, const int *fds, size_t count);
void fake_send_error(struct fake *fake, const struct op_message *op, enum error_kind kind,
		     const char *stage, const char *text);

/* Write BYTES to a file below the directory. */
/* The broker asks for JOB, which it did not start: there is none. */
void fake_know_nothing(struct fake *fake, uint64_t job);

void fake_write(const struct fake *fake, const char *name, const char *text);

/* ---- a client ------------------------------------------------------------------------ */

struct fake_client {
	struct channel channel;
	uint64_t number;
	int64_t last_id;
};

/* A connection of this process. */
void client_connect(struct fake *fake, struct fake_client *client);
void client_hello(struct fake *fake, struct fake_client *client); /* connects, says hello */
void client_disconnect(struct fake_client *client);

/* Returns the request's id. FDS of PARAMS are duplicated, not taken. */
int64_t client_ask(struct fake_client *client, enum method method,
		   const union method_params *params);
void client_send_text(struct fake_client *client, const char *json);
void client_send_raw(struct fake_client *client, const void *data, size_t size, const int *fds,
		     size_t fd_count);

/* The next message, parsed; fails the test when none comes. */
void client_receive(struct fake_client *client, struct message *ret_message);
bool client_is_closed(struct fake_client *client); /* within PATIENCE, reading past what is there */

/* The reply to ID must be a result, or an error of this kind. */
void client_expect_result(struct fake_client *client, int64_t id, enum method method,
			  union method_result *ret_result);
void client_expect_error(struct fake_client *client, int64_t id, enum error_kind kind,
			 struct error_reply *ret_reply); /* RET_REPLY may be NULL */

/* ---- a job --------------------------------------------------------------------------- */

/* @channel  init's end; @start, @fds: what the broker sent over it; @plan_fd: our plan memfd */
struct fake_job {
	uint64_t id;
	uint64_t conn;
	int plan_fd;
	int channel;
	struct start_message start;
	int fds[5];
	size_t fd_count;
	struct op_message op;
};

/* Answer the broker's OP_JOB_OPEN, then take OP_JOB_START and what is on the channel. */
void fake_open_job(struct fake *fake, struct fake_job *job);
void fake_take_start(struct fake *fake, struct fake_job *job);

/* Init reports STARTED with a pidfd (of this process), fsboxd JOB_UP. */
void fake_job_started(struct fake *fake, struct fake_job *job);
void fake_job_report(struct fake_job *job, enum report_kind kind, const struct exit_record *record);
void fake_job_ended(struct fake *fake, struct fake_job *job, const struct exit_record *record);
void fake_job_deinit(struct fake_job *job);

#endif
