/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_LOCATE_H
#define FSBOX_CLIENT_LOCATE_H

/*
 * Which socket to talk to. Only names are decided here; whether the daemon behind one may be trusted
 * is asked of the kernel after connecting (trust.h).
 */

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/limits.h"

#define LOCATE_SYSTEM_SOCKET "/run/fsbox/fsbox.sock"
#define LOCATE_ROOT_DIR "/run/fsbox-root"
#define LOCATE_SOCKET_NAME "fsbox.sock"

enum locate_place {
	LOCATE_EXPLICIT, /* --socket or FSBOX_SOCKET: exactly this one, nothing is started */
	LOCATE_SYSTEM,   /* the service of this machine */
	LOCATE_USER,     /* the caller's own daemon, started on demand */
	LOCATE_ROOT,     /* the same for uid 0 */
};

/*
 * What the decision depends on; all borrowed. locate_facts_read() fills it from the process, tests
 * fill it themselves.
 *
 * @socket         what the caller asked for (--socket), or NULL
 * @env_socket     FSBOX_SOCKET, or NULL; empty counts as NULL
 * @user           the caller wants his own daemon, not the system's
 * @system_socket  LOCATE_SYSTEM_SOCKET; @root_dir LOCATE_ROOT_DIR; @run_user_dir "/run/user"
 * @runtime_dir    XDG_RUNTIME_DIR, or NULL
 * @state_home     XDG_STATE_HOME, or NULL
 * @home           HOME, or NULL
 */
struct locate_facts {
	const char *socket;
	const char *env_socket;
	bool user;
	uid_t uid;
	const char *system_socket;
	const char *root_dir;
	const char *run_user_dir;
	const char *runtime_dir;
	const char *state_home;
	const char *home;
};

/*
 * @dir        directory of the socket, absolute
 * @socket     DIR/NAME
 * @state_dir  where a daemon started by us keeps its log; empty for the other places
 */
struct location {
	enum locate_place place;
	char dir[LIMIT_PATH_BYTES + 1];
	char socket[LIMIT_PATH_BYTES + 1];
	char state_dir[LIMIT_PATH_BYTES + 1];
};

/* Read the environment (ignored in a set-user-id program) and who we are. */
void locate_facts_read(struct locate_facts *ret_facts);

/*
 * Decide, in this order: the socket asked for, FSBOX_SOCKET, the system's if it exists, the
 * caller's own. A system socket that cannot even be looked at (its directory refuses) counts as
 * existing: being refused must show, not lead somewhere else.
 *
 * Fails with ERR_INVALID (a path is relative or too long) or ERR_UNREACHABLE (no home to keep a
 * socket in).
 */
int locate_decide(struct location *ret_location, const struct locate_facts *facts,
		  struct error *err);

/* "the system service", "your own daemon" ... for messages. */
const char *locate_place_name(enum locate_place place);

#endif
