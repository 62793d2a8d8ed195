/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_BROKER_H
#define FSBOX_DAEMON_BROKER_BROKER_H

/*
 * fsbox-broker: one user's requests, handled entirely with that user's rights. Owns the event base,
 * the connections, the jobs, the resolver children and the link to fsboxd.
 *
 * It may be taken over by whoever sends it requests: that is the same user, and gains nothing.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/hostconf.h"
#include "daemon/alias.h"
#include "daemon/broker/built.h"
#include "daemon/broker/closer.h"
#include "daemon/broker/facts.h"
#include "daemon/broker/jobs.h"
#include "daemon/broker/kernelmounts.h"
#include "daemon/broker/resolve.h"
#include "daemon/broker/sender.h"
#include "daemon/broker/spawnlink.h"
#include "proto/wire/spawnop.h"

/* Without connections and jobs for so long, the process ends; fsboxd starts another when needed. */
#define BROKER_IDLE_MS 60000

struct client;

/*
 * @refusal   why nothing can be spawned: a broken configuration, no home; kind ERR_NONE when all is
 *            well. Everything else still works, so that people can find out.
 * @own_deny, @own_read_only  fsbox's own directories and programs, closed in every job (R25)
 * @private_cache  where private caches are, closed likewise; they are shown at other places
 * @deny_aliases, @read_only_aliases  other names of these and of what the host protects, when mounts
 *                 were read for the @alias_generation-th time
 * @user_profiles, @host_profiles  directories of profile files; the first in user mode only, else NULL
 * @ahead      the job that fsboxd opened before we ask for one; 0: none. @ahead_fds: its plan memfd and
 *            channel
 * @result    what broker_run() returns
 */
struct broker {
	struct event_base *base;
	struct event *reap;   /* closing clients are released by it */
	struct event *update; /* clients that were not read are looked at again */
	struct event *idle;
	struct event *terminate; /* SIGTERM */
	struct spawnlink link;
	struct link_config config;
	struct resolver_pool resolvers;
	struct closer closer;
	struct facts facts;
	struct hostconf hostconf;
	struct error refusal;
	struct string_list own_deny;
	struct string_list own_read_only;
	struct string_list private_cache;
	struct kernelmounts kernelmounts;
	struct alias_list deny_aliases;
	struct alias_list read_only_aliases;
	uint64_t alias_generation;
	struct built_cache built;
	char *user_profiles;
	char *host_profiles;
	struct sender_places places;
	struct client *clients;
	size_t client_count;
	struct jobs jobs;
	uint64_t ahead;
	int ahead_fds[2];
	int result;
};

/*
 * Take the inherited descriptors over, fork the resolvers, hear the configuration and look at the
 * host; then tell fsboxd that we serve. Fails when fsboxd does not play its part.
 */
int broker_init(struct broker *broker, struct error *err);
void broker_deinit(struct broker *broker);

/* Serve until idle or told to end. */
int broker_run(struct broker *broker, struct error *err);

/* Deferred to the event loop, each once however often it is called. */
void broker_reap_soon(struct broker *broker);
void broker_update_soon(struct broker *broker);

/* A job or a connection came or went: the idle clock starts or stops. */
void broker_touch(struct broker *broker);

/*
 * The job that fsboxd opened before anybody asked, as if it had answered OP_JOB_OPEN: its number, and its
 * descriptors, which are the caller's. 0: there is none.
 */
uint64_t broker_take_ahead(struct broker *broker, int ret_fds[2]);

/* The engines as clients see them, appended to LIST. */
int broker_list_engines(const struct broker *broker, struct msg_engine_list *list,
			struct error *err);

/* What this machine cannot hold, one clause each, appended to LIST. */
int broker_list_unenforced(const struct broker *broker, struct string_list *list,
			   struct error *err);

#endif
