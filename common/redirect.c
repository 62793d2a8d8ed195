/* SPDX-License-Identifier: Apache-2.0 */
#include "common/redirect.h"

#include <errno.h>
#include <stdlib.h>

#include "common/path.h"
#include "common/scope.h"

/* The normal forms of ROOTS, those that have one. */
static int normal_roots(struct string_list *ret_roots, const struct string_list *roots,
			struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < roots->count; i++) {
		AUTO(auto_free) char *root = path_normalize(roots->items[i]);

		if (root)
			r = string_list_add(ret_roots, root, err);
		else if (errno == ENOMEM)
			r = error_set(err, ERR_NOMEM, 0, "no memory for a path");
	}
	return r;
}

static bool is_rehomed(const struct string_list *roots, const char *normal_path)
{
	for (size_t i = 0; i < roots->count; i++)
		if (path_covers(roots->items[i], normal_path))
			return true;
	return false;
}

int redirect_surviving(struct string_list *ret_paths, const struct string_list *auth_paths,
		       const struct string_list *rehomed_roots, struct error *err)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	int r = normal_roots(&roots, rehomed_roots, err);

	for (size_t i = 0; r == 0 && i < auth_paths->count; i++) {
		AUTO(auto_free) char *normal = path_normalize(auth_paths->items[i]);

		if (!normal && errno == ENOMEM)
			r = error_set(err, ERR_NOMEM, 0, "no memory for a path");
		else if (normal && !is_rehomed(&roots, normal))
			r = string_list_add(ret_paths, auth_paths->items[i], err);
	}
	return r;
}

int redirect_auth_paths(struct string_list *ret_paths, const struct string_list *declared,
			bool will_redirect, const struct string_list *rehomed_roots,
			struct error *err)
{
	int r = 0;

	if (will_redirect)
		return redirect_surviving(ret_paths, declared, rehomed_roots, err);
	for (size_t i = 0; r == 0 && i < declared->count; i++)
		r = string_list_add(ret_paths, declared->items[i], err);
	return r;
}
