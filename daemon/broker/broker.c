/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/broker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/client.h"
#include "daemon/broker/hostfiles.h"
#include "daemon/confine.h"
#include "daemon/log.h"

/* How soon clients that were not read are looked at again. */
#define UPDATE_MS 100

/* ---- deferred work ---------------------------------------------------------------------- */

void broker_reap_soon(struct broker *broker)
{
	event_active(broker->reap, EV_TIMEOUT, 0);
}

void broker_update_soon(struct broker *broker)
{
	static const struct timeval soon = { .tv_usec = (suseconds_t)UPDATE_MS * 1000 };

	if (!event_pending(broker->update, EV_TIMEOUT, NULL))
		(void)event_add(broker->update, &soon);
}

void broker_touch(struct broker *broker)
{
	static const struct timeval after = { .tv_sec = BROKER_IDLE_MS / 1000 };

	if (broker->client_count > 0 || broker->jobs.active > 0)
		(void)event_del(broker->idle);
	else if (broker->link.down)
		event_active(broker->idle, EV_TIMEOUT, 0);
	else if (!event_pending(broker->idle, EV_TIMEOUT, NULL))
		(void)event_add(broker->idle, &after);
}

static void say_closed(struct broker *broker, const struct client *client)
{
	struct op_message op;

	spawnlink_op_init(&op, OP_CONN_CLOSED);
	op.conn = client->number;
	(void)spawnlink_tell(&broker->link, &op, NULL);
}

static void release_client(struct broker *broker, struct client *client)
{
	if (client->previous != NULL)
		client->previous->next = client->next;
	else
		broker->clients = client->next;
	if (client->next != NULL)
		client->next->previous = client->previous;
	broker->client_count--;
	/* Jobs first: fsboxd must still know the connection in whose name they are killed. */
	jobs_on_client_gone(broker, client);
	say_closed(broker, client);
	(void)client_free(client);
}

static void reap(evutil_socket_t fd, short what, void *arg)
{
	struct broker *broker = arg;
	struct client *next;

	(void)fd;
	(void)what;
	for (struct client *client = broker->clients; client != NULL; client = next) {
		next = client->next;
		if (client->state == CLIENT_CLOSING)
			release_client(broker, client);
	}
	broker_touch(broker);
}

static void update(evutil_socket_t fd, short what, void *arg)
{
	struct broker *broker = arg;

	(void)fd;
	(void)what;
	for (struct client *client = broker->clients; client != NULL; client = client->next)
		client_update(client);
}

static void idle(evutil_socket_t fd, short what, void *arg)
{
	struct broker *broker = arg;

	(void)fd;
	(void)what;
	if (broker->client_count > 0 || broker->jobs.active > 0)
		return;
	/* A connection that is on its way to us keeps us. */
	if (!broker->link.down && spawnlink_has_news(&broker->link))
		broker_touch(broker);
	else
		(void)event_base_loopbreak(broker->base);
}

static void terminate(evutil_socket_t fd, short what, void *arg)
{
	struct broker *broker = arg;

	(void)fd;
	(void)what;
	(void)event_base_loopbreak(broker->base);
}

/* ---- the link --------------------------------------------------------------------------- */

static void take_ahead(struct broker *broker, uint64_t job, int fds[LINK_MESSAGE_FDS])
{
	broker->ahead = job;
	for (size_t i = 0; i < ARRAY_SIZE(broker->ahead_fds); i++) {
		auto_close(&broker->ahead_fds[i]);
		broker->ahead_fds[i] = steal_fd(&fds[i]);
	}
}

uint64_t broker_take_ahead(struct broker *broker, int ret_fds[2])
{
	const uint64_t job = broker->link.down ? 0 : broker->ahead;

	if (job == 0)
		return 0;
	broker->ahead = 0;
	for (size_t i = 0; i < ARRAY_SIZE(broker->ahead_fds); i++)
		ret_fds[i] = steal_fd(&broker->ahead_fds[i]);
	return job;
}

static void on_news(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS])
{
	struct broker *broker = arg;
	struct error err = ERROR_INIT;

	if (message->kind == LINK_JOB_OPENED) {
		take_ahead(broker, message->job, fds);
		return;
	}
	if (message->kind != LINK_CONN) {
		jobs_on_link(broker, message);
		return;
	}
	if (client_new_take(broker, &message->u.conn, message->conn, steal_fd(&fds[0]),
			    steal_fd(&fds[1]), &err) < 0) {
		struct op_message op;

		log_failure(&err, "connection %llu", (unsigned long long)message->conn);
		spawnlink_op_init(&op, OP_CONN_CLOSED);
		op.conn = message->conn;
		(void)spawnlink_tell(&broker->link, &op, NULL);
	}
	broker_touch(broker);
}

static void on_down(void *arg, bool garbage, const struct error *err)
{
	struct broker *broker = arg;

	if (garbage) {
		/* Whom we trust most says nonsense: nothing good can follow. Jobs go on without us. */
		log_failure(err, "the link to fsboxd");
		broker->result = -(int)err->kind;
		(void)event_base_loopbreak(broker->base);
		return;
	}
	/* It died, or let us go because we had nothing to do. */
	log_write(LOG_INFO, "the link to fsboxd is closed");
	jobs_on_link_down(broker);
	broker_touch(broker);
}

/* ---- life ------------------------------------------------------------------------------- */

/* DIR/NAME into LIST, unless DIR is not known. */
static int add_place(struct string_list *list, const char *dir, const char *name, struct error *err)
{
	AUTO(auto_free) char *path = NULL;

	if (dir == NULL || dir[0] != '/')
		return 0;
	path = path_join(dir, name);
	if (path == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "fsbox's own directories");
	return string_list_add(list, path, err);
}

/* What is fsbox's own in whatever mode it runs: the other modes' places too (R25). */
static int list_own(struct broker *broker, struct error *err)
{
	const struct link_config *config = &broker->config;
	struct string_list *deny = &broker->own_deny;
	char runtime[64];
	int r;

	(void)snprintf(runtime, sizeof(runtime), "/run/user/%u", config->uid);
	if ((r = add_place(deny, config->run_dir, "", err)) < 0 ||
	    (r = add_place(deny, config->state_dir, "", err)) < 0 ||
	    (r = add_place(deny, config->log_dir, "", err)) < 0 ||
	    (r = add_place(deny, config->config_dir, "", err)) < 0 ||
	    (r = add_place(deny, "/etc/fsbox", "", err)) < 0 ||
	    (r = add_place(deny, "/run/fsbox", "", err)) < 0 ||
	    (r = add_place(deny, "/run/fsbox-root", "", err)) < 0 ||
	    (r = add_place(deny, "/var/lib/fsbox", "", err)) < 0 ||
	    (r = add_place(deny, "/var/lib/fsbox-root", "", err)) < 0 ||
	    (r = add_place(deny, "/var/log/fsbox", "", err)) < 0 ||
	    (r = add_place(deny, runtime, "fsbox", err)) < 0 ||
	    (r = add_place(deny, broker->facts.config_home, "fsbox", err)) < 0 ||
	    (r = add_place(deny, broker->facts.state_home, "fsbox", err)) < 0 ||
	    (r = add_place(&broker->private_cache, broker->facts.cache_home, "fsbox", err)) < 0)
		return r;
	string_list_sort_unique(deny);
	return add_place(&broker->own_read_only, config->exec_dir, "", err);
}

static int name_profile_dirs(struct broker *broker, struct error *err)
{
	AUTO(auto_free) char *own = path_join(broker->facts.config_home, "fsbox");

	broker->host_profiles = path_join(broker->config.config_dir, "profiles");
	if (own != NULL && broker->config.mode == MODE_USER)
		broker->user_profiles = path_join(own, "profiles");
	if (own == NULL || broker->host_profiles == NULL ||
	    (broker->config.mode == MODE_USER && broker->user_profiles == NULL))
		return error_set(err, ERR_NOMEM, ENOMEM, "profile directories");
	return 0;
}

/* Facts and configuration. What is wrong with them refuses spawns, not the rest. */
static void look_at_host(struct broker *broker)
{
	AUTO(auto_free) char *user_dir = NULL;
	AUTO(auto_free) char *user_file = NULL;
	struct error *refusal = &broker->refusal;
	int r;

	r = facts_init(&broker->facts, &broker->resolvers, broker->config.text, refusal);
	if (r == 0 && broker->config.mode == MODE_USER) {
		user_dir = path_join(broker->facts.config_home, "fsbox");
		user_file = user_dir != NULL ? path_join(user_dir, "fsboxd.conf") : NULL;
		if (user_file == NULL)
			r = error_set(refusal, ERR_NOMEM, ENOMEM, "configuration");
	}
	if (r == 0)
		r = hostfiles_read(&broker->hostconf, broker->config.config_dir, user_file,
				   &broker->resolvers, refusal);
	if (r == 0)
		r = list_own(broker, refusal);
	if (r == 0)
		r = name_profile_dirs(broker, refusal);
	if (r < 0)
		log_failure(refusal, "nothing can be spawned");
	else
		log_set_level((enum log_level)broker->hostconf.log_level);
}

static int make_events(struct broker *broker, struct error *err)
{
	broker->base = event_base_new();
	if (broker->base == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "event base");
	broker->reap = event_new(broker->base, -1, 0, reap, broker);
	broker->update = event_new(broker->base, -1, 0, update, broker);
	broker->idle = event_new(broker->base, -1, 0, idle, broker);
	broker->terminate = evsignal_new(broker->base, SIGTERM, terminate, broker);
	if (broker->reap == NULL || broker->update == NULL || broker->idle == NULL ||
	    broker->terminate == NULL || event_add(broker->terminate, NULL) < 0)
		return error_set(err, ERR_NOMEM, ENOMEM, "events");
	return built_cache_init(&broker->built, broker->base, err);
}

/* A connection takes three descriptors, a job one: more than the usual soft limit leaves room for. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int broker_init(struct broker *broker, struct error *err)
{
	struct op_message ready;
	int r;

	memset(broker, 0, sizeof(*broker));
	broker->ahead_fds[0] = -1;
	broker->ahead_fds[1] = -1;
	raise_descriptor_limit();
	broker->kernelmounts = (struct kernelmounts)KERNELMOUNTS_INIT;
	r = spawnlink_init_take(&broker->link, BROKER_FD_LINK, BROKER_FD_REQUEST, err);
	if (r == 0)
		r = resolver_pool_init(&broker->resolvers, err);
	if (r == 0)
		r = closer_init(&broker->closer, err);
	if (r == 0)
		r = sender_own_places(&broker->places, err);
	if (r == 0)
		r = hostconf_init(&broker->hostconf, err);
	if (r == 0)
		r = spawnlink_wait_config(&broker->link, &broker->config, err);
	if (r < 0)
		return r;
	look_at_host(broker);
	r = make_events(broker, err);
	if (r == 0)
		r = resolver_pool_attach(&broker->resolvers, broker->base, err);
	if (r == 0)
		r = spawnlink_attach(&broker->link, broker->base, on_news, on_down, broker, err);
	spawnlink_op_init(&ready, OP_READY);
	if (r == 0)
		r = spawnlink_tell(&broker->link, &ready, err);
	if (r == 0)
		broker_touch(broker);
	return r;
}

int broker_run(struct broker *broker, struct error *err)
{
	if (event_base_dispatch(broker->base) < 0)
		return error_set(err, ERR_SYSTEM, errno, "event loop");
	return broker->result < 0 ? error_set(err, (enum error_kind) - broker->result, 0,
					      "ended by what fsboxd sent")
				  : 0;
}

void broker_deinit(struct broker *broker)
{
	struct client *client = broker->clients;

	while (client != NULL) {
		struct client *next = client->next;

		client->state = CLIENT_CLOSING;
		release_client(broker, client);
		client = next;
	}
	for (size_t i = 0; i < ARRAY_SIZE(broker->ahead_fds); i++)
		auto_close(&broker->ahead_fds[i]);
	spawnlink_deinit(&broker->link);
	if (broker->base != NULL)
		jobs_deinit(broker);
	resolver_pool_deinit(&broker->resolvers);
	closer_deinit(&broker->closer);
	facts_deinit(&broker->facts);
	built_cache_deinit(&broker->built);
	kernelmounts_deinit(&broker->kernelmounts);
	string_list_deinit(&broker->own_deny);
	string_list_deinit(&broker->own_read_only);
	string_list_deinit(&broker->private_cache);
	alias_list_deinit(&broker->deny_aliases);
	alias_list_deinit(&broker->read_only_aliases);
	free(broker->user_profiles);
	free(broker->host_profiles);
	hostconf_deinit(&broker->hostconf);
	if (broker->reap != NULL)
		event_free(broker->reap);
	if (broker->update != NULL)
		event_free(broker->update);
	if (broker->idle != NULL)
		event_free(broker->idle);
	if (broker->terminate != NULL)
		event_free(broker->terminate);
	if (broker->base != NULL)
		event_base_free(broker->base);
}

/* ---- what clients see of the engines ------------------------------------------------------ */

int broker_list_engines(const struct broker *broker, struct msg_engine_list *list,
			struct error *err)
{
	static const struct {
		enum engine_kind name;
		bool supported;
		const char *reason;
	} engines[] = {
		{ ENGINE_NATIVE, true, NULL },
		{ ENGINE_BWRAP, true, NULL },
		{ ENGINE_SEATBELT, false, "macOS only" },
	};

	list->items = calloc(ARRAY_SIZE(engines), sizeof(list->items[0]));
	if (list->items == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "engines");
	list->capacity = ARRAY_SIZE(engines);
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		struct msg_engine *engine = &list->items[list->count++];
		const char *reason = engines[i].reason;

		engine->name = engines[i].name;
		engine->supported = engines[i].supported;
		engine->available = engines[i].supported &&
				    (broker->config.engines & (1u << engines[i].name)) != 0;
		engine->is_default = engines[i].name == engine_default(broker->config.engines);
		if (reason == NULL && !engine->available)
			reason = broker->config.engine_reason;
		if (reason != NULL) {
			engine->reason = strdup(reason);
			if (engine->reason == NULL)
				return error_set(err, ERR_NOMEM, ENOMEM, "engines");
		}
	}
	return 0;
}

int broker_list_unenforced(const struct broker *broker, struct string_list *list, struct error *err)
{
	static const char *const always[] = {
		"what somebody outside takes a mask off shows for a moment, until it is masked again",
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(always) && r == 0; i++)
		r = string_list_add(list, always[i], err);
	for (size_t i = 0; r == 0; i++) {
		const char *gap = confine_landlock_gap(confine_landlock_abi(), i);

		if (gap == NULL)
			break;
		r = string_list_add(list, gap, err);
	}
	if (r == 0 && broker->hostconf.zygotes > 0 && broker->config.mode == MODE_USER)
		r = string_list_add(list, "zygotes are not made in user mode", err);
	if (r == 0 && broker->refusal.kind != ERR_NONE)
		r = string_list_add(list, broker->refusal.message, err);
	return r;
}
