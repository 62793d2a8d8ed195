/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/gitfiles.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/protected.h"

/* The text of a small regular file, or NULL. */
static char *read_text(const char *dir, const char *name)
{
	AUTO(auto_free) char *path = path_join(dir, name);
	AUTO(auto_free) char *text = malloc(PROTECTED_FILE_BYTES + 1);
	AUTO(auto_close) int fd = -1;
	struct stat st;
	size_t size = 0;

	if (path == NULL || text == NULL)
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	while (size < PROTECTED_FILE_BYTES) {
		ssize_t n = read(fd, text + size, PROTECTED_FILE_BYTES - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	text[size] = '\0';
	return strlen(text) == size ? steal_ptr(&text) : NULL;
}

static void cut_line_end(char *text)
{
	text[strcspn(text, "\r\n")] = '\0';
}

/* Where PATH leads from DIR, canonical, when it is a directory; else NULL. */
static char *directory_at(const char *dir, const char *path, struct walk *walk)
{
	AUTO(auto_free) char *full = path[0] == '/' ? strdup(path) : path_join(dir, path);

	if (full == NULL || path[0] == '\0' || strlen(full) > LIMIT_PATH_BYTES ||
	    walk_path(walk, full, NULL) < 0 || walk->type != NODE_DIRECTORY)
		return NULL;
	return strdup(walk->real);
}

static bool leads_to(const char *dir, const char *path, const char *expected, struct walk *walk)
{
	AUTO(auto_free) char *full = path[0] == '/' ? strdup(path) : path_join(dir, path);

	return full != NULL && path[0] != '\0' && strlen(full) <= LIMIT_PATH_BYTES &&
	       walk_path(walk, full, NULL) == 0 && strcmp(walk->real, expected) == 0;
}

/* ---- git's configuration ---------------------------------------------------------------- */

/* One value from TEXT on: quotes, escapes, comments, continued lines. Returns what follows it. */
static const char *config_value(const char *text, char *ret_value)
{
	char *out = ret_value;
	char *kept = ret_value; /* the end without trailing blanks */
	bool quoted = false;

	while (*text == ' ' || *text == '\t')
		text++;
	for (; *text != '\0' && (*text != '\n' || quoted); text++) {
		if (!quoted && (*text == '#' || *text == ';')) {
			text += strcspn(text, "\n");
			break;
		}
		if (*text == '"') {
			quoted = !quoted;
			kept = out;
			continue;
		}
		if (*text == '\\' && text[1] != '\0') {
			text++;
			if (*text == '\n')
				continue;
			*out = *text;
			if (*text == 'n')
				*out = '\n';
			else if (*text == 't')
				*out = '\t';
			out++;
			kept = out;
			continue;
		}
		*out++ = *text;
		if (quoted || !isspace((unsigned char)*text))
			kept = out;
	}
	*kept = '\0';
	return text;
}

/* `[section]` or `[section "sub"]` at TEXT: whether it is SECTION without a subsection. */
static bool is_section(const char *text, const char *section)
{
	size_t length = strlen(section);
	const char *at = text + 1;

	at += strspn(at, " \t");
	if (strncasecmp(at, section, length) != 0)
		return false;
	at += length;
	at += strspn(at, " \t");
	return *at == ']';
}

char *gitfiles_config_value(const char *text, const char *section, const char *key)
{
	AUTO(auto_free) char *value = malloc(strlen(text) + 1);
	AUTO(auto_free) char *found = NULL;
	bool inside = false;

	if (value == NULL)
		return NULL;
	while (*text != '\0') {
		size_t length;

		text += strspn(text, " \t\r\n");
		if (*text == '[') {
			inside = is_section(text, section);
			text += strcspn(text, "]\n");
			text += *text == ']';
			continue;
		}
		if (*text == '#' || *text == ';') {
			text += strcspn(text, "\n");
			continue;
		}
		length = strcspn(text, " \t\r\n=#;[");
		if (length == 0) {
			text += *text != '\0';
			continue;
		}
		if (text[length + strspn(text + length, " \t")] != '=') {
			text += length; /* a key without a value is true; none of ours is one */
			continue;
		}
		if (inside && length == strlen(key) && strncasecmp(text, key, length) == 0) {
			text += length + strspn(text + length, " \t") + 1;
			text = config_value(text, value);
			free(found);
			found = strdup(value);
		} else {
			text += length + strspn(text + length, " \t") + 1;
			text = config_value(text, value);
		}
	}
	return steal_ptr(&found);
}

static char *value_in(const char *dir, const char *name, const char *key)
{
	AUTO(auto_free) char *text = dir != NULL ? read_text(dir, name) : NULL;

	return text != NULL ? gitfiles_config_value(text, "core", key) : NULL;
}

/* ---- hooks ------------------------------------------------------------------------------ */

/* core.hooksPath as git finds it: the worktree's file, the repository's, the user's. */
static char *hooks_path(const struct gitfiles *git, const char *home)
{
	const char *common = git->common_dir != NULL ? git->common_dir : git->git_dir;
	char *value = value_in(git->git_dir, "config.worktree", "hookspath");

	if (value == NULL)
		value = value_in(common, "config", "hookspath");
	if (value == NULL && home[0] == '/')
		value = value_in(home, ".gitconfig", "hookspath");
	if (value == NULL && home[0] == '/')
		value = value_in(home, ".config/git/config", "hookspath");
	return value;
}

static char *find_hooks(const struct gitfiles *git, const char *dir, const char *home,
			struct walk *walk)
{
	AUTO(auto_free) char *value = hooks_path(git, home);

	if (value == NULL)
		return NULL;
	if (value[0] == '~' && value[1] == '/' && home[0] == '/')
		return directory_at(home, value + 2, walk);
	return directory_at(dir, value, walk);
}

/* ---- the repository --------------------------------------------------------------------- */

/* A `.git` file: `gitdir: PATH`, from the directory that it is in. */
static char *pointed_to(const char *dir, struct walk *walk)
{
	static const char key[] = "gitdir:";
	AUTO(auto_free) char *text = read_text(dir, ".git");
	const char *path;

	if (text == NULL || strncmp(text, key, strlen(key)) != 0)
		return NULL;
	cut_line_end(text);
	path = text + strlen(key);
	return directory_at(dir, path + strspn(path, " \t"), walk);
}

/* Whether the directory that a `.git` file points to says so itself. */
static bool find_points_back(const struct gitfiles *git, const char *dir, struct walk *walk)
{
	AUTO(auto_free) char *gitdir = read_text(git->git_dir, "gitdir");
	AUTO(auto_free) char *worktree = NULL;

	if (gitdir != NULL) {
		cut_line_end(gitdir);
		return leads_to(git->git_dir, gitdir, git->dot_git, walk);
	}
	worktree = value_in(git->git_dir, "config", "worktree");
	return worktree != NULL && leads_to(git->git_dir, worktree, dir, walk);
}

char *gitfiles_worktree(const char *git_dir, struct walk *walk)
{
	AUTO(auto_free) char *worktree = value_in(git_dir, "config", "worktree");

	return worktree != NULL ? directory_at(git_dir, worktree, walk) : NULL;
}

static char *find_common_dir(const struct gitfiles *git, struct walk *walk)
{
	AUTO(auto_free) char *text = read_text(git->git_dir, "commondir");
	AUTO(auto_free) char *dir = NULL;

	if (text == NULL)
		return NULL;
	cut_line_end(text);
	dir = directory_at(git->git_dir, text, walk);
	return dir != NULL && strcmp(dir, git->git_dir) != 0 ? steal_ptr(&dir) : NULL;
}

/*
 * Whether COMMON is where a linked worktree's directory always lies: COMMON/worktrees/NAME. What the
 * `commondir` file says is as easily written as the `.git` file: both may stand in a tree that a job
 * could write to and name any directory at all. To have made `worktrees/NAME` in COMMON takes the right
 * to write there.
 */
static bool is_worktree_of(const char *git_dir, const char *common)
{
	static const char name[] = "/worktrees/";
	size_t length = strlen(common);
	const char *rest = git_dir + length;

	return strncmp(git_dir, common, length) == 0 &&
	       strncmp(rest, name, sizeof(name) - 1) == 0 &&
	       strchr(rest + sizeof(name) - 1, '/') == NULL;
}

bool gitfiles_find(struct gitfiles *ret_git, const char *dir, const char *home, struct walk *walk)
{
	struct gitfiles git = { 0 };
	enum node_type type;

	git.dot_git = path_join(dir, ".git");
	if (git.dot_git == NULL || strlen(git.dot_git) > LIMIT_PATH_BYTES ||
	    walk_path(walk, git.dot_git, NULL) < 0) {
		gitfiles_deinit(&git);
		return false;
	}
	type = walk->type;
	git.is_file = type == NODE_FILE;
	if (type == NODE_DIRECTORY)
		git.git_dir = strdup(walk->real);
	else if (type == NODE_FILE)
		git.git_dir = pointed_to(dir, walk);
	if (git.git_dir == NULL) {
		gitfiles_deinit(&git);
		return false;
	}
	git.common_dir = find_common_dir(&git, walk);
	git.hooks_dir = find_hooks(&git, dir, home, walk);
	git.points_back = git.is_file && find_points_back(&git, dir, walk) &&
			  (git.common_dir == NULL || is_worktree_of(git.git_dir, git.common_dir));
	*ret_git = git;
	return true;
}

void gitfiles_deinit(struct gitfiles *git)
{
	if (git == NULL)
		return;
	free(git->dot_git);
	free(git->git_dir);
	free(git->common_dir);
	free(git->hooks_dir);
	memset(git, 0, sizeof(*git));
}
