/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/built.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "proto/json/json.h"
#include "proto/json/tables.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static size_t bytes_of(const struct built *built)
{
	return built->key.size + built->plan.size + built->build.record.size;
}

/* ---- references --------------------------------------------------------------------------- */

struct built *built_new_take(struct broker *broker, struct buf *key)
{
	struct built *built = calloc(1, sizeof(*built));

	if (built == NULL) {
		buf_deinit(key);
		return NULL;
	}
	built->refs = 1;
	built->generation = broker->kernelmounts.generation;
	built->key = *key;
	buf_init(key, key->ceiling);
	buf_init(&built->plan, LIMIT_PLAN_BYTES + LIMIT_EGRESS_POLICY_BYTES);
	return built;
}

struct built *built_ref(struct built *built)
{
	built->refs++;
	return built;
}

struct built *built_unref(struct built *built)
{
	if (built == NULL || --built->refs > 0)
		return NULL;
	policy_build_deinit(&built->build);
	buf_deinit(&built->plan);
	buf_deinit(&built->key);
	free(built);
	return NULL;
}

int built_finish(struct built *built, struct error *err)
{
	int r = plan_encode(&built->build.plan, &built->plan, err);

	if ((r == -ERR_NOMEM && built->plan.failed) || built->plan.size > LIMIT_PLAN_BYTES)
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan is larger than %u bytes",
				 LIMIT_PLAN_BYTES);
	built->plan_bytes = built->plan.size;
	if (r == 0 && built->build.settings.net == NET_PROXY)
		r = netpolicy_encode(&built->build.net.policy, &built->plan, err);
	plan_deinit(&built->build.plan);
	policy_build_trim(&built->build);
	return r;
}

/* ---- keys --------------------------------------------------------------------------------- */

int built_key(const struct spawn_params *params, struct buf *ret_key, struct error *err)
{
	/* Lent, all of it; what is not copied here makes no difference to a policy. */
	struct policy_params shown = {
		.spawn = {
			.cwd = params->cwd,
			.profile = params->profile,
			.context = params->context,
			.paths = params->paths,
			.socket_allow = params->socket_allow,
			.net = params->net,
			.limits = params->limits,
			.stdio = MSG_STDIO_INIT,
			.lifeline_fd = -1,
			.grant_fd = -1,
			.engine = params->engine,
			.session = params->session,
			.umask = -1,
			.allow_home = params->allow_home,
			.allow_git_config = params->allow_git_config,
		},
	};
	struct json_writer writer;
	int r;

	json_writer_init(&writer, ret_key);
	r = codec_encode(method_params_table(METHOD_POLICY), &shown, "params", &writer, NULL, err);
	return r < 0 ? r : json_writer_check(&writer, err);
}

/* ---- keeping ------------------------------------------------------------------------------ */

static void arm(struct built_cache *cache)
{
	const struct timeval later = { .tv_sec = BUILT_KEPT_MS / 1000 };

	if (cache->first != NULL && !evtimer_pending(cache->expiry, NULL))
		(void)event_add(cache->expiry, &later);
}

static void drop(struct built_cache *cache, struct built **at)
{
	struct built *built = *at;

	*at = built->next;
	built->next = NULL;
	cache->count--;
	cache->bytes -= bytes_of(built);
	(void)built_unref(built);
}

static void drop_last(struct built_cache *cache)
{
	struct built **at = &cache->first;

	while ((*at)->next != NULL)
		at = &(*at)->next;
	drop(cache, at);
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	struct built_cache *cache = arg;
	uint64_t now = now_ms();

	(void)fd;
	(void)what;
	for (struct built **at = &cache->first; *at != NULL;) {
		if (now - (*at)->used_ms >= BUILT_KEPT_MS)
			drop(cache, at);
		else
			at = &(*at)->next;
	}
	arm(cache);
}

int built_cache_init(struct built_cache *cache, struct event_base *base, struct error *err)
{
	cache->expiry = evtimer_new(base, on_expiry, cache);
	return cache->expiry != NULL ? 0 : error_set(err, ERR_NOMEM, 0, "event");
}

void built_cache_deinit(struct built_cache *cache)
{
	while (cache->first != NULL)
		drop(cache, &cache->first);
	if (cache->expiry != NULL)
		event_free(cache->expiry);
	cache->expiry = NULL;
}

static void put_first(struct built_cache *cache, struct built *built)
{
	built->next = cache->first;
	cache->first = built;
	built->used_ms = now_ms();
}

struct built *built_find(struct broker *broker, const struct buf *key)
{
	struct built_cache *cache = &broker->built;

	if (kernelmounts_refresh(&broker->kernelmounts, NULL) < 0)
		return NULL;
	for (struct built **at = &cache->first; *at != NULL; at = &(*at)->next) {
		struct built *built = *at;

		if (built->key.size != key->size ||
		    memcmp(built->key.data, key->data, key->size) != 0)
			continue;
		if (built->generation != broker->kernelmounts.generation) {
			drop(cache, at);
			return NULL;
		}
		*at = built->next;
		put_first(cache, built);
		return built_ref(built);
	}
	return NULL;
}

void built_keep(struct broker *broker, struct built *built)
{
	struct built_cache *cache = &broker->built;

	if (built->build.record.failed || built->key.failed || bytes_of(built) > BUILT_KEPT_BYTES)
		return;
	while (cache->count >= BUILT_KEPT_MAX ||
	       (cache->first != NULL && cache->bytes + bytes_of(built) > BUILT_KEPT_BYTES))
		drop_last(cache);
	put_first(cache, built_ref(built));
	cache->count++;
	cache->bytes += bytes_of(built);
	arm(cache);
}

void built_forget(struct broker *broker, struct built *built)
{
	for (struct built **at = &broker->built.first; *at != NULL; at = &(*at)->next) {
		if (*at == built) {
			drop(&broker->built, at);
			return;
		}
	}
}
