/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_RULE_H
#define FSBOX_COMMON_RULE_H

/*
 * One grant or mask, and lists of them.
 *
 * A rule says what may be done at and below one path. Where it came from (source) decides only
 * between two rules for the same path; which rule answers for a path is decided by depth alone.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Restrictiveness grows with the value; ACCESS_NONE is the answer where no rule covers a path. */
enum access {
	ACCESS_NONE = 0,
	ACCESS_READ_WRITE,
	ACCESS_READ_ONLY,
	ACCESS_DENY,
};

/* Rank grows with the value. */
enum rule_source {
	RULE_BASELINE = 0,
	RULE_ADAPTER,
	RULE_INTERNAL,
	RULE_USER,
	RULE_MANDATORY,
};

/* What a look-up as the peer found at a rule's path. */
enum node_type {
	NODE_UNKNOWN = 0, /* nobody looked: pure callers */
	NODE_ABSENT,
	NODE_DIRECTORY,
	NODE_FILE, /* regular */
	NODE_SOCKET,
	NODE_OTHER, /* FIFO, device */
};

/* What to do about a deny whose path does not exist (docs: fsbox-policy(5)). */
enum absent_mode {
	ABSENT_DEFAULT = 0,
	ABSENT_PLACEHOLDER,
	ABSENT_WATCH,
	ABSENT_REPORT,
	ABSENT_IGNORE,
};

/*
 * @path         owned; normal (path_normalize()), canonical once settled
 * @origin       owned or NULL; for people: "profile generic", "--deny", "fsboxd.conf line 3"
 * @bind_source  owned or NULL; the tree shown at @path when it is not @path itself (a private cache)
 * @real         owned or NULL; where @path really is when a look-up went through links
 * @link         owned or NULL; where the link itself really is when the last component of @path is one
 * @type         what is there, at the end of all links
 * @optional     a grant whose path may be absent: then it is dropped, else that is an error
 * @denied_link  set by policy_settle(): the rule stands on a link node (its target has its own rule)
 * @host         the machine's or fsbox's own (RULE_MANDATORY): nothing lifts it, whatever its source
 * @lowers       a readOnly rule that takes away where something else grants readWrite, and shows nothing by
 *               itself
 * @exact        holds for where @path is spelled to be; if it turns out to lead elsewhere, for nothing
 */
struct rule {
	char *path;
	enum access access;
	enum rule_source source;
	char *origin;
	char *bind_source;
	char *real;
	char *link;
	enum node_type type;
	enum absent_mode absent;
	bool optional;
	bool denied_link;
	bool host;
	bool lowers;
	bool exact;
};

struct rule_list {
	struct rule *rules; /* heap, owned */
	size_t count;
	size_t capacity;
};

#define RULE_LIST_INIT        \
	{                     \
		.rules = NULL \
	}

void rule_deinit(struct rule *rule);
int rule_copy(struct rule *ret_copy, const struct rule *rule, struct error *err);

void rule_list_deinit(struct rule_list *list);

/*
 * Append a rule. PATH and ORIGIN are copied, ORIGIN may be NULL. Nothing is checked or normalised.
 * Fails with ERR_NOMEM, or ERR_POLICY_INVALID beyond LIMIT_RULES. The returned pointer is good until
 * the next append.
 */
struct rule *rule_list_add(struct rule_list *list, const char *path, enum access access,
			   enum rule_source source, const char *origin, struct error *err);

/* The same, for who has no use for the rule: 0 or -kind. */
int rule_list_append(struct rule_list *list, const char *path, enum access access,
		     enum rule_source source, const char *origin, struct error *err);

/* Append RULE; it is the list's even when this fails. */
int rule_list_add_take(struct rule_list *list, struct rule *rule, struct error *err);

/*
 * One rule for each normal path, in order: highest source wins, then the more restrictive access;
 * sorted by depth, then by bytes. Paths that do not normalise are dropped. RET_MERGED owns copies; it
 * must hold nothing and be another list than CANDIDATES, on whose order the result does not depend.
 */
int rule_list_merge(struct rule_list *ret_merged, const struct rule_list *candidates,
		    struct error *err);

const char *access_name(enum access access);           /* "readWrite" ... "none" */
bool access_parse(const char *name, enum access *ret); /* not "none" */
const char *rule_source_name(enum rule_source source); /* "baseline" ... "mandatory" */
bool rule_source_parse(const char *name, enum rule_source *ret);
bool node_is_file(enum node_type type);              /* there, and neither directory nor link */
const char *node_type_name(enum node_type type);     /* "directory", "file", "absent" ... */
const char *absent_mode_name(enum absent_mode mode); /* "placeholder" ...; "default" */
bool absent_mode_parse(const char *name, enum absent_mode *ret);

#endif
