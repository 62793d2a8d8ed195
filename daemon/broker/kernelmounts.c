/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/kernelmounts.h"

#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"

static const char *const kernel_types[] = {
	"proc",        "sysfs", "cgroup",     "cgroup2",   "devtmpfs", "debugfs",
	"tracefs",     "bpf",   "securityfs", "configfs",  "pstore",   "efivarfs",
	"binfmt_misc", "nsfs",  "fusectl",    "selinuxfs", "mqueue",   "resctrl",
};

static const char *const usual_places[] = { "/proc", "/sys", "/dev" };

static bool is_kernel_type(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_types); i++) {
		if (strcmp(type, kernel_types[i]) == 0)
			return true;
	}
	return false;
}

static bool is_usual(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual_places); i++) {
		if (path_covers(usual_places[i], path))
			return true;
	}
	return false;
}

int kernelmounts_list(struct string_list *paths, const struct mount_table *table, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->count; i++) {
		const struct mount_entry *entry = &table->entries[i];

		if (is_kernel_type(entry->type) && !is_usual(entry->point) &&
		    path_refusal(entry->point) == NULL)
			r = string_list_add(paths, entry->point, err);
	}
	string_list_sort_unique(paths);
	return r;
}

int kernelmounts_refresh(struct kernelmounts *mounts, struct error *err)
{
	struct mount_table table = MOUNT_TABLE_INIT;
	struct string_list paths = { 0 };
	int r;

	if (mounts->fd >= 0 && !mountinfo_is_stale(mounts->fd))
		return 0;
	if (mounts->fd < 0) {
		mounts->fd = mountinfo_open(err);
		if (mounts->fd < 0)
			return -ERR_SYSTEM;
		(void)mountinfo_is_stale(mounts->fd); /* what is read now is newer than this */
	}
	r = mount_table_read(&table, mounts->fd, err);
	if (r == 0)
		r = kernelmounts_list(&paths, &table, err);
	if (r < 0) {
		/* Read again next time, whatever happens meanwhile. */
		string_list_deinit(&paths);
		mount_table_deinit(&table);
		auto_close(&mounts->fd);
		mounts->fd = -1;
		return r;
	}
	string_list_deinit(&mounts->paths);
	mount_table_deinit(&mounts->table);
	mounts->paths = paths;
	mounts->table = table;
	mounts->generation++;
	return 0;
}

void kernelmounts_deinit(struct kernelmounts *mounts)
{
	if (mounts == NULL)
		return;
	if (mounts->fd > 0)
		(void)close(mounts->fd);
	mounts->fd = -1;
	string_list_deinit(&mounts->paths);
	mount_table_deinit(&mounts->table);
}
