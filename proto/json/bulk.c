/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/bulk.h"

#ifdef __linux__

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int bulk_read(int fd, struct json_doc **ret_doc, struct error *err)
{
	struct stat st;
	void *map = NULL;
	size_t size = 0;
	int seals = 0;
	int r = 0;

	/* First the seals: only a memfd has any, so nothing below can hang on a foreign file system. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return error_set(err, ERR_BAD_FRAME, 0, "is not a memfd");
	if ((seals & SEALS) != SEALS)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "is not sealed against writing, growing, shrinking and unsealing");
	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fstat");
	if (st.st_size <= 0 || st.st_size > LIMIT_PARAMS_BYTES)
		return error_set(err, ERR_BAD_FRAME, 0, "has %lld bytes, not 1..%u",
				 (long long)st.st_size, LIMIT_PARAMS_BYTES);

	size = (size_t)st.st_size;
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return error_set(err, ERR_SYSTEM, errno, "mmap");
	r = json_parse(ret_doc, map, size, NULL, err);
	(void)munmap(map, size);
	return r;
}

int bulk_create(const void *data, size_t size, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int fd = memfd_create("fsbox-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const char *at = data;
	size_t left = size;

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "memfd_create");
	while (left > 0) {
		ssize_t put = write(fd, at, left);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return error_set(err, ERR_SYSTEM, errno, "write %zu bytes into a memfd",
					 size);
		at += put;
		left -= (size_t)put;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return error_set(err, ERR_SYSTEM, errno, "seal a memfd");
	*ret_fd = steal_fd(&fd);
	return 0;
}

#else

int bulk_read(int fd, struct json_doc **ret_doc, struct error *err)
{
	(void)fd;
	(void)ret_doc;
	return error_set(err, ERR_BAD_FRAME, 0, "this platform has no sealed memory files");
}

int bulk_create(const void *data, size_t size, int *ret_fd, struct error *err)
{
	(void)data;
	(void)ret_fd;
	return error_set(
		err, ERR_INVALID, 0,
		"%zu bytes do not fit into a frame, and this platform has no sealed memory "
		"files",
		size);
}

#endif
