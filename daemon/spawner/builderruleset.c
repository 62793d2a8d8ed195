/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock's rules for a job, made by its template's builder when it makes the copy that the job is going to enter.
 *
 * A rule holds for an inode, and a mount hides the rule of the directory that it is on; so that the rules of fresh
 * directories are those of one copy, and only /proc, which is mounted last, is left to the job. A job fetches the set
 * itself (pidfd_getfd(2)): fsboxd neither holds nor closes what a process of a user's has opened.
 */
#include "daemon/spawner/builderwork.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/landlock.h"
#include "daemon/spawner/native.h"

/* In the builder: the set for rulesets[i] is descriptor RULESET_FD + i, above all that it opens. */
#define RULESET_FD 64

bool builder_is_writable(const struct plan_op *op)
{
	switch (op->kind) {
	case PLAN_PROC:
	case PLAN_DEV:
	case PLAN_TMPFS:
		return true;
	case PLAN_BIND:
		return !(op->flags & PLAN_READ_ONLY);
	case PLAN_ROOT:
	case PLAN_SYMLINK:
	case PLAN_MASK_DIR:
	case PLAN_MASK_FILE:
	case PLAN_MASK_TREE:
	case PLAN_SEAL:
	case PLAN_SYS:
	case PLAN_PIN:
	case PLAN_NOTICE:
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return false;
}

/* Where those of the copy NAMESPACE go: no other is for it any more, and the oldest is given up. */
static size_t take_place(struct native_shared *shared, uint64_t namespace)
{
	static size_t next;
	size_t place = next++ % NATIVE_RULESETS;

	for (size_t i = 0; i < NATIVE_RULESETS; i++)
		if (i == place || shared->rulesets[i] == namespace)
			__atomic_store_n(&shared->rulesets[i], 0, __ATOMIC_SEQ_CST);
	return place;
}

void builder_keep_ruleset(struct builder *builder, int ns_dir_fd, int dev_fd)
{
	const struct plan *plan = &builder->plan;
	AUTO(auto_free) const char **writable = calloc(plan->count + 1, sizeof(*writable));
	AUTO(auto_close) int ruleset_fd = -1;
	struct stat namespace;
	size_t count = 0;
	size_t place = 0;

	if (!writable || fstatat(ns_dir_fd, "mnt", &namespace, 0) < 0)
		return;
	for (size_t i = 0; i < plan->count; i++)
		if (builder_is_writable(&plan->ops[i]) && plan->ops[i].kind != PLAN_PROC)
			writable[count++] = plan->ops[i].path;
	place = take_place(builder->shared, namespace.st_ino);
	if (landlock_prepare(writable, count, dev_fd, &ruleset_fd, NULL) != 1 ||
	    dup3(ruleset_fd, RULESET_FD + (int)place, O_CLOEXEC) < 0)
		return;
	__atomic_store_n(&builder->shared->rulesets[place], namespace.st_ino, __ATOMIC_SEQ_CST);
}

int builder_find_ruleset(const struct builder *builder)
{
	const struct builder_input *input = builder->input;
	const uint64_t *rulesets = builder->shared->rulesets;
	struct stat namespace;
	size_t place = 0;
	int fd = -1;

	if (!input->namespaces.is_copy || fstat(input->namespaces.mount_ns_fd, &namespace) < 0)
		return -1;
	while (place < NATIVE_RULESETS &&
	       __atomic_load_n(&rulesets[place], __ATOMIC_SEQ_CST) != namespace.st_ino)
		place++;
	if (place == NATIVE_RULESETS)
		return -1;
	fd = (int)syscall(SYS_pidfd_getfd, input->builder_pidfd, RULESET_FD + (int)place, 0);
	if (fd < 0 || __atomic_load_n(&rulesets[place], __ATOMIC_SEQ_CST) == namespace.st_ino)
		return fd;
	/* The number was given to another one meanwhile: which of the two we have nobody can say. */
	auto_close(&fd);
	return -1;
}
