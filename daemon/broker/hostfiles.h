/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_HOSTFILES_H
#define FSBOX_DAEMON_BROKER_HOSTFILES_H

/* The configuration files of the host and, in user mode, of the user, read once at start. */

#include "common/error.h"
#include "common/hostconf.h"
#include "daemon/broker/resolve.h"

/*
 * Read CONFIG_DIR/fsboxd.conf and CONFIG_DIR/fsboxd.conf.d/?*.conf by name, then, when it is not
 * NULL, USER_FILE, which may only make things stricter. What does not exist is no error; what cannot
 * be read or understood is.
 *
 * @conf      made by hostconf_init()
 * @pool      reads USER_FILE, which may lie on a dead file system
 *
 * Fails with ERR_CONFIG naming file and line, ERR_NOMEM, ERR_TIMEOUT.
 */
int hostfiles_read(struct hostconf *conf, const char *config_dir, const char *user_file,
		   struct resolver_pool *pool, struct error *err);

#endif
