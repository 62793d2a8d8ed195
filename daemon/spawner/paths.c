/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

#define CONFIG_DIR "/etc/fsbox"

__attribute__((format(printf, 4, 5))) static int put(char *to, size_t size, struct error *err,
						     const char *format, ...)
{
	va_list args;
	int printed = 0;

	va_start(args, format);
	printed = vsnprintf(to, size, format, args);
	va_end(args);
	if (printed < 0 || (size_t)printed >= size)
		return error_set(err, ERR_INVALID, 0,
				 "the path '%.64s...' is longer than %zu bytes", to, size - 1);
	return 0;
}

/* An absolute path from the environment, or NULL: the XDG rules ignore relative ones. */
static const char *environment_path(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

static bool own_directory(const char *path, uid_t uid)
{
	struct stat about;

	return stat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == uid;
}

bool paths_passwd_home(uid_t uid, char *home, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry = NULL;
	bool found = false;

	if (!file)
		return false;
	while ((entry = fgetpwent(file))) {
		if (entry->pw_uid != uid)
			continue;
		found = entry->pw_dir[0] == '/' && strlen(entry->pw_dir) < size;
		if (found)
			memcpy(home, entry->pw_dir, strlen(entry->pw_dir) + 1);
		break;
	}
	(void)fclose(file);
	return found;
}

/* XDG_NAME/fsbox, else HOME/FALLBACK/fsbox. */
static int user_dir(char *to, const char *name, const char *home, const char *fallback,
		    struct error *err)
{
	const char *base = environment_path(name);

	if (base)
		return put(to, PATHS_BYTES, err, "%s/fsbox", base);
	return put(to, PATHS_BYTES, err, "%s/%s/fsbox", home, fallback);
}

static int user_run_dir(char *to, const char *home, uid_t uid, struct error *err)
{
	const char *runtime = environment_path("XDG_RUNTIME_DIR");
	char usual[64];

	(void)snprintf(usual, sizeof(usual), "/run/user/%u", uid);
	if (runtime && own_directory(runtime, uid))
		return put(to, PATHS_BYTES, err, "%s/fsbox", runtime);
	if (own_directory(usual, uid))
		return put(to, PATHS_BYTES, err, "%s/fsbox", usual);
	return put(to, PATHS_BYTES, err, "%s/.local/state/fsbox/run", home);
}

static int choose_user(struct paths *paths, uid_t uid, struct error *err)
{
	const char *home = environment_path("HOME");
	char looked_up[PATHS_BYTES];
	int r = 0;

	if (!home) {
		if (!paths_passwd_home(uid, looked_up, sizeof(looked_up)))
			return error_set(err, ERR_INVALID, 0,
					 "HOME is not set and user %u is not in /etc/passwd", uid);
		home = looked_up;
	}
	if ((r = user_run_dir(paths->run_dir, home, uid, err)) < 0 ||
	    (r = user_dir(paths->state_dir, "XDG_STATE_HOME", home, ".local/state", err)) < 0 ||
	    (r = user_dir(paths->user_config_dir, "XDG_CONFIG_HOME", home, ".config", err)) < 0 ||
	    (r = user_dir(paths->cache_dir, "XDG_CACHE_HOME", home, ".cache", err)) < 0)
		return r;
	return put(paths->log_dir, PATHS_BYTES, err, "%s", paths->state_dir);
}

static int choose_fixed(struct paths *paths, enum daemon_mode mode, struct error *err)
{
	const char *suffix = mode == MODE_ROOT ? "-root" : "";
	int r = 0;

	if ((r = put(paths->run_dir, PATHS_BYTES, err, "/run/fsbox%s", suffix)) < 0 ||
	    (r = put(paths->state_dir, PATHS_BYTES, err, "/var/lib/fsbox%s", suffix)) < 0)
		return r;
	if (mode == MODE_ROOT)
		return put(paths->log_dir, PATHS_BYTES, err, "%s", paths->state_dir);
	return put(paths->log_dir, PATHS_BYTES, err, "/var/log/fsbox");
}

/* The directory of our own binary: fsbox runs from a build tree without being installed. */
static int choose_exec_dir(struct paths *paths, const char *wanted, struct error *err)
{
	char own[PATHS_BYTES];
	ssize_t length = 0;
	char *slash = NULL;
	int r = 0;

	if (wanted)
		return put(paths->exec_dir, PATHS_BYTES, err, "%s", wanted);
	length = readlink("/proc/self/exe", own, sizeof(own));
	if (length < 0 || (size_t)length >= sizeof(own))
		return error_set(err, ERR_INVALID, length < 0 ? errno : ENAMETOOLONG,
				 "where our own binary is");
	own[length] = '\0';
	slash = strrchr(own, '/');
	if (slash && slash != own)
		*slash = '\0';
	r = put(paths->exec_dir, PATHS_BYTES, err, "%s/fsbox-broker", own);
	if (r < 0)
		return r;

	/* Installed apart, /usr/sbin and /usr/libexec/fsbox, only the latter has the roles. */
	if (access(paths->exec_dir, F_OK) < 0)
		return put(paths->exec_dir, PATHS_BYTES, err, "%s", FSBOX_LIBEXEC_DIR);
	return put(paths->exec_dir, PATHS_BYTES, err, "%s", own);
}

static int override(char *to, const char *wanted, struct error *err)
{
	return wanted ? put(to, PATHS_BYTES, err, "%s", wanted) : 0;
}

int paths_choose(struct paths *ret_paths, const struct options *options, enum daemon_mode mode,
		 uid_t uid, struct error *err)
{
	struct paths paths = { 0 };
	int r = 0;

	r = mode == MODE_USER ? choose_user(&paths, uid, err) : choose_fixed(&paths, mode, err);
	if (r < 0)
		return r;
	if ((r = put(paths.config_dir, PATHS_BYTES, err, CONFIG_DIR)) < 0 ||
	    (r = override(paths.run_dir, options->run_dir, err)) < 0 ||
	    (r = override(paths.state_dir, options->state_dir, err)) < 0 ||
	    (r = override(paths.log_dir, options->state_dir, err)) < 0 ||
	    (r = override(paths.log_dir, options->log_dir, err)) < 0 ||
	    (r = choose_exec_dir(&paths, options->exec_dir, err)) < 0 ||
	    (r = put(paths.mask_dir, PATHS_BYTES, err, "%s/mask/dir", paths.run_dir)) < 0 ||
	    (r = put(paths.mask_file, PATHS_BYTES, err, "%s/mask/file", paths.run_dir)) < 0)
		return r;

	r = options->socket
		    ? put(paths.socket, sizeof(paths.socket), err, "%s", options->socket)
		    : put(paths.socket, sizeof(paths.socket), err, "%s/fsbox.sock", paths.run_dir);
	if (r < 0) {
		error_prefix(err, "the socket");
		return r;
	}
	*ret_paths = paths;
	return 0;
}

int paths_check_dir(int fd, const char *name, uid_t uid, struct error *err)
{
	struct stat about;

	if (fstat(fd, &about) < 0)
		return error_set(err, ERR_SYSTEM, errno, "stat '%s'", name);
	if (!S_ISDIR(about.st_mode))
		return error_set(err, ERR_CONFIG, 0, "'%s' is not a directory", name);
	if (about.st_uid != uid && about.st_uid != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' belongs to user %u, not to %u", name,
				 about.st_uid, uid);
	if ((about.st_mode & 0022) != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' may be written by others (mode %04o)",
				 name, about.st_mode & 07777);
	return 0;
}

/* Make what is missing of the directories above PATH, as mkdir -p. */
static int make_parents(const char *path, struct error *err)
{
	char partial[PATHS_BYTES];

	(void)snprintf(partial, sizeof(partial), "%s", path);
	for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(partial, 0755) < 0 && errno != EEXIST)
			return error_set(err, ERR_SYSTEM, errno, "mkdir '%s'", partial);
		*slash = '/';
	}
	return 0;
}

/* Make PATH if it is missing, check it, and give it mode and owner. The link at its end is refused. */
static int prepare_dir(const char *path, mode_t mode, uid_t uid, gid_t gid, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	bool made = false;
	int r = 0;

	if ((r = make_parents(path, err)) < 0)
		return r;
	if (mkdir(path, 0700) == 0)
		made = true;
	else if (errno != EEXIST)
		return error_set(err, ERR_SYSTEM, errno, "mkdir '%s'", path);

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, ERR_CONFIG, errno, "open directory '%s'", path);
	if (made && uid != geteuid() && fchown(fd, uid, gid) < 0)
		return error_set(err, ERR_SYSTEM, errno, "chown '%s'", path);
	if ((r = paths_check_dir(fd, path, uid, err)) < 0)
		return r;
	if (made && fchmod(fd, mode) < 0)
		return error_set(err, ERR_SYSTEM, errno, "chmod '%s'", path);
	return 0;
}

/* What masks show: nothing, to nobody. Bound read-only into jobs, so nobody changes it there. */
static int prepare_masks(const struct paths *paths, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	char above[PATHS_BYTES + 8];
	struct stat about;
	int r = 0;

	(void)snprintf(above, sizeof(above), "%s/mask", paths->run_dir);
	if ((r = prepare_dir(above, 0755, geteuid(), (gid_t)-1, err)) < 0)
		return r;
	if (mkdir(paths->mask_dir, 0000) < 0 && errno != EEXIST)
		return error_set(err, ERR_SYSTEM, errno, "mkdir '%s'", paths->mask_dir);
	fd = open(paths->mask_file, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0000);
	if (fd < 0 && errno != EEXIST)
		return error_set(err, ERR_SYSTEM, errno, "create '%s'", paths->mask_file);
	if (lstat(paths->mask_dir, &about) < 0 || !S_ISDIR(about.st_mode) ||
	    (about.st_mode & 0777) != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' is not a directory of mode 000",
				 paths->mask_dir);
	if (lstat(paths->mask_file, &about) < 0 || !S_ISREG(about.st_mode) ||
	    (about.st_mode & 0777) != 0 || about.st_size != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' is not an empty file of mode 000",
				 paths->mask_file);
	return 0;
}

int paths_prepare(const struct paths *paths, enum daemon_mode mode, uid_t log_uid, gid_t log_gid,
		  struct error *err)
{
	uid_t uid = geteuid();
	int r = 0;

	/* Peers must get through the runtime directory to the socket and, as masks, below it. */
	r = prepare_dir(paths->run_dir, mode == MODE_SYSTEM ? 0755 : 0700, uid, (gid_t)-1, err);
	if (r < 0 || (r = prepare_dir(paths->state_dir, 0700, uid, (gid_t)-1, err)) < 0 ||
	    (r = prepare_masks(paths, err)) < 0)
		return r;
	if (mode == MODE_SYSTEM)
		return prepare_dir(paths->log_dir, 02750, log_uid, log_gid, err);
	return prepare_dir(paths->log_dir, 0700, uid, (gid_t)-1, err);
}

int paths_lock(const char *path, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open lock '%s'", path);

	/* A POSIX lock belongs to the process: children that still hold a copy do not keep it. */
	if (fcntl(fd, F_SETLK, &lock) < 0) {
		if (errno == EACCES || errno == EAGAIN)
			return error_set(err, ERR_CONFIG, 0,
					 "another fsboxd serves here already ('%s' is locked)",
					 path);
		return error_set(err, ERR_SYSTEM, errno, "lock '%s'", path);
	}
	return steal_fd(&fd);
}
