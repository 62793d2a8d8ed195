/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/grantreq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/netpolicy.h"
#include "common/plan_codec.h"
#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"

#define HEX_BYTES (2 * HASH_BYTES + 1)

_Static_assert(GRANT_TOKEN_BYTES == HASH_BYTES, "tokens and hashes are written alike");

/* ---- text ----------------------------------------------------------------------------- */

static char *hex_of(const uint8_t bytes[HASH_BYTES])
{
	char *text = malloc(HEX_BYTES);

	for (size_t i = 0; text != NULL && i < HASH_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first 64 bytes of TEXT, each a lower-case hexadecimal digit. */
static bool hex_parse(const char *text, uint8_t ret_bytes[HASH_BYTES])
{
	for (size_t i = 0; i < HASH_BYTES; i++) {
		int high = digit(text[2 * i]);
		int low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* ---- what a grant is for -------------------------------------------------------------- */

static void hash_list(struct sha256 *sha, const struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		sha256_add(sha, list->items[i], strlen(list->items[i]) + 1);
}

/* As args_hash() over the file that init will get. */
static void hash_command(const struct spawn_params *params, const char *cwd,
			 const struct string_list *env, uint8_t ret_args[HASH_BYTES],
			 uint8_t ret_env[HASH_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, cwd, strlen(cwd) + 1);
	hash_list(&sha, &params->argv);
	sha256_finish(&sha, ret_args);
	sha256_init(&sha);
	hash_list(&sha, env);
	sha256_finish(&sha, ret_env);
}

static int read_token(int fd, uint8_t ret_token[GRANT_TOKEN_BYTES], struct error *err)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char text[HEX_BYTES];
	int seals = fcntl(fd, F_GET_SEALS);
	bool good = seals >= 0 && (seals & wanted) == wanted &&
		    pread(fd, text, HEX_BYTES - 1, 0) == HEX_BYTES - 1 &&
		    hex_parse(text, ret_token);

	explicit_bzero(text, sizeof(text));
	return good ? 0
		    : error_set(err, ERR_GRANT_INVALID, 0,
				"params.grant: must be a sealed memfd that holds a token");
}

int grantreq_claim(const struct spawn_params *params, const char *cwd,
		   const struct string_list *env, struct op_start_grant *ret_claim,
		   struct error *err)
{
	hash_command(params, cwd, env, ret_claim->args_hash, ret_claim->env_hash);
	ret_claim->has_grant = 1;
	return read_token(params->grant_fd, ret_claim->token, err);
}

int grantreq_hashes(const struct policy_build *build, struct policy_result *ret_result,
		    struct error *err)
{
	struct buf plan = BUF_INIT((size_t)2 * LIMIT_PLAN_BYTES);
	uint8_t args[HASH_BYTES];
	uint8_t env[HASH_BYTES];
	uint8_t plan_hash[HASH_BYTES];
	struct sha256 sha;
	int r = plan_encode(&build->plan, &plan, err);

	/* As built_finish() puts them into the job's memfd. */
	if (r == 0 && build->settings.net == NET_PROXY)
		r = netpolicy_encode(&build->net.policy, &plan, err);
	if (r == 0) {
		sha256_init(&sha);
		sha256_add(&sha, buf_text(&plan), plan.size);
		sha256_finish(&sha, plan_hash);
		hash_command(build->params, build->cwd, &build->env, args, env);
		ret_result->args_hash = hex_of(args);
		ret_result->env_hash = hex_of(env);
		ret_result->plan_hash = hex_of(plan_hash);
	}
	buf_deinit(&plan);
	if (r == 0 && (ret_result->args_hash == NULL || ret_result->env_hash == NULL ||
		       ret_result->plan_hash == NULL))
		return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
	return r;
}

/* ---- asking fsboxd -------------------------------------------------------------------- */

/* Answer with RESULT, or with WHY; RESULT is released. */
static void answer(struct call *call, union method_result *result, const struct error *why)
{
	enum method method = call->method;

	if (why == NULL || why->kind == ERR_NONE)
		call_result(call, result);
	else
		call_error(call, why);
	method_result_deinit(method, result);
}

static void ask(struct call *call, struct op_message *op, spawnlink_answer_fn *fn, void *arg)
{
	struct error err = ERROR_INIT;

	op->conn = call->client->number;
	if (spawnlink_ask(&call->broker->link, op, fn, arg, NULL, &err) < 0) {
		int none[LINK_MESSAGE_FDS] = { -1, -1 };

		fn(arg, NULL, none, &err);
	}
}

/* What came instead of an answer of KIND; ERR_NONE when it is one. */
static struct error no_answer(const struct link_message *message, const struct error *why,
			      enum link_kind kind)
{
	struct error err = ERROR_INIT;

	if (why != NULL)
		return *why;
	if (message == NULL || message->kind != kind)
		(void)error_set(&err, ERR_SYSTEM, 0, "fsboxd answers something else");
	return err;
}

static void on_events(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct call *call = arg;
	const struct error err = no_answer(message, why, LINK_EVENTS);
	union method_result result;

	method_result_init(METHOD_EVENTS, &result);
	if (err.kind == ERR_NONE)
		result.events.stream_fd = steal_fd(&fds[0]);
	answer(call, &result, &err);
}

void grantreq_events(struct call *call)
{
	const struct events_params *params = &call->params.events;
	struct op_message op;

	spawnlink_op_init(&op, OP_EVENTS);
	op.u.events.about_job = params->job;
	op.u.events.everybody = params->all;
	op.u.events.follow = params->follow;
	ask(call, &op, on_events, call);
}

/* ---- making --------------------------------------------------------------------------- */

static uint64_t realtime_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int parse_kinds(const struct string_list *names, const char *what, uint32_t *ret_kinds,
		       struct error *err)
{
	*ret_kinds = 0;
	for (size_t i = 0; i < names->count; i++) {
		enum stdio_kind kind;

		if (!stdio_kind_parse(names->items[i], &kind))
			return error_set(err, ERR_INVALID, 0,
					 "params.%s: one of null, tty, pipe, socket, file, other",
					 what);
		*ret_kinds |= kind;
	}
	if (*ret_kinds == 0)
		*ret_kinds = STDIO_KIND_NULL | STDIO_KIND_TTY | STDIO_KIND_PIPE;
	return 0;
}

static int fill_terms(const struct grant_create_params *params, struct grant_terms *terms,
		      struct error *err)
{
	const struct {
		const char *text;
		uint8_t *hash;
		const char *name;
	} hashes[] = {
		{ params->args_hash, terms->args_hash, "argsHash" },
		{ params->env_hash, terms->env_hash, "envHash" },
		{ params->exec_hash, terms->exec_hash, "execHash" },
		{ params->plan_hash, terms->plan_hash, "planHash" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++)
		if (!hex_parse(hashes[i].text, hashes[i].hash))
			return error_set(err, ERR_INVALID, 0,
					 "params.%s: must be 64 lower-case hexadecimal digits",
					 hashes[i].name);
	if (params->net != NET_PROXY && params->net != NET_HOST)
		return error_set(err, ERR_INVALID, 0, "params.net: must be 'proxy' or 'host'");
	if (params->ttl_ms > LIMIT_GRANT_MS)
		return error_set(err, ERR_INVALID, 0, "params.ttlMs: must be at most a year");
	if ((r = parse_kinds(&params->stdin_kinds, "stdin", &terms->stdio[0], err)) < 0 ||
	    (r = parse_kinds(&params->stdout_kinds, "stdout", &terms->stdio[1], err)) < 0 ||
	    (r = parse_kinds(&params->stderr_kinds, "stderr", &terms->stdio[2], err)) < 0)
		return r;
	terms->uid = params->uid;
	terms->net = params->net;
	terms->expires_ms = realtime_ms() + params->ttl_ms;
	(void)snprintf(terms->command, sizeof(terms->command), "%s", params->command);
	return 0;
}

static void on_created(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		       const struct error *why)
{
	struct call *call = arg;
	struct error err = no_answer(message, why, LINK_GRANT);
	union method_result result;

	(void)fds;
	method_result_init(METHOD_GRANT_CREATE, &result);
	if (err.kind == ERR_NONE) {
		result.grant_create.grant = message->u.grant.id;
		result.grant_create.expires_ms = message->u.grant.expires_ms;
		result.grant_create.token = hex_of(message->u.grant.token);
		if (result.grant_create.token == NULL)
			(void)error_set(&err, ERR_NOMEM, ENOMEM, "a reply");
	}
	answer(call, &result, &err);
}

void grantreq_create(struct call *call)
{
	struct error err = ERROR_INIT;
	struct op_message op;

	spawnlink_op_init(&op, OP_GRANT_CREATE);
	if (fill_terms(&call->params.grant_create, &op.u.grant, &err) < 0)
		call_error(call, &err);
	else
		ask(call, &op, on_created, call);
}

/* ---- listing, revoking ---------------------------------------------------------------- */

struct listing {
	struct call *call;
	union method_result result;
	struct error err;
};

static int add_grant(struct msg_grant_list *list, const struct link_grant_entry *entry,
		     struct error *err)
{
	struct msg_grant *grant = NULL;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
		struct msg_grant *items = reallocarray(list->items, capacity, sizeof(*items));

		if (items == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "the list of grants");
		list->items = items;
		list->capacity = capacity;
	}
	grant = &list->items[list->count];
	*grant = (struct msg_grant){
		.grant = entry->id,
		.uid = entry->terms.uid,
		.creator = entry->creator,
		.state = (enum grant_state)entry->state,
		.net = (enum net_mode)entry->terms.net,
		.command = strdup(entry->terms.command),
		.created_ms = entry->created_ms,
		.expires_ms = entry->terms.expires_ms,
		.job = entry->used_by,
	};
	if (grant->command == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "the list of grants");
	list->count++;
	return 0;
}

static void on_listed(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct listing *listing = arg;

	(void)fds;
	if (message != NULL && message->kind == LINK_GRANT_ENTRY) {
		if (listing->err.kind == ERR_NONE)
			(void)add_grant(&listing->result.grant_list.grants, &message->u.grant_entry,
					&listing->err);
		return;
	}
	if (listing->err.kind == ERR_NONE)
		listing->err = no_answer(message, why, LINK_DONE);
	answer(listing->call, &listing->result, &listing->err);
	free(listing);
}

void grantreq_list(struct call *call)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	struct error err = ERROR_INIT;
	struct op_message op;

	if (listing == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "the list of grants");
		call_error(call, &err);
		return;
	}
	listing->call = call;
	method_result_init(METHOD_GRANT_LIST, &listing->result);
	spawnlink_op_init(&op, OP_GRANT_LIST);
	ask(call, &op, on_listed, listing);
}

static void on_revoked(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		       const struct error *why)
{
	const struct error err = no_answer(message, why, LINK_DONE);
	union method_result result;

	(void)fds;
	method_result_init(METHOD_GRANT_REVOKE, &result);
	answer(arg, &result, &err);
}

void grantreq_revoke(struct call *call)
{
	struct op_message op;

	spawnlink_op_init(&op, OP_GRANT_REVOKE);
	op.u.grant_id.id = call->params.grant_revoke.grant;
	ask(call, &op, on_revoked, call);
}
