/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A host's fsboxd.conf and, after a NUL, a user's: each is read or refused with its line; what was
 * read obeys the bounds of its keys, and a user's file never loosens what the host's has set.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostconf.h"
#include "common/path.h"
#include "common/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_error(const struct error *err)
{
	must(err->kind == ERR_CONFIG && strncmp(err->message, "f:", 2) == 0);
}

static void check_conf(const struct hostconf *conf)
{
	must(conf->max_net <= NET_HOST);
	must(conf->absent_deny >= ABSENT_PLACEHOLDER && conf->absent_deny <= ABSENT_IGNORE);
	must(conf->max_jobs >= 1 && conf->max_jobs_per_uid >= 1);
	must(conf->default_profile && conf->admin_group);
	for (size_t i = 0; i < conf->mandatory_deny.count; i++)
		must(!path_refusal(conf->mandatory_deny.items[i]));
	for (size_t i = 0; i < conf->mandatory_read_only.count; i++)
		must(!path_refusal(conf->mandatory_read_only.items[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *nul = size ? memchr(data, '\0', size) : NULL;
	size_t host_size = nul ? (size_t)(nul - text) : size;
	struct error err = ERROR_INIT;
	struct hostconf conf;
	enum net_mode max_net = NET_NONE;
	uint32_t max_jobs = 0;

	must(hostconf_init(&conf, NULL) == 0);
	if (hostconf_parse(&conf, text, host_size, "f", false, &err) < 0) {
		check_error(&err);
	} else {
		check_conf(&conf);
		max_net = conf.max_net;
		max_jobs = conf.max_jobs;
		conf.spoken = UINT64_MAX;
		if (!nul) {
			/* The host's own file again, as a user's: nothing in it is looser. */
		} else if (hostconf_parse(&conf, nul + 1, size - host_size - 1, "f", true, &err) <
			   0) {
			check_error(&err);
		} else {
			check_conf(&conf);
		}
		must(conf.max_net <= max_net && conf.max_jobs <= max_jobs);
	}
	hostconf_deinit(&conf);
	return 0;
}
