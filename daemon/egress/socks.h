/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_SOCKS_H
#define FSBOX_DAEMON_EGRESS_SOCKS_H

/*
 * The bytes of SOCKS5 (RFC 1928) without authentication: CONNECT alone, to a name or an address. Pure;
 * reads the bytes of a sandbox, and as a client those of an upstream proxy.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/hostname.h"

enum socks_reply {
	SOCKS_SUCCEEDED = 0,
	SOCKS_FAILURE = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TIMEOUT = 6,
	SOCKS_NO_SUCH_COMMAND = 7,
	SOCKS_NO_SUCH_ADDRESS = 8,
};

#define SOCKS_REQUEST_BYTES 262 /* the longest */

/*
 * The greeting in DATA: its size when complete and acceptable, 0 when more is to come. Fails with
 * ERR_INVALID: another version, or the client will not go without authentication.
 */
int socks_read_greeting(const uint8_t *data, size_t size, struct error *err);

/*
 * The request in DATA, likewise. Then HOST and PORT are filled.
 *
 * @ret_reply  why not, when it fails with ERR_INVALID. SOCKS_NOT_ALLOWED: the host is not in its usual
 *             form
 */
int socks_read_request(const uint8_t *data, size_t size, struct hostname *ret_host,
		       uint16_t *ret_port, enum socks_reply *ret_reply, struct error *err);

/* What a client sends: a greeting and at once the request. Fails as buf_add(). */
int socks_write_request(const struct hostname *host, uint16_t port, struct buf *out);

/*
 * A server's answers to that: their size when complete, 0 when more is to come, -ERR_INVALID when it
 * refuses or makes no sense.
 */
int socks_read_answers(const uint8_t *data, size_t size, struct error *err);

#define SOCKS_GREETING_ANSWER "\x05\x00"
#define SOCKS_GREETING_REFUSED "\x05\xff"
#define SOCKS_ANSWER_BYTES 10

/* The answer to a request, with the address 0.0.0.0:0. */
void socks_write_answer(enum socks_reply reply, uint8_t answer[SOCKS_ANSWER_BYTES]);

#endif
