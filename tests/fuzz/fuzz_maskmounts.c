/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mask-mounts.json from whoever wrote there: nothing comes of it, or a list that is written in a form that
 * gives the same list again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "daemon/maskmounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(mask_mounts_deinit) struct mask_mount_list list = { .items = NULL };
	AUTO(mask_mounts_deinit) struct mask_mount_list again = { .items = NULL };
	AUTO(buf_deinit) struct buf out = BUF_INIT(64u << 20);

	must(mask_mounts_read(&list, (const char *)data, size, NULL) == 0);
	mask_mounts_write(&list, &out);
	must(!out.failed);
	must(mask_mounts_read(&again, (const char *)out.data, out.size, NULL) == 0);
	must(again.count == list.count);
	for (size_t i = 0; i < list.count; i++) {
		must(strcmp(list.items[i].path, again.items[i].path) == 0);
		must(list.items[i].is_dir == again.items[i].is_dir);
		must(list.items[i].dev == again.items[i].dev);
		must(list.items[i].ino == again.items[i].ino);
	}
	return 0;
}
