/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_GUARDNEWS_H
#define FSBOX_DAEMON_BROKER_GUARDNEWS_H

/*
 * What a job's guard did, as fsboxd passes it on: collected until somebody asks or the job ends.
 */

#include <stdint.h>

#include "common/policy.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

/* Names that one job may have planted, as far as they are listed. */
#define GUARDNEWS_PLANTED_MAX 64

/*
 * @planted   a sentence for each name
 * @repaired  how often a mask was put back; one that could not be counts as well
 */
struct guardnews {
	struct string_list planted;
	uint32_t repaired;
};

void guardnews_deinit(struct guardnews *news);

/* What memory does not suffice for is left out. */
void guardnews_take(struct guardnews *news, const struct link_guard_news *message);

/* Copy it into RESULT, which has nothing of it yet. */
void guardnews_fill(const struct guardnews *news, struct wait_result *result);

#endif
