/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/enginewords.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/scope.h"

#define FILE_BYTES 4096

int enginewords_new(struct error *err)
{
	AUTO(auto_close) int fd = memfd_create("fsbox-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "memfd for the engine's messages");
	return steal_fd(&fd);
}

void enginewords_read(int fd, char ret_words[ENGINEWORDS_BYTES])
{
	ssize_t length = fd < 0 ? 0 : pread(fd, ret_words, ENGINEWORDS_BYTES - 1, 0);

	ret_words[length > 0 ? length : 0] = '\0';
	for (size_t end = strlen(ret_words); end > 0 && ret_words[end - 1] == '\n'; end--)
		ret_words[end - 1] = '\0';
}
