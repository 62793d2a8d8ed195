/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/templatemem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/unshared.h"

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Operations, then their strings, then the bytes. */
static size_t block_bytes_for(const struct plan *plan, size_t byte_count)
{
	size_t total = plan->count * sizeof(*plan->ops) + text_bytes(plan->chdir) + byte_count;

	for (size_t i = 0; i < plan->count; i++)
		total += text_bytes(plan->ops[i].path) + text_bytes(plan->ops[i].source);
	return total > 0 ? total : 1;
}

/* TEXT (may be NULL) to *AT, which moves on. */
static char *place_text(char **at, const char *text)
{
	char *placed = *at;
	size_t bytes = text_bytes(text);

	if (!text)
		return NULL;
	memcpy(placed, text, bytes);
	*at += bytes;
	return placed;
}

static void place_plan(struct templatemem *mem, const struct plan *plan, const void *bytes)
{
	char *at = (char *)mem->block + plan->count * sizeof(*plan->ops);

	mem->plan = *plan;
	mem->plan.ops = mem->block;
	mem->plan.capacity = plan->count;
	for (size_t i = 0; i < plan->count; i++) {
		mem->plan.ops[i] = plan->ops[i];
		mem->plan.ops[i].path = place_text(&at, plan->ops[i].path);
		mem->plan.ops[i].source = place_text(&at, plan->ops[i].source);
	}
	mem->plan.chdir = place_text(&at, plan->chdir);
	if (mem->byte_count > 0)
		memcpy(at, bytes, mem->byte_count);
	mem->bytes = at;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

/* Zeroes. Nobody who has it can make it shorter under the others. */
static int shared_memfd(size_t bytes, struct error *err)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd = memfd_create("fsbox-template", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("fsbox-template", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0)
		return fd;
	(void)error_set(err, ERR_SYSTEM, errno, "memory for a template");
	auto_close(&fd);
	return -(int)ERR_SYSTEM;
}

int templatemem_init(struct templatemem *mem, const void *bytes, size_t byte_count,
		     const struct plan *plan, struct error *err)
{
	*mem = (struct templatemem){
		.byte_count = byte_count,
		.block_bytes = block_bytes_for(plan, byte_count),
		.shared_fd = shared_memfd(native_shared_bytes(plan), err),
	};
	if (mem->shared_fd < 0)
		return -(int)ERR_SYSTEM;
	mem->block = unshared_new(mem->block_bytes);
	if (!mem->block) {
		templatemem_deinit(mem);
		return error_set(err, ERR_NOMEM, errno, "keep a template");
	}
	place_plan(mem, plan, bytes);
	return 0;
}

void templatemem_deinit(struct templatemem *mem)
{
	unshared_free(mem->block, mem->block_bytes);
	auto_close(&mem->shared_fd);
	*mem = (struct templatemem)TEMPLATEMEM_INIT;
}

int templatemem_lend(const struct templatemem *mem, bool lend, struct error *err)
{
	if (unshared_lend(mem->block, mem->block_bytes, lend))
		return 0;
	return error_set(err, ERR_NOMEM, errno, "lend a template");
}
