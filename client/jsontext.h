/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_JSONTEXT_H
#define FSBOX_CLIENT_JSONTEXT_H

/* Requests and results as JSON text rather than structs. */

#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/json/json.h"

/*
 * Append a request frame's payload for METHOD. PARAMS is the text of a JSON object, or NULL for an
 * empty one. Fails with ERR_BAD_JSON (PARAMS is not JSON we allow), ERR_INVALID (it is no object, METHOD
 * is not UTF-8) or ERR_NOMEM.
 */
int jsontext_request(struct buf *out, uint64_t id, const char *method, const char *params,
		     struct error *err);

/* Write VALUE (not NULL) as it was read. */
void jsontext_write(struct json_writer *writer, const struct json_value *value);

/* VALUE as text; NULL stands for an empty object. The caller frees *ret_text. Fails with ERR_NOMEM. */
int jsontext_of(char **ret_text, const struct json_value *value, struct error *err);

#endif
