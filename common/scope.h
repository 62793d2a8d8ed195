/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SCOPE_H
#define FSBOX_COMMON_SCOPE_H

/*
 * Release at the end of a scope, and the two verbs that cancel it.
 *
 *	AUTO(auto_close) int fd = -1;		closed when the block is left
 *	AUTO(auto_free) char *text = NULL;	freed when the block is left
 *	return steal_fd(&fd);			given away: fd is -1 afterwards
 *
 * Only these files-descriptor and heap helpers live here; a type with its own deinit uses
 * AUTO(x_deinit) directly, where x_deinit takes a pointer to the variable.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO(release) __attribute__((cleanup(release)))

static inline void auto_close(int *fd)
{
	int saved_errno = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved_errno;
}

/* @ptr  address of any pointer to heap memory */
static inline void auto_free(void *ptr)
{
	free(*(void **)ptr);
}

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *steal_ptr_any(void *ptr)
{
	void *taken = *(void **)ptr;

	*(void **)ptr = NULL;
	return taken;
}

#define steal_ptr(ptr) ((__typeof__(*(ptr)))steal_ptr_any(ptr))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
