/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/pack.h"

#include <string.h>

void pack_u32(struct buf *buf, uint32_t value)
{
	(void)buf_add(buf, &value, sizeof(value));
}

void pack_u64(struct buf *buf, uint64_t value)
{
	(void)buf_add(buf, &value, sizeof(value));
}

void pack_bytes(struct buf *buf, const void *data, size_t size)
{
	if (size > UINT32_MAX) {
		buf->failed = true;
		return;
	}
	pack_u32(buf, (uint32_t)size);
	(void)buf_add(buf, data, size);
	(void)buf_add_byte(buf, '\0');
}

void pack_string(struct buf *buf, const char *text)
{
	pack_bytes(buf, text, strlen(text));
}

static bool take(struct unpack *unpack, void *ret, size_t size)
{
	if (unpack->bad || unpack->left < size) {
		unpack->bad = true;
		return false;
	}
	memcpy(ret, unpack->at, size);
	unpack->at += size;
	unpack->left -= size;
	return true;
}

uint32_t unpack_u32(struct unpack *unpack)
{
	uint32_t value = 0;

	return take(unpack, &value, sizeof(value)) ? value : 0;
}

uint64_t unpack_u64(struct unpack *unpack)
{
	uint64_t value = 0;

	return take(unpack, &value, sizeof(value)) ? value : 0;
}

const char *unpack_bytes(struct unpack *unpack, size_t *ret_size)
{
	size_t size = unpack_u32(unpack);
	const char *data = unpack->at;

	*ret_size = 0;
	if (unpack->bad || unpack->left < size + 1 || data[size] != '\0') {
		unpack->bad = true;
		return NULL;
	}
	unpack->at += size + 1;
	unpack->left -= size + 1;
	*ret_size = size;
	return data;
}

const char *unpack_string(struct unpack *unpack)
{
	size_t size;
	const char *data = unpack_bytes(unpack, &size);

	if (data == NULL || memchr(data, '\0', size) != NULL) {
		unpack->bad = true;
		return "";
	}
	return data;
}

int unpack_end(const struct unpack *unpack, struct error *err)
{
	if (unpack->bad)
		return error_set(err, ERR_BAD_FRAME, 0, "a malformed message between processes");
	if (unpack->left != 0)
		return error_set(err, ERR_BAD_FRAME, 0, "%zu bytes too many", unpack->left);
	return 0;
}
