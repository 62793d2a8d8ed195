/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/short_memory.h"

#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/test.h"

/* Volatile, for compilers know that malloc() looks at no variable of ours. */
volatile long memory_granted = -1;
static volatile bool failed_one;

static bool denied(void)
{
	if (memory_granted < 0)
		return false;
	if (memory_granted > 0) {
		memory_granted = memory_granted - 1;
		return false;
	}
	memory_granted = -1;
	failed_one = true;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);

void *__wrap_malloc(size_t size)
{
	return denied() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return denied() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return denied() ? NULL : __real_realloc(memory, size);
}

char *__wrap_strdup(const char *text)
{
	return denied() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
	return denied() ? NULL : __real_strndup(text, size);
}

/* These allocate inside of libc. */
int __real_regcomp(regex_t *compiled, const char *expression, int flags);
int __real_regexec(const regex_t *compiled, const char *text, size_t count, regmatch_t *matches,
		   int flags);
int __wrap_regcomp(regex_t *compiled, const char *expression, int flags);
int __wrap_regexec(const regex_t *compiled, const char *text, size_t count, regmatch_t *matches,
		   int flags);

int __wrap_regcomp(regex_t *compiled, const char *expression, int flags)
{
	return denied() ? REG_ESPACE : __real_regcomp(compiled, expression, flags);
}

int __wrap_regexec(const regex_t *compiled, const char *text, size_t count, regmatch_t *matches,
		   int flags)
{
	return denied() ? REG_ESPACE : __real_regexec(compiled, text, count, matches, flags);
}

void run_short_of_memory(short_memory_scenario run, long spare)
{
	long survived = 0;
	long at = 0;

	for (;; at++) {
		struct error err = ERROR_INIT;
		int r = 0;

		memory_granted = at;
		failed_one = false;
		r = run(&err);
		memory_granted = -1;
		if (r != 0 && r != -ERR_NOMEM)
			fail_msg("allocation %ld: %s: %s", at, error_name(err.kind), err.message);
		if (r != 0 && err.kind != ERR_NOMEM)
			fail_msg("allocation %ld: the error is not filled", at);
		if (!failed_one)
			break;
		if (r == 0)
			survived++;
	}
	assert_true(at > 0);
	assert_int_equal(survived, spare);
}
