/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_LEGACY_H
#define FSBOX_COMMON_LEGACY_H

/* Translation of a bot's older sandbox settings into the three tiers. Entries stay as written. */

#include <stdbool.h>

#include "common/error.h"
#include "common/policy.h"

/* @has_sandbox_paths  the new field is there, with whatever value: already translated */
struct legacy_fields {
	bool sandbox;
	bool read_isolation;
	bool has_sandbox_paths;
	struct string_list readonly_paths;   /* sandboxReadonlyPaths */
	struct string_list hide_paths;       /* sandboxHidePaths */
	struct string_list deny_extra_paths; /* readDenyExtraPaths */
};

/* @needed  there was something to translate; otherwise the rest means nothing */
struct migrated_fields {
	bool needed;
	bool sandbox;
	struct string_list read_only; /* left out of the result when empty */
	struct string_list deny;      /* likewise */
};

void legacy_fields_deinit(struct legacy_fields *fields);
void migrated_fields_deinit(struct migrated_fields *fields);

/* RET_MIGRATED holds nothing before. Fails with ERR_NOMEM. */
int legacy_migrate(struct migrated_fields *ret_migrated, const struct legacy_fields *fields,
		   struct error *err);

#endif
