/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_NETPOLICY_H
#define FSBOX_COMMON_NETPOLICY_H

/*
 * Where the programs of one job may go when its network mode is `proxy`, and its bytes.
 *
 * A deny entry wins over every allow entry. A name that is allowed must besides lead to an address
 * that is public, and no deny entry may name that address; a private or loopback address is reached by
 * an entry with `+private` or by the address itself as an entry. A cloud's metadata service, a tunnel
 * or a reserved address is reached by the address itself alone; multicast and the unspecified address
 * never are. Which address is dialled is decided once: the one that was judged.
 *
 * The bytes, as they travel in a sealed memfd (numbers little-endian):
 *
 *	"fsboxnp1"  u32 allow  u32 deny  u32 forward
 *	allow + deny times:  u16 bytes, the canonical text of the entry
 *	forward times:  u16 port, ascending
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hostpattern.h"

#define NETPOLICY_MAGIC "fsboxnp1"

/*
 * Why a connection was refused or failed.
 *
 *	 symbol			name			for people
 */
#define NET_REASONS(X)                                                                             \
	X(NET_ALLOWED, "allowed", "allowed")                                                       \
	X(NET_NOT_LISTED, "not-listed", "no entry of the allowlist fits")                          \
	X(NET_DENIED, "denied", "an entry of the deny list fits")                                  \
	X(NET_CLOSED_ADDRESS, "closed-address", "the name leads to an address that is not public") \
	X(NET_BAD_HOST, "bad-host", "the host is not written in its one usual form")               \
	X(NET_BAD_REQUEST, "bad-request", "the request is not of the form that is allowed")        \
	X(NET_RESOLVE_FAILED, "resolve-failed", "the name could not be looked up")                 \
	X(NET_RESOLVE_TIMEOUT, "resolve-timeout", "looking up the name took too long")             \
	X(NET_CONNECT_FAILED, "connect-failed", "the host could not be reached")                   \
	X(NET_CONNECT_TIMEOUT, "connect-timeout", "the host did not answer in time")               \
	X(NET_UPSTREAM_FAILED, "upstream-failed", "the proxy of this host refused or failed")      \
	X(NET_LIMIT, "limit", "too many connections, or too slow")

#define X(symbol, name, text) symbol,
enum net_reason { NET_REASONS(X) NET_REASON_COUNT };
#undef X

/* @allow, @deny  owned arrays. @forwards  ascending */
struct netpolicy {
	struct hostpattern *allow;
	size_t allow_count;
	struct hostpattern *deny;
	size_t deny_count;
	uint16_t *forwards;
	size_t forward_count;
};

#define NETPOLICY_INIT        \
	{                     \
		.allow = NULL \
	}

void netpolicy_deinit(struct netpolicy *policy);

/* Append one entry. Fails as hostpattern_parse(), and with ERR_QUOTA_EXCEEDED past the bound. */
int netpolicy_allow(struct netpolicy *policy, const char *text, size_t size, struct error *err);
int netpolicy_deny(struct netpolicy *policy, const char *text, size_t size, struct error *err);

/* Make a loopback port of the host reachable. Twice is once. ERR_QUOTA_EXCEEDED, ERR_INVALID (0). */
int netpolicy_forward(struct netpolicy *policy, uint16_t port, struct error *err);
bool netpolicy_forwards(const struct netpolicy *policy, uint16_t port);

/*
 * What a request for HOST and PORT gets before anything is looked up.
 *
 * @reason       NET_ALLOWED, NET_NOT_LISTED or NET_DENIED
 * @private_too  an allow entry with the mark fits
 * @rule         the deciding entry, borrowed; NULL for NET_NOT_LISTED
 */
struct net_verdict {
	enum net_reason reason;
	bool private_too;
	const struct hostpattern *rule;
};
struct net_verdict netpolicy_decide(const struct netpolicy *policy, const struct hostname *host,
				    uint16_t port);

/*
 * Whether ADDRESS may be dialled for HOST, which was allowed with VERDICT: NET_ALLOWED, NET_DENIED or
 * NET_CLOSED_ADDRESS. CLASS is netaddr_classify()'s, or NETADDR_HOST where the kernel says so.
 */
enum net_reason netpolicy_judge(const struct netpolicy *policy, const struct hostname *host,
				uint16_t port, const struct net_verdict *verdict,
				const struct netaddr *address, enum netaddr_class class);

/* Append the bytes. Fails with ERR_NOMEM. */
int netpolicy_encode(const struct netpolicy *policy, struct buf *out, struct error *err);

/*
 * From bytes that anybody may have written. Everything must be canonical and consumed. Fails with
 * ERR_BAD_FRAME or ERR_NOMEM; POLICY is then empty.
 */
int netpolicy_decode(struct netpolicy *ret_policy, const void *data, size_t size,
		     struct error *err);

/*
 * One sentence for whoever was refused: what, why, and where there is one, the option that allows it. No
 * foreign text but a HOST in its normal form; HOST with an empty name is left out.
 */
#define NET_REFUSAL_BYTES 1024
void net_refusal_text(enum net_reason reason, enum netaddr_class class, const struct hostname *host,
		      uint16_t port, char *text, size_t size);

const char *net_reason_name(enum net_reason reason);
const char *net_reason_text(enum net_reason reason);

#endif
