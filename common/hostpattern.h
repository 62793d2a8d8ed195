/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_HOSTPATTERN_H
#define FSBOX_COMMON_HOSTPATTERN_H

/*
 * One entry of an allow or deny list of hosts.
 *
 *	example.org		that name, any port
 *	*.example.org		every name below it, at any depth; not example.org itself
 *	example.org:443		one port; goes with every form
 *	192.0.2.1  [2001:db8::1]	that address, when a program names it as an address
 *	db.corp+private		that name, also where it leads to a private or loopback address
 *
 * What an entry may hold is what hostname.h reads. `*` stands alone in front of a dot and nowhere else;
 * there is no entry for everything. The mark `+private` is for names in allow lists: an address
 * that is named is meant as it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/hostname.h"

/* @name  owned; without "*."; for an address its text. @port  0: any */
struct hostpattern {
	char *name;
	struct netaddr address; /* family 0 for a name */
	uint16_t port;
	bool wildcard;
	bool private_too;
};

/*
 * Fails with ERR_INVALID (why, with the text quoted) or ERR_NOMEM. Upper case and a dot at the end
 * are accepted and normalised.
 */
int hostpattern_parse(const char *text, size_t size, struct hostpattern *ret_pattern,
		      struct error *err);
void hostpattern_deinit(struct hostpattern *pattern);

/* The one canonical text: parsing it gives the same pattern. Fails as buf_add(). */
int hostpattern_format(const struct hostpattern *pattern, struct buf *out);

/* A name fits names, an address addresses, never across. */
bool hostpattern_matches(const struct hostpattern *pattern, const struct hostname *host,
			 uint16_t port);

#endif
