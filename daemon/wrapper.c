/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/wrapper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/egressprofile.h"
#include "common/path.h"
#include "common/scope.h"

#define TEMPLATE "fsbox-egress.XXXXXX"
#define PROFILE_NAME "profile.sb"

static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t wrote = write(fd, text, size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -1;
		text += wrote;
		size -= (size_t)wrote;
	}
	return 0;
}

static int write_profile(const char *path, const char *text, size_t size, struct error *err)
{
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, 0600) < 0)
		return error_set(err, ERR_SYSTEM, errno, "make '%s'", path);
	if (write_all(fd, text, size) < 0)
		return error_set(err, ERR_SYSTEM, errno, "write '%s'", path);
	return 0;
}

int wrapper_init(struct wrapper *wrapper, const char *base, const char *text, size_t size,
		 struct error *err)
{
	AUTO(auto_free) char *dir = path_join(base, TEMPLATE);
	int r = 0;

	*wrapper = (struct wrapper)WRAPPER_INIT;
	if (!dir)
		return error_set(err, ERR_NOMEM, ENOMEM, "a profile");
	if (!mkdtemp(dir))
		return error_set(err, ERR_SYSTEM, errno, "make a directory in '%s'", base);
	wrapper->dir = steal_ptr(&dir);
	wrapper->profile = path_join(wrapper->dir, PROFILE_NAME);
	if (!wrapper->profile)
		r = error_set(err, ERR_NOMEM, ENOMEM, "a profile");
	else if (chmod(wrapper->dir, 0700) < 0) /* whatever our umask left of it */
		r = error_set(err, ERR_SYSTEM, errno, "chmod '%s'", wrapper->dir);
	else
		r = write_profile(wrapper->profile, text, size, err);
	if (r < 0)
		wrapper_deinit(wrapper);
	return r;
}

void wrapper_deinit(struct wrapper *wrapper)
{
	if (!wrapper)
		return;
	if (wrapper->profile)
		(void)unlink(wrapper->profile);
	if (wrapper->dir)
		(void)rmdir(wrapper->dir);
	free(wrapper->profile);
	free(wrapper->dir);
	*wrapper = (struct wrapper)WRAPPER_INIT;
}

int wrapper_argv(const struct wrapper *wrapper, const char *command, const struct string_list *args,
		 struct string_list *ret_argv, struct error *err)
{
	const char *const head[] = { EGRESS_WRAPPER, "-f", wrapper->profile, command };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(head) && r == 0; i++)
		r = string_list_add(ret_argv, head[i], err);
	for (size_t i = 0; args && i < args->count && r == 0; i++)
		r = string_list_add(ret_argv, args->items[i], err);
	return r;
}
