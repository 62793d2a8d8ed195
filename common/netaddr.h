/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_NETADDR_H
#define FSBOX_COMMON_NETADDR_H

/*
 * One IP address: read strictly, written canonically, and told what kind of place it is.
 *
 * Only the one usual spelling is read: "192.0.2.1" with four decimal numbers and no leading zeros,
 * IPv6 as RFC 4291 has it and without a zone. "127.1", "0x7f000001", "2130706433", "0177.0.0.1" are
 * refused, since other programs would read them as addresses too, and not always as the same one.
 *
 * An IPv4 address that is written as an IPv6 one (::ffff:192.0.2.1) is the IPv4 address from then on:
 * the kernel would dial that. Addresses that only carry an IPv4 address for a translator or a
 * tunnel stay what they are, but are judged by what they lead to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @family  4 or 6; 0: no address. @bytes: the first 4 or all 16, in network order, others 0 */
struct netaddr {
	uint8_t family;
	uint8_t bytes[16];
};

#define NETADDR_TEXT_BYTES 46

/*
 * What kind of place an address is. Everything but NETADDR_PUBLIC is closed unless the policy
 * says so by name. In the order in which they are tried: the first that fits is it.
 *
 *	 symbol		    name	     for people
 */
#define NETADDR_CLASSES(X)                                                                   \
	X(NETADDR_PUBLIC, "public", "an address of the internet")                            \
	X(NETADDR_UNSPECIFIED, "unspecified", "the unspecified address")                     \
	X(NETADDR_MULTICAST, "multicast", "a multicast or broadcast address")                \
	X(NETADDR_RESERVED, "reserved", "a reserved address")                                \
	X(NETADDR_METADATA, "metadata", "a cloud's metadata service")                        \
	X(NETADDR_LOOPBACK, "loopback", "a loopback address")                                \
	X(NETADDR_PRIVATE, "private", "a private address (RFC 1918)")                        \
	X(NETADDR_UNIQUE_LOCAL, "unique-local", "a private address (RFC 4193)")              \
	X(NETADDR_CGNAT, "cgnat", "a carrier's private address (RFC 6598)")                  \
	X(NETADDR_LINK_LOCAL, "link-local", "a link-local address")                          \
	X(NETADDR_TUNNEL, "tunnel", "an address of a tunnel, whose far end cannot be known") \
	X(NETADDR_HOST, "host", "an address of this host")

#define X(symbol, name, text) symbol,
enum netaddr_class { NETADDR_CLASSES(X) NETADDR_CLASS_COUNT };
#undef X

/* False for anything but the one usual spelling. Brackets are not part of it. */
bool netaddr_parse(const char *text, size_t size, struct netaddr *ret_address);

/* From the bytes as sockets have them; a mapped IPv4 address becomes one of family 4. */
struct netaddr netaddr_from_v4(const void *bytes);
struct netaddr netaddr_from_v6(const void *bytes);

bool netaddr_equal(const struct netaddr *a, const struct netaddr *b);

/* The canonical text, without brackets (RFC 5952); "" for no address. TEXT has NETADDR_TEXT_BYTES. */
void netaddr_format(const struct netaddr *address, char *text);

/*
 * The IPv4 address that ADDRESS leads to by a translator (64:ff9b::/96), 6to4 (2002::/16), ISATAP or
 * as a compatible one (::192.0.2.1). False when it carries none.
 */
bool netaddr_embedded(const struct netaddr *address, struct netaddr *ret_inner);

/*
 * What ADDRESS is, by itself and by what it carries: the first that is not public. Never
 * NETADDR_HOST, which only the kernel knows. No address is NETADDR_UNSPECIFIED.
 */
enum netaddr_class netaddr_classify(const struct netaddr *address);

const char *netaddr_class_name(enum netaddr_class class);
const char *netaddr_class_text(enum netaddr_class class);

#endif
