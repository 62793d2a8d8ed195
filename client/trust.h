/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_TRUST_H
#define FSBOX_CLIENT_TRUST_H

/*
 * Whom we are about to talk to, decided before the first byte is sent (R5).
 *
 * On the end that connects, SO_PEERCRED gives the credentials of the process that made the socket
 * listen, taken at that moment. For a socket that systemd opened for a service this is systemd
 * itself, uid 0: just what we want to know, since it says who owns the name, and nobody else can
 * serve it. It says nothing about the process that will read our bytes, which is why a server must
 * never ask it about a client (R1).
 */

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

/*
 * Whether every directory on the way to DIR (absolute) is one that only root, the owner of "/" or the
 * user UID can change: owned by one of them, and not writable for others unless it is sticky. Symbolic
 * links are resolved first; the check walks what they lead to by descriptor.
 *
 * @ret_fd  an O_PATH descriptor of DIR for the caller, or NULL when it is not wanted
 *
 * Fails with ERR_UNREACHABLE; err->errnum is ENOENT when DIR does not exist.
 */
int trust_directory(const char *dir, uid_t uid, int *ret_fd, struct error *err);

/*
 * Make DIR and its missing parents, mode 0700, then check it with trust_directory(): it must besides
 * be UID's own and closed to everybody else (0700).
 */
int trust_make_private(const char *dir, uid_t uid, int *ret_fd, struct error *err);

/*
 * Connect to the Unix socket NAME in the directory DIR_FD and ask the kernel whose it is: uid 0 or
 * UID, otherwise nothing is ever sent.
 *
 * @path    for messages
 * @ret_fd  the caller's: non-blocking, close-on-exec
 * @ret_uid whose socket it is; may be NULL
 *
 * Fails with ERR_NOT_AUTHORIZED when the socket's mode refuses us (errnum EACCES or EPERM), else with
 * ERR_UNREACHABLE; errnum is ENOENT or ECONNREFUSED when nobody listens.
 */
int trust_connect(int dir_fd, const char *name, const char *path, uid_t uid, int *ret_fd,
		  uid_t *ret_uid, struct error *err);

#endif
