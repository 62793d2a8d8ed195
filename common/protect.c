/* SPDX-License-Identifier: Apache-2.0 */
#include "common/protect.h"

#include <string.h>

#include "common/scope.h"

#define ORIGIN_NAME "protected name"
#define ORIGIN_WORKTREE "the repository of this worktree"

static const struct protected_name table[] = {
	/* Start-up files of shells and what they read; tools that run code on entering a directory. */
	{ PROTECT_TREE, ".bashrc", false, false, false },
	{ PROTECT_TREE, ".bash_profile", false, false, false },
	{ PROTECT_TREE, ".bash_login", false, false, false },
	{ PROTECT_TREE, ".bash_logout", false, false, false },
	{ PROTECT_TREE, ".bash_aliases", false, false, false },
	{ PROTECT_TREE, ".profile", false, false, false },
	{ PROTECT_TREE, ".zshrc", false, false, false },
	{ PROTECT_TREE, ".zshenv", false, false, false },
	{ PROTECT_TREE, ".zprofile", false, false, false },
	{ PROTECT_TREE, ".zlogin", false, false, false },
	{ PROTECT_TREE, ".zlogout", false, false, false },
	{ PROTECT_TREE, ".kshrc", false, false, false },
	{ PROTECT_TREE, ".cshrc", false, false, false },
	{ PROTECT_TREE, ".tcshrc", false, false, false },
	{ PROTECT_TREE, ".login", false, false, false },
	{ PROTECT_TREE, ".envrc", false, false, false },
	{ PROTECT_TREE, ".direnvrc", false, false, false },

	/* Editors: tasks, launch configurations, recommended extensions. */
	{ PROTECT_TREE, ".vscode", false, false, false },
	{ PROTECT_TREE, ".idea", false, false, false },
	{ PROTECT_TREE, ".zed", false, false, false },
	{ PROTECT_TREE, ".fleet", false, false, false },
	{ PROTECT_TREE, ".exrc", false, false, false },
	{ PROTECT_TREE, ".nvimrc", false, false, false },
	{ PROTECT_TREE, ".nvim.lua", false, false, false },
	{ PROTECT_TREE, ".vimrc", false, false, false },
	{ PROTECT_TREE, ".dir-locals.el", false, false, false },
	{ PROTECT_TREE, ".devcontainer", false, false, false },

	/* Coding agents: servers they start, hooks and commands they run. */
	{ PROTECT_TREE, ".mcp.json", false, false, false },
	{ PROTECT_TREE, ".claude/settings.json", false, false, false },
	{ PROTECT_TREE, ".claude/settings.local.json", false, false, false },
	{ PROTECT_TREE, ".claude/hooks", false, false, false },
	{ PROTECT_TREE, ".claude/commands", false, false, false },
	{ PROTECT_TREE, ".claude/agents", false, false, false },
	{ PROTECT_TREE, ".claude/skills", false, false, false },
	{ PROTECT_TREE, ".codex/config.toml", false, false, false },
	{ PROTECT_TREE, ".codex/hooks", false, false, false },
	{ PROTECT_TREE, ".codex/hooks.json", false, false, false },
	{ PROTECT_TREE, ".codex/rules", false, false, false },
	{ PROTECT_TREE, ".gemini/settings.json", false, false, false },
	{ PROTECT_TREE, ".gemini/commands", false, false, false },
	{ PROTECT_TREE, ".gemini/extensions", false, false, false },
	{ PROTECT_TREE, ".cursor/mcp.json", false, false, false },
	{ PROTECT_TREE, ".cursor/hooks.json", false, false, false },
	{ PROTECT_TREE, ".cursor/hooks", false, false, false },
	{ PROTECT_TREE, ".cursor/commands", false, false, false },
	{ PROTECT_TREE, ".github/hooks", false, false, false },
	{ PROTECT_TREE, ".copilot", false, false, false },
	{ PROTECT_TREE, ".aider.conf.yml", false, false, false },
	{ PROTECT_TREE, ".continue", false, false, false },
	{ PROTECT_TREE, ".windsurf", false, false, false },
	{ PROTECT_TREE, ".opencode", false, false, false },
	{ PROTECT_TREE, "opencode.json", false, false, false },

	/* A repository where none was. One that is there is told of by the names in it. */
	{ PROTECT_TREE, ".git", false, false, true },

	/* Where submodules come from. */
	{ PROTECT_TREE, ".gitmodules", false, false, false },

	/* A home directory is all of the above and this. */
	{ PROTECT_HOME, ".gitconfig", true, false, false },
	{ PROTECT_HOME, ".config/git", true, false, false },
	{ PROTECT_HOME, ".config/fish", false, false, false },
	{ PROTECT_HOME, ".config/autostart", false, false, false },
	{ PROTECT_HOME, ".config/systemd", false, false, false },
	{ PROTECT_HOME, ".config/environment.d", false, false, false },
	{ PROTECT_HOME, ".config/direnv", false, false, false },
	{ PROTECT_HOME, ".config/nvim", false, false, false },
	{ PROTECT_HOME, ".config/zed", false, false, false },
	{ PROTECT_HOME, ".vim", false, false, false },
	{ PROTECT_HOME, ".emacs", false, false, false },
	{ PROTECT_HOME, ".emacs.d", false, false, false },
	{ PROTECT_HOME, ".config/emacs", false, false, false },
	{ PROTECT_HOME, ".tmux.conf", false, false, false },
	{ PROTECT_HOME, ".config/tmux", false, false, false },
	{ PROTECT_HOME, ".inputrc", false, false, false },
	{ PROTECT_HOME, ".pam_environment", false, false, false },
	{ PROTECT_HOME, ".xprofile", false, false, false },
	{ PROTECT_HOME, ".xinitrc", false, false, false },
	{ PROTECT_HOME, ".xsession", false, false, false },
	{ PROTECT_HOME, ".xsessionrc", false, false, false },
	{ PROTECT_HOME, ".forward", false, false, false },
	{ PROTECT_HOME, ".gdbinit", false, false, false },
	{ PROTECT_HOME, ".pythonrc", false, false, false },
	{ PROTECT_HOME, ".local/bin", false, false, false },
	{ PROTECT_HOME, "bin", false, false, false },
	{ PROTECT_HOME, ".local/share/applications", false, false, false },
	{ PROTECT_HOME, ".local/share/systemd", false, false, false },

	/* Of a repository: programs and settings that git runs or obeys. */
	{ PROTECT_GIT_COMMON, "hooks", false, true, false },
	{ PROTECT_GIT_COMMON, "config", true, false, false },
	{ PROTECT_GIT_COMMON, "modules", false, true, true },
	{ PROTECT_GIT_DIR, "config.worktree", true, true, false },
	{ PROTECT_GIT_DIR, "commondir", false, true, false },
	{ PROTECT_GIT_DIR, "gitdir", false, true, false },
};

const struct protected_name *protected_names(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(table);
	return table;
}

static int add_rule(struct rule_list *candidates, const char *path, enum access access,
		    enum rule_source source, const char *origin, enum node_type type,
		    struct error *err)
{
	int r = rule_list_append(candidates, path, access, source, origin, err);

	if (r == 0) {
		candidates->rules[candidates->count - 1].type = type;
		/* Where a link or a `.git` file leads is in the job's hands: no reason to show it. */
		candidates->rules[candidates->count - 1].lowers = access == ACCESS_READ_ONLY;
		/* Canonical when it was looked at. A job may meanwhile have put a link there. */
		candidates->rules[candidates->count - 1].exact = access == ACCESS_READ_WRITE;
	}
	return r;
}

static int add_found(struct rule_list *candidates, const struct protect_found *found,
		     struct error *err)
{
	int r = add_rule(candidates, found->path, ACCESS_READ_ONLY, RULE_USER, ORIGIN_NAME,
			 found->type, err);
	struct rule *rule = NULL;

	if (r < 0 || !found->real || strcmp(found->real, found->path) == 0)
		return r;
	rule = &candidates->rules[candidates->count - 1];
	rule->real = strdup(found->real);
	rule->link = strdup(found->path);
	if (!rule->real || !rule->link)
		return error_set(err, ERR_NOMEM, 0, "no memory for a rule");
	return 0;
}

/* A `.git` that is a directory needs nothing by itself: what it holds is among the names found. */
static int add_repository(struct rule_list *candidates, const struct protect_repository *repository,
			  struct error *err)
{
	const char *common = repository->common_dir ? repository->common_dir : repository->git_dir;
	int r = 0;

	if (repository->is_file) {
		r = add_rule(candidates, repository->dot_git, ACCESS_READ_ONLY, RULE_USER,
			     ORIGIN_NAME, NODE_FILE, err);
		if (r == 0 && repository->points_back)
			r = add_rule(candidates, common, ACCESS_READ_WRITE, RULE_INTERNAL,
				     ORIGIN_WORKTREE, NODE_DIRECTORY, err);
		if (r == 0 && repository->points_back && common != repository->git_dir)
			r = add_rule(candidates, repository->git_dir, ACCESS_READ_WRITE,
				     RULE_INTERNAL, ORIGIN_WORKTREE, NODE_DIRECTORY, err);
	}
	if (r == 0 && repository->hooks_dir)
		r = add_rule(candidates, repository->hooks_dir, ACCESS_READ_ONLY, RULE_USER,
			     ORIGIN_NAME, NODE_DIRECTORY, err);
	return r;
}

void protect_watch_deinit(struct protect_watch *watch)
{
	if (!watch)
		return;
	string_list_deinit(&watch->report);
	string_list_deinit(&watch->quarantine);
	string_list_deinit(&watch->entries);
}

static int add_watch(struct protect_watch *watch, const struct protected_name *name,
		     const struct protect_found *found, struct error *err)
{
	struct string_list *list = &watch->report;

	if (!name->quarantine && found->type != NODE_ABSENT)
		return 0;
	if (name->quarantine)
		list = found->type == NODE_ABSENT ? &watch->quarantine : &watch->entries;
	/* A link leads where a job may have chosen; what is there is not ours to tidy. */
	if (list == &watch->entries && (found->type != NODE_DIRECTORY || found->real))
		return 0;
	return string_list_add(list, found->path, err);
}

int protect_rules(struct rule_list *candidates, const struct protect_facts *facts,
		  struct protect_watch *ret_watch, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < facts->found_count; i++) {
		const struct protect_found *found = &facts->found[i];
		const struct protected_name *name = &table[found->name % ARRAY_SIZE(table)];

		if (name->git_config && facts->allow_git_config)
			continue;
		if (found->type != NODE_ABSENT && !name->watch_only)
			r = add_found(candidates, found, err);
		else if (ret_watch)
			r = add_watch(ret_watch, name, found, err);
	}
	for (size_t i = 0; r == 0 && i < facts->repository_count; i++)
		r = add_repository(candidates, &facts->repositories[i], err);
	return r;
}
