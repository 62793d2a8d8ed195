/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_CHILDENV_H
#define FSBOX_COMMON_CHILDENV_H

/*
 * Which variables of its caller a confined command does not get. By name alone: what a variable holds
 * is never looked at. Pure.
 */

#include <stdbool.h>

#include "common/policy.h"

/* What becomes of one variable. The counts of a record come from the last two. */
enum childenv_fate {
	CHILDENV_KEEP,  /* nothing secret about it */
	CHILDENV_PASS,  /* secret, and declared by who starts the command */
	CHILDENV_STRIP, /* secret */
};

/*
 * Borrowed, may be NULL.
 *
 * @passphrase  the variable that holds a passphrase, secret whatever it is called; "" is none
 * @declared    names that the command needs
 */
struct childenv_rules {
	const char *passphrase;
	const struct string_list *declared;
};

/* The families of secret names, and the names in them that are none; each ends with NULL. */
extern const char *const childenv_secret_prefixes[];
extern const char *const childenv_open_names[];

/* Whether NAME belongs to a family of secrets; a prefix with nothing after it does not. */
bool childenv_is_secret(const char *name);

enum childenv_fate childenv_decide(const struct childenv_rules *rules, const char *name);

#endif
