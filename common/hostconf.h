/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_HOSTCONF_H
#define FSBOX_COMMON_HOSTCONF_H

/*
 * fsboxd.conf(5): lines of text to a struct, for fsboxd and broker alike. Pure: the caller reads
 * the files and calls hostconf_parse() once for each, in order.
 *
 * One table in hostconf.c lists the keys: parser, defaults, manual and completion come from it
 * (hostconf_keys()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"
#include "common/units.h" /* IWYU pragma: export */

enum hostconf_choice_root_peers { ROOT_PEERS_REFUSE = 0, ROOT_PEERS_SERVE };
enum hostconf_choice_audit { AUDIT_BEST_EFFORT = 0, AUDIT_REQUIRED };
enum hostconf_choice_on_unmask { ON_UNMASK_REMASK = 0, ON_UNMASK_KILL };
enum hostconf_choice_on_plant { ON_PLANT_QUARANTINE = 0, ON_PLANT_KILL };

/* One frozen variable; USER is NULL when it holds for everybody. All owned. */
struct hostconf_env {
	char *user;
	char *name;
	char *value;
};

/* Field names follow the keys, with their units. Lists and strings are owned. */
struct hostconf {
	struct string_list mandatory_deny;
	struct string_list mandatory_read_only;
	enum net_mode max_net;
	char *default_profile;
	char *default_engine; /* NULL: the daemon's own choice */
	enum hostconf_choice_root_peers root_peers;
	uint32_t *admit_confined_uids;
	size_t admit_confined_uid_count;
	char *admin_group;
	uint32_t max_jobs_per_uid;
	uint32_t max_jobs;
	uint32_t max_spawns_per_second;
	uint64_t default_memory_bytes; /* 0: none */
	uint32_t default_pids;         /* 0: none */
	uint32_t default_cpus_milli;   /* 0: none */
	uint64_t default_timeout_ms;   /* 0: none */
	enum hostconf_choice_audit audit;
	uint64_t events_max_bytes;
	enum hostconf_choice_on_unmask on_unmask;
	enum hostconf_choice_on_plant on_plant;
	enum absent_mode absent_deny;
	uint32_t zygotes;
	uint32_t template_cache_mounts;
	uint32_t net_pool;
	struct string_list env_withhold;
	struct string_list env_pass;
	struct hostconf_env *host_env;
	size_t host_env_count;
	char *upstream_proxy;           /* NULL: none */
	struct string_list drop_groups; /* key drop-group: lost by jobs besides the fixed list */
	uint32_t log_level;             /* 0 error, 1 warning, 2 info, 3 debug */
	uint64_t spoken;                /* bit per key: set by a file of the host, not a user's */
};

/* Defaults in every field. Fails with ERR_NOMEM. */
int hostconf_init(struct hostconf *conf, struct error *err);
void hostconf_deinit(struct hostconf *conf);

/*
 * Apply the lines of one file on top of CONF. List keys append, others replace; a key that is no
 * list may stand once in a file.
 *
 * @text, @size  the file's bytes, not terminated; at most LIMIT_CONFIG_BYTES
 * @name         the file's name, for messages
 * @user_file    true for a user's own file in user mode: it may only make things stricter where the
 *               host's file has spoken (max-net lower, more denies, smaller limits); anything else
 *               is an error. Where the host is silent the user decides.
 *
 * Fails with ERR_CONFIG: "NAME:LINE: key 'x': why". CONF is then unusable but may be deinited.
 */
int hostconf_parse(struct hostconf *conf, const char *text, size_t size, const char *name,
		   bool user_file, struct error *err);

/* The keys with defaults and one-line help, in order, for --help, the manual and tests. */
struct hostconf_key {
	const char *key;
	const char *form;          /* "none|proxy|host", "PATH (repeatable)", "SIZE" ... */
	const char *default_value; /* as text; "" for empty */
	const char *help;
};
const struct hostconf_key *hostconf_keys(size_t *ret_count);

#endif
