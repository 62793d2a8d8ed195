/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hostview.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static enum path_kind kind_of(void *arg, const char *path)
{
	struct stat st;

	(void)arg;
	if (stat(path, &st) < 0)
		return PATH_KIND_ABSENT;
	if (S_ISDIR(st.st_mode))
		return PATH_KIND_DIRECTORY;
	return S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0 ? PATH_KIND_EXECUTABLE
							       : PATH_KIND_OTHER;
}

static char *real_of(void *arg, const char *path)
{
	(void)arg;
	return realpath(path, NULL);
}

struct path_view hostview(const char *cwd)
{
	return (struct path_view){ .cwd = cwd, .kind = kind_of, .real = real_of };
}
