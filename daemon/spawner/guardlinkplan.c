/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of guardlink.h that keeps plans: which guard has which, for how many templates and jobs.
 */
#include "daemon/spawner/guardlink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/guardadopt.h"
#include "daemon/spawner/guardfile.h"
#include "daemon/spawner/guardplan.h"
#include "daemon/spawner/sealed.h"
#include "daemon/spawner/spawner.h"
#include "proto/wire/guardop.h"

int guardlink_add_plan(struct guardlink *link, uint64_t id, int *fd, size_t bytes,
		       struct guard_plan **ret_plan, struct error *err)
{
	struct guardlinks *links = &link->spawner->guards;
	struct guard_plan *made = calloc(1, sizeof(*made));

	if (!made)
		return error_set(err, ERR_NOMEM, 0, "guard a plan");
	*made = (struct guard_plan){
		.link = link,
		.id = id,
		.fd = steal_fd(fd),
		.bytes = bytes,
		.refs = 1,
		.next = links->plans,
	};
	links->plans = made;
	guardlink_use(link, true);
	guardlink_order_plan(made);
	*ret_plan = made;
	return 0;
}

/* For the fsboxd that comes after us. */
static int keep(struct spawner *spawner, uint64_t id, uid_t uid, int plan_fd, size_t plan_bytes,
		struct error *err)
{
	const void *data = NULL;
	size_t size = 0;
	int r = sealed_map(plan_fd, LIMIT_PLAN_BYTES, &data, &size, err);

	if (r < 0)
		return r;
	r = guardfile_keep_plan(&spawner->jobfiles, id, uid, data, plan_bytes, err);
	(void)munmap((void *)(uintptr_t)data, size);
	return r;
}

static int new_plan(struct guardlink *link, int plan_fd, size_t plan_bytes,
		    struct guard_plan **ret_plan, struct error *err)
{
	struct spawner *spawner = link->spawner;
	AUTO(auto_close) int fd = fcntl(plan_fd, F_DUPFD_CLOEXEC, 0);
	uint64_t id = ++spawner->guards.last_plan;
	int r = 0;

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "dup");
	r = keep(spawner, id, link->identity.uid, fd, plan_bytes, err);
	if (r == 0)
		r = guardlink_add_plan(link, id, &fd, plan_bytes, ret_plan, err);
	if (r < 0)
		guardfile_remove_plan(&spawner->jobfiles, id);
	return r;
}

int guardlink_plan(struct spawner *spawner, const struct identity *identity,
		   const struct plan *plan, int plan_fd, size_t plan_bytes,
		   struct guard_plan **ret_plan, struct error *err)
{
	struct guardlink *link = NULL;
	int none = -1;
	bool needed = false;
	int r = guard_points_needed(plan, &needed, err);

	*ret_plan = NULL;
	if (r < 0 || !needed || (r = guardlink_get(spawner, identity, &none, 0, &link, err)) < 0)
		return r;
	/* So that a guard which gets no plan ends in time. */
	guardlink_use(link, true);
	r = new_plan(link, plan_fd, plan_bytes, ret_plan, err);
	guardlink_use(link, false);
	return r;
}

void guardlink_plan_release(struct guard_plan *plan)
{
	struct guard_plan **at = NULL;
	struct guardlink *link = NULL;
	struct guard_order message;

	if (!plan || --plan->refs > 0)
		return;
	link = plan->link;
	at = &link->spawner->guards.plans;
	while (*at != plan)
		at = &(*at)->next;
	*at = plan->next;
	guard_order_init(&message, GUARD_ORDER_FORGET);
	message.plan = plan->id;
	guardlink_order(link, &message, NULL);
	/* Not if a job that was taken over while it began will ask for it. */
	guardadopt_forget_plan(link->spawner, plan->id);
	(void)close(plan->fd);
	free(plan);
	guardlink_use(link, false);
}

bool guardlink_owns(const struct guardlink *link, const struct guard_plan *plan)
{
	return plan && plan->link == link;
}

int guardlink_plan_read(const struct guard_plan *plan, struct plan *ret_plan, struct error *err)
{
	const void *data = NULL;
	size_t size = 0;
	int r = sealed_map(plan->fd, LIMIT_PLAN_BYTES, &data, &size, err);

	if (r < 0)
		return r;
	r = plan_decode(ret_plan, data, plan->bytes, err);
	(void)munmap((void *)(uintptr_t)data, size);
	return r;
}

bool guardlink_ready(const struct guard_plan *plan)
{
	return plan->watched;
}
