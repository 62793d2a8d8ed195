/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Terms of a grant out of a hostile broker's bytes, and then damage to the file that grants are kept in.
 *
 * Terms that pass their check can be granted, used once, and are the same after the file was read again.
 * Whatever bytes of the file are changed: a grant that was spent is not open again.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/grant.h"

#define NOW UINT64_C(1700000000000)
#define CREATOR 12345

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* One for each process that fuzzes; in memory where that can be, for every change is synced. */
static const char *place(void)
{
	static char dir[32];

	if (dir[0] == '\0') {
		const char *top = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

		(void)snprintf(dir, sizeof(dir), "%s/fsbox-fuzz-XXXXXX", top);
		must(mkdtemp(dir) != NULL);
	}
	return dir;
}

static void clear(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/grants", place());
	(void)unlink(path);
	(void)rmdir(place());
}

static void damage(const uint8_t *bytes, size_t count)
{
	char path[64];
	AUTO(auto_close) int fd = -1;
	off_t end = 0;

	(void)snprintf(path, sizeof(path), "%s/grants", place());
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(fd >= 0);
	end = lseek(fd, 0, SEEK_END);
	/* Three bytes are a place and what is changed there. */
	for (size_t i = 0; i + 3 <= count; i += 3) {
		off_t at = (bytes[i] << 8 | bytes[i + 1]) % end;
		uint8_t byte = 0;

		must(pread(fd, &byte, 1, at) == 1);
		byte ^= bytes[i + 2];
		must(pwrite(fd, &byte, 1, at) == 1);
	}
}

static int use(struct grants *grants, const struct grant_terms *terms,
	       const uint8_t token[GRANT_TOKEN_BYTES])
{
	struct op_start_grant claim = { .has_grant = 1 };
	const struct grant *grant = NULL;
	const struct grant_use use = { .uid = terms->uid,
				       .job = 1,
				       .now_ms = NOW + 1,
				       .net = terms->net,
				       .plan_hash = terms->plan_hash,
				       .claim = &claim };

	memcpy(claim.token, token, GRANT_TOKEN_BYTES);
	memcpy(claim.args_hash, terms->args_hash, HASH_BYTES);
	memcpy(claim.env_hash, terms->env_hash, HASH_BYTES);
	return grants_reserve(grants, &use, &grant, NULL);
}

static bool reopen(struct grants *grants)
{
	bool damaged = false;

	grants_close(grants);
	*grants = (struct grants)GRANTS_INIT;
	must(grants_open(grants, place(), NOW, &damaged, NULL) == 0);
	return damaged;
}

static void live(const struct grant_terms *terms, const uint8_t *bytes, size_t count)
{
	struct grants grants = GRANTS_INIT;
	struct link_grant spent;
	struct link_grant open;
	bool damaged = false;

	must(grants_open(&grants, place(), NOW, &damaged, NULL) == 0 && !damaged);
	if (grants_create(&grants, CREATOR, terms, NOW, &spent, NULL) == 0 &&
	    terms->expires_ms > NOW + 1) {
		must(grants_create(&grants, CREATOR, terms, NOW, &open, NULL) == 0);
		must(use(&grants, terms, spent.token) == 0);
		must(use(&grants, terms, spent.token) == -ERR_GRANT_INVALID);
		must(!reopen(&grants) && grants.count == 2);
		must(use(&grants, terms, spent.token) == -ERR_GRANT_INVALID);
		for (const struct grant *at = grants.first; at; at = at->next)
			must(memcmp(&at->terms, terms, sizeof(*terms)) == 0);
		damage(bytes, count);
		(void)reopen(&grants);
		must(use(&grants, terms, spent.token) < 0);
		/* What is refused now stays refused, however often it is read. */
		if (use(&grants, terms, open.token) < 0) {
			must(!reopen(&grants));
			must(use(&grants, terms, open.token) < 0);
		}
	}
	grants_close(&grants);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grant_terms terms;

	if (size < sizeof(terms))
		return 0;
	memcpy(&terms, data, sizeof(terms));
	if (grant_terms_check(&terms, NULL) < 0)
		return 0;
	must(memchr(terms.command, '\0', sizeof(terms.command)) != NULL);
	(void)mkdir(place(), 0700);
	live(&terms, data + sizeof(terms), size - sizeof(terms));
	clear();
	return 0;
}
