/* SPDX-License-Identifier: Apache-2.0 */
#include "common/egressprofile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/sbpl.h"
#include "common/scope.h"

const char *const egress_runtime_roots[] = {
	"/usr/lib",     "/usr/share", "/System",       "/Library", "/private/var/db/dyld",
	"/var/db/dyld", "/dev",       "/bin",          "/sbin",    "/usr/bin",
	"/usr/sbin",    "/usr/local", "/opt/homebrew", "/etc",     "/private/etc",
	NULL,
};

/* "START (FILTER "PATH"))" */
static void add_line(struct sbpl *sbpl, const char *start, enum path_pattern_kind kind,
		     const char *path)
{
	const struct sbpl_place place = { kind, path };

	sbpl_text(sbpl, start);
	sbpl_filters(sbpl, &place, false);
	sbpl_text(sbpl, ")\n");
}

/* Both lines for what is not there: it may come as either. */
static int add_deny(struct sbpl *sbpl, const struct path_view *view, const char *path,
		    struct error *err)
{
	AUTO(auto_free) char *resolved = NULL;
	enum path_kind kind = PATH_KIND_ABSENT;
	int r = path_resolve_for_profile(view, path, &resolved, err);

	if (r < 0 || (r = path_view_kind(view, resolved, &kind, err)) < 0)
		return r;
	if (kind != PATH_KIND_DIRECTORY)
		add_line(sbpl, "(deny file-read*", PATH_PATTERN_LITERAL, resolved);
	if (kind == PATH_KIND_ABSENT || kind == PATH_KIND_DIRECTORY)
		add_line(sbpl, "(deny file-read*", PATH_PATTERN_SUBPATH, resolved);
	return 0;
}

static int add_root(struct string_list *roots, const struct path_view *view, const char *path,
		    struct error *err)
{
	AUTO(auto_free) char *resolved = NULL;
	int r = path_resolve_for_profile(view, path, &resolved, err);

	if (r < 0 || string_list_has(roots, resolved))
		return r;
	return string_list_add(roots, resolved, err);
}

/* Every directory above ROOT but "/". */
static int add_ancestors(struct string_list *ancestors, const char *root, struct error *err)
{
	for (size_t size = strlen(root); size > 0; size--) {
		AUTO(auto_free) char *ancestor = NULL;
		int r = 0;

		if (root[size - 1] != '/' || size == 1)
			continue;
		ancestor = strndup(root, size - 1);
		if (!ancestor)
			return error_set(err, ERR_NOMEM, ENOMEM, "a path");
		if ((r = string_list_add(ancestors, ancestor, err)) < 0)
			return r;
	}
	return 0;
}

static int read_roots(struct string_list *roots, const struct egress_allowance *allowance,
		      const struct path_view *view, struct error *err)
{
	const struct string_list *runtime = allowance->runtime_roots;
	int r = 0;

	for (size_t i = 0; i < allowance->allow_read->count && r == 0; i++)
		r = add_root(roots, view, allowance->allow_read->items[i], err);
	for (size_t i = 0; runtime && i < runtime->count && r == 0; i++)
		r = add_root(roots, view, runtime->items[i], err);
	for (size_t i = 0; !runtime && egress_runtime_roots[i] && r == 0; i++)
		r = add_root(roots, view, egress_runtime_roots[i], err);
	return r;
}

static int add_read_jail(struct sbpl *sbpl, const struct egress_allowance *allowance,
			 const struct path_view *view, struct error *err)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list ancestors = { .items = NULL };
	int r = 0;

	if (!allowance->allow_read || allowance->allow_read->count == 0)
		return 0;
	if ((r = read_roots(&roots, allowance, view, err)) < 0)
		return r;
	sbpl_text(sbpl, "(deny file-read*)\n");
	for (size_t i = 0; i < roots.count && r == 0; i++) {
		add_line(sbpl, "(allow file-read*", PATH_PATTERN_SUBPATH, roots.items[i]);
		r = add_ancestors(&ancestors, roots.items[i], err);
	}
	if (r < 0)
		return r;
	add_line(sbpl, "(allow file-read*", PATH_PATTERN_LITERAL, "/");
	string_list_sort_unique(&ancestors);
	sbpl_literals(sbpl, "(allow file-read-metadata", &ancestors);
	return 0;
}

int egress_profile(struct buf *out, const struct egress_allowance *allowance,
		   const struct path_view *view, struct error *err)
{
	struct sbpl sbpl = { .out = out };
	int r = 0;

	sbpl_text(&sbpl, "(version 1)\n"
			 "(allow default)\n"
			 "(deny network-outbound)\n"
			 "(allow network-outbound (regex #\"^/\"))\n");
	if (allowance->loopback)
		sbpl_text(&sbpl, "(allow network-outbound (remote ip \"localhost:*\"))\n");
	r = add_read_jail(&sbpl, allowance, view, err);
	for (size_t i = 0; allowance->deny_read && i < allowance->deny_read->count && r == 0; i++)
		r = add_deny(&sbpl, view, allowance->deny_read->items[i], err);
	return r < 0 ? r : buf_check(out, "profile", err);
}
