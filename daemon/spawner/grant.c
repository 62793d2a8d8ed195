/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/grant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/policy.h"
#include "common/scope.h"
#include "common/sha256.h"

#define FILE_NAME "grants"
#define NEW_NAME "grants.new"
#define RECORD_MAGIC 0x544e5247u /* "GRNT" */

enum record_kind { RECORD_CREATED = 1, RECORD_RESERVED, RECORD_REVOKED };

/* One change, in the machine's own byte order. @check is over all that stands before it. */
struct record {
	uint32_t magic;
	uint32_t kind;
	uint64_t id;
	uint64_t created_ms;
	uint64_t job;
	uint32_t creator;
	uint32_t reserved;
	uint8_t token_hash[HASH_BYTES];
	struct grant_terms terms;
	uint8_t check[HASH_BYTES];
};

_Static_assert(offsetof(struct record, check) + HASH_BYTES == sizeof(struct record),
	       "nothing of a record is left out of its checksum");

static void hash(const void *data, size_t size, uint8_t ret[HASH_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, data, size);
	sha256_finish(&sha, ret);
}

/* ---- in memory ------------------------------------------------------------------------ */

static struct grant *find(const struct grants *grants, uint64_t id)
{
	for (struct grant *grant = grants->first; grant; grant = grant->next)
		if (grant->id == id)
			return grant;
	return NULL;
}

enum grant_state grant_state_at(const struct grant *grant, uint64_t now_ms)
{
	return grant->state == GRANT_OPEN && now_ms >= grant->terms.expires_ms ? GRANT_EXPIRED
									       : grant->state;
}

/* Nobody can use them any more, and nobody need be told. */
static void forget_expired(struct grants *grants, uint64_t now_ms)
{
	struct grant **at = &grants->first;

	while (*at) {
		struct grant *grant = *at;

		if (now_ms < grant->terms.expires_ms) {
			at = &grant->next;
			continue;
		}
		*at = grant->next;
		grants->count--;
		free(grant);
	}
}

static struct grant *add(struct grants *grants, const struct record *record)
{
	struct grant *grant = calloc(1, sizeof(*grant));

	if (!grant)
		return NULL;
	*grant = (struct grant){
		.id = record->id,
		.created_ms = record->created_ms,
		.creator = record->creator,
		.state = GRANT_OPEN,
		.terms = record->terms,
		.next = grants->first,
	};
	memcpy(grant->token_hash, record->token_hash, HASH_BYTES);
	grants->first = grant;
	grants->count++;
	if (record->id > grants->last_id)
		grants->last_id = record->id;
	return grant;
}

/* ---- on disk -------------------------------------------------------------------------- */

static struct record record_of(const struct grant *grant, enum record_kind kind)
{
	struct record record;

	memset(&record, 0, sizeof(record)); /* the padding is hashed and written, too */
	record.magic = RECORD_MAGIC;
	record.kind = kind;
	record.id = grant->id;
	record.created_ms = grant->created_ms;
	record.job = grant->job;
	record.creator = grant->creator;
	memcpy(record.token_hash, grant->token_hash, HASH_BYTES);
	record.terms = grant->terms;
	hash(&record, offsetof(struct record, check), record.check);
	return record;
}

/* All or nothing, and on the disk. A file that cannot be cut back is not written to again. */
static int append(struct grants *grants, const struct record *record, struct error *err)
{
	ssize_t wrote = 0;
	int errnum = 0;

	if (grants->fd < 0)
		return error_set(err, ERR_GRANT_INVALID, 0, "there are no grants here");
	wrote = pwrite(grants->fd, record, sizeof(*record), (off_t)grants->size);
	errnum = wrote < 0 ? errno : ENOSPC;
	if (wrote == (ssize_t)sizeof(*record) && fdatasync(grants->fd) == 0) {
		grants->size += sizeof(*record);
		return 0;
	}
	if (wrote == (ssize_t)sizeof(*record))
		errnum = errno;
	/* After a failed sync nobody knows what is on the disk: never mind whether this was. */
	if (wrote == (ssize_t)sizeof(*record) || ftruncate(grants->fd, (off_t)grants->size) < 0)
		grants_close(grants);
	return error_set(err, ERR_LEDGER_FAILED, errnum, "write the grants");
}

static bool record_is_whole(const struct record *record)
{
	uint8_t check[HASH_BYTES];

	hash(record, offsetof(struct record, check), check);
	return record->magic == RECORD_MAGIC && memcmp(check, record->check, HASH_BYTES) == 0 &&
	       record->kind >= RECORD_CREATED && record->kind <= RECORD_REVOKED &&
	       record->reserved == 0 && grant_terms_check(&record->terms, NULL) == 0;
}

/* False: it does not follow from what stands before it, or memory is short. */
static bool replay(struct grants *grants, const struct record *record)
{
	struct grant *grant = find(grants, record->id);

	if (record->kind == RECORD_CREATED)
		return !grant && add(grants, record);
	if (!grant)
		return false;
	/* A reservation that is found here was made: whether its job ran, nobody knows. */
	grant->state = record->kind == RECORD_RESERVED ? GRANT_SPENT : GRANT_REVOKED;
	grant->job = record->job;
	return true;
}

/* How far the file is sound; *ret_damaged: it goes on after that, and not by a cut record. */
static int read_all(struct grants *grants, int fd, bool *ret_damaged, struct error *err)
{
	struct record record;
	off_t at = 0;

	for (;;) {
		ssize_t got = pread(fd, &record, sizeof(record), at);

		if (got < 0)
			return error_set(err, ERR_SYSTEM, errno, "read the grants");
		if (got < (ssize_t)sizeof(record))
			return 0;
		if (!record_is_whole(&record)) {
			/* Blocks of the last one may be missing as well as its end. */
			*ret_damaged = pread(fd, &record, 1, at + (off_t)sizeof(record)) != 0;
			return 0;
		}
		if (!replay(grants, &record)) {
			*ret_damaged = true;
			return 0;
		}
		at += (off_t)sizeof(record);
	}
}

static int open_file(int dir_fd, const char *name, int flags, struct error *err)
{
	AUTO(auto_close)
	int fd = openat(dir_fd, name, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 && errno == ENOENT && (flags & O_CREAT) == 0)
		return -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, ERR_SYSTEM, errno, "open '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return error_set(err, ERR_CONFIG, 0, "'%s' is not ours alone", name);
	return steal_fd(&fd);
}

/* Oldest first, so that reading them gives the same list. */
static int write_all(struct grants *grants, const struct grant *grant, struct error *err)
{
	struct record record;
	int r = 0;

	if (!grant)
		return 0;
	if ((r = write_all(grants, grant->next, err)) < 0)
		return r;
	record = record_of(grant, RECORD_CREATED);
	r = append(grants, &record, err);
	if (r < 0 || grant->state == GRANT_OPEN)
		return r;
	record = record_of(grant, grant->state == GRANT_SPENT ? RECORD_RESERVED : RECORD_REVOKED);
	return append(grants, &record, err);
}

static int write_anew(struct grants *grants, int dir_fd, struct error *err)
{
	int r = 0;

	(void)unlinkat(dir_fd, NEW_NAME, 0);
	grants->size = 0;
	grants->fd = open_file(dir_fd, NEW_NAME, O_CREAT | O_EXCL, err);
	if (grants->fd < 0)
		return -(int)ERR_SYSTEM;
	if ((r = write_all(grants, grants->first, err)) < 0)
		return r;
	if (renameat(dir_fd, NEW_NAME, dir_fd, FILE_NAME) < 0 || fsync(dir_fd) < 0)
		return error_set(err, ERR_SYSTEM, errno, "put the grants in place");
	return 0;
}

int grants_open(struct grants *grants, const char *dir, uint64_t now_ms, bool *ret_damaged,
		struct error *err)
{
	AUTO(auto_close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	AUTO(auto_close) int fd = -1;
	int r = 0;

	*grants = (struct grants)GRANTS_INIT;
	*ret_damaged = false;
	if (dir_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open '%s'", dir);
	fd = open_file(dir_fd, FILE_NAME, 0, err);
	if (fd < -1)
		return fd;
	if (fd >= 0)
		r = read_all(grants, fd, ret_damaged, err);
	for (struct grant *grant = grants->first; *ret_damaged && grant; grant = grant->next)
		if (grant->state == GRANT_OPEN)
			grant->state = GRANT_REVOKED;
	forget_expired(grants, now_ms);
	/* Numbers are not used again, even if all that had one are forgotten. */
	if (now_ms / 1000 > grants->last_id)
		grants->last_id = now_ms / 1000;
	if (r == 0)
		r = write_anew(grants, dir_fd, err);
	if (r < 0)
		grants_close(grants);
	return r;
}

void grants_close(struct grants *grants)
{
	while (grants->first) {
		struct grant *grant = grants->first;

		grants->first = grant->next;
		free(grant);
	}
	auto_close(&grants->fd);
	*grants = (struct grants)GRANTS_INIT;
}

/* ---- making --------------------------------------------------------------------------- */

static int check_terms(const struct grants *grants, uid_t creator, const struct grant_terms *terms,
		       uint64_t now_ms, struct error *err)
{
	if (grants->fd < 0)
		return error_set(err, ERR_GRANT_INVALID, 0, "there are no grants here");
	if (terms->uid == creator)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "a grant is for somebody else");
	if (terms->uid == 0 || terms->uid == (uid_t)-1)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "jobs of root get no grants");
	if (terms->expires_ms <= now_ms || terms->expires_ms - now_ms > LIMIT_GRANT_MS)
		return error_set(err, ERR_INVALID, 0, "a grant ends within a year");
	if (grants->count >= LIMIT_GRANTS)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0, "there are %d grants already",
				 LIMIT_GRANTS);
	return 0;
}

int grants_create(struct grants *grants, uid_t creator, const struct grant_terms *terms,
		  uint64_t now_ms, struct link_grant *ret_grant, struct error *err)
{
	struct link_grant made = { .id = grants->last_id + 1, .expires_ms = terms->expires_ms };
	struct grant grant = { .creator = creator, .created_ms = now_ms, .terms = *terms };
	struct record record;
	int r = 0;

	forget_expired(grants, now_ms);
	if ((r = check_terms(grants, creator, terms, now_ms, err)) < 0)
		return r;
	if (getrandom(made.token, sizeof(made.token), 0) != (ssize_t)sizeof(made.token))
		return error_set(err, ERR_SYSTEM, errno, "getrandom");
	grant.id = made.id;
	hash(made.token, sizeof(made.token), grant.token_hash);
	record = record_of(&grant, RECORD_CREATED);
	if ((r = append(grants, &record, err)) < 0)
		return r;
	if (!add(grants, &record))
		return error_set(err, ERR_NOMEM, ENOMEM, "keep a grant");
	*ret_grant = made;
	explicit_bzero(&made, sizeof(made));
	return 0;
}

/* ---- using ---------------------------------------------------------------------------- */

static struct grant *find_token(const struct grants *grants, const uint8_t *token)
{
	uint8_t token_hash[HASH_BYTES];

	/* Of the hash of what he does not know nobody learns anything by time. */
	hash(token, GRANT_TOKEN_BYTES, token_hash);
	for (struct grant *grant = grants->first; grant; grant = grant->next)
		if (memcmp(grant->token_hash, token_hash, HASH_BYTES) == 0)
			return grant;
	return NULL;
}

static int misfit(struct error *err, const char *what)
{
	return error_set(err, ERR_GRANT_INVALID, 0, "the grant is for %s", what);
}

/* What is compared with what, in the order in which people find it easiest to mend. */
static int check_use(const struct grant *grant, const struct grant_use *use, struct error *err)
{
	const struct grant_terms *terms = &grant->terms;
	enum grant_state state = grant_state_at(grant, use->now_ms);

	if (terms->uid != use->uid)
		return misfit(err, "another user");
	if (state != GRANT_OPEN)
		return error_set(err, ERR_GRANT_INVALID, 0, "the grant is %s",
				 grant_state_name(state));
	if (terms->net != use->net)
		return error_set(err, ERR_GRANT_INVALID, 0, "the grant is for network '%s'",
				 net_mode_name((enum net_mode)terms->net));
	if (memcmp(terms->args_hash, use->claim->args_hash, HASH_BYTES) != 0)
		return misfit(err, "another command, or another working directory");
	if (memcmp(terms->env_hash, use->claim->env_hash, HASH_BYTES) != 0)
		return misfit(err, "another environment");
	if (memcmp(terms->plan_hash, use->plan_hash, HASH_BYTES) != 0)
		return misfit(err, "another policy");
	return 0;
}

int grants_reserve(struct grants *grants, const struct grant_use *use,
		   const struct grant **ret_grant, struct error *err)
{
	struct grant *grant = find_token(grants, use->claim->token);
	struct record record;
	int r = 0;

	if (!grant)
		return error_set(err, ERR_GRANT_INVALID, 0, "there is no such grant");
	if ((r = check_use(grant, use, err)) < 0)
		return r;
	grant->state = GRANT_SPENT;
	grant->job = use->job;
	record = record_of(grant, RECORD_RESERVED);
	if ((r = append(grants, &record, err)) < 0)
		return r;
	*ret_grant = grant;
	return 0;
}

int grants_revoke(struct grants *grants, uint64_t id, uint64_t now_ms,
		  const struct grant **ret_grant, struct error *err)
{
	struct grant *grant = find(grants, id);
	struct record record;
	int r = 0;

	if (!grant || grant_state_at(grant, now_ms) != GRANT_OPEN)
		return error_set(err, ERR_GRANT_INVALID, 0, "there is no open grant %llu",
				 (unsigned long long)id);
	grant->state = GRANT_REVOKED;
	record = record_of(grant, RECORD_REVOKED);
	if ((r = append(grants, &record, err)) < 0)
		return r;
	*ret_grant = grant;
	return 0;
}
