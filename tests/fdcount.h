/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_FDCOUNT_H
#define FSBOX_TESTS_FDCOUNT_H

/* How many descriptors this process has open, so that a test sees what leaks. */

#include <dirent.h>
#include <stddef.h>

static inline size_t fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 3; /* ".", ".." and the directory itself */
}

#endif
