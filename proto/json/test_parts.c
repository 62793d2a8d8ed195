/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/parts.h"

#include "tests/test.h"

#include <errno.h>
#include <string.h>

#include "proto/json/message.h"

static void paths_grow(void **state)
{
	struct path_entry_list list = { NULL };

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(path_entry_list_add(&list, "/a", NULL), 0);
	assert_int_equal(list.count, 100);
	assert_string_equal(list.items[99].path, "/a");
	assert_int_equal(list.items[99].absent, ABSENT_DEFAULT);
	assert_false(list.items[99].optional);
	path_entry_list_deinit(&list);
	path_entry_list_deinit(&list);
	path_entry_list_deinit(NULL);
}

static void net_choices(void **state)
{
	enum net_mode mode = NET_PROXY;

	(void)state;
	assert_false(net_choice_mode(NET_CHOICE_UNSET, &mode));
	assert_int_equal(mode, NET_PROXY);
	assert_true(net_choice_mode(NET_CHOICE_HOST, &mode));
	assert_int_equal(mode, NET_HOST);
	assert_false(net_choice_mode((enum net_choice)9, &mode));
	assert_int_equal(net_choice_from_mode((enum net_mode)9), NET_CHOICE_UNSET);
	assert_int_equal(net_choice_from_mode(NET_NONE), NET_CHOICE_NONE);
}

static void rpc_codes_are_distinct(void **state)
{
	(void)state;
	assert_int_equal(error_rpc_code(ERR_BAD_JSON), -32700);
	assert_int_equal(error_rpc_code(ERR_UNKNOWN_METHOD), -32601);
	assert_int_equal(error_rpc_code(ERR_INVALID), -32602);
	for (int a = 1; a <= ERROR_KIND_COUNT; a++)
		for (int b = a + 1; b <= ERROR_KIND_COUNT; b++)
			assert_int_not_equal(error_rpc_code((enum error_kind)a),
					     error_rpc_code((enum error_kind)b));
}

static void errors_come_back(void **state)
{
	static const struct message_id id = MESSAGE_ID(1);
	struct error err = ERROR_INIT;
	struct error back = ERROR_INIT;
	struct error_reply reply;
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct message message;

	(void)state;
	(void)error_set(&err, ERR_SETUP_FAILED, ENOENT, "bind '/caf\xe9\xc3\xa9'");
	assert_int_equal(error_reply_set(&reply, &err, "bwrap", "/caf\xe9", "make it", NULL), 0);
	assert_string_equal(reply.message, "bind '/caf\\xe9\xc3\xa9': No such file or directory");
	assert_int_equal(message_encode_error(&out, &id, &reply, &err), 0);
	error_reply_deinit(&reply);
	assert_int_equal(message_parse(&message, buf_text(&out), out.size, NULL, &err), 0);
	assert_int_equal(message.kind, MESSAGE_ERROR);
	assert_string_equal(message.error.stage, "bwrap");
	assert_string_equal(message.error.path, "/caf\xe9");
	assert_string_equal(message.error.hint, "make it");
	assert_int_equal(error_reply_to_error(&message.error, &back), -ERR_SETUP_FAILED);
	assert_int_equal(back.errnum, ENOENT);
	assert_non_null(strstr(back.message, "No such file"));
	assert_null(strstr(back.message, "directory: No"));
	assert_int_equal(error_reply_to_error(&message.error, NULL), -ERR_SETUP_FAILED);
	message_deinit(&message);
	buf_deinit(&out);
}

/* The longest message of the worst bytes still fits into a reply. */
static void longest_messages(void **state)
{
	static const struct message_id none = { .kind = MESSAGE_ID_NONE };
	struct error err = ERROR_INIT;
	struct error_reply reply;
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct message message;

	(void)state;
	err.kind = ERR_NONE;
	err.errnum = -1;
	memset(err.message, 0xff, sizeof(err.message) - 1);
	assert_int_equal(error_reply_set(&reply, &err, NULL, NULL, NULL, NULL), 0);
	assert_int_equal(strlen(reply.message), 4 * (ERROR_MESSAGE_BYTES - 1));
	assert_int_equal(reply.kind, ERR_SYSTEM);
	assert_int_equal(reply.errnum, 0);
	assert_int_equal(message_encode_error(&out, &none, &reply, NULL), 0);
	error_reply_deinit(&reply);
	error_reply_deinit(NULL);
	assert_int_equal(message_parse(&message, buf_text(&out), out.size, NULL, NULL), 0);
	assert_int_equal(message.id.kind, MESSAGE_ID_NONE);
	message_deinit(&message);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_grow),
		cmocka_unit_test(net_choices),
		cmocka_unit_test(rpc_codes_are_distinct),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(longest_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
