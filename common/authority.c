/* SPDX-License-Identifier: Apache-2.0 */
#include "common/authority.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/larkstore.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"

static bool is_given(const char *text)
{
	return text && text[0];
}

/* path_normalize(), with short memory told apart: then -ERR_NOMEM. */
static int normalize(char **ret_normal, const char *path, struct error *err)
{
	*ret_normal = path_normalize(path);
	if (!*ret_normal && errno == ENOMEM)
		return error_set(err, ERR_NOMEM, 0, "no memory for a path");
	return 0;
}

static int add_once(struct string_list *list, const char *text, struct error *err)
{
	return string_list_has(list, text) ? 0 : string_list_add(list, text, err);
}

static int add_below(struct string_list *list, const char *dir, const char *tail, struct error *err)
{
	AUTO(buf_deinit) struct buf path = BUF_INIT(LIMIT_FRAME_BYTES);

	(void)buf_printf(&path, "%s%s", dir, tail);
	if (path.failed)
		return buf_check(&path, "an authority root", err);
	return add_once(list, buf_text(&path), err);
}

/* The roots as written, each text once. */
static int collect_roots(struct string_list *list, const struct authority_input *input,
			 struct error *err)
{
	static const char *const below_home[] = {
		"/.lark-cli",
		"/.lark-cli-bots",
		"/Library/Application Support/lark-cli",
	};
	AUTO(auto_free) char *store = NULL;
	int r = add_once(list, input->botmux_home, err);

	if (r == 0 && is_given(input->default_botmux_home))
		r = add_once(list, input->default_botmux_home, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(below_home); i++)
		r = add_below(list, input->home_dir, below_home[i], err);
	if (r < 0 || input->platform != PLATFORM_LINUX)
		return r;

	r = add_below(list, input->home_dir, "/.local/share/lark-cli", err);
	if (r < 0)
		return r;
	store = lark_store_path(input->home_dir, input->lark_cli_linux_store);
	if (store)
		return add_once(list, store, err);
	return errno == ENOMEM ? error_set(err, ERR_NOMEM, 0, "no memory for a path") : 0;
}

static bool covered(const struct string_list *roots, const char *normal_path)
{
	for (size_t i = 0; i < roots->count; i++)
		if (path_covers(roots->items[i], normal_path))
			return true;
	return false;
}

static int check_external(const struct string_list *roots, const char *loaded_bots_config,
			  struct error *err)
{
	AUTO(auto_free) char *config = NULL;
	int r = 0;

	if (!is_given(loaded_bots_config))
		return 0;
	r = normalize(&config, loaded_bots_config, err);
	if (r < 0 || !config || covered(roots, config))
		return r;
	return error_set(err, ERR_EXTERNAL_BOTS_CONFIG, 0,
			 "the loaded configuration '%s' lies outside every authority root", config);
}

int authority_roots(struct string_list *ret_roots, const struct authority_input *input,
		    struct error *err)
{
	AUTO(string_list_deinit) struct string_list written = { .items = NULL };
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	int r = collect_roots(&written, input, err);

	for (size_t i = 0; r == 0 && i < written.count; i++) {
		AUTO(auto_free) char *root = NULL;

		r = normalize(&root, written.items[i], err);
		if (r == 0 && root)
			r = string_list_add(&roots, root, err);
	}
	if (r == 0)
		r = check_external(&roots, input->loaded_bots_config, err);
	if (r < 0)
		return r;
	*ret_roots = roots;
	roots = (struct string_list){ .items = NULL };
	return 0;
}

bool authority_restricts(const struct string_list *roots, const char *bot_home,
			 const char *normal_path)
{
	bool in_own_home = path_covers(bot_home, normal_path);

	for (size_t i = 0; i < roots->count; i++) {
		const char *root = roots->items[i];
		bool home_is_inside = strcmp(root, bot_home) != 0 && path_covers(root, bot_home);

		if (path_covers(root, normal_path) && !(home_is_inside && in_own_home))
			return true;
	}
	return false;
}

int authority_filter(struct string_list *ret_kept, struct string_list *suppressed,
		     const struct string_list *paths, const struct string_list *roots,
		     const char *bot_home, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < paths->count; i++) {
		AUTO(auto_free) char *normal = NULL;

		r = normalize(&normal, paths->items[i], err);
		if (r < 0 || !normal)
			continue;
		if (authority_restricts(roots, bot_home, normal))
			r = string_list_add(suppressed, normal, err);
		else
			r = string_list_add(ret_kept, paths->items[i], err);
	}
	return r;
}

int authority_check_working_dir(const struct string_list *roots, const char *bot_home,
				const char *working_dir, struct error *err)
{
	AUTO(auto_free) char *normal = NULL;
	int r = normalize(&normal, working_dir, err);

	if (r < 0 || !normal || !authority_restricts(roots, bot_home, normal))
		return r;
	return error_set(err, ERR_WORKING_DIR_IS_AUTHORITY, 0,
			 "the working directory '%s' lies in an authority root", normal);
}

int authority_check_config(const struct policy *policy, const char *loaded_bots_config,
			   struct error *err)
{
	AUTO(auto_free) char *config = NULL;
	int r = 0;

	if (!is_given(loaded_bots_config))
		return 0;
	r = normalize(&config, loaded_bots_config, err);
	if (r < 0 || !config)
		return r;
	if (policy_access(policy, config).access == ACCESS_DENY) {
		config[path_parent_length(config, strlen(config))] = '\0';
		if (policy_access(policy, config).access == ACCESS_DENY)
			return 0;
	}
	return error_set(err, ERR_BOTS_CONFIG_IN_CARVEOUT, 0,
			 "a grant opens '%s', which must stay denied", config);
}
