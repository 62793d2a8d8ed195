/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"

/* Groups that are as good as root, or that would let a job talk to fsboxd (R20). */
static const char *const always_dropped[] = { CONFIG_SERVED_GROUP, "fsbox-admin", "docker", "lxd",
					      "libvirt" };

/* Files of a fsboxd.conf.d; beyond it somebody has made a mistake. */
#define CONFIG_DIR_FILES 256

static int check_owner(int fd, const char *name, struct error *err)
{
	struct stat about;

	if (fstat(fd, &about) < 0)
		return error_set(err, ERR_CONFIG, errno, "stat '%s'", name);
	if (!S_ISREG(about.st_mode))
		return error_set(err, ERR_CONFIG, 0, "'%s' is not a regular file", name);
	if (about.st_uid != 0 && about.st_uid != geteuid())
		return error_set(err, ERR_CONFIG, 0, "'%s' belongs to user %u", name, about.st_uid);
	if ((about.st_mode & 0022) != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' may be written by others (mode %04o)",
				 name, about.st_mode & 07777);
	return 0;
}

static int read_all(int fd, struct buf *text, const char *name, struct error *err)
{
	for (;;) {
		char *room = buf_reserve(text, 4096);
		ssize_t got = 0;

		if (!room)
			return error_set(err, ERR_CONFIG, 0, "'%s' is longer than %u bytes", name,
					 LIMIT_CONFIG_BYTES);
		got = read(fd, room, 4096);
		if (got < 0)
			return error_set(err, ERR_CONFIG, errno, "read '%s'", name);
		if (got == 0)
			return 0;
		buf_commit(text, (size_t)got);
	}
}

/* @optional  a file that is not there is fine */
static int load_file(struct hostconf *host, const char *name, bool user_file, bool optional,
		     struct error *err)
{
	AUTO(auto_close) int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_CONFIG_BYTES + 4096);
	int r = 0;

	if (fd < 0) {
		if (optional && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		return error_set(err, ERR_CONFIG, errno, "open '%s'", name);
	}
	if ((r = check_owner(fd, name, err)) < 0 || (r = read_all(fd, &text, name, err)) < 0)
		return r;
	return hostconf_parse(host, buf_text(&text), text.size, name, user_file, err);
}

static int is_conf(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* By bytes: alphasort() would depend on the locale. */
static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dir(struct hostconf *host, const char *dir, struct error *err)
{
	struct dirent **entries = NULL;
	int count = scandir(dir, &entries, is_conf, compare_entries);
	int r = 0;

	if (count < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : error_set(err, ERR_CONFIG, errno, "read directory '%s'", dir);
	if (count > CONFIG_DIR_FILES)
		r = error_set(err, ERR_CONFIG, 0, "'%s' has more than %d files", dir,
			      CONFIG_DIR_FILES);
	for (int i = 0; i < count; i++) {
		char name[PATHS_BYTES + 300];

		if (r == 0) {
			(void)snprintf(name, sizeof(name), "%s/%s", dir, entries[i]->d_name);
			r = load_file(host, name, false, false, err);
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int load_files(struct hostconf *host, const struct options *options,
		      const struct paths *paths, enum daemon_mode mode, struct error *err)
{
	char name[PATHS_BYTES + 32];
	int r = 0;

	for (size_t i = 0; i < options->config_file_count; i++)
		if ((r = load_file(host, options->config_files[i], false, false, err)) < 0)
			return r;
	if (options->config_file_count > 0)
		return 0;

	(void)snprintf(name, sizeof(name), "%s/fsboxd.conf", paths->config_dir);
	if ((r = load_file(host, name, false, true, err)) < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%s/fsboxd.conf.d", paths->config_dir);
	if ((r = load_dir(host, name, err)) < 0)
		return r;
	if (mode != MODE_USER)
		return 0;
	(void)snprintf(name, sizeof(name), "%s/fsboxd.conf", paths->user_config_dir);
	return load_file(host, name, true, true, err);
}

/* The file alone, never name services. (gid_t)-1: not in it. */
static gid_t group_number(const char *name)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *entry = NULL;
	gid_t gid = (gid_t)-1;

	if (!file)
		return gid;
	while (gid == (gid_t)-1 && (entry = fgetgrent(file)))
		if (strcmp(entry->gr_name, name) == 0)
			gid = entry->gr_gid;
	(void)fclose(file);
	return gid;
}

/* A number stands for itself, so that groups of a directory service can be named too. */
static gid_t group_of_text(const char *text)
{
	uint64_t number = 0;

	if (parse_count(text, 0, UINT32_MAX - 1, &number))
		return (gid_t)number;
	return group_number(text);
}

static int add_drop(struct config *config, const char *name, struct error *err)
{
	gid_t gid = group_of_text(name);

	if (gid == (gid_t)-1)
		return 0;
	if (config->drop_count == CONFIG_DROP_GROUPS)
		return error_set(err, ERR_CONFIG, 0, "drop-group: more than %d groups",
				 CONFIG_DROP_GROUPS);
	config->drop[config->drop_count++] = gid;
	return 0;
}

static int find_groups(struct config *config, struct error *err)
{
	const struct string_list *more = &config->host.drop_groups;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(always_dropped); i++)
		if ((r = add_drop(config, always_dropped[i], err)) < 0)
			return r;
	for (size_t i = 0; i < more->count; i++)
		if ((r = add_drop(config, more->items[i], err)) < 0)
			return r;
	config->served_gid = group_number(CONFIG_SERVED_GROUP);
	config->admin_gid =
		config->host.admin_group ? group_of_text(config->host.admin_group) : (gid_t)-1;
	return 0;
}

int config_load(struct config *ret_config, const struct options *options, const struct paths *paths,
		enum daemon_mode mode, struct error *err)
{
	AUTO(config_deinit)
	struct config config = { .admin_gid = (gid_t)-1, .served_gid = (gid_t)-1 };
	int r = 0;

	if ((r = hostconf_init(&config.host, err)) < 0 ||
	    (r = load_files(&config.host, options, paths, mode, err)) < 0 ||
	    (r = find_groups(&config, err)) < 0)
		return r;

	config_deinit(ret_config);
	*ret_config = config;
	config = (struct config){ 0 };
	return 0;
}

void config_deinit(struct config *config)
{
	if (!config)
		return;
	hostconf_deinit(&config->host);
	*config = (struct config){ 0 };
}

struct quota_limits config_quota_limits(const struct config *config)
{
	const struct hostconf *host = &config->host;

	return (struct quota_limits){
		.kinds = {
			[QUOTA_JOBS] = { host->max_jobs_per_uid, host->max_jobs },
			[QUOTA_CONNECTIONS] = { LIMIT_CONNECTIONS_PER_UID, LIMIT_CONNECTIONS },
			[QUOTA_BROKERS] = { LIMIT_BROKERS_PER_UID, LIMIT_BROKERS },
			[QUOTA_STUCK] = { LIMIT_STUCK_PER_UID, UINT32_MAX },
			[QUOTA_CLOSERS] = { LIMIT_STUCK_PER_UID, UINT32_MAX },
		},
		.spawns_per_second = host->max_spawns_per_second,
	};
}

bool config_admits(const struct config *config, uid_t uid)
{
	for (size_t i = 0; i < config->host.admit_confined_uid_count; i++)
		if (config->host.admit_confined_uids[i] == uid)
			return true;
	return false;
}

bool config_is_admin(const struct config *config, const struct identity *identity)
{
	if (identity->uid == 0)
		return true;
	if (config->admin_gid == (gid_t)-1)
		return false;
	if (identity->gid == config->admin_gid)
		return true;
	for (size_t i = 0; i < identity->group_count; i++)
		if (identity->groups[i] == config->admin_gid)
			return true;
	return false;
}

static bool passwd_gid(uid_t uid, gid_t *ret_gid)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry = NULL;
	bool found = false;

	if (!file)
		return false;
	while (!found && (entry = fgetpwent(file))) {
		found = entry->pw_uid == uid;
		*ret_gid = entry->pw_gid;
	}
	(void)fclose(file);
	return found;
}

static bool listed(gid_t gid, const gid_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == gid)
			return true;
	return false;
}

int config_job_identity(const struct config *config, const struct identity *identity,
			struct identity *ret_job, struct error *err)
{
	struct identity job = *identity;
	gid_t own = 0;

	identity_drop_groups(&job, config->drop, config->drop_count);
	if (listed(job.gid, config->drop, config->drop_count)) {
		if (!passwd_gid(job.uid, &own) || !listed(own, job.groups, job.group_count))
			return error_set(err, ERR_NOT_AUTHORIZED, 0,
					 "the primary group %u is one that jobs lose, and user %u "
					 "has no other",
					 job.gid, job.uid);
		job.gid = own;
	}
	*ret_job = job;
	return 0;
}

/* Whether a fact for USER is one for UID: everybody's, by number, or by name in /etc/passwd. */
static bool fact_is_for(const char *user, uid_t uid)
{
	FILE *file = NULL;
	struct passwd *entry = NULL;
	uint64_t number = 0;
	bool found = false;

	if (!user)
		return true;
	if (parse_count(user, 0, UINT32_MAX - 1, &number))
		return number == uid;
	file = fopen("/etc/passwd", "re");
	if (!file)
		return false;
	while (!found && (entry = fgetpwent(file)))
		found = entry->pw_uid == uid && strcmp(entry->pw_name, user) == 0;
	(void)fclose(file);
	return found;
}

/* Append "NAME=VALUE", leaving room for its NUL and the empty string at the end. */
static int add_fact(char *text, size_t *used, size_t size, const char *name, const char *value,
		    struct error *err)
{
	int printed = snprintf(text + *used, size - *used, "%s=%s", name, value);

	if (printed < 0 || *used + (size_t)printed + 2 > size)
		return error_set(err, ERR_CONFIG, 0,
				 "the host-env values are longer than %zu bytes", size - 2);
	*used += (size_t)printed + 1;
	return 0;
}

static int add_own_facts(char *text, size_t *used, size_t size, struct error *err)
{
	static const char *const names[] = { "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
					     "XDG_STATE_HOME" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);
		int r = 0;

		if (value && value[0] == '/')
			r = add_fact(text, used, size, names[i], value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_host_facts(const struct config *config, enum daemon_mode mode, uid_t uid, char *text,
		      size_t size, struct error *err)
{
	size_t used = 0;
	int r = 0;

	if (mode != MODE_SYSTEM)
		r = add_own_facts(text, &used, size, err);
	for (size_t i = 0; r == 0 && i < config->host.host_env_count; i++) {
		const struct hostconf_env *fact = &config->host.host_env[i];

		if (fact_is_for(fact->user, uid))
			r = add_fact(text, &used, size, fact->name, fact->value, err);
	}
	text[used] = '\0';
	return r;
}
