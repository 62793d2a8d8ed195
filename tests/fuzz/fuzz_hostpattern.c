/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as an entry of a host list, as a host, as host:port. What is taken has one canonical form that
 * is taken again as the same; nothing that a resolver could read as an address passes for a name.
 */

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hostpattern.h"
#include "common/limits.h"
#include "common/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_host(const struct hostname *host)
{
	struct hostname again;
	struct in_addr odd;

	must(strlen(host->name) > 0);
	must(hostname_parse(host->name, strlen(host->name), host->address.family == 6, &again,
			    NULL) == 0);
	must(strcmp(again.name, host->name) == 0);
	must(netaddr_equal(&again.address, &host->address));
	/* inet_aton() reads all the odd spellings. */
	if (host->address.family == 0)
		must(inet_aton(host->name, &odd) == 0);
}

static void check_pattern(const char *text, size_t size)
{
	AUTO(buf_deinit) struct buf first = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);
	AUTO(buf_deinit) struct buf second = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);
	struct hostpattern pattern;
	struct hostpattern again;
	struct error err = ERROR_INIT;

	if (hostpattern_parse(text, size, &pattern, &err) < 0) {
		must(err.kind == ERR_INVALID);
		for (const char *at = err.message; *at; at++)
			must(*at >= ' ' && *at <= '~');
		return;
	}
	must(hostpattern_format(&pattern, &first) == 0);
	must(hostpattern_parse(first.data, first.size, &again, NULL) == 0);
	must(hostpattern_format(&again, &second) == 0);
	must(strcmp(buf_text(&first), buf_text(&second)) == 0);
	must(pattern.wildcard == again.wildcard && pattern.private_too == again.private_too &&
	     pattern.port == again.port);
	hostpattern_deinit(&pattern);
	hostpattern_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct hostname host;
	uint16_t port = 0;

	check_pattern(text, size);
	if (hostname_parse(text, size, false, &host, NULL) == 0)
		check_host(&host);
	if (hostname_parse(text, size, true, &host, NULL) == 0)
		check_host(&host);
	if (hostname_parse_authority(text, size, 0, &host, &port, NULL) == 0) {
		check_host(&host);
		must(port != 0);
	}
	if (size == 16) {
		struct netaddr address = netaddr_from_v6(data);
		struct netaddr again;
		char written[NETADDR_TEXT_BYTES];

		must(netaddr_classify(&address) < NETADDR_CLASS_COUNT);
		netaddr_format(&address, written);
		must(netaddr_parse(written, strlen(written), &again));
		must(netaddr_equal(&address, &again));
	}
	return 0;
}
