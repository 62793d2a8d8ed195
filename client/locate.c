/* SPDX-License-Identifier: Apache-2.0 */
#include "client/locate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *non_empty(const char *text)
{
	return text && text[0] ? text : NULL;
}

static const char *absolute(const char *text)
{
	return text && text[0] == '/' ? text : NULL;
}

void locate_facts_read(struct locate_facts *ret_facts)
{
	*ret_facts = (struct locate_facts){
		.env_socket = secure_getenv("FSBOX_SOCKET"),
		.uid = geteuid(),
		.system_socket = LOCATE_SYSTEM_SOCKET,
		.root_dir = LOCATE_ROOT_DIR,
		.run_user_dir = "/run/user",
		.runtime_dir = secure_getenv("XDG_RUNTIME_DIR"),
		.state_home = secure_getenv("XDG_STATE_HOME"),
		.home = secure_getenv("HOME"),
	};
}

__attribute__((format(printf, 3, 4))) static int put(char *to, struct error *err,
						     const char *format, ...)
{
	va_list args;
	int printed = 0;

	va_start(args, format);
	printed = vsnprintf(to, LIMIT_PATH_BYTES + 1, format, args);
	va_end(args);
	if (printed < 0 || printed > LIMIT_PATH_BYTES)
		return error_set(err, ERR_INVALID, 0, "the path of the socket is too long");
	return 0;
}

static int locate_explicit(struct location *location, const char *path, const char *from,
			   struct error *err)
{
	char *slash = NULL;
	int r = 0;

	if (path[0] != '/')
		return error_set(err, ERR_INVALID, 0, "%s '%s' is not an absolute path", from,
				 path);

	location->place = LOCATE_EXPLICIT;
	r = put(location->socket, err, "%s", path);
	if (r < 0)
		return r;

	(void)put(location->dir, NULL, "%s", path);
	slash = strrchr(location->dir, '/');
	if (slash[1] == '\0')
		return error_set(err, ERR_INVALID, 0, "%s '%s' is not the path of a socket", from,
				 path);
	slash[slash == location->dir] = '\0';
	return 0;
}

/* Whether the path is there, or we are not even allowed to know. */
static bool present_or_hidden(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static bool own_directory(const char *path, uid_t uid)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

/* The state directory of a user's daemon: $XDG_STATE_HOME/fsbox, else ~/.local/state/fsbox. */
static int user_state_dir(char *to, const struct locate_facts *facts, struct error *err)
{
	if (absolute(facts->state_home))
		return put(to, err, "%s/fsbox", facts->state_home);
	if (absolute(facts->home))
		return put(to, err, "%s/.local/state/fsbox", facts->home);
	to[0] = '\0';
	return 0;
}

static int locate_user(struct location *location, const struct locate_facts *facts,
		       struct error *err)
{
	char run_user[64];
	int r = 0;

	location->place = LOCATE_USER;
	r = user_state_dir(location->state_dir, facts, err);
	if (r < 0)
		return r;

	(void)snprintf(run_user, sizeof(run_user), "%s/%lu", facts->run_user_dir,
		       (unsigned long)facts->uid);
	if (absolute(facts->runtime_dir) && own_directory(facts->runtime_dir, facts->uid))
		return put(location->dir, err, "%s/fsbox", facts->runtime_dir);
	if (own_directory(run_user, facts->uid))
		return put(location->dir, err, "%s/fsbox", run_user);
	if (absolute(facts->home))
		return put(location->dir, err, "%s/.local/state/fsbox/run", facts->home);
	return error_set(err, ERR_UNREACHABLE, 0,
			 "neither XDG_RUNTIME_DIR nor HOME is set to a directory of yours");
}

static int locate_root(struct location *location, const struct locate_facts *facts,
		       struct error *err)
{
	int r = 0;

	location->place = LOCATE_ROOT;
	r = put(location->state_dir, err, "/var/lib/fsbox-root");
	if (r < 0)
		return r;
	return put(location->dir, err, "%s", facts->root_dir);
}

int locate_decide(struct location *ret_location, const struct locate_facts *facts,
		  struct error *err)
{
	struct location location = { .place = LOCATE_USER };
	int r = 0;

	if (facts->socket)
		r = locate_explicit(&location, facts->socket, "socket", err);
	else if (non_empty(facts->env_socket))
		r = locate_explicit(&location, facts->env_socket, "FSBOX_SOCKET", err);
	else if (!facts->user && present_or_hidden(facts->system_socket)) {
		r = locate_explicit(&location, facts->system_socket, "socket", err);
		location.place = LOCATE_SYSTEM;
	} else {
		r = facts->uid == 0 ? locate_root(&location, facts, err)
				    : locate_user(&location, facts, err);
		if (r == 0)
			r = put(location.socket, err, "%s/%s", location.dir, LOCATE_SOCKET_NAME);
	}
	if (r < 0)
		return r;

	*ret_location = location;
	return 0;
}

const char *locate_place_name(enum locate_place place)
{
	switch (place) {
	case LOCATE_EXPLICIT:
		return "the daemon at this socket";
	case LOCATE_SYSTEM:
		return "the system service";
	case LOCATE_USER:
		return "your own daemon";
	case LOCATE_ROOT:
		return "root's own daemon";
	}
	return "the daemon";
}
