/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_AUTOSTART_H
#define FSBOX_CLIENT_AUTOSTART_H

/*
 * Starting a daemon of the caller's own when none listens yet.
 *
 * It runs `fsboxd --mode user|root --socket PATH --idle-exit 60 --ready-fd N` in a session of its own, with no
 * descriptor of the caller's, its messages in STATE_DIR/fsboxd.log, and ends by itself after a
 * minute without work. It is not left as a child of the calling program: no SIGCHLD, no zombie.
 */

#include "client/locate.h"
#include "common/error.h"

/*
 * Where fsboxd is: beside a build tree's library or program (../daemon/fsboxd), else where it was
 * configured to be installed.
 *
 * @given       a path to use as it is, or NULL
 * @ret_path    LIMIT_PATH_BYTES + 1 bytes
 *
 * Fails with ERR_UNREACHABLE, naming where it looked.
 */
int autostart_find_daemon(const char *given, char *ret_path, struct error *err);

/*
 * Take the lock that only one starter at a time may hold: a file in the socket's directory. Waits at
 * most TIMEOUT_MS. The caller must try to connect again before it starts anything, and close RET_FD when
 * it has connected.
 *
 * Fails with ERR_UNREACHABLE.
 */
int autostart_lock(int dir_fd, const char *dir, int timeout_ms, int *ret_fd, struct error *err);

/*
 * Start DAEMON for LOCATION and wait until it says that it listens, at most TIMEOUT_MS.
 *
 * Fails with ERR_UNREACHABLE; when the daemon gave up by itself the message carries the first line
 * that it wrote, escaped.
 */
int autostart_run(const char *daemon, const struct location *location, int timeout_ms,
		  struct error *err);

#endif
