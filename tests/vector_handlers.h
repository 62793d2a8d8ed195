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

/* @empty_is_absent  an empty list in the result and none at all are the same */
struct vector_function {
	const char *name;
	vector_handler handle;
	bool empty_is_absent;
};

/* The entry for NAME, or NULL. */
const struct vector_function *vector_function(const char *name);

#endif
