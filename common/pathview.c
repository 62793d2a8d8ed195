/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

static int no_memory(struct error *err)
{
	return error_set(err, ERR_NOMEM, ENOMEM, "a path");
}

/* PATH from the view's working directory on, as text. */
static char *absolute(const struct path_view *view, const char *path)
{
	return path[0] == '/' ? strdup(path) : path_join(view->cwd, path);
}

int path_view_kind(const struct path_view *view, const char *path, enum path_kind *ret_kind,
		   struct error *err)
{
	AUTO(auto_free) char *full = absolute(view, path);

	if (!full)
		return no_memory(err);
	*ret_kind = view->kind(view->arg, full);
	return 0;
}

/* One entry of PATH; *RET_PATH stays NULL when nothing can be run there. */
static int try_directory(const struct path_view *view, const char *entry, size_t size,
			 const char *command, char **ret_path, struct error *err)
{
	AUTO(auto_free) char *dir = strndup(entry, size);
	AUTO(auto_free) char *full = dir ? absolute(view, dir) : NULL;
	AUTO(auto_free) char *joined = full ? path_join(full, command) : NULL;
	AUTO(auto_free) char *candidate = joined ? path_lexical(joined) : NULL;

	if (!candidate)
		return no_memory(err);
	if (view->kind(view->arg, candidate) == PATH_KIND_EXECUTABLE)
		*ret_path = steal_ptr(&candidate);
	return 0;
}

int path_find_executable(const struct path_view *view, const char *command, const char *search,
			 char **ret_path, struct error *err)
{
	enum path_kind kind = PATH_KIND_ABSENT;
	char *found = NULL;
	int r = 0;

	if (strchr(command, '/')) {
		if ((r = path_view_kind(view, command, &kind, err)) < 0)
			return r;
		if (kind == PATH_KIND_EXECUTABLE && !(found = strdup(command)))
			return no_memory(err);
	}
	while (!found && search && !strchr(command, '/') && *search) {
		size_t size = strcspn(search, ":");

		/* An empty entry does not mean the working directory. */
		if (size > 0 && (r = try_directory(view, search, size, command, &found, err)) < 0)
			return r;
		search += search[size] ? size + 1 : size;
	}
	*ret_path = found;
	return 0;
}

/* How much of PATH is its name, slashes at its end left out; the first byte of it is *RET_START. */
static size_t name_span(const char *path, size_t *ret_start)
{
	size_t end = strlen(path);
	size_t start = 0;

	while (end > 0 && path[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	*ret_start = start;
	return end - start;
}

/* The directory part: what comes before the name and one slash; "." when there is nothing. */
static char *directory_of(const char *path)
{
	size_t start = 0;

	(void)name_span(path, &start);
	if (start == 0)
		return strdup(path[0] == '/' ? "/" : ".");
	return start == 1 ? strdup("/") : strndup(path, start - 1);
}

/* NULL with errno 0: there is no such path. */
static char *real_of(const struct path_view *view, const char *path)
{
	AUTO(auto_free) char *full = absolute(view, path);
	AUTO(auto_free) char *lexical = full ? path_lexical(full) : NULL;
	char *real = NULL;

	errno = ENOMEM;
	if (!lexical)
		return NULL;
	errno = 0;
	real = view->real(view->arg, lexical);
	if (!real && errno != ENOMEM)
		errno = 0;
	return real;
}

int path_resolve_for_profile(const struct path_view *view, const char *path, char **ret_path,
			     struct error *err)
{
	AUTO(auto_free) char *found = real_of(view, path);
	AUTO(auto_free) char *dir = NULL;
	AUTO(auto_free) char *parent = NULL;
	AUTO(auto_free) char *name = NULL;
	size_t start = 0;
	size_t size = 0;

	if (!found && errno != 0)
		return no_memory(err);
	if (!found) {
		dir = directory_of(path);
		size = name_span(path, &start);
		name = strndup(path + start, size);
		if (!dir || !name)
			return no_memory(err);
		parent = real_of(view, dir);
		if (!parent && errno != 0)
			return no_memory(err);
		found = parent ? path_join(parent, name) : strdup(path);
		if (!found)
			return no_memory(err);
	}
	*ret_path = steal_ptr(&found);
	return 0;
}

int path_credentials_of_log(const char *log_path, struct string_list *ret_paths, struct error *err)
{
	static const char *const names[] = { "vault.enc", "env", "keys" };
	AUTO(auto_free) char *dir = directory_of(log_path);
	AUTO(auto_free) char *home = NULL;
	size_t start = 0;
	int r = 0;

	if (!dir)
		return no_memory(err);
	home = name_span(dir, &start) == strlen("log") && strncmp(dir + start, "log", 3) == 0
		       ? directory_of(dir)
		       : strdup(dir);
	if (!home)
		return no_memory(err);
	for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++) {
		AUTO(auto_free) char *joined = path_join(home, names[i]);
		AUTO(auto_free) char *path = joined ? path_lexical(joined) : NULL;

		r = path ? string_list_add(ret_paths, path, err) : no_memory(err);
	}
	return r;
}
