/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_INTEGRATION_FAKEBROKER_H
#define FSBOX_TESTS_INTEGRATION_FAKEBROKER_H

/*
 * A broker's side of proto/wire/spawnop.h in its simplest form, for programs that fsboxd starts in
 * place of fsbox-broker (--exec-dir). Everything blocks; what should not fail ends the program.
 */

#include <stdint.h>
#include <stdio.h>

#include "common/buf.h"
#include "common/policy.h"
#include "proto/wire/spawnop.h"

/* A message from fsboxd and its descriptors (-1: none). */
struct fake_news {
	struct link_message message;
	int fds[LINK_MESSAGE_FDS];
};

/* The next message; ends the program when the link is closed. */
void fake_next(struct fake_news *news);

/* As fake_next(), but gives up after TIMEOUT_MS: 0 then, else 1; -1 when the link is closed. */
int fake_wait(struct fake_news *news, int timeout_ms);

void fake_op_init(struct op_message *op, enum op_kind kind, uint64_t conn, uint64_t job);

/* Send OP under a new number, which is returned. */
uint64_t fake_send(struct op_message *op);

/* The answer to SEQ; other messages are dropped, their descriptors closed. */
void fake_answer(uint64_t seq, struct fake_news *news);

/* A small plan that fsboxd accepts: /usr read-only, private rest. CHDIR "/". */
void fake_plan(struct buf *out);
void fake_plan_with(struct buf *out, enum net_mode net);

/* Write DATA into MEMFD, and seal it if SEAL. */
void fake_fill(int memfd, const void *data, size_t size, int seal);

/* The args file for `/bin/sh -c SCRIPT` in "/", with a PATH. */
void fake_args(const char *script, struct buf *out);

/* `/bin/sh -c SCRIPT` over the job channel, with OUT_FD as stdout and stderr. */
void fake_send_start(int channel, const char *script, int out_fd);

/*
 * Open a job for CONN, with plan and start messages sent but OP_JOB_START not yet; returns its
 * number. *ret_channel is the job channel.
 */
uint64_t fake_open(uint64_t conn, const char *script, int out_fd, uint32_t *ret_plan_bytes,
		   int *ret_channel);

/* Fill OP for a job opened by fake_open(). */
void fake_start_init(struct op_message *op, uint64_t conn, uint64_t job, uint32_t plan_bytes);

/*
 * One connection after the other, each closed when SERVE, which gets its number and socket (it blocks), is through
 * with it. SIGPIPE is ignored.
 */
_Noreturn void fake_serve(void (*serve)(uint64_t conn, int fd));

_Noreturn void fake_die(const char *what);

#endif
