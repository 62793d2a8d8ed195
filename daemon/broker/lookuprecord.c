/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/lookuprecord.h"

#include <string.h>

void lookup_record_add(struct buf *record, enum lookup_kind kind, const struct buf *request,
		       const void *answer, size_t answer_size)
{
	pack_u32(record, kind);
	pack_bytes(record, request->data != NULL ? request->data : "", request->size);
	pack_bytes(record, answer, answer_size);
}

int lookup_record_repeat(struct unpack *record, bool *ret_same, struct error *err)
{
	struct buf again = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	bool same = true;

	while (same && record->left > 0 && !record->bad) {
		enum lookup_kind kind = (enum lookup_kind)unpack_u32(record);
		size_t request_size;
		size_t answer_size;
		const char *request = unpack_bytes(record, &request_size);
		const char *answer = unpack_bytes(record, &answer_size);

		/* A record of records would be nobody's. */
		if (record->bad || kind == LOOKUP_REPEAT)
			return error_set(err, ERR_BAD_FRAME, 0, "a record of look-ups");
		buf_clear(&again);
		same = resolver_answer(kind, request, request_size, &again, NULL) == 0 &&
		       again.size == answer_size &&
		       (answer_size == 0 || memcmp(again.data, answer, answer_size) == 0);
	}
	buf_deinit(&again);
	if (record->bad)
		return error_set(err, ERR_BAD_FRAME, 0, "a record of look-ups");
	/* The rest has not been read, and need not be. */
	if (!same)
		record->left = 0;
	*ret_same = same;
	return 0;
}
