/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/unshared.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES 65536

/* At the beginning of each chunk, as long as a piece, so that all pieces are aligned. */
struct chunk {
	void *next;
};

/* What a piece is while nobody has it. */
struct free_piece {
	void *next;
};

void *unshared_new(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

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

/* A new chunk for pieces of SIZE bytes. */
static bool add_chunk(struct unshared_pool *pool, size_t step, size_t size)
{
	struct chunk *chunk = unshared_new(CHUNK_BYTES);

	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->steps[step].fresh = (char *)chunk + size;
	pool->steps[step].fresh_count = CHUNK_BYTES / size - 1;
	return true;
}

void *unshared_pool_new(struct unshared_pool *pool, size_t bytes)
{
	size_t step = (bytes + UNSHARED_PIECE_STEP - 1) / UNSHARED_PIECE_STEP - 1;
	size_t size = (step + 1) * UNSHARED_PIECE_STEP;
	struct free_piece *piece = NULL;
	char *fresh = NULL;

	if (bytes == 0 || bytes > UNSHARED_PIECE_MAX)
		return NULL;
	piece = pool->steps[step].free_pieces;
	if (piece) {
		pool->steps[step].free_pieces = piece->next;
		piece->next = NULL;
		return piece;
	}
	if (pool->steps[step].fresh_count == 0 && !add_chunk(pool, step, size))
		return NULL;
	fresh = pool->steps[step].fresh;
	pool->steps[step].fresh += size;
	pool->steps[step].fresh_count--;
	return fresh;
}

void unshared_pool_free(struct unshared_pool *pool, void *memory, size_t bytes)
{
	size_t step = (bytes + UNSHARED_PIECE_STEP - 1) / UNSHARED_PIECE_STEP - 1;
	struct free_piece *piece = memory;

	if (!piece)
		return;
	memset(piece, 0, (step + 1) * UNSHARED_PIECE_STEP);
	piece->next = pool->steps[step].free_pieces;
	pool->steps[step].free_pieces = piece;
}

void unshared_pool_deinit(struct unshared_pool *pool)
{
	while (pool->chunks) {
		struct chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		unshared_free(chunk, CHUNK_BYTES);
	}
	*pool = (struct unshared_pool){ .chunks = NULL };
}
