/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_HTTPHEAD_H
#define FSBOX_DAEMON_EGRESS_HTTPHEAD_H

/*
 * The head of one HTTP/1 request to a proxy: CONNECT with host and port, or any other method with
 * an absolute http:// URL. Pure; reads the bytes of a sandbox.
 *
 * Two readers of one request must never see two different requests, so everything is refused that
 * somebody might read another way: a line that does not end with CRLF, a folded line, blanks before a
 * colon, control bytes, two lengths, a length with a transfer coding, any coding but `chunked`, more
 * than one Host or one that is not the URL's, a field that Connection names although framing
 * needs it. What goes on is written anew, field by field, with a Host of our own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/hostname.h"
#include "common/limits.h"

enum http_body { HTTP_BODY_NONE = 0, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED };

/* A piece of the bytes that were parsed. */
struct http_piece {
	const char *text;
	size_t size;
};

struct http_field {
	struct http_piece name;
	struct http_piece value;
	bool dropped; /* not to be passed on */
};

/*
 * @path       what follows the authority; may be empty. Not for CONNECT
 * @minor      HTTP/1.@minor
 * @length     for HTTP_BODY_LENGTH
 * @has_host   a Host field was there; it names the same host
 */
struct http_head {
	struct http_piece method;
	struct http_piece path;
	struct hostname host;
	uint16_t port;
	int minor;
	bool connect;
	bool has_host;
	enum http_body body;
	uint64_t length;
	struct http_field fields[LIMIT_EGRESS_FIELDS];
	size_t field_count;
};

/*
 * The size of the head that DATA begins with, its empty line included; 0 while it is not complete; -1 when
 * it never will be, since a line ends without CR.
 *
 * @scanned  how many of the SIZE bytes an earlier call has seen
 */
int httphead_size(const char *data, size_t scanned, size_t size);

/*
 * Parse a complete head of httphead_size() bytes; HEAD points into DATA afterwards.
 *
 * @ret_bad_host  set when it was the host that could not be read: for the record
 *
 * Fails with ERR_INVALID: why, in words of ours alone.
 */
int httphead_parse(const char *data, size_t size, struct http_head *ret_head, bool *ret_bad_host,
		   struct error *err);

/*
 * The head as it goes on: to the host itself, or with ABSOLUTE to another proxy. Closes after the
 * response. Fails as buf_add().
 */
int httphead_render(const struct http_head *head, bool absolute, struct buf *out);

/* "host" or "host:port" as the Host of an http:// URL; fails as buf_add(). */
int httphead_render_authority(const struct hostname *host, uint16_t port, bool always_port,
			      struct buf *out);

/*
 * The status of a response's head of httphead_size() bytes, 100 .. 599; 0 when it is not HTTP/1.
 */
int httphead_status(const char *data, size_t size);

#endif
