/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/initconfine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/rule.h"
#include "common/scope.h"
#include "daemon/confine.h"
#include "daemon/spawner/landlock.h"
#include "daemon/spawner/seccomp.h"
#include "proto/wire/spawnop.h"

/* What comes before Landlock. */
static int drop(const char **ret_stage, struct error *err)
{
	int r = 0;

	*ret_stage = "dumpable";
	r = confine_not_dumpable(err);
	if (r < 0)
		return r;
	*ret_stage = "capabilities";
	r = confine_drop_capabilities(err);
	if (r < 0)
		return r;
	*ret_stage = "no_new_privs";
	return confine_no_new_privs(err);
}

int init_confine(const char *const *writable, size_t count, int dev_fd, const char **ret_stage,
		 struct error *err)
{
	int r = drop(ret_stage, err);

	if (r < 0)
		return r;
	*ret_stage = "landlock";
	r = landlock_enter(writable, count, dev_fd, err);
	if (r < 0)
		return r;
	*ret_stage = "seccomp";
	return seccomp_install(err);
}

static int confine_by(int ruleset_fd, const char **ret_stage, struct error *err)
{
	int r = drop(ret_stage, err);

	if (r < 0)
		return r;
	*ret_stage = "landlock";
	r = landlock_apply(ruleset_fd, "/proc", err);
	if (r < 0)
		return r;
	*ret_stage = "seccomp";
	return seccomp_install(err);
}

/* Pointers to the paths of checked SETUP that may be written to; the caller frees the array. */
static int setup_writable(const void *setup, const char ***ret_paths, size_t *ret_count,
			  struct error *err)
{
	struct setup_header header;
	const char *at = (const char *)setup + sizeof(header);
	const char **paths = NULL;
	size_t count = 0;

	memcpy(&header, setup, sizeof(header));
	paths = calloc((size_t)header.path_count + 1, sizeof(*paths));
	if (!paths)
		return error_set(err, ERR_NOMEM, 0, "paths for Landlock");
	for (uint32_t i = 0; i < header.path_count; i++) {
		if (*at == ACCESS_READ_WRITE)
			paths[count++] = at + 1;
		at += 1 + strlen(at + 1) + 1;
	}
	*ret_paths = paths;
	*ret_count = count;
	return 0;
}

int init_confine_setup(const void *setup, int dev_fd, int ruleset_fd, const char **ret_stage,
		       struct error *err)
{
	AUTO(auto_free) const char **writable = NULL;
	size_t count = 0;
	int r = 0;

	if (ruleset_fd >= 0)
		return confine_by(ruleset_fd, ret_stage, err);
	r = setup_writable(setup, &writable, &count, err);
	return r < 0 ? r : init_confine(writable, count, dev_fd, ret_stage, err);
}
