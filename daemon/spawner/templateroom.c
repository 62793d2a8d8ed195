/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/templateroom.h"

#include "common/limits.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"

/* What is being built is bounded apart: nobody can be made to give it up. */
int templateroom_check(const struct templates *templates, uid_t uid, size_t more, struct error *err)
{
	size_t building = 0;

	for (const struct template *at = templates->first; at; at = at->next)
		if (at->state == TEMPLATE_BUILDING && at->identity.uid == uid)
			building += at->mem.plan.count;
	if (building > 0 && building + more > LIMIT_BUILDING_OPERATIONS_PER_UID)
		return error_set(err, ERR_QUOTA_EXCEEDED, 0,
				 "more than %d rules of user %u are being mounted",
				 LIMIT_BUILDING_OPERATIONS_PER_UID, uid);
	return 0;
}

void templateroom_make(struct templates *templates, size_t more)
{
	size_t ceiling = templates->spawner->config.host.template_cache_mounts;

	while (templates->mounts + more > ceiling) {
		struct template *last = NULL;

		for (struct template *at = templates->first; at; at = at->next)
			if (at->state == TEMPLATE_READY)
				last = at;
		if (!last)
			return;
		template_drop(last, "too many mounts");
	}
}

void templateroom_count(struct template *template, size_t mounts)
{
	template->spawner->templates.mounts += mounts - template->mounts;
	template->mounts = mounts;
}

void templateroom_settle(struct template *template)
{
	struct templates *templates = &template->spawner->templates;

	if (template->outdated)
		template_drop(template, "outdated while it was built");
	else if (template->mounts > templates->spawner->config.host.template_cache_mounts)
		template_drop(template, "more mounts than may be kept");
	else
		templateroom_make(templates, 0);
}
