/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line of the ledger's file, from whoever wrote there: it is refused, or it is what would be written for
 * what was read, and everything in it is inside its bounds.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "daemon/spawner/ledgerline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct ledger_line *line, const uint8_t *data, size_t size)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_LEDGER_LINE_BYTES);

	must(line->act >= LEDGER_INTENT && line->act <= LEDGER_CANCEL);
	must(line->identity.group_count <= LIMIT_GROUPS);
	must(line->identity.uid != (uid_t)-1 && line->identity.gid != (gid_t)-1);
	must(line->node.handle_bytes <= sizeof(line->node.handle));
	must((line->node.ino != 0) == (line->act == LEDGER_MADE));
	must(memchr(line->path, '\0', sizeof(line->path)) && strcmp(line->path, "/") != 0);
	must(plan_path_is_canonical(line->path));
	ledger_line_write(line, &out);
	must(!out.failed && out.size == size + 1 && memcmp(out.data, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ledger_line line;

	if (ledger_line_read(&line, (const char *)data, size))
		check(&line, data, size);
	return 0;
}
