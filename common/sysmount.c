/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sysmount.h"

#include <string.h>

#include "common/path.h"
#include "common/scope.h"

static const struct sysmount table[] = {
	{ "/dev", PLAN_DEV, ACCESS_READ_ONLY, true, false },
	{ "/proc", PLAN_PROC, ACCESS_READ_WRITE, true, false },
	{ "/run", PLAN_TMPFS, ACCESS_READ_WRITE, false, false },
	{ "/sys", PLAN_SYS, ACCESS_READ_ONLY, true, true },
	{ "/tmp", PLAN_TMPFS, ACCESS_READ_WRITE, false, false },
	{ "/dev/shm", PLAN_TMPFS, ACCESS_READ_WRITE, true, false },
	{ "/var/tmp", PLAN_TMPFS, ACCESS_READ_WRITE, false, false },
	{ "/sys/fs/cgroup", PLAN_MASK_DIR, ACCESS_DENY, true, true },
};

const struct sysmount *sysmounts(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(table);
	return table;
}

int sysmount_order(const char *path, const struct sysmount *mount)
{
	size_t depth = path_depth(path);
	size_t mount_depth = path_depth(mount->path);

	if (depth != mount_depth)
		return depth < mount_depth ? -1 : 1;
	return strcmp(path, mount->path);
}

bool sysmount_root_shown(const struct rule_list *rules)
{
	return rules->count > 0 && strcmp(rules->rules[0].path, "/") == 0 &&
	       rules->rules[0].access != ACCESS_DENY;
}

/* Merged rules begin with the shallowest, so the search ends at the first one deeper than PATH. */
static bool is_shown(const struct rule_list *rules, const char *path)
{
	size_t depth = path_depth(path);

	for (size_t i = 0; i < rules->count && path_depth(rules->rules[i].path) <= depth; i++)
		if (rules->rules[i].access != ACCESS_DENY &&
		    path_covers(rules->rules[i].path, path))
			return true;
	return false;
}

bool sysmount_applies(const struct sysmount *mount, const struct rule_list *rules)
{
	if (!mount->with_root && sysmount_root_shown(rules))
		return false;
	return !mount->shown || is_shown(rules, mount->path);
}

/* /proc/1234/... and what links there: inside they would name other processes than outside. */
static bool names_a_process(const char *path)
{
	const char *name = path + strlen("/proc/");
	size_t size = strcspn(name, "/");

	return strspn(name, "0123456789") == size || (size == 4 && strncmp(name, "self", 4) == 0) ||
	       (size == 11 && strncmp(name, "thread-self", 11) == 0);
}

static const char *refusal(const struct rule *rule)
{
	const char *path = rule->path;
	bool grant = rule->access != ACCESS_DENY;

	if (path_covers("/proc", path)) {
		if (grant || strcmp(path, "/proc") == 0)
			return "every job has its own /proc";
		if (names_a_process(path))
			return "processes inside are not those outside";
	}
	if (strcmp(path, "/dev") == 0)
		return "every job has its own /dev";
	if (grant && path_covers("/dev", path) && !path_covers("/dev/shm", path))
		return "only null, zero, full, random, urandom, tty, ptmx, pts and shm are in /dev, "
		       "and they need no grant";
	if (grant && path_covers("/sys/fs/cgroup", path))
		return "control groups are never shown";
	if (rule->access == ACCESS_READ_WRITE && path_covers("/sys", path))
		return "/sys is never writable";
	return NULL;
}

int sysmount_check_rule(const struct rule *rule, struct error *err)
{
	const char *why = refusal(rule);

	if (!why)
		return 0;
	return error_set(err, ERR_POLICY_INVALID, 0, "%s '%s' (%s): %s", access_name(rule->access),
			 rule->path, rule->origin ? rule->origin : rule_source_name(rule->source),
			 why);
}

struct sysmount_verdict sysmount_verdict(const struct policy *policy, const char *path)
{
	struct verdict verdict = policy_access(policy, path);
	const struct sysmount *mount = NULL;

	/* Deeper places stand later in the table. */
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (path_covers(table[i].path, path) && sysmount_applies(&table[i], &policy->rules))
			mount = &table[i];

	if (mount && (!verdict.rule || strlen(verdict.rule->path) < strlen(mount->path)))
		return (struct sysmount_verdict){ .access = mount->access, .mount = mount };
	return (struct sysmount_verdict){ .access = verdict.access, .rule = verdict.rule };
}
