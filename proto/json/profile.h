/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_PROFILE_H
#define FSBOX_PROTO_JSON_PROFILE_H

/*
 * Profile files: how a policy is built, as JSON with // comments. Pure: the caller reads the files and
 * resolves `extends`, with a bound on its depth.
 *
 *	{
 *		"extends": "generic",		// a name or an absolute path
 *		"description": "text for people",
 *		"paths": {			// as in a request, and with ~ ${cwd} ${home} at their start
 *			"readWrite": ["${cwd}", {"path": "~/.cargo/registry", "optional": true}],
 *			"readOnly": [], "deny": []
 *		},
 *		"net": "none",			// or {"mode": "proxy", "allow": ["*.example.org"]}
 *		"env": {"pass": ["LANG"], "set": {"CI": "1"}, "withhold": ["MY_TOKEN"]},
 *		"limits": {"memoryBytes": 0, "pids": 0, "cpus": 2, "wallMs": 0},
 *		"cache": ["~/.cache"],		// replaced by private persistent directories
 *		"sockets": ["/run/user/1000/bus"],	// dangerous ones that stay reachable
 *		"protect": true			// protected names are read-only
 *	}
 *
 * Every member may be left out. There are no globs.
 */

#include "common/error.h"
#include "proto/json/codec.h"
#include "proto/json/message.h"

/* All owned. Paths are as written until profile_expand(). */
struct profile {
	char *extends;
	char *description;
	struct msg_paths paths;
	struct msg_net net; /* mode, allow, deny */
	struct string_list env_pass;
	struct env_list env_set;
	struct string_list env_withhold;
	struct msg_limits limits; /* 0: not said here */
	struct string_list cache;
	struct string_list sockets;
	enum tristate protect;
};

/*
 * Fill PROFILE, which is uninitialised. NAME is put before messages.
 *
 * Fails with ERR_CONFIG: "NAME: line 3, column 7: ...", "NAME: paths.deny[2]: globs are not
 * supported"; or ERR_NOMEM.
 */
int profile_parse(struct profile *ret_profile, const char *text, size_t size, const char *name,
		  struct error *err);
void profile_deinit(struct profile *profile); /* NULL and zeroed are fine */

/*
 * Put BASE, which PROFILE extends, beneath PROFILE: what PROFILE says stands, what it leaves open is
 * BASE's, lists are BASE's and then PROFILE's. A path that PROFILE names in any list is taken out of
 * BASE's lists. Afterwards profile->extends is BASE's, so that the caller can go on; BASE is empty.
 */
int profile_merge_take(struct profile *profile, struct profile *base, struct error *err);

/* @home, @cwd  absolute; borrowed */
struct profile_facts {
	const char *home;
	const char *cwd;
};

/*
 * TEXT as an absolute path: `~`, `${home}` or `${cwd}` at its start replaced, empty and `.` segments
 * removed. *ret_path is the caller's. Fails with ERR_CONFIG (relative, `..`, `~user`, another
 * variable) or ERR_NOMEM.
 */
int profile_expand_path(const char *text, const struct profile_facts *facts, char **ret_path,
			struct error *err);

/* The same for all paths of PROFILE, in place. After a failure PROFILE is only fit for deinit. */
int profile_expand(struct profile *profile, const struct profile_facts *facts, struct error *err);

#endif
