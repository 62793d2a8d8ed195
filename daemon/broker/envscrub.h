/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_ENVSCRUB_H
#define FSBOX_DAEMON_BROKER_ENVSCRUB_H

/*
 * The environment of a job: the caller's, without what holds credentials, and with what must agree
 * with the sandbox put in its place.
 *
 * A variable of the caller's is withheld when its name belongs to a family of secrets
 * (common/childenv.h), is on the list of usual credential variables or on one of the extra lists, and
 * on no list of those to pass. What the request or the profile sets is
 * never withheld. Names on lists may end in `*`.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/policy.h"
#include "proto/json/message.h"

/*
 * Borrowed; lists may be NULL.
 *
 * @given     the caller's environment
 * @set       set on top, in this order
 * @pass      not withheld
 * @withhold  withheld besides
 * @families_only  the list of usual credential variables is not used: the profiles `host` and `botmux`
 * @home, @user, @shell, @cwd  pinned: HOME, USER, LOGNAME, SHELL, PWD
 */
#define ENVSCRUB_LISTS 3

struct envscrub_input {
	const struct env_list *given;
	const struct env_list *set[ENVSCRUB_LISTS];
	const struct string_list *pass[ENVSCRUB_LISTS];
	const struct string_list *withhold[ENVSCRUB_LISTS];
	bool families_only;
	const char *home;
	const char *user;
	const char *shell;
	const char *cwd;
};

/* Whether NAME is one of the usual names of credentials, or of a family. */
bool envscrub_is_credential(const char *name);

/*
 * @ret_env       NAME=VALUE strings, one for each name
 * @ret_withheld  the names left out, never their values
 *
 * Both hold nothing before. Fails with ERR_NOMEM, ERR_INVALID (beyond LIMIT_ARGS_COUNT).
 */
int envscrub(const struct envscrub_input *input, struct string_list *ret_env,
	     struct string_list *ret_withheld, struct error *err);

#endif
