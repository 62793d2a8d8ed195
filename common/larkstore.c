/* SPDX-License-Identifier: Apache-2.0 */
#include "common/larkstore.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

#define STORE_NAME "lark-cli"
#define DEFAULT_DATA_DIR "/.local/share"

static bool is_given(const char *text)
{
	return text && text[0];
}

/* A and B one after the other, nothing between. */
static char *concat(const char *a, const char *b)
{
	size_t a_size = strlen(a);
	size_t b_size = strlen(b);
	char *joined = malloc(a_size + b_size + 1);

	if (!joined) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(joined, a, a_size);
	memcpy(joined + a_size, b, b_size);
	joined[a_size + b_size] = '\0';
	return joined;
}

char *lark_store_path(const char *home_dir, const char *override)
{
	AUTO(auto_free) char *path = NULL;

	if (is_given(override))
		return path_normalize(override);
	path = concat(home_dir, DEFAULT_DATA_DIR "/" STORE_NAME);
	return path ? path_normalize(path) : NULL;
}

char *lark_child_data_root(const char *canon_store)
{
	AUTO(auto_free) char *store = NULL;

	errno = 0;
	if (!canon_store)
		return NULL;
	store = path_normalize(canon_store);
	if (!store || strcmp(path_leaf(store), STORE_NAME) != 0)
		return NULL;
	return path_parent(store);
}

char *lark_store_dir(const char *raw_data_dir, const char *home_dir)
{
	AUTO(auto_free) char *base = NULL;

	if (is_given(raw_data_dir)) {
		base = path_clean(raw_data_dir);
		if (!base && errno == ENOMEM)
			return NULL;
	}
	if (!base)
		return concat(home_dir, DEFAULT_DATA_DIR "/" STORE_NAME);
	return concat(strcmp(base, "/") == 0 ? "" : base, "/" STORE_NAME);
}
