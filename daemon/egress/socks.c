/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/socks.h"

#include <string.h>

#define VERSION 5
#define METHOD_NONE 0
#define COMMAND_CONNECT 1

enum address_type { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

int socks_read_greeting(const uint8_t *data, size_t size, struct error *err)
{
	if (size == 0)
		return 0;
	if (data[0] != VERSION)
		return refuse(err, "not SOCKS version 5");
	if (size < 2 || size < 2 + (size_t)data[1])
		return 0;
	if (!memchr(data + 2, METHOD_NONE, data[1]))
		return refuse(err, "the client insists on authentication");
	return 2 + data[1];
}

/* Bytes of an address of TYPE at DATA, which has SIZE; 0: more to come, -1: no such type. */
static int address_bytes(uint8_t type, const uint8_t *data, size_t size)
{
	switch ((enum address_type)type) {
	case TYPE_IPV4:
		return 4;
	case TYPE_NAME:
		return size < 1 ? 0 : 1 + data[0];
	case TYPE_IPV6:
		return 16;
	}
	return -1;
}

static int read_host(uint8_t type, const uint8_t *data, size_t size, struct hostname *host,
		     struct error *err)
{
	/* Programs put addresses here as if they were names. */
	if (type == TYPE_NAME)
		return hostname_parse((const char *)data + 1, size - 1, true, host, err);
	host->address = type == TYPE_IPV4 ? netaddr_from_v4(data) : netaddr_from_v6(data);
	netaddr_format(&host->address, host->name);
	return 0;
}

int socks_read_request(const uint8_t *data, size_t size, struct hostname *ret_host,
		       uint16_t *ret_port, enum socks_reply *ret_reply, struct error *err)
{
	int bytes = 0;
	uint16_t port = 0;

	*ret_reply = SOCKS_FAILURE;
	if (size >= 1 && data[0] != VERSION)
		return refuse(err, "not SOCKS version 5");
	if (size < 4)
		return 0;
	if (data[1] != COMMAND_CONNECT) {
		*ret_reply = SOCKS_NO_SUCH_COMMAND;
		return refuse(err, "only CONNECT is served");
	}
	if (data[2] != 0)
		return refuse(err, "a reserved byte is not zero");
	bytes = address_bytes(data[3], data + 4, size - 4);
	if (bytes < 0) {
		*ret_reply = SOCKS_NO_SUCH_ADDRESS;
		return refuse(err, "an unknown type of address");
	}
	if (bytes == 0 || size < 4 + (size_t)bytes + 2)
		return 0;
	port = (uint16_t)(data[4 + bytes] << 8 | data[5 + bytes]);
	if (port == 0)
		return refuse(err, "no port");
	*ret_reply = SOCKS_NOT_ALLOWED;
	if (read_host(data[3], data + 4, (size_t)bytes, ret_host, err) < 0)
		return -ERR_INVALID;
	*ret_port = port;
	return 4 + bytes + 2;
}

int socks_write_request(const struct hostname *host, uint16_t port, struct buf *out)
{
	static const uint8_t greeting[] = { VERSION, 1, METHOD_NONE };
	const uint8_t tail[] = { (uint8_t)(port >> 8), (uint8_t)port };
	uint8_t head[5] = { VERSION, COMMAND_CONNECT, 0, TYPE_NAME, (uint8_t)strlen(host->name) };
	size_t address_size = 0;

	(void)buf_add(out, greeting, sizeof(greeting));
	if (host->address.family == 0) {
		(void)buf_add(out, head, sizeof(head));
		(void)buf_add_string(out, host->name);
	} else {
		address_size = host->address.family == 4 ? 4 : 16;
		head[3] = host->address.family == 4 ? TYPE_IPV4 : TYPE_IPV6;
		(void)buf_add(out, head, 4);
		(void)buf_add(out, host->address.bytes, address_size);
	}
	(void)buf_add(out, tail, sizeof(tail));
	return out->failed ? -ERR_NOMEM : 0;
}

int socks_read_answers(const uint8_t *data, size_t size, struct error *err)
{
	int bytes = 0;

	if (size >= 1 && data[0] != VERSION)
		return refuse(err, "the upstream proxy does not speak SOCKS5");
	if (size >= 2 && data[1] != METHOD_NONE)
		return refuse(err, "the upstream proxy wants authentication");
	if (size >= 3 && data[2] != VERSION)
		return refuse(err, "the upstream proxy does not speak SOCKS5");
	if (size >= 4 && data[3] != SOCKS_SUCCEEDED)
		return refuse(err, "the upstream proxy refused");
	if (size < 6)
		return 0;
	bytes = address_bytes(data[5], data + 6, size - 6);
	if (bytes < 0)
		return refuse(err, "the upstream proxy does not speak SOCKS5");
	if (bytes == 0 || size < 6 + (size_t)bytes + 2)
		return 0;
	return 6 + bytes + 2;
}

void socks_write_answer(enum socks_reply reply, uint8_t answer[SOCKS_ANSWER_BYTES])
{
	memset(answer, 0, SOCKS_ANSWER_BYTES);
	answer[0] = VERSION;
	answer[1] = (uint8_t)reply;
	answer[3] = TYPE_IPV4;
}
