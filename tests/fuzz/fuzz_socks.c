/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes of a sandbox at the SOCKS proxy, and of an upstream proxy: never more is taken than is there,
 * what is incomplete is never decided, and a request written again reads as the same.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "daemon/egress/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_request(const uint8_t *data, size_t size)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(512);
	struct hostname host;
	struct hostname again;
	uint16_t port = 0;
	uint16_t port_again = 0;
	enum socks_reply reply = SOCKS_SUCCEEDED;
	int taken = socks_read_request(data, size, &host, &port, &reply, NULL);

	must(taken <= (int)size && taken <= SOCKS_REQUEST_BYTES);
	must(taken >= 0 || reply != SOCKS_SUCCEEDED);
	must(taken != 0 || size < SOCKS_REQUEST_BYTES);
	if (taken <= 0)
		return;
	must(port != 0 && host.name[0] != '\0');
	must(socks_write_request(&host, port, &out) == 0);
	must(socks_read_request((const uint8_t *)out.data + 3, out.size - 3, &again, &port_again,
				&reply, NULL) == (int)out.size - 3);
	must(strcmp(again.name, host.name) == 0 && port_again == port);
	/* One byte less decides nothing. */
	must(socks_read_request(data, (size_t)taken - 1, &again, &port_again, &reply, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int taken = socks_read_greeting(data, size, NULL);

	must(taken <= (int)size);
	if (taken > 0)
		check_request(data + taken, size - (size_t)taken);
	check_request(data, size);
	must(socks_read_answers(data, size, NULL) <= (int)size);
	return 0;
}
