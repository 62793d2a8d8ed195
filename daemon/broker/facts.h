/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_FACTS_H
#define FSBOX_DAEMON_BROKER_FACTS_H

/*
 * What is known about the user and the host, looked up once at start and frozen: no request changes
 * it, none may state it. Shown by `status`.
 *
 * The home directory is the one of the passwd entry of our own uid (R4); this is the only place in
 * the program that asks the name service.
 */

#include "common/error.h"
#include "daemon/broker/resolve.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

/* A top-level link of the host, to be reproduced inside: merged /usr. */
struct facts_link {
	const char *path; /* "/bin" ... */
	char target[256]; /* the link's text */
};

#define FACTS_LINKS 6

/* All text owned. Directories are canonical as far as they exist. */
struct facts {
	uid_t uid;
	char *user;
	char *shell;
	char *passwd_home; /* as the entry has it */
	char *home;
	char *config_home;
	char *cache_home;
	char *data_home;
	char *state_home;
	struct facts_link links[FACTS_LINKS];
	size_t link_count;
};

/*
 * Look everything up. @text is LINK_CONFIG's: NAME=VALUE strings, XDG_*_HOME among them.
 *
 * Fails with ERR_CONFIG (no passwd entry, a home that cannot be one) or as look-ups do: then nothing
 * can be spawned, and the message says why.
 */
int facts_init(struct facts *facts, struct resolver_pool *pool, const char text[LINK_TEXT_BYTES],
	       struct error *err);
void facts_deinit(struct facts *facts);

/* The last value of NAME among LINK_CONFIG's strings when it is an absolute path, else NULL. */
const char *facts_configured(const char text[LINK_TEXT_BYTES], const char *name);

/* As `status` shows them. Appends to LIST. */
int facts_list(const struct facts *facts, struct env_list *list, struct error *err);

#endif
