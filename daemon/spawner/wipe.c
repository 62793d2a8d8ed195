/* SPDX-License-Identifier: Apache-2.0 */
/*
 * free() and realloc() of fsboxd leave nothing behind (R15): its children are copies of it, and what was a
 * plan, a request or a message of one user lies in the heap of another's init otherwise.
 *
 * The linker puts these in place of all calls from our own code (--wrap); what libc allocates for itself
 * holds nothing of a peer's but what stdio read from /proc.
 */

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void __real_free(void *memory); /* NOLINT(bugprone-reserved-identifier) */
void __wrap_free(void *memory); /* NOLINT(bugprone-reserved-identifier) */
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
void *__wrap_realloc(void *memory, size_t bytes);
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
void *__wrap_reallocarray(void *memory, size_t count, size_t size);

void __wrap_free(void *memory) /* NOLINT(bugprone-reserved-identifier) */
{
	if (memory)
		explicit_bzero(memory, malloc_usable_size(memory));
	__real_free(memory);
}

/* Never in place: what it leaves when it moves by itself is not wiped. */
void *__wrap_realloc(void *memory, size_t bytes) /* NOLINT(bugprone-reserved-identifier) */
{
	size_t before = memory ? malloc_usable_size(memory) : 0;
	void *moved = malloc(bytes > 0 ? bytes : 1);

	if (!moved)
		return NULL;
	if (memory)
		memcpy(moved, memory, before < bytes ? before : bytes);
	__wrap_free(memory);
	return moved;
}

/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
	size_t bytes = 0;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(memory, bytes);
}
