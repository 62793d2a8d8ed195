/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_UNIT_SHORT_MEMORY_H
#define FSBOX_TESTS_UNIT_SHORT_MEMORY_H

/*
 * Allocations that fail when a test wants it. What is tested must be linked with --wrap for malloc,
 * calloc, realloc, strdup, strndup, regcomp and regexec.
 */

#include "common/error.h"

/* Allocations still granted before one fails; negative: all. */
extern volatile long memory_granted;

/* 0, or -kind with ERR filled. */
typedef int (*short_memory_scenario)(struct error *err);

/*
 * Fail each allocation of RUN in turn: the result must be ERR_NOMEM with the error filled. SPARE of
 * them may fail without harm (memory given back stays as it was).
 */
void run_short_of_memory(short_memory_scenario run, long spare);

#endif
