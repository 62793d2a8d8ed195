/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_PROXYENV_H
#define FSBOX_DAEMON_BROKER_PROXYENV_H

/*
 * The variables by which programs find the proxy of their job, which all of them do in their own way.
 *
 * In two steps: what the caller's environment says of proxies is replaced (those are out of reach
 * inside), but not what the profile or the request sets; and variables that hold other things besides
 * are added to at the very end, whoever set them.
 */

#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"
#include "proto/json/envlist.h"

/* Add to LIST what replaces the caller's variables. Fails with ERR_NOMEM. */
int proxyenv_set(struct env_list *list, uint16_t port, struct error *err);

/*
 * Add to variables of ENV (NAME=VALUE, each name once): options of Java's, configuration of git's. Fails
 * with ERR_NOMEM.
 */
int proxyenv_merge(struct string_list *env, uint16_t port, struct error *err);

#endif
