/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_COOKIE_H
#define FSBOX_DAEMON_BROKER_COOKIE_H

/*
 * What a client shows on another connection to be told about its job. Others than the client have only
 * its hash: fsboxd, and a broker that did not start the job.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/sha256.h"

#define COOKIE_BYTES 16
#define COOKIE_TEXT (2 * COOKIE_BYTES + 1)
#define COOKIE_HASH_BYTES SHA256_BYTES

/* A new one, as hexadecimal digits, and its hash. Fails with ERR_SYSTEM. */
int cookie_make(char ret_text[COOKIE_TEXT], uint8_t ret_hash[COOKIE_HASH_BYTES], struct error *err);

/* Whether TEXT, a string of any length, is the one with HASH; takes as long if it is not. */
bool cookie_fits(const uint8_t hash[COOKIE_HASH_BYTES], const char *text);

#endif
