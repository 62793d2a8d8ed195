/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Short memory at every allocation of proto/, one after the other: what was being done fails with
 * ERR_NOMEM and fills the error, leaks neither memory (a sanitizer sees to that) nor descriptors, and
 * the JSON library, which does not check what it is given, never sees a NULL.
 */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "proto/json/contextjson.h"
#include "proto/json/message.h"
#include "proto/json/profile.h"
#include "proto/wire/channel.h"
#include "tests/fdcount.h"
#include "tests/test.h"
#include "tests/unit/short_memory.h"

static const char request_text[] =
	"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"spawn\",\"params\":{\"argv\":[\"a\\n\",{\"b64\":"
	"\"/w==\"}],\"cwd\":\"/\",\"env\":{\"A\":\"b\",\"C\":{\"b64\":\"/w==\"}},\"envSet\":[\"D=e\",{"
	"\"b64\":\"/z0=\"}],\"profile\":\"p\",\"context\":{\"currentAppId\":\"a\",\"redirectedCliData\":"
	"true,\"userPaths\":{\"deny\":[\"/q\"]}},\"paths\":{\"deny\":[\"/x\",{\"path\":\"/y\",\"absent\":"
	"\"watch\"}]},\"net\":{\"allow\":[\"h\"],\"forward\":[80]},\"tty\":{\"rows\":1,\"cols\":2},"
	"\"stdio\":{\"stdin\":0},\"label\":\"l\"}}";

/* Descriptors are not what is scarce here. */
static void add_descriptor(struct fdset *fds)
{
	assert_int_equal(fdset_add_dup(fds, 0, NULL), 0);
}

static int request_both_ways(struct error *err)
{
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	union method_params params;
	struct message message;
	int r = 0;

	add_descriptor(&fds);
	r = message_parse(&message, request_text, strlen(request_text), &fds, err);
	if (r == 0)
		r = message_decode_params(&message, &params, err);
	if (r == 0) {
		r = message_encode_request(&out, &fds, &message.id, message.method, &params, err);
		method_params_deinit(message.method, &params);
	}
	message_deinit(&message);
	fdset_deinit(&fds);
	buf_deinit(&out);
	return r;
}

static int result_in_a_memfd(struct error *err)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"access\":\"deny\",\"rule\":["
		"],\"shadowed\":[]}}";
	static const struct message_id id = MESSAGE_ID(1);
	union method_result result = { .why = { .access = (char *)(uintptr_t) "deny" } };
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	struct message message;
	int r = message_encode_result(&out, &fds, &id, METHOD_WHY, &result, err);

	fdset_deinit(&fds);
	buf_deinit(&out);
	if (r < 0)
		return r;
	r = message_parse(&message, text, strlen(text), NULL, err);
	message_deinit(&message);
	return r;
}

static int profiles(struct error *err)
{
	static const char first[] =
		"// x\n{\"extends\":\"b\",\"paths\":{\"readWrite\":[\"${cwd}\"],\"deny\":[\"~/x\"]}}";
	static const char second[] =
		"{\"description\":\"d\",\"paths\":{\"readWrite\":[\"/a\"],\"deny\":["
		"\"~/x\",\"/b\"]},\"env\":{\"set\":{\"A\":\"b\"}},\"cache\":[\"/c\"]}";
	static const struct profile_facts facts = { .home = "/home/u", .cwd = "/srv" };
	struct profile profile;
	struct profile base;
	int r = profile_parse(&profile, first, strlen(first), "first", err);

	if (r < 0)
		return r;
	r = profile_parse(&base, second, strlen(second), "second", err);
	if (r == 0)
		r = profile_merge_take(&profile, &base, err);
	if (r == 0)
		r = profile_expand(&profile, &facts, err);
	profile_deinit(&profile);
	return r;
}

static int contexts(struct error *err)
{
	static const char text[] =
		"{\"currentAppId\":\"a\",\"redirectedCliData\":true,\"authPaths\":[\"/"
		"a\",{\"b64\":\"L/8=\"}]}";
	struct buf out = BUF_INIT(4096);
	struct policy_context context;
	struct json_writer writer;
	int r = context_parse(&context, text, strlen(text), CONTEXT_WIRE, err);

	if (r < 0)
		return r;
	json_writer_init(&writer, &out);
	r = context_to_json(&context, CONTEXT_WIRE, &writer, err);
	if (r == 0)
		r = json_writer_check(&writer, err);
	policy_context_deinit(&context);
	buf_deinit(&out);
	return r;
}

static int lists(struct error *err)
{
	struct path_entry_list paths = { NULL };
	struct env_list env = { NULL };
	int r = path_entry_list_add(&paths, "/a", err);

	if (r == 0)
		r = env_list_add_pair(&env, "A=b", err);
	path_entry_list_deinit(&paths);
	env_list_deinit(&env);
	return r;
}

static int error_replies(struct error *err)
{
	struct error why = { .kind = ERR_INVALID, .message = "why" };
	struct error_reply reply;
	int r = error_reply_set(&reply, &why, "stage", "/path", "hint", err);

	if (r == 0)
		error_reply_deinit(&reply);
	return r;
}

/* A frame that is queued with its descriptors, and one that is received. */
static int channels(struct error *err)
{
	static char payload[300000];
	struct channel left = CHANNEL_INIT;
	struct channel right = CHANNEL_INIT;
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	struct fdset fds = FDSET_INIT;
	int pair[2] = { -1, -1 };
	int r = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(channel_init_take(&left, pair[0], true, NULL), 0);
	assert_int_equal(channel_init_take(&right, pair[1], true, NULL), 0);
	add_descriptor(&fds);
	r = channel_send(&left, payload, sizeof(payload), &fds, err);
	for (int i = 0; r == 0 && i < 100 && frame.payload.size == 0; i++) {
		r = channel_receive(&right, &frame, err);
		if (r == 0)
			r = channel_flush(&left, err);
	}
	channel_frame_deinit(&frame);
	channel_deinit(&left);
	channel_deinit(&right);
	return r < 0 ? r : 0;
}

#define SHORT(scenario, spare)                               \
	static void scenario##_short_of_memory(void **state) \
	{                                                    \
		size_t before = fd_count();                  \
                                                             \
		(void)state;                                 \
		run_short_of_memory(scenario, spare);        \
		assert_int_equal(fd_count(), before);        \
	}

SHORT(request_both_ways, 0)
SHORT(result_in_a_memfd, 0)
SHORT(profiles, 0)
SHORT(contexts, 0)
SHORT(lists, 0)
SHORT(error_replies, 0)
SHORT(channels, 0)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_both_ways_short_of_memory),
		cmocka_unit_test(result_in_a_memfd_short_of_memory),
		cmocka_unit_test(profiles_short_of_memory),
		cmocka_unit_test(contexts_short_of_memory),
		cmocka_unit_test(lists_short_of_memory),
		cmocka_unit_test(error_replies_short_of_memory),
		cmocka_unit_test(channels_short_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
