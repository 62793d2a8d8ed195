/* SPDX-License-Identifier: Apache-2.0 */
#include "common/netpolicy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"

static void list_free(struct hostpattern *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hostpattern_deinit(&list[i]);
	free(list);
}

void netpolicy_deinit(struct netpolicy *policy)
{
	if (!policy)
		return;
	list_free(policy->allow, policy->allow_count);
	list_free(policy->deny, policy->deny_count);
	free(policy->forwards);
	*policy = (struct netpolicy)NETPOLICY_INIT;
}

/* Room for one more; grows by doubling, so that COUNT says when. */
static int grow(void *array, size_t count, size_t item_bytes, struct error *err)
{
	void **at = array;
	void *bigger = NULL;

	if ((count & (count - 1)) != 0)
		return 0;
	bigger = reallocarray(*at, count ? count * 2 : 1, item_bytes);
	if (!bigger)
		return error_set(err, ERR_NOMEM, 0, "remember a network policy");
	*at = bigger;
	return 0;
}

static int list_add(struct hostpattern **list, size_t *count, const char *text, size_t size,
		    struct error *err)
{
	int r = 0;

	if (*count == LIMIT_HOST_PATTERNS)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "more than %d host entries",
				 LIMIT_HOST_PATTERNS);
	r = grow(list, *count, sizeof(**list), err);
	if (r < 0)
		return r;
	r = hostpattern_parse(text, size, &(*list)[*count], err);
	if (r == 0)
		(*count)++;
	return r;
}

int netpolicy_allow(struct netpolicy *policy, const char *text, size_t size, struct error *err)
{
	return list_add(&policy->allow, &policy->allow_count, text, size, err);
}

int netpolicy_deny(struct netpolicy *policy, const char *text, size_t size, struct error *err)
{
	return list_add(&policy->deny, &policy->deny_count, text, size, err);
}

int netpolicy_forward(struct netpolicy *policy, uint16_t port, struct error *err)
{
	size_t at = policy->forward_count;
	int r = 0;

	if (port == 0)
		return error_set(err, ERR_INVALID, 0, "forward: no port from 1 to 65535");
	if (netpolicy_forwards(policy, port))
		return 0;
	if (policy->forward_count == LIMIT_FORWARDS)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "more than %d forwarded ports",
				 LIMIT_FORWARDS);
	r = grow(&policy->forwards, policy->forward_count, sizeof(*policy->forwards), err);
	if (r < 0)
		return r;
	for (; at > 0 && policy->forwards[at - 1] > port; at--)
		policy->forwards[at] = policy->forwards[at - 1];
	policy->forwards[at] = port;
	policy->forward_count++;
	return 0;
}

bool netpolicy_forwards(const struct netpolicy *policy, uint16_t port)
{
	for (size_t i = 0; i < policy->forward_count; i++)
		if (policy->forwards[i] == port)
			return true;
	return false;
}

struct net_verdict netpolicy_decide(const struct netpolicy *policy, const struct hostname *host,
				    uint16_t port)
{
	struct net_verdict verdict = { .reason = NET_NOT_LISTED };

	for (size_t i = 0; i < policy->deny_count; i++) {
		if (hostpattern_matches(&policy->deny[i], host, port)) {
			verdict.reason = NET_DENIED;
			verdict.rule = &policy->deny[i];
			return verdict;
		}
	}
	for (size_t i = 0; i < policy->allow_count; i++) {
		const struct hostpattern *entry = &policy->allow[i];

		if (!hostpattern_matches(entry, host, port))
			continue;
		verdict.reason = NET_ALLOWED;
		if (!verdict.rule || (entry->private_too && !verdict.private_too))
			verdict.rule = entry;
		verdict.private_too = verdict.private_too || entry->private_too;
	}
	return verdict;
}

/* Whether the deny list names ADDRESS or what it carries. */
static bool address_denied(const struct netpolicy *policy, const struct netaddr *address,
			   uint16_t port)
{
	struct hostname outer = { .address = *address };
	struct hostname inner = { .name = "" };
	bool carries = netaddr_embedded(address, &inner.address);

	for (size_t i = 0; i < policy->deny_count; i++) {
		if (policy->deny[i].address.family == 0)
			continue;
		if (hostpattern_matches(&policy->deny[i], &outer, port) ||
		    (carries && hostpattern_matches(&policy->deny[i], &inner, port)))
			return true;
	}
	return false;
}

enum net_reason netpolicy_judge(const struct netpolicy *policy, const struct hostname *host,
				uint16_t port, const struct net_verdict *verdict,
				const struct netaddr *address, enum netaddr_class class)
{
	bool named = netaddr_equal(&host->address, address);

	if (address_denied(policy, address, port))
		return NET_DENIED;
	switch (class) {
	case NETADDR_PUBLIC:
		return NET_ALLOWED;
	case NETADDR_LOOPBACK:
	case NETADDR_PRIVATE:
	case NETADDR_UNIQUE_LOCAL:
	case NETADDR_CGNAT:
	case NETADDR_LINK_LOCAL:
	case NETADDR_HOST:
		return named || verdict->private_too ? NET_ALLOWED : NET_CLOSED_ADDRESS;
	case NETADDR_METADATA:
	case NETADDR_RESERVED:
	case NETADDR_TUNNEL:
		return named ? NET_ALLOWED : NET_CLOSED_ADDRESS;
	case NETADDR_UNSPECIFIED:
	case NETADDR_MULTICAST:
	case NETADDR_CLASS_COUNT:
		break;
	}
	return NET_CLOSED_ADDRESS;
}

static void put(struct buf *out, uint32_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		(void)buf_add_byte(out, (char)(value >> (8 * i)));
}

static void put_list(const struct hostpattern *list, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);

		if (hostpattern_format(&list[i], &text) < 0)
			out->failed = true;
		put(out, (uint32_t)text.size, 2);
		(void)buf_add(out, buf_text(&text), text.size);
	}
}

int netpolicy_encode(const struct netpolicy *policy, struct buf *out, struct error *err)
{
	(void)buf_add_string(out, NETPOLICY_MAGIC);
	put(out, (uint32_t)policy->allow_count, 4);
	put(out, (uint32_t)policy->deny_count, 4);
	put(out, (uint32_t)policy->forward_count, 4);
	put_list(policy->allow, policy->allow_count, out);
	put_list(policy->deny, policy->deny_count, out);
	for (size_t i = 0; i < policy->forward_count; i++)
		put(out, policy->forwards[i], 2);
	return buf_check(out, "the network policy", err);
}

struct reader {
	const uint8_t *data;
	size_t size;
};

static bool take(struct reader *reader, size_t bytes, uint32_t *ret_value)
{
	uint32_t value = 0;

	if (reader->size < bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint32_t)reader->data[i] << (8 * i);
	reader->data += bytes;
	reader->size -= bytes;
	*ret_value = value;
	return true;
}

static int bad(struct error *err, const char *why)
{
	return error_set(err, ERR_BAD_FRAME, 0, "the network policy: %s", why);
}

/* One entry, which must be written as hostpattern_format() would. */
static int take_entry(struct reader *reader, struct hostpattern **list, size_t *count,
		      struct error *err)
{
	AUTO(buf_deinit) struct buf canonical = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);
	const char *text = NULL;
	uint32_t size = 0;
	int r = 0;

	if (!take(reader, 2, &size) || size > reader->size)
		return bad(err, "the bytes end early");
	text = (const char *)reader->data;
	r = list_add(list, count, text, size, err);
	if (r < 0)
		return r == -ERR_NOMEM ? r : bad(err, "an entry that cannot be read");
	if (hostpattern_format(&(*list)[*count - 1], &canonical) < 0)
		return error_set(err, ERR_NOMEM, 0, "compare a host entry");
	if (canonical.size != size || memcmp(buf_text(&canonical), text, size) != 0)
		return bad(err, "an entry that is not canonical");
	reader->data += size;
	reader->size -= size;
	return 0;
}

static int decode(struct netpolicy *policy, struct reader *reader, struct error *err)
{
	uint32_t counts[3] = { 0 };
	uint32_t port = 0;
	uint32_t before = 0;
	int r = 0;

	if (reader->size < strlen(NETPOLICY_MAGIC) ||
	    memcmp(reader->data, NETPOLICY_MAGIC, strlen(NETPOLICY_MAGIC)) != 0)
		return bad(err, "does not begin with " NETPOLICY_MAGIC);
	reader->data += strlen(NETPOLICY_MAGIC);
	reader->size -= strlen(NETPOLICY_MAGIC);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (!take(reader, 4, &counts[i]))
			return bad(err, "the bytes end early");
	for (uint32_t i = 0; r == 0 && i < counts[0]; i++)
		r = take_entry(reader, &policy->allow, &policy->allow_count, err);
	for (uint32_t i = 0; r == 0 && i < counts[1]; i++)
		r = take_entry(reader, &policy->deny, &policy->deny_count, err);
	for (uint32_t i = 0; r == 0 && i < counts[2]; i++, before = port) {
		if (!take(reader, 2, &port) || port <= before)
			return bad(err, "forwarded ports that end early or do not ascend");
		r = netpolicy_forward(policy, (uint16_t)port, err);
	}
	if (r < 0)
		return r == -ERR_NOMEM || r == -ERR_BAD_FRAME ? r : bad(err, "too many entries");
	return reader->size == 0 ? 0 : bad(err, "bytes behind the end");
}

int netpolicy_decode(struct netpolicy *ret_policy, const void *data, size_t size, struct error *err)
{
	struct netpolicy policy = NETPOLICY_INIT;
	struct reader reader = { .data = data, .size = size };
	int r = decode(&policy, &reader, err);

	if (r < 0)
		netpolicy_deinit(&policy);
	*ret_policy = policy;
	return r;
}

#define X(symbol, name, text) { name, text },
static const struct {
	const char *name;
	const char *text;
} reasons[] = { NET_REASONS(X) };
#undef X

const char *net_reason_name(enum net_reason reason)
{
	return (size_t)reason < ARRAY_SIZE(reasons) ? reasons[reason].name : "unknown";
}

const char *net_reason_text(enum net_reason reason)
{
	return (size_t)reason < ARRAY_SIZE(reasons) ? reasons[reason].text : "unknown";
}

static void closed_text(enum netaddr_class class, const char *where, char *text, size_t size)
{
	bool mark = class == NETADDR_LOOPBACK || class == NETADDR_PRIVATE ||
		    class == NETADDR_UNIQUE_LOCAL || class == NETADDR_CGNAT ||
		    class == NETADDR_LINK_LOCAL || class == NETADDR_HOST;

	(void)snprintf(text, size, "%s leads to %s%s%s%s", where, netaddr_class_text(class),
		       mark ? "; if that is meant: --allow-host " : "", mark ? where : "",
		       mark ? "+private" : "");
}

void net_refusal_text(enum net_reason reason, enum netaddr_class class, const struct hostname *host,
		      uint16_t port, char *text, size_t size)
{
	bool bracket = host->address.family == 6;
	char where[HOSTNAME_BYTES + sizeof("[]:65535")];

	(void)snprintf(where, sizeof(where), "%s%s%s:%u", bracket ? "[" : "", host->name,
		       bracket ? "]" : "", (unsigned)port);
	if (host->name[0] == '\0')
		(void)snprintf(text, size, "%s", net_reason_text(reason));
	else if (reason == NET_NOT_LISTED)
		(void)snprintf(text, size,
			       "%s is not on the allowlist; to allow it: --allow-host %s", where,
			       where);
	else if (reason == NET_CLOSED_ADDRESS)
		closed_text(class, where, text, size);
	else
		(void)snprintf(text, size, "%s: %s", where, net_reason_text(reason));
}
