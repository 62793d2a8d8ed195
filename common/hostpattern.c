/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostpattern.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

#define PRIVATE_MARK "+private"
#define PRIVATE_MARK_BYTES (sizeof(PRIVATE_MARK) - 1)

/* Foreign text for a message: cut, and nothing but what cannot hurt a terminal. */
static void quote(const char *text, size_t size, char *quoted, size_t room)
{
	size_t at = 0;

	for (at = 0; at < size && at + 1 < room; at++)
		quoted[at] = (char)(text[at] >= ' ' && text[at] <= '~' ? text[at] : '?');
	quoted[at] = '\0';
}

static int refuse(const char *text, size_t size, struct error *err, const char *why)
{
	char quoted[80];

	quote(text, size, quoted, sizeof(quoted));
	return error_set(err, ERR_INVALID, 0, "host entry '%s': %s", quoted, why);
}

static bool ends_with_mark(const char *text, size_t size)
{
	return size > PRIVATE_MARK_BYTES &&
	       memcmp(text + size - PRIVATE_MARK_BYTES, PRIVATE_MARK, PRIVATE_MARK_BYTES) == 0;
}

/* Reads the host of TEXT, after "*." and without the mark, into PATTERN and HOST. */
static const char *parse_rest(const char *text, size_t size, struct hostpattern *pattern,
			      struct hostname *host, struct error *err)
{
	/* No entry means port 65536, so that an absent port can be told from a given one. */
	const char *close = size > 0 && text[0] == '[' ? memchr(text, ']', size) : NULL;
	const char *colon =
		memchr(close ? close : text, ':', size - (close ? (size_t)(close - text) : 0));

	if (memchr(text, '*', size))
		return "'*' stands only in front of a name, as in *.example.org";
	if (colon && !close && memchr(colon + 1, ':', size - (size_t)(colon + 1 - text)))
		return "an IPv6 address must stand in brackets";
	if (colon &&
	    !hostname_parse_port(colon + 1, size - (size_t)(colon + 1 - text), &pattern->port))
		return "no port from 1 to 65535";
	if (hostname_parse(text, colon ? (size_t)(colon - text) : size, false, host, err) < 0)
		return err->message;
	if (pattern->wildcard && host->address.family != 0)
		return "'*.' stands in front of names only";
	if (pattern->private_too && host->address.family != 0)
		return "'+private' is for names; an address is meant as it is";
	if (netaddr_classify(&host->address) == NETADDR_UNSPECIFIED && host->address.family != 0)
		return "the unspecified address leads nowhere; 127.0.0.1 is this host";
	return NULL;
}

int hostpattern_parse(const char *text, size_t size, struct hostpattern *ret_pattern,
		      struct error *err)
{
	struct hostpattern pattern = { .name = NULL };
	struct hostname host;
	struct error inner = ERROR_INIT;
	const char *why = NULL;
	const char *rest = text;
	size_t rest_size = size;

	if (size > LIMIT_HOST_PATTERN_BYTES)
		return refuse(text, size, err, "too long");
	if (size == 1 && text[0] == '*')
		return refuse(text, size, err,
			      "there is no entry for every host; the network mode 'host' is that");
	if (ends_with_mark(rest, rest_size)) {
		pattern.private_too = true;
		rest_size -= PRIVATE_MARK_BYTES;
	}
	if (rest_size >= 2 && rest[0] == '*' && rest[1] == '.') {
		pattern.wildcard = true;
		rest += 2;
		rest_size -= 2;
	}
	why = parse_rest(rest, rest_size, &pattern, &host, &inner);
	if (why)
		return refuse(text, size, err, why);
	pattern.address = host.address;
	pattern.name = strdup(host.name);
	if (!pattern.name)
		return error_set(err, ERR_NOMEM, 0, "remember a host entry");
	*ret_pattern = pattern;
	return 0;
}

void hostpattern_deinit(struct hostpattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->name);
	pattern->name = NULL;
}

int hostpattern_format(const struct hostpattern *pattern, struct buf *out)
{
	bool bracket = pattern->address.family == 6;
	int r = buf_printf(out, "%s%s%s%s", pattern->wildcard ? "*." : "", bracket ? "[" : "",
			   pattern->name, bracket ? "]" : "");

	if (r == 0 && pattern->port != 0)
		r = buf_printf(out, ":%u", (unsigned)pattern->port);
	if (r == 0 && pattern->private_too)
		r = buf_add_string(out, PRIVATE_MARK);
	return r;
}

bool hostpattern_matches(const struct hostpattern *pattern, const struct hostname *host,
			 uint16_t port)
{
	size_t own = 0;
	size_t size = 0;

	if (pattern->port != 0 && pattern->port != port)
		return false;
	if (pattern->address.family != 0 || host->address.family != 0)
		return netaddr_equal(&pattern->address, &host->address);
	if (!pattern->wildcard)
		return strcmp(pattern->name, host->name) == 0;
	own = strlen(pattern->name);
	size = strlen(host->name);
	return size > own + 1 && host->name[size - own - 1] == '.' &&
	       strcmp(host->name + size - own, pattern->name) == 0;
}
