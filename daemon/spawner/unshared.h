/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_UNSHARED_H
#define FSBOX_DAEMON_SPAWNER_UNSHARED_H

/*
 * Memory of fsboxd that its children do not get (R14, R15): what is known about one user's jobs must not
 * lie in a process that runs as another, or that becomes another job's pid 1. A child that touches
 * it ends by SIGSEGV.
 *
 * What one child needs is lent to it for the moment of its fork.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * BYTES of zeroes, page-aligned, or NULL. Mappings that lie side by side are one to the kernel, so that many
 * of them do not make forking slower.
 */
void *unshared_new(size_t bytes);

/* MEMORY may be NULL; BYTES as it was made. */
void unshared_free(void *memory, size_t bytes);

/* Children forked from now on get it, or do not. False: as it was, with errno. */
bool unshared_lend(void *memory, size_t bytes, bool lend);

/*
 * Small pieces of the same: strings of which there may be many. What is given back is wiped and given
 * out again; chunks stay until the end.
 */
#define UNSHARED_PIECE_STEP 128
#define UNSHARED_PIECE_MAX 4096

struct unshared_pool {
	void *chunks;
	struct {
		void *free_pieces;
		char *fresh;
		size_t fresh_count;
	} steps[UNSHARED_PIECE_MAX / UNSHARED_PIECE_STEP];
};

/* BYTES of zeroes, or NULL: no memory, none wanted, or more than UNSHARED_PIECE_MAX. */
void *unshared_pool_new(struct unshared_pool *pool, size_t bytes);

/* MEMORY may be NULL; BYTES as it was made. */
void unshared_pool_free(struct unshared_pool *pool, void *memory, size_t bytes);

/* Whatever was not given back goes too. */
void unshared_pool_deinit(struct unshared_pool *pool);

#endif
