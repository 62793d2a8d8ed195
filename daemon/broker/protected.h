/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_PROTECTED_H
#define FSBOX_DAEMON_BROKER_PROTECTED_H

/*
 * Looking for protected names in writable trees: the half of common/protect.h that touches files.
 *
 * protected_answer() runs in a resolver child. It looks into the root of each tree and into
 * directories below it, not into repositories' own ones, hidden ones, `node_modules` or other file
 * systems; how far is bounded, and said when the bound was reached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/protect.h"
#include "daemon/broker/pack.h"

/* One look: directories opened, how deep below a tree's root, entries read in all. */
#define PROTECTED_DIRS_MAX 512
#define PROTECTED_DEPTH_MAX 4
#define PROTECTED_GITS_MAX 256
#define PROTECTED_ENTRIES_MAX 50000

/* A `.git` file, `commondir` or configuration that is longer is not git's. */
#define PROTECTED_FILE_BYTES 65536

/*
 * Ask: @home is the user's home directory, @trees are readWrite directories, canonical or not. Values
 * for LOOKUP_PROTECTED are appended to OUT.
 */
void protected_ask(struct buf *out, const char *home, const char *const *trees, size_t count);

/* What came back; texts borrowed from the answer. */
struct protected_facts {
	struct protect_facts facts;
	struct protect_found *found;
	struct protect_repository *repositories;
	bool incomplete; /* a bound was reached */
};

/* Fails with ERR_BAD_FRAME, ERR_NOMEM. RET_FACTS is to be deinited in any case. */
int protected_unpack(struct protected_facts *ret_facts, const void *values, size_t size,
		     struct error *err);
void protected_deinit(struct protected_facts *facts);

/* In the child: LOOKUP_PROTECTED. */
int protected_answer(struct unpack *in, struct buf *out, struct error *err);

#endif
