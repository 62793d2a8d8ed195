/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/spawnop.h"

/* What messages say about grants. */

#include <string.h>

#include "common/policy.h"
#include "common/scope.h"

static const char *const grant_state_names[] = { "unknown", "open", "spent", "revoked", "expired" };
static const char *const stdio_kind_names[] = { "null", "tty", "pipe", "socket", "file", "other" };

#define NAME_OF(names, value) \
	((size_t)(value) < ARRAY_SIZE(names) ? (names)[(size_t)(value)] : "unknown")

int grant_terms_check(const struct grant_terms *terms, struct error *err)
{
	if (terms->net != NET_PROXY && terms->net != NET_HOST)
		return error_set(err, ERR_BAD_FRAME, 0, "a grant for network %u", terms->net);
	for (size_t i = 0; i < ARRAY_SIZE(terms->stdio); i++)
		if (terms->stdio[i] == 0 || terms->stdio[i] > STDIO_KIND_ALL)
			return error_set(err, ERR_BAD_FRAME, 0, "a grant for descriptors 0x%x",
					 terms->stdio[i]);
	if (terms->reserved != 0 || !memchr(terms->command, '\0', sizeof(terms->command)))
		return error_set(err, ERR_BAD_FRAME, 0, "a grant whose command is none");
	return 0;
}

const char *grant_state_name(enum grant_state state)
{
	return NAME_OF(grant_state_names, state);
}

const char *stdio_kind_name(enum stdio_kind kind)
{
	return NAME_OF(stdio_kind_names, __builtin_ffs((int)kind) - 1);
}

bool stdio_kind_parse(const char *name, enum stdio_kind *ret_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(stdio_kind_names); i++) {
		if (strcmp(stdio_kind_names[i], name) == 0) {
			*ret_kind = (enum stdio_kind)(1u << i);
			return true;
		}
	}
	return false;
}
