/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_CONTEXTJSON_H
#define FSBOX_PROTO_JSON_CONTEXTJSON_H

/* The botmux policy context as JSON. */

#include "common/context.h"
#include "common/error.h"
#include "proto/json/json.h"

/*
 * Which keys are taken.
 *
 * CONTEXT_FULL  all of them: for callers that run nothing
 * CONTEXT_WIRE  those of a request; keys that name facts which the daemon froze when it started
 *               (homeDir, botmuxHome ...) are refused, since a client may not choose them
 */
enum context_keys { CONTEXT_FULL, CONTEXT_WIRE };

/*
 * Fill CONTEXT, which is uninitialised, from VALUE. With CONTEXT_WIRE the frozen members stay NULL.
 * Fails with ERR_INVALID ("context.userPaths.deny[2]: ..."), ERR_NOMEM; CONTEXT is then empty.
 */
int context_from_json(struct policy_context *ret_context, const struct json_value *value,
		      enum context_keys keys, struct error *err);

/* From a file's text. Also ERR_BAD_JSON. */
int context_parse(struct policy_context *ret_context, const char *text, size_t size,
		  enum context_keys keys, struct error *err);

/* Write CONTEXT as one JSON object. Fails with ERR_INVALID; check the writer at the end. */
int context_to_json(const struct policy_context *context, enum context_keys keys,
		    struct json_writer *writer, struct error *err);

#endif
