/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/unshared.h"

#include <sys/mman.h>

void *unshared_new(size_t bytes, bool writable_by_all)
{
	int kind = writable_by_all ? MAP_SHARED : MAP_PRIVATE;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (!unshared_lend(memory, bytes, false)) {
		(void)munmap(memory, bytes);
		return NULL;
	}
	return memory;
}

void unshared_free(void *memory, size_t bytes)
{
	if (memory)
		(void)munmap(memory, bytes);
}

bool unshared_lend(void *memory, size_t bytes, bool lend)
{
	return madvise(memory, bytes, lend ? MADV_DOFORK : MADV_DONTFORK) == 0;
}
