/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/templatecopy.h"

#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/nsfd.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/templateroom.h"

/* Beside the one that the builder stands in. */
static bool wants_more(const struct template *template)
{
	const struct templatecopies *copies = &template->copies;
	const struct templates *templates = &template->spawner->templates;

	return template->state == TEMPLATE_READY && template->go_fd >= 0 && !copies->asked &&
	       copies->count < TEMPLATE_COPIES && copies->base <= TEMPLATE_COPY_MOUNTS_MAX &&
	       templates->mounts + copies->base <=
		       templates->spawner->config.host.template_cache_mounts;
}

void templatecopy_count(struct template *template)
{
	const struct templatecopies *copies = &template->copies;
	size_t each = copies->each > 0 ? copies->each : copies->base;
	size_t held = copies->count + (copies->standing_fd >= 0);

	if (template->state != TEMPLATE_DROPPED) /* then it does not count at all */
		templateroom_count(template, copies->base + held * copies->each +
						     template->zygotes.count * each);
}

void templatecopy_more(struct template *template)
{
	/* A builder that does not listen has ended; that is noticed by itself. */
	if (wants_more(template) && write(template->go_fd, "C", 1) == 1)
		template->copies.asked = true;
}

void templatecopy_made(struct template *template, size_t mounts)
{
	struct templatecopies *copies = &template->copies;

	if (!copies->asked) {
		templatecopy_no_more(template);
		return;
	}
	copies->asked = false;
	if (copies->standing_fd >= 0 && copies->count < TEMPLATE_COPIES)
		copies->fds[copies->count++] = steal_fd(&copies->standing_fd);
	auto_close(&copies->standing_fd);
	copies->standing_fd = nsfd_open(template->builder.pidfd, template->builder.pid, NSFD_MOUNT);
	if (copies->standing_fd < 0)
		templatecopy_no_more(template);
	copies->each = mounts;
	templatecopy_count(template);
	if (copies->count == 0)
		templatecopy_more(template);
}

int templatecopy_take(struct template *template)
{
	struct templatecopies *copies = &template->copies;

	int fd = copies->count > 0 ? copies->fds[--copies->count] : -1;

	templatecopy_count(template);
	return fd;
}

void templatecopy_no_more(struct template *template)
{
	struct templatecopies *copies = &template->copies;

	copies->asked = false;
	auto_close(&copies->standing_fd);
	copies->standing_fd = -1;
	auto_close(&template->go_fd);
	template->go_fd = -1;
	templatecopy_count(template);
}

void templatecopy_deinit(struct template *template)
{
	struct templatecopies *copies = &template->copies;

	templatecopy_no_more(template);
	while (copies->count > 0)
		(void)close(copies->fds[--copies->count]);
}
