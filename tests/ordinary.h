/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_ORDINARY_H
#define FSBOX_TESTS_ORDINARY_H

/*
 * Some refusals root never sees. A test that needs one puts it between these two: as root it then runs
 * with the effective ids of nobody in particular, and without capabilities.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define ORDINARY_UID 61999

static inline bool ordinary_begin(void)
{
	bool was_root = geteuid() == 0;

	if (was_root && seteuid(ORDINARY_UID) < 0)
		abort();
	return was_root;
}

static inline void ordinary_end(bool was_root)
{
	if (was_root && seteuid(0) < 0)
		abort();
}

#endif
