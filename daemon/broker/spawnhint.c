/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawnhint.h"

#include <stddef.h>

#include "common/scope.h"

const char *spawnhint(enum error_kind kind)
{
	static const struct {
		enum error_kind kind;
		const char *hint;
	} hints[] = {
		{ ERR_STDIO_RELAY,
		  "pass a pipe and copy, or grant the file's directory readWrite" },
		{ ERR_NOT_AUTHORIZED, "an administrator can raise it in fsboxd.conf" },
		{ ERR_CONFIG, "correct the file, then reload fsboxd" },
		{ ERR_RESOLVER_BUSY, "look for a mount that does not answer" },
		{ ERR_TIMEOUT, "look for a mount that does not answer" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		if (hints[i].kind == kind)
			return hints[i].hint;
	}
	return NULL;
}
