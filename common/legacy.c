/* SPDX-License-Identifier: Apache-2.0 */
#include "common/legacy.h"

#include "common/scope.h"

void legacy_fields_deinit(struct legacy_fields *fields)
{
	if (!fields)
		return;
	string_list_deinit(&fields->readonly_paths);
	string_list_deinit(&fields->hide_paths);
	string_list_deinit(&fields->deny_extra_paths);
}

void migrated_fields_deinit(struct migrated_fields *fields)
{
	if (!fields)
		return;
	string_list_deinit(&fields->read_only);
	string_list_deinit(&fields->deny);
}

static int add_all(struct string_list *list, const struct string_list *more, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < more->count; i++)
		r = string_list_add(list, more->items[i], err);
	return r;
}

static int add_new(struct string_list *list, const struct string_list *more, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < more->count; i++)
		if (!string_list_has(list, more->items[i]))
			r = string_list_add(list, more->items[i], err);
	return r;
}

int legacy_migrate(struct migrated_fields *ret_migrated, const struct legacy_fields *fields,
		   struct error *err)
{
	AUTO(migrated_fields_deinit) struct migrated_fields migrated = { .needed = false };
	int r = 0;

	migrated.needed = !fields->has_sandbox_paths &&
			  (fields->read_isolation || fields->readonly_paths.count > 0 ||
			   fields->hide_paths.count > 0 || fields->deny_extra_paths.count > 0);
	if (migrated.needed) {
		migrated.sandbox = fields->sandbox || fields->read_isolation;
		r = add_all(&migrated.read_only, &fields->readonly_paths, err);
		if (r == 0)
			r = add_new(&migrated.deny, &fields->hide_paths, err);
		if (r == 0)
			r = add_new(&migrated.deny, &fields->deny_extra_paths, err);
	}
	if (r < 0)
		return r;
	*ret_migrated = migrated;
	migrated = (struct migrated_fields){ .needed = false };
	return 0;
}
