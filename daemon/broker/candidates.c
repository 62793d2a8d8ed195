/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/candidates.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/resolver.h"

static int add(struct rule_list *list, const char *path, enum access access,
	       enum rule_source source, const char *origin, const char *where,
	       struct rule **ret_rule, struct error *err)
{
	AUTO(auto_free) char *collapsed = path_collapse(path);
	const char *why;

	if (collapsed == NULL && errno == ENOMEM)
		return error_set(err, ERR_NOMEM, ENOMEM, "rules");
	why = collapsed != NULL ? path_refusal(collapsed) : "is not absolute";
	if (why == NULL && strlen(collapsed) > LIMIT_PATH_BYTES)
		why = "is longer than a path can be";
	if (why != NULL)
		return error_set(err, ERR_POLICY_INVALID, 0, "%s: '%.256s' %s", where, path, why);
	*ret_rule = rule_list_add(list, collapsed, access, source, origin, err);
	return *ret_rule != NULL ? 0 : err != NULL ? -(int)err->kind : -ERR_NOMEM;
}

static int add_entries(struct rule_list *list, const struct path_entry_list *entries,
		       enum access access, enum rule_source source, const char *origin,
		       const char *where, struct error *err)
{
	for (size_t i = 0; i < entries->count; i++) {
		const struct path_entry *entry = &entries->items[i];
		char member[128];
		struct rule *rule;
		int r;

		(void)snprintf(member, sizeof(member), "%s.%s[%zu]", where, access_name(access), i);
		r = add(list, entry->path, access, source, origin, member, &rule, err);
		if (r < 0)
			return r;
		rule->absent = entry->absent;
		rule->optional = entry->optional;
	}
	return 0;
}

int candidates_add_paths(struct rule_list *list, const struct msg_paths *paths,
			 enum rule_source source, const char *origin, const char *where,
			 struct error *err)
{
	int r = add_entries(list, &paths->read_write, ACCESS_READ_WRITE, source, origin, where,
			    err);

	if (r == 0)
		r = add_entries(list, &paths->read_only, ACCESS_READ_ONLY, source, origin, where,
				err);
	if (r == 0)
		r = add_entries(list, &paths->deny, ACCESS_DENY, source, origin, where, err);
	return r;
}

int candidates_add_sockets(struct rule_list *list, const struct string_list *sockets,
			   enum rule_source source, const char *origin, const char *where,
			   struct error *err)
{
	for (size_t i = 0; i < sockets->count; i++) {
		char member[128];
		struct rule *rule;
		int r;

		(void)snprintf(member, sizeof(member), "%s[%zu]", where, i);
		r = add(list, sockets->items[i], ACCESS_READ_WRITE, source, origin, member, &rule,
			err);
		if (r < 0)
			return r;
		rule->optional = true;
	}
	return 0;
}

/* ---- guards ----------------------------------------------------------------------------- */

int candidates_add_guard(struct rule_list *list, const char *path, enum access access,
			 const char *note, const char *of, struct error *err)
{
	struct buf origin = BUF_INIT(LIMIT_PATH_BYTES + 64);
	struct rule *rule = NULL;

	if (buf_add_string(&origin, note) == 0 &&
	    (of == NULL || buf_printf(&origin, " %s", of) == 0))
		rule = rule_list_add(list, path, access, RULE_MANDATORY, origin.data, err);
	else
		(void)error_set(err, ERR_NOMEM, ENOMEM, "rules");
	buf_deinit(&origin);
	if (rule == NULL)
		return err != NULL ? -(int)err->kind : -ERR_NOMEM;
	rule->host = true;
	return 0;
}

static const char *place_of(const struct rule *rule)
{
	return rule->real != NULL ? rule->real : rule->path;
}

/* Whether RULE, which is no guard, makes something visible. */
static bool shows(const struct rule *rule)
{
	return rule->access == ACCESS_READ_WRITE ||
	       (rule->access == ACCESS_READ_ONLY && !rule->host && !rule->lowers);
}

static bool is_shown(const struct rule_list *list, size_t count, const char *path)
{
	size_t host = 0;
	size_t private = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rule *rule = &list->rules[i];
		const char *place = place_of(rule);
		size_t *deepest = rule->bind_source != NULL ? &private : &host;

		if (!shows(rule))
			continue;
		if (rule->bind_source == NULL && path_covers(path, place))
			return true;
		if (path_covers(place, path) && strlen(place) > *deepest)
			*deepest = strlen(place);
	}
	return host > 0 && host >= private;
}

void candidates_keep_shown(struct rule_list *list, size_t from)
{
	size_t kept = from;

	for (size_t i = from; i < list->count; i++) {
		if (is_shown(list, from, place_of(&list->rules[i])))
			list->rules[kept++] = list->rules[i];
		else
			rule_deinit(&list->rules[i]);
	}
	list->count = kept < list->count ? kept : list->count;
}

/* ---- facts ------------------------------------------------------------------------------ */

static bool is_unknown(const struct rule *rule)
{
	return rule->type == NODE_UNKNOWN;
}

void candidates_ask(const struct rule_list *list, struct buf *out)
{
	uint32_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += is_unknown(&list->rules[i]);
	pack_u32(out, count);
	for (size_t i = 0; i < list->count; i++) {
		if (is_unknown(&list->rules[i]))
			pack_string(out, list->rules[i].path);
	}
}

static int replace(char **text, const char *value, size_t size, struct error *err)
{
	free(*text);
	*text = strndup(value, size);
	return *text != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "rules");
}

static bool is_asked_for(const struct rule *rule)
{
	return rule->source == RULE_USER || rule->source == RULE_ADAPTER;
}

static int fill_unreachable(struct rule *rule, const struct lookup_path *found, struct error *err)
{
	if (rule->access == ACCESS_DENY && found->errnum == EACCES) {
		rule->type = NODE_DIRECTORY;
		return replace(&rule->real, found->real, found->existing_bytes, err);
	}
	if (is_asked_for(rule) && !rule->optional)
		return error_set(err,
				 rule->access == ACCESS_DENY ? ERR_POLICY_INVALID
							     : ERR_PATH_NOT_FOUND,
				 found->errnum, "%s '%s' (%s)", access_name(rule->access),
				 rule->path, rule->origin != NULL ? rule->origin : "request");
	rule->type = NODE_ABSENT;
	rule->optional = true;
	if (rule->access == ACCESS_DENY && rule->absent == ABSENT_DEFAULT)
		rule->absent = ABSENT_REPORT;
	return 0;
}

static int fill_one(struct rule *rule, const struct lookup_path *found, struct error *err)
{
	size_t length;
	int r = 0;

	if (found->type == NODE_UNKNOWN)
		return fill_unreachable(rule, found, err);
	rule->type = found->type;
	if (!path_normal_length(rule->path, &length))
		return error_set(err, ERR_POLICY_INVALID, 0, "'%s' can be no rule", rule->path);
	if (strlen(found->real) != length || memcmp(found->real, rule->path, length) != 0)
		r = replace(&rule->real, found->real, strlen(found->real), err);
	if (r == 0 && found->link != NULL)
		r = replace(&rule->link, found->link, strlen(found->link), err);
	return r;
}

int candidates_fill(struct rule_list *list, struct unpack *in, const char **ret_path,
		    struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		struct rule *rule = &list->rules[i];
		struct lookup_path found;
		int r;

		if (!is_unknown(rule))
			continue;
		lookup_path_unpack(in, &found);
		if (in->bad)
			return error_set(err, ERR_BAD_FRAME, 0, "a malformed answer");
		r = fill_one(rule, &found, err);
		if (r < 0) {
			*ret_path = rule->path;
			return r;
		}
	}
	return 0;
}
