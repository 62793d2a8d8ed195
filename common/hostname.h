/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_HOSTNAME_H
#define FSBOX_COMMON_HOSTNAME_H

/*
 * Where a program wants to go: a name or an address, and a port; read strictly, in one form.
 *
 * A name is in lower case without the dot that may end it, of labels of letters, digits, `-` and `_`.
 * Names outside ASCII are refused: what asks must speak in A-labels (xn--...), so that one name has
 * one spelling. What ends in a number ("0x7f.1", "1.2.3", "017700000001") is refused unless it is an
 * address in its usual form, since a resolver would read it as one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/netaddr.h"

#define HOSTNAME_BYTES 254 /* 253 and a NUL */

/* @name: the name, or the address as netaddr_format() writes it. @address: family 0 for a name. */
struct hostname {
	char name[HOSTNAME_BYTES];
	struct netaddr address;
};

/*
 * A host without port. An IPv6 address must stand in brackets, unless BARE is set, where it must not.
 *
 * Fails with ERR_INVALID: why, without the text.
 */
int hostname_parse(const char *text, size_t size, bool bare, struct hostname *ret_host,
		   struct error *err);

/*
 * "host:port" as in an HTTP request. Without a port the DEFAULT_PORT is meant; if that is 0, the
 * port must be there. Ports are 1 .. 65535 in decimal, without leading zeros. Fails as above.
 */
int hostname_parse_authority(const char *text, size_t size, uint16_t default_port,
			     struct hostname *ret_host, uint16_t *ret_port, struct error *err);

/* A port alone. */
bool hostname_parse_port(const char *text, size_t size, uint16_t *ret_port);

#endif
