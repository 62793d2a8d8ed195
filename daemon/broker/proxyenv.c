/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/proxyenv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "common/units.h"

#define URL_BYTES sizeof("http://127.0.0.1:65535")

/* What is inside is reached without it. */
#define NOT_THROUGH_IT "localhost,127.0.0.1,::1"

/* git reads as many GIT_CONFIG_KEY_n as it is told; more than this nobody sets by hand. */
#define GIT_COUNT_MAX 10000

enum value { VALUE_URL, VALUE_ADDRESS, VALUE_PORT, VALUE_EXCEPT, VALUE_YES, VALUE_HTTP };

static const struct {
	const char *name;
	enum value value;
} variables[] = {
	{ "HTTP_PROXY", VALUE_URL },
	{ "http_proxy", VALUE_URL },
	{ "HTTPS_PROXY", VALUE_URL },
	{ "https_proxy", VALUE_URL },
	/* Not socks5h://: Python's httpx, for one, then refuses to start without another package. */
	{ "ALL_PROXY", VALUE_URL },
	{ "all_proxy", VALUE_URL },
	{ "NO_PROXY", VALUE_EXCEPT },
	{ "no_proxy", VALUE_EXCEPT },
	{ "npm_config_proxy", VALUE_URL },
	{ "npm_config_https_proxy", VALUE_URL },
	{ "npm_config_noproxy", VALUE_EXCEPT },
	{ "YARN_HTTP_PROXY", VALUE_URL },
	{ "YARN_HTTPS_PROXY", VALUE_URL },
	{ "NODE_USE_ENV_PROXY", VALUE_YES }, /* node 24 on: fetch() and http obey the others */
	{ "ELECTRON_GET_USE_PROXY", VALUE_YES },
	{ "PIP_PROXY", VALUE_URL },
	{ "CARGO_HTTP_PROXY", VALUE_URL },
	{ "CLOUDSDK_PROXY_TYPE", VALUE_HTTP },
	{ "CLOUDSDK_PROXY_ADDRESS", VALUE_ADDRESS },
	{ "CLOUDSDK_PROXY_PORT", VALUE_PORT },
};

int proxyenv_set(struct env_list *list, uint16_t port, struct error *err)
{
	char url[URL_BYTES];
	char number[sizeof("65535")];
	const char *const values[] = {
		[VALUE_URL] = url,     [VALUE_ADDRESS] = "127.0.0.1",
		[VALUE_PORT] = number, [VALUE_EXCEPT] = NOT_THROUGH_IT,
		[VALUE_YES] = "1",     [VALUE_HTTP] = "http",
	};
	int r = 0;

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%" PRIu16, port);
	(void)snprintf(number, sizeof(number), "%" PRIu16, port);
	for (size_t i = 0; i < ARRAY_SIZE(variables) && r == 0; i++)
		r = env_list_add(list, variables[i].name, values[variables[i].value], err);
	return r;
}

/* The string NAME=VALUE in ENV, or NULL. */
static char **find(const struct string_list *env, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
			return &env->items[i];
	}
	return NULL;
}

static const char *value_of(const struct string_list *env, const char *name)
{
	char **found = find(env, name);

	return found != NULL ? *found + strlen(name) + 1 : NULL;
}

static int put(struct string_list *env, const char *name, const char *value, struct error *err)
{
	AUTO(auto_free) char *text = NULL;
	char **found = find(env, name);

	if (asprintf(&text, "%s=%s", name, value) < 0) {
		text = NULL;
		return error_set(err, ERR_NOMEM, ENOMEM, "environment");
	}
	if (found == NULL)
		return string_list_add(env, text, err);
	free(*found);
	*found = steal_ptr(&text);
	return 0;
}

/* Of an option given twice Java takes the last one. */
static int merge_java(struct string_list *env, uint16_t port, struct error *err)
{
	static const char name[] = "JAVA_TOOL_OPTIONS";
	const char *before = value_of(env, name);
	AUTO(auto_free) char *value = NULL;

	if (asprintf(&value,
		     "%s%s-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=%" PRIu16
		     " -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%" PRIu16
		     " -Dhttp.nonProxyHosts=localhost|127.*|[::1]",
		     before != NULL ? before : "", before != NULL && before[0] != '\0' ? " " : "",
		     port, port) < 0) {
		value = NULL;
		return error_set(err, ERR_NOMEM, ENOMEM, "environment");
	}
	return put(env, name, value, err);
}

/* Over what ~/.gitconfig says: a proxy of the host's is out of reach. */
static int merge_git(struct string_list *env, uint16_t port, struct error *err)
{
	static const char count_name[] = "GIT_CONFIG_COUNT";
	const char *before = value_of(env, count_name);
	uint64_t count = 0;
	char name[sizeof("GIT_CONFIG_VALUE_") + 20];
	char url[URL_BYTES];
	int r;

	if (before != NULL && !parse_count(before, 0, GIT_COUNT_MAX, &count))
		return 0; /* git will say what is wrong with it */
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%" PRIu16, port);
	(void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%" PRIu64, count);
	r = put(env, name, "http.proxy", err);
	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "GIT_CONFIG_VALUE_%" PRIu64, count);
	r = put(env, name, url, err);
	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%" PRIu64, count + 1);
	return put(env, count_name, name, err);
}

int proxyenv_merge(struct string_list *env, uint16_t port, struct error *err)
{
	int r = merge_java(env, port, err);

	return r < 0 ? r : merge_git(env, port, err);
}
