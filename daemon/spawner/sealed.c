/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u        /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008u /* likewise */
#endif

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

int sealed_create(const char *name, const void *data, size_t size, mode_t mode, int *ret_fd,
		  struct error *err)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	const unsigned exec = mode & 0111 ? MFD_EXEC : MFD_NOEXEC_SEAL;
	AUTO(auto_close) int fd = memfd_create(name, flags | exec);
	size_t done = 0;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags); /* before 6.3 all were executable */
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "memfd '%s'", name);
	while (done < size) {
		ssize_t n = write(fd, (const char *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_set(err, ERR_SYSTEM, errno, "write memfd '%s'", name);
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 || fchmod(fd, mode) < 0 ||
	    fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "seal memfd '%s'", name);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int sealed_map(int fd, size_t max_bytes, const void **ret_data, size_t *ret_size, struct error *err)
{
	/* Only memfds and files on tmpfs answer; the latter cannot have been sealed by accident. */
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *data = NULL;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return error_set(err, ERR_BAD_FRAME, 0, "not a sealed memfd");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(err, ERR_BAD_FRAME, 0, "not a memfd");
	if (st.st_size < 1 || (uint64_t)st.st_size > max_bytes)
		return error_set(err, ERR_BAD_FRAME, 0, "memfd of %lld bytes, at most %zu",
				 (long long)st.st_size, max_bytes);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return error_set(err, ERR_BAD_FRAME, errno, "map memfd");
	*ret_data = data;
	*ret_size = (size_t)st.st_size;
	return 0;
}
