/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostconf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

static struct hostconf fresh(void)
{
	struct hostconf conf;
	struct error err = ERROR_INIT;

	assert_int_equal(hostconf_init(&conf, &err), 0);
	return conf;
}

static void accept(struct hostconf *conf, const char *text, bool user_file)
{
	struct error err = ERROR_INIT;

	if (hostconf_parse(conf, text, strlen(text), "f", user_file, &err) != 0)
		fail_msg("'%s': %s", text, err.message);
}

static void refuse(struct hostconf *conf, const char *text, bool user_file, const char *message)
{
	struct error err = ERROR_INIT;

	assert_int_equal(hostconf_parse(conf, text, strlen(text), "f", user_file, &err),
			 -ERR_CONFIG);
	assert_string_equal(err.message, message);
}

static void defaults_come_from_the_table(void **state)
{
	AUTO(hostconf_deinit) struct hostconf conf = fresh();
	size_t count = 0;
	const struct hostconf_key *keys = hostconf_keys(&count);

	(void)state;
	assert_int_equal(conf.max_net, NET_HOST);
	assert_int_equal(conf.root_peers, ROOT_PEERS_REFUSE);
	assert_int_equal(conf.audit, AUDIT_BEST_EFFORT);
	assert_int_equal(conf.on_unmask, ON_UNMASK_REMASK);
	assert_int_equal(conf.on_plant, ON_PLANT_QUARANTINE);
	assert_int_equal(conf.absent_deny, ABSENT_PLACEHOLDER);
	assert_string_equal(conf.default_profile, "generic");
	assert_null(conf.default_engine);
	assert_null(conf.upstream_proxy);
	assert_string_equal(conf.admin_group, "fsbox-admin");
	assert_int_equal(conf.max_jobs_per_uid, LIMIT_JOBS_PER_UID);
	assert_int_equal(conf.max_jobs, LIMIT_JOBS);
	assert_int_equal(conf.max_spawns_per_second, LIMIT_SPAWNS_PER_SECOND);
	assert_int_equal(conf.default_memory_bytes, 0);
	assert_int_equal(conf.default_timeout_ms, 0);
	assert_int_equal(conf.events_max_bytes, 64 << 20);
	assert_int_equal(conf.log_level, 2);
	assert_int_equal(conf.spoken, 0);
	assert_true(count >= 29);
	for (size_t i = 0; i < count; i++) {
		assert_true(strlen(keys[i].help) > 0);
		assert_true(strlen(keys[i].form) > 0);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i].key, keys[j].key);
	}
}

/* What --help prints as a default can be written into a file and changes nothing. */
static void every_default_is_a_legal_value(void **state)
{
	size_t count = 0;
	const struct hostconf_key *keys = hostconf_keys(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		AUTO(hostconf_deinit) struct hostconf conf = fresh();
		char line[256];

		if (keys[i].default_value[0] == '\0')
			continue;
		(void)snprintf(line, sizeof(line), "%s = %s\n", keys[i].key, keys[i].default_value);
		accept(&conf, line, false);
	}
}

static void values_land_in_their_fields(void **state)
{
	AUTO(hostconf_deinit) struct hostconf conf = fresh();

	(void)state;
	accept(&conf,
	       "mandatory-deny = /srv/secrets\nmandatory-deny = \"/srv/a # b\"\n"
	       "mandatory-deny = /srv/secrets\nmandatory-read-only = /srv/tools\n"
	       "max-net = proxy\ndefault-profile = host\ndefault-engine = bwrap\n"
	       "root-peers = serve\nadmit-confined-uid = 1000\nadmit-confined-uid = 1001\n"
	       "admit-confined-uid = 1000\nadmin-group = wheel\nmax-jobs-per-uid = 7\n"
	       "max-jobs = 70\nmax-spawns-per-second = 20\ndefault-memory = 2G\n"
	       "default-pids = 500\ndefault-cpus = 1.5\ndefault-timeout = 1h\n"
	       "audit = required\nevents-max-bytes = 1M\non-unmask = kill\non-plant = kill\n"
	       "absent-deny = watch\nzygotes = 2\ntemplate-cache-mounts = 100\nnet-pool = 0\n"
	       "env-withhold = MY_SECRET\nenv-withhold = CORP_*\nenv-pass = GH_TOKEN\n"
	       "host-env = DATA=/srv/data\nhost-env@alice = \"DATA=a=b c\"\n"
	       "upstream-proxy = http://proxy.example:3128\ndrop-group = kvm\n"
	       "log-level = debug\n",
	       false);
	assert_int_equal(conf.mandatory_deny.count, 2);
	assert_string_equal(conf.mandatory_deny.items[1], "/srv/a # b");
	assert_string_equal(conf.mandatory_read_only.items[0], "/srv/tools");
	assert_int_equal(conf.max_net, NET_PROXY);
	assert_string_equal(conf.default_profile, "host");
	assert_string_equal(conf.default_engine, "bwrap");
	assert_int_equal(conf.root_peers, ROOT_PEERS_SERVE);
	assert_int_equal(conf.admit_confined_uid_count, 2);
	assert_int_equal(conf.admit_confined_uids[1], 1001);
	assert_string_equal(conf.admin_group, "wheel");
	assert_int_equal(conf.max_jobs_per_uid, 7);
	assert_int_equal(conf.max_jobs, 70);
	assert_int_equal(conf.max_spawns_per_second, 20);
	assert_int_equal(conf.default_memory_bytes, UINT64_C(2) << 30);
	assert_int_equal(conf.default_pids, 500);
	assert_int_equal(conf.default_cpus_milli, 1500);
	assert_int_equal(conf.default_timeout_ms, 3600000);
	assert_int_equal(conf.audit, AUDIT_REQUIRED);
	assert_int_equal(conf.events_max_bytes, 1 << 20);
	assert_int_equal(conf.on_unmask, ON_UNMASK_KILL);
	assert_int_equal(conf.on_plant, ON_PLANT_KILL);
	assert_int_equal(conf.absent_deny, ABSENT_WATCH);
	assert_int_equal(conf.zygotes, 2);
	assert_int_equal(conf.template_cache_mounts, 100);
	assert_int_equal(conf.net_pool, 0);
	assert_string_equal(conf.env_withhold.items[1], "CORP_*");
	assert_string_equal(conf.env_pass.items[0], "GH_TOKEN");
	assert_int_equal(conf.host_env_count, 2);
	assert_null(conf.host_env[0].user);
	assert_string_equal(conf.host_env[0].name, "DATA");
	assert_string_equal(conf.host_env[0].value, "/srv/data");
	assert_string_equal(conf.host_env[1].user, "alice");
	assert_string_equal(conf.host_env[1].value, "a=b c");
	assert_string_equal(conf.upstream_proxy, "http://proxy.example:3128");
	assert_string_equal(conf.drop_groups.items[0], "kvm");
	assert_int_equal(conf.log_level, 3);

	/* A later file replaces scalars and appends to lists. */
	accept(&conf, "default-engine = auto\nupstream-proxy = none\ndrop-group = disk\n", false);
	assert_null(conf.default_engine);
	assert_null(conf.upstream_proxy);
	assert_int_equal(conf.drop_groups.count, 2);
}

static void wrong_lines_name_file_line_and_key(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} rows[] = {
		{ "\n\nno-such-key = 1", "f:3: key 'no-such-key': there is no such key" },
		{ "max-net = all", "f:1: key 'max-net': expected none|proxy|host" },
		{ "max-net = no", "f:1: key 'max-net': expected none|proxy|host" },
		{ "max-net = none|proxy", "f:1: key 'max-net': expected none|proxy|host" },
		{ "max-net = none\nmax-net = none",
		  "f:2: key 'max-net': stands twice in this file" },
		{ "max-jobs = 0", "f:1: key 'max-jobs': the number is out of range" },
		{ "max-jobs = none", "f:1: key 'max-jobs': expected COUNT" },
		{ "max-jobs = 99999999999999999999999", "f:1: key 'max-jobs': expected COUNT" },
		{ "max-jobs = 4294967297", "f:1: key 'max-jobs': the number is out of range" },
		{ "default-memory = 1K", "f:1: key 'default-memory': the number is out of range" },
		{ "default-timeout = 0s",
		  "f:1: key 'default-timeout': the number is out of range" },
		{ "default-timeout = 10", "f:1: key 'default-timeout': expected DURATION|none" },
		{ "default-cpus = x", "f:1: key 'default-cpus': expected NUMBER|none" },
		{ "mandatory-deny = srv", "f:1: key 'mandatory-deny': the path is relative" },
		{ "mandatory-deny = /srv/",
		  "f:1: key 'mandatory-deny': the path ends with a slash" },
		{ "mandatory-deny = /",
		  "f:1: key 'mandatory-deny': '/' would leave nothing to run" },
		{ "env-pass = 9X", "f:1: key 'env-pass': expected PATTERN (repeatable)" },
		{ "env-pass = *", "f:1: key 'env-pass': expected PATTERN (repeatable)" },
		{ "host-env = =x", "f:1: key 'host-env': expected NAME=VALUE (repeatable)" },
		{ "host-env = x", "f:1: key 'host-env': expected NAME=VALUE (repeatable)" },
		{ "host-env@ = A=x", "f:1: key 'host-env': '@' names a user for host-env only" },
		{ "max-net@me = none", "f:1: key 'max-net': '@' names a user for host-env only" },
		{ "admit-confined-uid = -1",
		  "f:1: key 'admit-confined-uid': expected UID (repeatable)" },
		{ "admit-confined-uid = 4294967295",
		  "f:1: key 'admit-confined-uid': expected UID (repeatable)" },
		{ "default-profile = ../x", "f:1: key 'default-profile': expected NAME" },
		{ "default-profile = a/b", "f:1: key 'default-profile': expected NAME" },
		{ "default-engine = docker",
		  "f:1: key 'default-engine': expected auto|bwrap|native" },
		{ "drop-group = \"a b\"", "f:1: key 'drop-group': expected GROUP (repeatable)" },
		{ "upstream-proxy = ftp://x", "f:1: key 'upstream-proxy': expected URL|none" },
		{ "upstream-proxy = http://u:p@x:1",
		  "f:1: key 'upstream-proxy': expected URL|none" },
		{ "upstream-proxy = x", "f:1: key 'upstream-proxy': expected URL|none" },
		{ "a", "f:1: key 'a': expected '=' after it" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(hostconf_deinit) struct hostconf conf = fresh();

		refuse(&conf, rows[i].text, false, rows[i].message);
	}
}

static void a_users_file_only_makes_it_stricter(void **state)
{
	static const char *const host = "max-net = proxy\nroot-peers = serve\naudit = best-effort\n"
					"on-unmask = kill\nabsent-deny = watch\nmax-jobs = 10\n"
					"default-memory = 1G\ndefault-pids = none\n"
					"default-profile = generic\nmandatory-deny = /a\n"
					"env-pass = X\nhost-env = A=1\n";
	static const struct {
		const char *text;
		const char *message; /* NULL: accepted */
	} rows[] = {
		{ "max-net = none", NULL },
		{ "max-net = proxy", NULL },
		{ "max-net = host", "f:1: key 'max-net': the host's configuration is stricter" },
		{ "root-peers = refuse", NULL },
		{ "audit = required", NULL },
		{ "on-unmask = remask",
		  "f:1: key 'on-unmask': the host's configuration is stricter" },
		{ "absent-deny = placeholder", NULL },
		{ "absent-deny = ignore",
		  "f:1: key 'absent-deny': the host's configuration is stricter" },
		{ "max-jobs = 9", NULL },
		{ "max-jobs = 11", "f:1: key 'max-jobs': the host's configuration is stricter" },
		{ "default-memory = 512M", NULL },
		{ "default-memory = 2G",
		  "f:1: key 'default-memory': the host's configuration is stricter" },
		{ "default-memory = none",
		  "f:1: key 'default-memory': the host's configuration is stricter" },
		{ "default-pids = 100", NULL },
		{ "default-profile = host",
		  "f:1: key 'default-profile': the host's configuration has set it already" },
		{ "mandatory-deny = /b", NULL },
		{ "env-pass = Y",
		  "f:1: key 'env-pass': the host's configuration has set it already" },
		{ "host-env@me = A=2",
		  "f:1: key 'host-env': the host's configuration has set it already" },
		{ "zygotes = 5", NULL }, /* the host is silent */
		{ "default-engine = bwrap", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(hostconf_deinit) struct hostconf conf = fresh();

		accept(&conf, host, false);
		if (rows[i].message)
			refuse(&conf, rows[i].text, true, rows[i].message);
		else
			accept(&conf, rows[i].text, true);
	}
}

/* A user's first file does not bind his second: only the host's word does. */
static void users_files_do_not_bind_each_other(void **state)
{
	AUTO(hostconf_deinit) struct hostconf conf = fresh();

	(void)state;
	accept(&conf, "max-jobs = 5\n", true);
	accept(&conf, "max-jobs = 50\n", true);
	assert_int_equal(conf.max_jobs, 50);
	accept(&conf, "max-jobs = 6\n", false);
	refuse(&conf, "max-jobs = 7", true,
	       "f:1: key 'max-jobs': the host's configuration is stricter");
}

static void sizes_are_bounded(void **state)
{
	AUTO(hostconf_deinit) struct hostconf conf = fresh();
	AUTO(auto_free) char *text = malloc(LIMIT_CONFIG_BYTES + 1);
	struct error err = ERROR_INIT;
	char line[64];
	int r = 0;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', LIMIT_CONFIG_BYTES + 1);
	assert_int_equal(hostconf_parse(&conf, text, LIMIT_CONFIG_BYTES, "f", false, &err), 0);
	assert_int_equal(hostconf_parse(&conf, text, LIMIT_CONFIG_BYTES + 1, "f", false, &err),
			 -ERR_CONFIG);
	for (int i = 0; r == 0 && i <= 4096; i++) {
		(void)snprintf(line, sizeof(line), "admit-confined-uid = %d", i);
		r = hostconf_parse(&conf, line, strlen(line), "f", false, &err);
		assert_true(r == 0 || i == 4096);
	}
	assert_string_equal(err.message, "f:1: key 'admit-confined-uid': too many entries");
	for (int i = 0; (r == 0 || i == 0) && i <= 4096; i++) {
		(void)snprintf(line, sizeof(line), "drop-group = g%d", i);
		r = hostconf_parse(&conf, line, strlen(line), "f", false, &err);
		assert_true(r == 0 || i == 4096);
	}
	assert_string_equal(err.message, "f:1: key 'drop-group': too many entries");
	for (int i = 0; (r == 0 || i == 0) && i <= 4096; i++) {
		(void)snprintf(line, sizeof(line), "host-env = A%d=x", i);
		r = hostconf_parse(&conf, line, strlen(line), "f", false, &err);
		assert_true(r == 0 || i == 4096);
	}
	assert_string_equal(err.message, "f:1: key 'host-env': too many entries");
	hostconf_deinit(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_come_from_the_table),
		cmocka_unit_test(every_default_is_a_legal_value),
		cmocka_unit_test(values_land_in_their_fields),
		cmocka_unit_test(wrong_lines_name_file_line_and_key),
		cmocka_unit_test(a_users_file_only_makes_it_stricter),
		cmocka_unit_test(users_files_do_not_bind_each_other),
		cmocka_unit_test(sizes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
