/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/verify.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/alias.h"
#include "daemon/spawner/sealed.h"
#include "daemon/spawner/spawner.h"

/* Where private caches are below, whatever the home: a name that nobody but fsbox uses. */
#define PRIVATE_PLACE "/.cache/fsbox"

int verify_map(int plan_fd, size_t announced, const uint8_t **ret_bytes, struct error *err)
{
	const void *data = NULL;
	size_t size = 0;
	int r = sealed_map(plan_fd, LIMIT_PLAN_BYTES + LIMIT_EGRESS_POLICY_BYTES, &data, &size,
			   err);

	if (r < 0)
		return r;
	if (size != announced) {
		(void)munmap((void *)(uintptr_t)data, size);
		return error_set(err, ERR_BAD_FRAME, 0,
				 "the plan has %zu bytes, %zu were announced", size, announced);
	}
	*ret_bytes = data;
	return 0;
}

/* The directory of private caches that SOURCE lies below, as length of its name; 0: none. */
static size_t private_place_of(const struct spawner *spawner, const char *source)
{
	const char *own = spawner->paths.cache_dir;
	const char *place = strstr(source, PRIVATE_PLACE);
	size_t length = strlen(own);

	if (length > 0 && strncmp(source, own, length) == 0 && source[length] == '/')
		return length;
	if (place && place != source && place[sizeof(PRIVATE_PLACE) - 1] == '/')
		return (size_t)(place - source) + sizeof(PRIVATE_PLACE) - 1;
	return 0;
}

static int add_prefix(struct string_list *list, const char *path, size_t length, struct error *err)
{
	char prefix[LIMIT_PATH_BYTES + 1];

	if (length >= sizeof(prefix))
		return 0;
	memcpy(prefix, path, length);
	prefix[length] = '\0';
	return string_list_has(list, prefix) ? 0 : string_list_add(list, prefix, err);
}

/*
 * Places that this plan's private sources may lie in. fsboxd does not know the user's home (R4), but
 * knows what fsbox calls such a directory below any: a source elsewhere is refused. A frozen
 * XDG_CACHE_HOME has its own.
 */
static int private_roots(const struct spawner *spawner, const struct plan *plan,
			 struct string_list *roots, struct error *err)
{
	const struct hostconf *host = &spawner->config.host;
	int r = 0;

	for (size_t i = 0; i < host->host_env_count; i++) {
		char root[LIMIT_PATH_BYTES + 1];

		if (strcmp(host->host_env[i].name, "XDG_CACHE_HOME") != 0 ||
		    strlen(host->host_env[i].value) + sizeof("/fsbox") > sizeof(root))
			continue;
		(void)snprintf(root, sizeof(root), "%s/fsbox", host->host_env[i].value);
		if ((r = add_prefix(roots, root, strlen(root), err)) < 0)
			return r;
	}
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];
		size_t length = 0;

		if ((op->flags & PLAN_PRIVATE_SOURCE) == 0 || !op->source)
			continue;
		length = private_place_of(spawner, op->source);
		if (length > 0 && (r = add_prefix(roots, op->source, length, err)) < 0)
			return r;
	}
	return 0;
}

/* What root may not have, in any mode (R19): its jobs must not see the host as it is. */
static int verify_root(const struct plan *plan, struct error *err)
{
	if (plan->net == NET_HOST)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "jobs of root may not use the host's network");
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_SYS ||
		    (plan->ops[i].kind == PLAN_BIND && strcmp(plan->ops[i].path, "/") == 0))
			return error_set(err, ERR_NOT_AUTHORIZED, 0,
					 "jobs of root may not have the whole file system");
	return 0;
}

/* ---- other names ------------------------------------------------------------------------ */

void protected_paths_deinit(struct protected_paths *paths)
{
	if (paths->mountinfo_fd > 0)
		(void)close(paths->mountinfo_fd);
	string_list_deinit(&paths->deny);
	string_list_deinit(&paths->read_only);
	*paths = (struct protected_paths)PROTECTED_PATHS_INIT;
}

/* OWN, and the other names of it and of the HOST's. */
static int list_names(struct string_list *list, const struct mount_table *table,
		      const struct string_list *own, const struct string_list *host,
		      struct error *err)
{
	AUTO(alias_list_deinit) struct alias_list aliases = ALIAS_LIST_INIT;
	int r = alias_list_find(&aliases, table, own, err);

	string_list_deinit(list);
	if (r == 0)
		r = alias_list_find(&aliases, table, host, err);
	for (size_t i = 0; r == 0 && i < own->count; i++)
		r = string_list_add(list, own->items[i], err);
	for (size_t i = 0; r == 0 && i < aliases.count; i++)
		r = string_list_add(list, aliases.items[i].path, err);
	return r;
}

int protected_paths_refresh(struct spawner *spawner, struct error *err)
{
	AUTO(mount_table_deinit) struct mount_table table = MOUNT_TABLE_INIT;
	const struct hostconf *host = &spawner->config.host;
	struct protected_paths *paths = &spawner->protected_paths;
	int r = 0;

	if (paths->mountinfo_fd < 0 && (paths->mountinfo_fd = mountinfo_open(err)) < 0)
		return -ERR_SYSTEM;
	/* Asked first: what is read is newer than the answer. */
	if (mountinfo_is_stale(paths->mountinfo_fd))
		paths->is_current = false;
	if (paths->is_current)
		return 0;
	if ((r = mount_table_read(&table, paths->mountinfo_fd, err)) < 0 ||
	    (r = list_names(&paths->deny, &table, &spawner->own_deny, &host->mandatory_deny, err)) <
		    0 ||
	    (r = list_names(&paths->read_only, &table, &spawner->own_read_only,
			    &host->mandatory_read_only, err)) < 0)
		return r;
	paths->is_current = true;
	return 0;
}

/* ---- the whole -------------------------------------------------------------------------- */

int verify_plan(struct spawner *spawner, uid_t uid, const struct plan *plan, enum net_mode granted,
		struct error *err)
{
	AUTO(string_list_deinit) struct string_list roots = { 0 };
	struct hostconf host = spawner->config.host; /* lent, but for one number */
	int r = 0;

	if (uid == 0 && (r = verify_root(plan, err)) < 0)
		return r;
	if ((r = private_roots(spawner, plan, &roots, err)) < 0 ||
	    (r = protected_paths_refresh(spawner, err)) < 0)
		return r;
	if (granted > host.max_net)
		host.max_net = granted;
	return plan_check(plan, &host, &spawner->protected_paths.deny,
			  &spawner->protected_paths.read_only, &roots, err);
}

int verify_start(const struct spawner *spawner, struct op_start *start, struct error *err)
{
	const struct hostconf *host = &spawner->config.host;

	if (start->engine == ENGINE_DEFAULT || (spawner->engines & 1u << (start->engine & 31)) == 0)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "engine '%s' is not available: %s",
				 engine_name((enum engine_kind)start->engine),
				 spawner->engine_reason);
	if (start->limits.wall_ms == 0)
		start->limits.wall_ms = host->default_timeout_ms;
	if (start->limits.memory_bytes == 0)
		start->limits.memory_bytes = host->default_memory_bytes;
	if (start->limits.pids == 0)
		start->limits.pids = host->default_pids;
	if (start->limits.cpus_milli == 0)
		start->limits.cpus_milli = host->default_cpus_milli;
	return 0;
}

static bool room_fits(enum room_kind room, enum net_mode net)
{
	switch (room) {
	case ROOM_EGRESS_DENIED:
		return net == NET_NONE;
	case ROOM_EGRESS_ALLOWLIST:
		return net == NET_PROXY;
	case ROOM_EGRESS_OPEN:
	case ROOM_OPTED_OUT:
		return net == NET_HOST;
	case ROOM_GRANTED_EGRESS: /* only with a grant */
	case ROOM_UNSUPPORTED:
		break;
	}
	return false;
}

int verify_room(const struct spawner *spawner, const struct op_start *start,
		const struct plan *plan, enum net_mode granted, struct error *err)
{
	if (granted != NET_NONE) {
		if (start->room == ROOM_GRANTED_EGRESS && plan->net == granted)
			return 0;
		return error_set(err, ERR_GRANT_INVALID, 0, "the grant is for another network");
	}
	if (plan->net > spawner->config.host.max_net)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "network '%s' is more than max-net",
				 net_mode_name(plan->net));
	if (room_fits((enum room_kind)start->room, plan->net))
		return 0;
	return error_set(err, ERR_POLICY_INVALID, 0, "room '%s' is not what network '%s' is",
			 room_name((enum room_kind)start->room), net_mode_name(plan->net));
}
