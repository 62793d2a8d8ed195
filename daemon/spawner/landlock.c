/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/confine.h"

/* The build machine's headers may be older than the running kernel: the later parts by hand. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3, Linux 6.2 */
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6, Linux 6.12 */
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif
#define ABI_TRUNCATE 3

struct ruleset_attributes {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

/* What was there before ABI 4: a longer structure is fine as long as the rest is zero. */
_Static_assert(sizeof(struct landlock_ruleset_attr) <= sizeof(struct ruleset_attributes),
	       "the kernel's structure only grows");

#define RIGHTS_READ \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)

#define RIGHTS_WRITE                                                     \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |     \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |   \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

/* Those that make sense for something that is not a directory; the kernel refuses others there. */
#define RIGHTS_FILE                                                     \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	 LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_TRUNCATE)

/* Handled, so that it is refused, and never granted: nobody inside needs block devices. */
#define RIGHTS_NEVER LANDLOCK_ACCESS_FS_MAKE_BLOCK

static int rule_add(int ruleset_fd, int parent_fd, uint64_t rights, struct error *err)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights,
						   .parent_fd = parent_fd };

	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0L) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "Landlock rule");
	return 0;
}

/* 1: all below PATH is granted; 0: a file, or nothing is there. */
static int rule_add_path(int ruleset_fd, const char *path, uint64_t rights, struct error *err)
{
	AUTO(auto_close) int fd = open(path, O_PATH | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return 0; /* stays without the right to write there */
	/* The rights to a directory are EINVAL for anything else (landlock_add_rule(2)). */
	if (rule_add(ruleset_fd, fd, rights, NULL) == 0)
		return 1;
	r = rule_add(ruleset_fd, fd, rights & RIGHTS_FILE, err);
	if (r < 0)
		error_prefix(err, "'%s'", path);
	return r;
}

/* All that can be granted. */
static uint64_t rights_all(int abi)
{
	return RIGHTS_READ | RIGHTS_WRITE | (abi >= ABI_TRUNCATE ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

int landlock_prepare(const char *const *writable, size_t count, int dev_fd, int *ret_fd,
		     struct error *err)
{
	const int abi = confine_landlock_abi();
	const uint64_t all = rights_all(abi);
	struct ruleset_attributes attributes = { .handled_access_fs = all | RIGHTS_NEVER };
	AUTO(auto_close) int ruleset_fd = -1;
	const char *granted = NULL;
	int r = 0;

	if (abi < LANDLOCK_ABI_MIN)
		return 0;
	if (abi >= LANDLOCK_ABI_SCOPES)
		attributes.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;

	ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0L);
	if (ruleset_fd < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "Landlock rule set");

	r = rule_add_path(ruleset_fd, "/", RIGHTS_READ, err);
	r = r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		/* What lies below a granted directory is granted, over mounts too. */
		if (granted && path_covers(granted, writable[i]))
			continue;
		r = rule_add_path(ruleset_fd, writable[i], all, err);
		if (r > 0)
			granted = writable[i];
		r = r < 0 ? r : 0;
	}
	if (r == 0 && dev_fd >= 0)
		r = rule_add(ruleset_fd, dev_fd,
			     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, err);
	if (r < 0)
		return r;
	*ret_fd = steal_fd(&ruleset_fd);
	return 1;
}

int landlock_apply(int ruleset_fd, const char *fresh, struct error *err)
{
	int r = fresh ? rule_add_path(ruleset_fd, fresh, rights_all(confine_landlock_abi()), err)
		      : 0;

	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0L) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "Landlock");
	return 0;
}

int landlock_enter(const char *const *writable, size_t count, int dev_fd, struct error *err)
{
	AUTO(auto_close) int ruleset_fd = -1;
	int r = landlock_prepare(writable, count, dev_fd, &ruleset_fd, err);

	if (r == 1 && (r = landlock_apply(ruleset_fd, NULL, err)) == 0)
		r = 1;
	return r;
}
