/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes of a sandbox at the HTTP proxy: a head, and what follows as its body. What is passed on is
 * read once more by a stricter eye: one Host that names what was decided, one kind of length, no field for
 * proxies; and parsing what was written gives the same again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "daemon/egress/chunked.h"
#include "daemon/egress/httphead.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static size_t count_of(const char *text, const char *line_start)
{
	size_t count = 0;

	for (const char *at = strcasestr(text, line_start); at; at = strcasestr(at + 1, line_start))
		count++;
	return count;
}

static void check_rendered(const struct http_head *head)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(1 << 20);
	AUTO(buf_deinit) struct buf again = BUF_INIT(1 << 20);
	struct http_head reread;
	const char *text = NULL;
	bool bad_host = false;

	must(httphead_render(head, true, &out) == 0);
	text = buf_text(&out);
	must(strlen(text) == out.size);
	must(count_of(text, "\r\nHost:") == 1 && count_of(text, "\r\nConnection:") == 1);
	must(count_of(text, "\r\nContent-Length:") + count_of(text, "\r\nTransfer-Encoding:") <= 1);
	must(count_of(text, "\r\nProxy-") == 0 && count_of(text, "\r\nUpgrade:") == 0);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		must(at[-1] == '\r');
	must(httphead_size(text, 0, out.size) == (int)out.size);
	/* Our own Connection may be one field too many. */
	if (httphead_parse(text, out.size, &reread, &bad_host, NULL) < 0) {
		must(head->field_count >= LIMIT_EGRESS_FIELDS - 1);
		return;
	}
	must(strcmp(reread.host.name, head->host.name) == 0 && reread.port == head->port);
	must(reread.body == head->body && reread.length == head->length);
	must(httphead_render(&reread, true, &again) == 0);
	must(again.size == out.size && memcmp(again.data, out.data, out.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	int head_size = httphead_size(text, 0, size);
	struct chunked chunked = { .state = CHUNKED_SIZE };
	struct chunked single = { .state = CHUNKED_SIZE };
	struct http_head head;
	struct error err = ERROR_INIT;
	bool bad_host = false;
	size_t taken = 0;
	size_t at = 0;

	must(head_size <= (int)size);
	(void)httphead_status(text, size);
	if (head_size <= 0)
		return 0;
	if (httphead_parse(text, (size_t)head_size, &head, &bad_host, &err) < 0) {
		must(err.kind == ERR_INVALID);
		for (const char *byte = err.message; *byte; byte++)
			must(*byte >= ' ' && *byte <= '~');
	} else if (!head.connect) {
		check_rendered(&head);
	}
	/* A body is the same body in whatever pieces it comes. */
	text += head_size;
	size -= (size_t)head_size;
	taken = chunked_feed(&chunked, text, size);
	while (at < size && chunked_feed(&single, text + at, 1) == 1)
		at++;
	must(at == taken && single.state == chunked.state);
	must(taken == size || chunked.state == CHUNKED_END || chunked.state == CHUNKED_BAD);
	return 0;
}
