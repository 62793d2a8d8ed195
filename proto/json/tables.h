/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_TABLES_H
#define FSBOX_PROTO_JSON_TABLES_H

/*
 * The field tables of message.h's structs: protocol version 1, once. message.c encodes and decodes by
 * them; the schema and the manual are tested against them.
 */

#include "proto/json/codec.h"
#include "proto/json/message.h"

const struct table *method_params_table(enum method method); /* NULL for METHOD_NONE and above */
const struct table *method_result_table(enum method method);

extern const struct table exited_table; /* struct wait_result */
extern const struct table error_table;  /* struct error_reply */

/* The botmux context as `spawn` takes it: keys that name frozen facts are refused. */
extern const struct table context_wire_table; /* struct policy_context */
/* The same with all keys, for callers that run nothing. */
extern const struct table context_full_table;

extern const struct table profile_table; /* struct profile */

/* Of events and grants. */
extern const struct table events_params_table;
extern const struct table events_result_table;
extern const struct table grant_create_params_table;
extern const struct table grant_create_result_table;
extern const struct table grant_list_params_table;
extern const struct table grant_list_result_table;
extern const struct table grant_revoke_params_table;
extern const struct table grant_revoke_result_table;

/* Parts of requests that profile files have too. */
extern const struct enum_names net_choice_enum;
extern const struct enum_names absent_enum;
extern const struct table limits_table;

#endif
