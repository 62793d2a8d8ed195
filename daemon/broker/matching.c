/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/matching.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/expression.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/walk.h"

enum { TAG_DENY = 1, TAG_WRITE };

static void pack_list(struct buf *out, const struct string_list *list)
{
	pack_u32(out, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		pack_string(out, list->items[i]);
}

void matching_ask(struct buf *out, const struct string_list *deny, const struct string_list *write,
		  const struct string_list *trees)
{
	pack_list(out, deny);
	pack_list(out, write);
	pack_list(out, trees);
}

int matching_unpack(struct rule_list *ret_deny, struct rule_list *ret_write, const void *values,
		    size_t size, struct error *err)
{
	struct unpack in = UNPACK_INIT(values, size);
	uint32_t tag;
	int r = 0;

	while (r == 0 && (tag = unpack_u32(&in)) != 0 && !in.bad) {
		const char *path = unpack_string(&in);
		uint32_t type = unpack_u32(&in);
		struct rule *rule;

		if (in.bad || path[0] != '/' || type > NODE_OTHER || tag > TAG_WRITE)
			return error_set(err, ERR_BAD_FRAME, 0, "a malformed answer");
		rule = rule_list_add(tag == TAG_DENY ? ret_deny : ret_write, path,
				     tag == TAG_DENY ? ACCESS_DENY : ACCESS_READ_WRITE,
				     RULE_MANDATORY, NULL, err);
		if (rule == NULL)
			return err != NULL ? -(int)err->kind : -ERR_NOMEM;
		rule->type = (enum node_type)type;
	}
	return r < 0 ? r : unpack_end(&in, err);
}

/* ---- in the child ----------------------------------------------------------------------- */

struct expression {
	regex_t regex;
	struct expression_shape shape;
	uint32_t tag;
};

struct look {
	struct buf *out;
	struct expression *expressions;
	size_t count;
	size_t nodes;
	struct string_list pending; /* directories to open, last first */
};

static int compile(struct look *look, struct unpack *in, uint32_t tag, struct error *err)
{
	uint32_t count = unpack_u32(in);

	for (uint32_t i = 0; i < count && !in->bad; i++) {
		const char *text = unpack_string(in);
		struct expression *expression = &look->expressions[look->count];
		int r;

		if (look->count == MATCHING_EXPRESSIONS_MAX)
			return error_set(err, ERR_POLICY_INVALID, 0,
					 "more than %d regular expressions",
					 MATCHING_EXPRESSIONS_MAX);
		r = expression_shape(text, &expression->shape, err);
		if (r < 0)
			return r;
		if (regcomp(&expression->regex, text, REG_EXTENDED | REG_NOSUB) != 0)
			return error_set(err, ERR_POLICY_INVALID, 0,
					 "'%s' is not a regular expression", text);
		expression->tag = tag;
		look->count++;
	}
	return 0;
}

static bool may_match_below(const struct look *look, const char *dir)
{
	for (size_t i = 0; i < look->count; i++) {
		if (expression_reaches(&look->expressions[i].shape, dir))
			return true;
	}
	return false;
}

static void match(struct look *look, const char *path, enum node_type type)
{
	uint32_t told = 0;

	for (size_t i = 0; i < look->count; i++) {
		uint32_t tag = look->expressions[i].tag;

		if ((told & (1u << tag)) ||
		    regexec(&look->expressions[i].regex, path, 0, NULL, 0) != 0)
			continue;
		told |= 1u << tag;
		pack_u32(look->out, tag);
		pack_string(look->out, path);
		pack_u32(look->out, type);
	}
}

static int look_at(struct look *look, int dir_fd, const char *name, const char *path,
		   struct error *err)
{
	struct stat st;

	if (++look->nodes > MATCHING_NODES_MAX)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "regular expressions reach more than %d files; anchor them with"
				 " '^' and a directory",
				 MATCHING_NODES_MAX);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	match(look, path, walk_node_type(st.st_mode));
	if (S_ISDIR(st.st_mode) && may_match_below(look, path))
		return string_list_add(&look->pending, path, err);
	return 0;
}

static int look_into(struct look *look, const char *dir, struct error *err)
{
	int fd = walk_open(dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	int r = 0;

	if (stream == NULL) {
		auto_close(&fd);
		/* What this user cannot list it may still open by name: that must not be missed. */
		if (errno == EACCES)
			return error_set(err, ERR_POLICY_INVALID, EACCES,
					 "regular expressions reach into '%s'", dir);
		return 0;
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(stream)) != NULL;) {
		AUTO(auto_free) char *path = NULL;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		path = path_join(dir, entry->d_name);
		if (path == NULL)
			r = error_set(err, ERR_NOMEM, ENOMEM, "look for matches");
		else if (strlen(path) <= LIMIT_PATH_BYTES)
			r = look_at(look, fd, entry->d_name, path, err);
	}
	(void)closedir(stream);
	return r;
}

static int look_at_tree(struct look *look, const char *tree, struct error *err)
{
	int r = look_at(look, AT_FDCWD, tree, tree, err);

	while (r == 0 && look->pending.count > 0) {
		AUTO(auto_free) char *dir = look->pending.items[--look->pending.count];

		r = look_into(look, dir, err);
	}
	return r;
}

int matching_answer(struct unpack *in, struct buf *out, struct error *err)
{
	struct look look = { .out = out };
	uint32_t count;
	int r;

	look.expressions = calloc(MATCHING_EXPRESSIONS_MAX, sizeof(*look.expressions));
	if (look.expressions == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "look for matches");
	r = compile(&look, in, TAG_DENY, err);
	if (r == 0)
		r = compile(&look, in, TAG_WRITE, err);
	count = unpack_u32(in);
	for (uint32_t i = 0; i < count && r == 0 && !in->bad; i++) {
		const char *tree = unpack_string(in);

		if (!in->bad)
			r = look_at_tree(&look, tree, err);
	}
	pack_u32(out, 0);
	for (size_t i = 0; i < look.count; i++)
		regfree(&look.expressions[i].regex);
	free(look.expressions);
	string_list_deinit(&look.pending);
	return r;
}
