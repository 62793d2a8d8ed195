/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_CONFIG_H
#define FSBOX_DAEMON_SPAWNER_CONFIG_H

/*
 * fsboxd.conf(5) as fsboxd itself read it: the files, and the numbers behind the group names in them.
 * Names are looked up in /etc/group and /etc/passwd directly; name services never run in fsboxd (R4).
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/hostconf.h"
#include "daemon/identity.h"
#include "daemon/spawner/options.h"
#include "daemon/spawner/paths.h"
#include "daemon/spawner/quota.h"

/* The group whose members the system mode serves. */
#define CONFIG_SERVED_GROUP "fsbox"

#define CONFIG_DROP_GROUPS 64

/*
 * @drop       groups that jobs lose (R20), as numbers
 * @admin_gid, @served_gid  (gid_t)-1: there is no such group
 */
struct config {
	struct hostconf host;
	gid_t drop[CONFIG_DROP_GROUPS];
	size_t drop_count;
	gid_t admin_gid;
	gid_t served_gid;
};

/*
 * Read everything anew. The files of the host must belong to root or to whoever runs fsboxd and be
 * writable by nobody else. @*ret_config, zeroed or initialised, is replaced on success only.
 *
 * Fails with ERR_CONFIG, naming file and line, or ERR_NOMEM.
 */
int config_load(struct config *ret_config, const struct options *options, const struct paths *paths,
		enum daemon_mode mode, struct error *err);
void config_deinit(struct config *config);

struct quota_limits config_quota_limits(const struct config *config);

/* Whether UID may be served although it is confined (never in other namespaces). */
bool config_admits(const struct config *config, uid_t uid);

/* Whether IDENTITY may see and signal everybody's jobs. */
bool config_is_admin(const struct config *config, const struct identity *identity);

/*
 * The identity that IDENTITY's jobs run as: without the groups that jobs lose. Where the primary
 * group is one of them, the user's primary group of /etc/passwd takes its place, if the caller is a
 * member of it; otherwise this fails with ERR_NOT_AUTHORIZED.
 */
int config_job_identity(const struct config *config, const struct identity *identity,
			struct identity *ret_job, struct error *err);

/*
 * The frozen variables of UID as link_config has them: NAME=VALUE strings, an empty one at the end.
 * Where several have one name the last counts.
 *
 * In user and root mode fsboxd's own environment says where the XDG directories are: it is that
 * person's. Configuration comes after it, and wins.
 *
 * Fails with ERR_CONFIG when they do not fit.
 */
int config_host_facts(const struct config *config, enum daemon_mode mode, uid_t uid, char *text,
		      size_t size, struct error *err);

#endif
