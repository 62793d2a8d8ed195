/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_BULK_H
#define FSBOX_PROTO_JSON_BULK_H

/*
 * JSON that is too long for a frame, in a sealed memfd beside it (paramsFd, resultFd).
 *
 * The seals are what makes reading it safe: the sender can neither change the bytes while they are
 * parsed nor cut the file short under the mapping. Platforms without seals have no bulk.
 */

#include <stddef.h>

#include "common/error.h"
#include "proto/json/json.h"

/*
 * Parse the whole file behind FD (borrowed). Its offset does not matter. Fails with ERR_BAD_FRAME when
 * it is no memfd, lacks a seal, is empty or longer than LIMIT_PARAMS_BYTES; else as json_parse().
 */
int bulk_read(int fd, struct json_doc **ret_doc, struct error *err);

/* A sealed memfd with these bytes; *ret_fd is the caller's. Fails with ERR_SYSTEM. */
int bulk_create(const void *data, size_t size, int *ret_fd, struct error *err);

#endif
