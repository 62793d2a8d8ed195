/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_VECTOR_HANDLERS_H
#define FSBOX_TESTS_VECTOR_HANDLERS_H

/*
 * The functions that vector files are about, under the names that the files use. A handler takes a
 * case's `input` and makes what its `expect` should be, or fails with the kind of error that `error`
 * should name.
 */

#include <stdbool.h>

#include "common/error.h"
#include "tests/json_lite.h"

typedef struct json_value *(*vector_handler)(const struct json_value *input, struct error *err);

/*
 * @handle           given the case's input
 * @empty_is_absent  an empty list in the result and none at all are the same
 * @handle_case      instead of @handle, given the whole case
 * @agrees           whether RESULT is what WANT asks for, where that is not equality
 */
struct vector_function {
	const char *name;
	vector_handler handle;
	bool empty_is_absent;
	vector_handler handle_case;
	bool (*agrees)(const struct json_value *want, const struct json_value *result);
};

/* The entry for NAME, or NULL. */
const struct vector_function *vector_function(const char *name);

/* Those of the egress sandbox: looked up by the former. */
const struct vector_function *vector_egress_function(const char *name);

/* Mount points of masks on the host: likewise. */
const struct vector_function *vector_masks_function(const char *name);

#endif
