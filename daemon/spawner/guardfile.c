/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/plan.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/sealed.h"

#define PLAN_MAGIC 0x4e4c5046u  /* "FPLN" */
#define GUARD_MAGIC 0x44524746u /* "FGRD" */
#define FILE_VERSION 1

#define NAME_BYTES 24

/* Before the bytes of a plan. */
struct plan_header {
	uint32_t magic;
	uint32_t version;
	char boot_id[40];
	uint64_t id;
	uint32_t uid;
	uint32_t byte_count;
};

struct guard_record {
	uint32_t magic;
	uint32_t version;
	char boot_id[40];
	int32_t pid;
	uint32_t reserved;
	struct birth birth;
	struct identity identity;
};

static void name_of(char letter, uint64_t number, char ret_name[NAME_BYTES])
{
	(void)snprintf(ret_name, NAME_BYTES, "%c%llu", letter, (unsigned long long)number);
}

/* The number in NAME, which begins with a letter; 0: it is no name of ours. */
static uint64_t number_of(const char *name)
{
	char again[NAME_BYTES];
	uint64_t number = 0;

	errno = 0;
	number = strtoull(name + 1, NULL, 10);
	name_of(name[0], number, again);
	return errno == 0 && strcmp(name, again) == 0 ? number : 0;
}

static void remove_name(const struct jobfiles *files, char letter, uint64_t number)
{
	char name[NAME_BYTES];

	name_of(letter, number, name);
	if (files->dir_fd >= 0)
		(void)unlinkat(files->dir_fd, name, 0);
}

/* A new file with PARTS. Fails with ERR_SYSTEM; nothing is left then. */
static int keep(const struct jobfiles *files, const char *name, const struct iovec *parts,
		int part_count, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	size_t wanted = 0;

	for (int i = 0; i < part_count; i++)
		wanted += parts[i].iov_len;
	/* The number was never used in this boot, so what is there is of no use to anybody. */
	(void)unlinkat(files->dir_fd, name, 0);
	fd = openat(files->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd >= 0 && writev(fd, parts, part_count) == (ssize_t)wanted)
		return 0;
	(void)error_set(err, ERR_SYSTEM, errno, "keep '%s' for the next fsboxd", name);
	(void)unlinkat(files->dir_fd, name, 0);
	return -(int)ERR_SYSTEM;
}

static int open_ours(const struct jobfiles *files, const char *name)
{
	AUTO(auto_close)
	int fd = openat(files->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && jobfile_is_ours(fd) ? steal_fd(&fd) : -1;
}

/* ---- plans --------------------------------------------------------------------------- */

int guardfile_keep_plan(const struct jobfiles *files, uint64_t id, uid_t uid, const void *bytes,
			size_t byte_count, struct error *err)
{
	struct plan_header header = {
		.magic = PLAN_MAGIC,
		.version = FILE_VERSION,
		.id = id,
		.uid = uid,
		.byte_count = (uint32_t)byte_count,
	};
	const struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = byte_count },
	};
	char name[NAME_BYTES];

	memcpy(header.boot_id, files->boot_id, sizeof(header.boot_id));
	name_of('p', id, name);
	return keep(files, name, parts, ARRAY_SIZE(parts), err);
}

static bool header_is_sound(const struct jobfiles *files, const struct plan_header *header,
			    uint64_t id, uid_t uid)
{
	return header->magic == PLAN_MAGIC && header->version == FILE_VERSION &&
	       memcmp(header->boot_id, files->boot_id, sizeof(header->boot_id)) == 0 &&
	       header->id == id && header->uid == uid && header->byte_count > 0 &&
	       header->byte_count <= LIMIT_PLAN_BYTES;
}

/* All that follows the header in FD, and no byte more. */
static int read_bytes(int fd, size_t byte_count, void **ret_bytes, struct error *err)
{
	AUTO(auto_free) void *bytes = malloc(byte_count);
	struct stat st;

	if (!bytes)
		return error_set(err, ERR_NOMEM, 0, "a plan");
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != sizeof(struct plan_header) + byte_count ||
	    pread(fd, bytes, byte_count, sizeof(struct plan_header)) != (ssize_t)byte_count)
		return error_set(err, ERR_BAD_FRAME, 0, "a plan that was kept is not whole");
	*ret_bytes = steal_ptr(&bytes);
	return 0;
}

int guardfile_read_plan(const struct jobfiles *files, uint64_t id, uid_t uid, int *ret_fd,
			size_t *ret_bytes, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(auto_free) void *bytes = NULL;
	AUTO(auto_close) int fd = -1;
	struct plan_header header;
	char name[NAME_BYTES];
	int r = 0;

	name_of('p', id, name);
	fd = open_ours(files, name);
	if (fd < 0)
		return error_set(err, ERR_PATH_NOT_FOUND, 0, "plan '%s' was not kept", name);
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !header_is_sound(files, &header, id, uid))
		return error_set(err, ERR_BAD_FRAME, 0, "'%s' is no plan of user %u", name, uid);
	if ((r = read_bytes(fd, header.byte_count, &bytes, err)) < 0 ||
	    (r = plan_decode(&plan, bytes, header.byte_count, err)) < 0 ||
	    (r = sealed_create("fsbox-plan", bytes, header.byte_count, 0400, ret_fd, err)) < 0)
		return r;
	*ret_bytes = header.byte_count;
	return 0;
}

void guardfile_remove_plan(const struct jobfiles *files, uint64_t id)
{
	remove_name(files, 'p', id);
}

/* ---- guards -------------------------------------------------------------------------- */

void guardfile_note(const struct jobfiles *files, pid_t pid, int pidfd,
		    const struct identity *identity)
{
	struct guard_record record = { .magic = GUARD_MAGIC, .version = FILE_VERSION, .pid = pid };
	const struct iovec part = { .iov_base = &record, .iov_len = sizeof(record) };
	struct error err = ERROR_INIT;
	char name[NAME_BYTES];
	int r = birth_read(pid, pidfd, &record.birth, &err);

	memcpy(record.boot_id, files->boot_id, sizeof(record.boot_id));
	record.identity = *identity;
	name_of('g', (uint64_t)pid, name);
	if (r == 0)
		r = keep(files, name, &part, 1, &err);
	if (r < 0)
		log_failure(&err, "guard of user %u", identity->uid);
}

void guardfile_forget(const struct jobfiles *files, pid_t pid)
{
	if (pid > 0)
		remove_name(files, 'g', (uint64_t)pid);
}

/* A descriptor of the guard that the file NAME means, if it lives; else -1. */
static int open_guard(const struct jobfiles *files, const char *name, uint64_t number,
		      struct guard_record *ret_record)
{
	AUTO(auto_close) int fd = open_ours(files, name);

	if (fd < 0 ||
	    pread(fd, ret_record, sizeof(*ret_record), 0) != (ssize_t)sizeof(*ret_record) ||
	    ret_record->magic != GUARD_MAGIC || ret_record->version != FILE_VERSION ||
	    memcmp(ret_record->boot_id, files->boot_id, sizeof(files->boot_id)) != 0 ||
	    ret_record->pid <= 1 || (uint64_t)ret_record->pid != number ||
	    ret_record->identity.group_count > LIMIT_GROUPS)
		return -1;
	return birth_open(ret_record->pid, &ret_record->birth);
}

/* ---- finding them again -------------------------------------------------------------- */

struct scan {
	const struct jobfiles *files;
	const struct guardfile_found *found;
};

static void scan_name(const char *name, void *arg)
{
	const struct scan *scan = arg;
	const struct guardfile_found *found = scan->found;
	uint64_t number = number_of(name);
	struct guard_record record;
	AUTO(auto_close) int pidfd = -1;

	if (name[0] == 'p' && found->plan && !(number > 0 && found->plan(number, found->arg)))
		(void)unlinkat(scan->files->dir_fd, name, 0);
	if (name[0] != 'g' || !found->guard)
		return;
	if (number > 0)
		pidfd = open_guard(scan->files, name, number, &record);
	if (pidfd >= 0)
		found->guard(record.pid, &pidfd, &record.identity, found->arg);
	else
		(void)unlinkat(scan->files->dir_fd, name, 0);
}

int guardfiles_scan(const struct jobfiles *files, const struct guardfile_found *found,
		    struct error *err)
{
	struct scan scan = { .files = files, .found = found };

	return jobfiles_each_name(files, err, scan_name, &scan);
}
