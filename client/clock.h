/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CLOCK_H
#define FSBOX_CLIENT_CLOCK_H

/* Time for time limits: never set back, counts suspension as nothing. */

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(void)
{
	struct timespec now = { .tv_sec = 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
