/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/protected.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/gitfiles.h"
#include "daemon/broker/walk.h"

/* What comes next in an answer. */
enum { PROTECTED_TAG_FOUND = 1, PROTECTED_TAG_REPOSITORY };

/* ---- asking and reading the answer ------------------------------------------------------ */

void protected_ask(struct buf *out, const char *home, const char *const *trees, size_t count)
{
	pack_string(out, home);
	pack_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		pack_string(out, trees[i]);
}

void protected_deinit(struct protected_facts *facts)
{
	if (facts == NULL)
		return;
	free(facts->found);
	free(facts->repositories);
	memset(facts, 0, sizeof(*facts));
}

static const char *string_or_null(struct unpack *in)
{
	const char *text = unpack_string(in);

	return text[0] != '\0' ? text : NULL;
}

static void unpack_found(struct unpack *in, struct protect_found *ret_found)
{
	size_t names;
	uint32_t type;

	(void)protected_names(&names);
	ret_found->name = unpack_u32(in);
	ret_found->path = unpack_string(in);
	ret_found->real = string_or_null(in);
	type = unpack_u32(in);
	ret_found->type = type <= NODE_OTHER ? (enum node_type)type : NODE_UNKNOWN;
	if (ret_found->name >= names || ret_found->path[0] != '/')
		in->bad = true;
}

static void unpack_repository(struct unpack *in, struct protect_repository *ret_repository)
{
	ret_repository->dot_git = unpack_string(in);
	ret_repository->is_file = unpack_u32(in) != 0;
	ret_repository->git_dir = unpack_string(in);
	ret_repository->common_dir = string_or_null(in);
	ret_repository->hooks_dir = string_or_null(in);
	ret_repository->points_back = unpack_u32(in) != 0;
	if (ret_repository->dot_git[0] != '/' || ret_repository->git_dir[0] != '/')
		in->bad = true;
}

int protected_unpack(struct protected_facts *ret_facts, const void *values, size_t size,
		     struct error *err)
{
	struct unpack in = UNPACK_INIT(values, size);
	uint32_t found = 0;
	uint32_t repositories = 0;
	uint32_t tag;

	memset(ret_facts, 0, sizeof(*ret_facts));
	/* Every record has more bytes than it takes here. */
	ret_facts->found = calloc(size / 16 + 1, sizeof(*ret_facts->found));
	ret_facts->repositories = calloc(size / 16 + 1, sizeof(*ret_facts->repositories));
	if (ret_facts->found == NULL || ret_facts->repositories == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "protected names");
	while ((tag = unpack_u32(&in)) != 0 && !in.bad) {
		if (tag == PROTECTED_TAG_FOUND)
			unpack_found(&in, &ret_facts->found[found++]);
		else if (tag == PROTECTED_TAG_REPOSITORY)
			unpack_repository(&in, &ret_facts->repositories[repositories++]);
		else
			in.bad = true;
	}
	ret_facts->incomplete = unpack_u32(&in) != 0;
	ret_facts->facts.found = ret_facts->found;
	ret_facts->facts.found_count = found;
	ret_facts->facts.repositories = ret_facts->repositories;
	ret_facts->facts.repository_count = repositories;
	return unpack_end(&in, err);
}

/* ---- in the child ----------------------------------------------------------------------- */

struct seen {
	dev_t dev;
	ino_t ino;
};

/*
 * @home     canonical, when it is one of the trees or in one; else ""
 * @seen     directories looked into, so that overlapping trees are looked at once
 * @gits     repositories whose inner ones were looked at, so that they may name one another
 * @entries  read so far
 * @dev      of the tree's root
 * @result   the first failure that must not be passed over
 */
struct scan {
	struct buf *out;
	struct error *err;
	int result;
	const char *home;
	struct walk walk;
	struct seen seen[PROTECTED_DIRS_MAX];
	size_t seen_count;
	struct seen gits[PROTECTED_GITS_MAX];
	size_t git_count;
	size_t entries;
	dev_t dev;
	bool incomplete;
	bool first_bytes[256]; /* with which some protected name begins */
};

static void put_found(struct scan *scan, size_t name, const char *path, const char *real,
		      enum node_type type)
{
	pack_u32(scan->out, PROTECTED_TAG_FOUND);
	pack_u32(scan->out, (uint32_t)name);
	pack_string(scan->out, path);
	pack_string(scan->out, real != NULL ? real : "");
	pack_u32(scan->out, type);
}

/* What is at DIR/REL, which may be absent: then it is to be watched. */
static void look(struct scan *scan, size_t name, const char *dir, const char *rel)
{
	AUTO(auto_free) char *path = path_join(dir, rel);
	struct walk *walk = &scan->walk;
	int r;

	if (path == NULL || strlen(path) > LIMIT_PATH_BYTES)
		return;
	r = walk_path(walk, path, scan->err);
	if (r < 0) {
		/* A link that leads too far for a path leads nowhere. */
		if (r != -ERR_INVALID && scan->result == 0)
			scan->result = r;
		return;
	}
	if (walk->link != NULL)
		put_found(scan, name, walk->link, walk->real, walk->type);
	else
		put_found(scan, name, walk->real, NULL, walk->type);
}

static void look_scope(struct scan *scan, enum protect_scope scope, const char *dir)
{
	size_t count;
	const struct protected_name *names = protected_names(&count);

	for (size_t i = 0; i < count; i++) {
		if (names[i].scope == scope)
			look(scan, i, dir, names[i].name);
	}
}

static void look_inside(struct scan *scan, const char *common_dir);

/* A `.git` in the canonical directory DIR. */
static void look_repository(struct scan *scan, const char *dir)
{
	struct gitfiles git = { 0 };

	if (!gitfiles_find(&git, dir, scan->home, &scan->walk))
		return;
	pack_u32(scan->out, PROTECTED_TAG_REPOSITORY);
	pack_string(scan->out, git.dot_git);
	pack_u32(scan->out, git.is_file);
	pack_string(scan->out, git.git_dir);
	pack_string(scan->out, git.common_dir != NULL ? git.common_dir : "");
	pack_string(scan->out, git.hooks_dir != NULL ? git.hooks_dir : "");
	pack_u32(scan->out, git.points_back);
	look_scope(scan, PROTECT_GIT_DIR, git.git_dir);
	look_scope(scan, PROTECT_GIT_COMMON, git.common_dir != NULL ? git.common_dir : git.git_dir);
	look_inside(scan, git.common_dir != NULL ? git.common_dir : git.git_dir);
	gitfiles_deinit(&git);
}

/* A submodule's repository: its own names, and the `.git` in the tree that it belongs to. */
static void look_module(struct scan *scan, const char *git_dir)
{
	AUTO(auto_free) char *worktree = gitfiles_worktree(git_dir, &scan->walk);

	look_scope(scan, PROTECT_GIT_COMMON, git_dir);
	look_scope(scan, PROTECT_GIT_DIR, git_dir);
	look_inside(scan, git_dir);
	if (worktree != NULL)
		look_repository(scan, worktree);
}

static bool has_head(const char *dir)
{
	AUTO(auto_free) char *head = path_join(dir, "HEAD");

	return head != NULL && faccessat(AT_FDCWD, head, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Each directory in DIR, of linked worktrees or, with a name that may hold slashes, of submodules: git
 * outside obeys them wherever their trees are.
 */
static void look_git_dirs(struct scan *scan, const char *dir, bool modules, unsigned depth)
{
	int fd = walk_open(dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (stream == NULL) {
		auto_close(&fd);
		return;
	}
	for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
		AUTO(auto_free) char *path = path_join(dir, entry->d_name);

		if (++scan->entries > PROTECTED_ENTRIES_MAX) {
			scan->incomplete = true;
			break;
		}
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0 || path == NULL ||
		    strlen(path) > LIMIT_PATH_BYTES)
			continue;
		if (!modules)
			look_scope(scan, PROTECT_GIT_DIR, path);
		else if (has_head(path))
			look_module(scan, path);
		else if (depth < PROTECTED_DEPTH_MAX)
			look_git_dirs(scan, path, true, depth + 1);
		else
			scan->incomplete = true;
	}
	(void)closedir(stream);
}

/* The repositories that belong to the one in COMMON_DIR. */
static void look_inside(struct scan *scan, const char *common_dir)
{
	AUTO(auto_free) char *worktrees = path_join(common_dir, "worktrees");
	AUTO(auto_free) char *modules = path_join(common_dir, "modules");
	struct stat st;

	if (worktrees == NULL || modules == NULL || stat(common_dir, &st) < 0)
		return;
	for (size_t i = 0; i < scan->git_count; i++) {
		if (scan->gits[i].dev == st.st_dev && scan->gits[i].ino == st.st_ino)
			return;
	}
	if (scan->git_count == PROTECTED_GITS_MAX) {
		scan->incomplete = true;
		return;
	}
	scan->gits[scan->git_count].dev = st.st_dev;
	scan->gits[scan->git_count++].ino = st.st_ino;
	look_git_dirs(scan, worktrees, false, 0);
	look_git_dirs(scan, modules, true, 0);
}

static bool is_new(struct scan *scan, int fd, bool is_root)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (is_root)
		scan->dev = st.st_dev;
	else if (st.st_dev != scan->dev)
		return false;
	for (size_t i = 0; i < scan->seen_count; i++) {
		if (scan->seen[i].dev == st.st_dev && scan->seen[i].ino == st.st_ino)
			return false;
	}
	if (scan->seen_count == PROTECTED_DIRS_MAX) {
		scan->incomplete = true;
		return is_root;
	}
	scan->seen[scan->seen_count].dev = st.st_dev;
	scan->seen[scan->seen_count++].ino = st.st_ino;
	return true;
}

/*
 * Which protected names of SCOPE begin with ENTRY: PRESENT[I] for the I-th name, so that a directory's
 * names cost one pass over its entries and not a look-up each.
 */
static void mark_names(const struct scan *scan, const char *entry, enum protect_scope scope,
		       bool *present)
{
	size_t count;
	const struct protected_name *names = protected_names(&count);
	size_t length = strlen(entry);

	if (!scan->first_bytes[(unsigned char)entry[0]])
		return;
	for (size_t i = 0; i < count; i++) {
		if (names[i].scope == scope && strncmp(names[i].name, entry, length) == 0 &&
		    (names[i].name[length] == '\0' || names[i].name[length] == '/'))
			present[i] = true;
	}
}

/* In a tree's root what is absent counts too: it must not appear. Deeper only what is there. */
static void put_names(struct scan *scan, const char *dir, enum protect_scope scope, bool is_root,
		      const bool *present)
{
	size_t count;
	const struct protected_name *names = protected_names(&count);

	for (size_t i = 0; i < count; i++) {
		if (names[i].scope != scope)
			continue;
		if (present[i]) {
			look(scan, i, dir, names[i].name);
		} else if (is_root) {
			AUTO(auto_free) char *path = path_join(dir, names[i].name);

			if (path != NULL && strlen(path) <= LIMIT_PATH_BYTES)
				put_found(scan, i, path, NULL, NODE_ABSENT);
		}
	}
}

static bool worth_entering(const struct dirent *entry)
{
	return entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
	       strcmp(entry->d_name, "node_modules") != 0;
}

static int look_into(struct scan *scan, const char *dir, unsigned depth, struct string_list *below)
{
	size_t count;
	AUTO(auto_free) bool *present = NULL;
	bool has_git = false;
	DIR *stream;
	int fd = walk_open(dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	int r = 0;

	(void)protected_names(&count);
	present = calloc(count + 1, sizeof(*present));
	if (fd < 0 || present == NULL || !is_new(scan, fd, depth == 0)) {
		auto_close(&fd);
		return present == NULL ? error_set(scan->err, ERR_NOMEM, ENOMEM, "look") : 0;
	}
	stream = fdopendir(fd);
	if (stream == NULL) {
		(void)close(fd);
		return 0;
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream)) != NULL;) {
		if (++scan->entries > PROTECTED_ENTRIES_MAX) {
			scan->incomplete = true;
			/* A job may have filled the directory: then each name costs a look-up. */
			for (size_t i = 0; i < count && depth == 0; i++)
				present[i] = true;
			has_git = has_git || depth == 0;
			break;
		}
		mark_names(scan, entry->d_name, PROTECT_TREE, present);
		if (strcmp(dir, scan->home) == 0)
			mark_names(scan, entry->d_name, PROTECT_HOME, present);
		if (strcmp(entry->d_name, ".git") == 0)
			has_git = true;
		if (depth < PROTECTED_DEPTH_MAX && worth_entering(entry)) {
			AUTO(auto_free) char *path = path_join(dir, entry->d_name);

			if (path != NULL && strlen(path) <= LIMIT_PATH_BYTES)
				r = string_list_add(below, path, scan->err);
		}
	}
	(void)closedir(stream);
	put_names(scan, dir, PROTECT_TREE, depth == 0, present);
	if (strcmp(dir, scan->home) == 0)
		put_names(scan, dir, PROTECT_HOME, true, present);
	if (has_git)
		look_repository(scan, dir);
	return r;
}

/* Level by level, so that the bound cuts off what is deepest. */
static int scan_tree(struct scan *scan, const char *root)
{
	struct string_list level = { 0 };
	int r = string_list_add(&level, root, scan->err);

	for (unsigned depth = 0; r == 0 && level.count > 0; depth++) {
		struct string_list below = { 0 };

		for (size_t i = 0; i < level.count && r == 0; i++)
			r = look_into(scan, level.items[i], depth, &below);
		string_list_deinit(&level);
		level = below;
	}
	string_list_deinit(&level);
	return r;
}

static void note_first_bytes(struct scan *scan)
{
	size_t count;
	const struct protected_name *names = protected_names(&count);

	for (size_t i = 0; i < count; i++)
		scan->first_bytes[(unsigned char)names[i].name[0]] = true;
}

int protected_answer(struct unpack *in, struct buf *out, struct error *err)
{
	AUTO(auto_free) struct scan *scan = calloc(1, sizeof(*scan));
	const char *home = unpack_string(in);
	uint32_t count = unpack_u32(in);
	int r = 0;

	if (scan == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "look for protected names");
	scan->out = out;
	scan->err = err;
	scan->home = home;
	note_first_bytes(scan);
	for (uint32_t i = 0; i < count && r == 0 && !in->bad; i++) {
		const char *tree = unpack_string(in);
		AUTO(auto_free) char *root = NULL;

		if (in->bad)
			break;
		r = walk_path(&scan->walk, tree, err);
		if (r < 0 || scan->walk.type != NODE_DIRECTORY)
			continue;
		root = strdup(scan->walk.real);
		r = root != NULL ? scan_tree(scan, root)
				 : error_set(err, ERR_NOMEM, ENOMEM, "look for protected names");
		if (r == 0)
			r = scan->result;
	}
	pack_u32(out, 0);
	pack_u32(out, scan->incomplete);
	walk_deinit(&scan->walk);
	return r;
}
