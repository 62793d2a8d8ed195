/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostname.h"

#include <string.h>

#define LABEL_BYTES 63

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_hex(char byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'f');
}

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

/* Whether a resolver might take LABEL, the last of a name, for a part of an address. */
static bool label_is_number(const char *label, size_t size)
{
	size_t at = 0;
	bool hex = size >= 2 && label[0] == '0' && label[1] == 'x';

	for (at = hex ? 2 : 0; at < size; at++)
		if (hex ? !is_hex(label[at]) : !is_digit(label[at]))
			return false;
	return true;
}

static const char *label_refusal(const char *label, size_t size)
{
	if (size == 0)
		return "a label of the host name is empty";
	if (size > LABEL_BYTES)
		return "a label of the host name is longer than 63 bytes";
	if (label[0] == '-' || label[size - 1] == '-')
		return "a label of the host name begins or ends with '-'";
	return NULL;
}

/* Copies TEXT in lower case. */
static const char *copy_name(const char *text, size_t size, char *name)
{
	for (size_t i = 0; i < size; i++) {
		char byte = text[i];

		if (byte >= 'A' && byte <= 'Z')
			byte = (char)(byte - 'A' + 'a');
		if ((unsigned char)byte >= 0x80)
			return "the host name is not ASCII; write it in its xn-- form";
		if (byte == '@')
			return "a user name in front of the host";
		if (byte == '%')
			return "a zone or an escape in the host";
		if (!is_digit(byte) && !(byte >= 'a' && byte <= 'z') && byte != '-' &&
		    byte != '_' && byte != '.')
			return "a character that no host name has";
		name[i] = byte;
	}
	name[size] = '\0';
	return NULL;
}

static int parse_name(const char *text, size_t size, struct hostname *host, struct error *err)
{
	const char *why = NULL;
	size_t start = 0;

	/* "." alone and ".." stay empty labels. */
	if (size > 1 && text[size - 1] == '.')
		size--;
	if (size >= sizeof(host->name))
		return refuse(err, "the host name is longer than 253 bytes");
	why = copy_name(text, size, host->name);
	for (size_t at = 0; !why && at <= size; at++) {
		if (at < size && host->name[at] != '.')
			continue;
		why = label_refusal(host->name + start, at - start);
		if (!why && at == size && label_is_number(host->name + start, at - start))
			why = "an address must be written in its usual form, like 192.0.2.1";
		start = at + 1;
	}
	return why ? refuse(err, why) : 0;
}

static int parse_address(const char *text, size_t size, struct hostname *host, struct error *err)
{
	if (!netaddr_parse(text, size, &host->address))
		return refuse(err, memchr(text, '%', size) ? "an IPv6 address with a zone"
							   : "no IPv6 address in its usual form");
	netaddr_format(&host->address, host->name);
	return 0;
}

int hostname_parse(const char *text, size_t size, bool bare, struct hostname *ret_host,
		   struct error *err)
{
	struct hostname host = { .name = "" };
	bool bracket = size > 0 && text[0] == '[';
	int r = 0;

	if (size == 0)
		return refuse(err, "no host");
	if (bracket && (bare || size < 2 || text[size - 1] != ']'))
		return refuse(err, "a bracket too many or too few");
	if (bracket && !memchr(text, ':', size))
		return refuse(err, "brackets are for IPv6 addresses");
	if (bracket)
		r = parse_address(text + 1, size - 2, &host, err);
	else if (memchr(text, ':', size))
		r = bare ? parse_address(text, size, &host, err)
			 : refuse(err, "an IPv6 address must stand in brackets");
	else if (netaddr_parse(text, size, &host.address))
		netaddr_format(&host.address, host.name);
	else
		r = parse_name(text, size, &host, err);
	if (r == 0)
		*ret_host = host;
	return r;
}

bool hostname_parse_port(const char *text, size_t size, uint16_t *ret_port)
{
	unsigned port = 0;

	if (size == 0 || size > 5 || text[0] == '0')
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!is_digit(text[i]))
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

int hostname_parse_authority(const char *text, size_t size, uint16_t default_port,
			     struct hostname *ret_host, uint16_t *ret_port, struct error *err)
{
	const char *end = size > 0 && text[0] == '[' ? memchr(text, ']', size) : text;
	const char *colon = NULL;
	struct hostname host;
	uint16_t port = default_port;
	int r = 0;

	if (!end)
		return refuse(err, "a bracket too many or too few");
	colon = memchr(end, ':', size - (size_t)(end - text));
	if (colon && !hostname_parse_port(colon + 1, size - (size_t)(colon + 1 - text), &port))
		return refuse(err, memchr(text, '@', size) ? "a user name in front of the host"
							   : "no port from 1 to 65535");
	if (port == 0)
		return refuse(err, "no port");
	r = hostname_parse(text, colon ? (size_t)(colon - text) : size, false, &host, err);
	if (r < 0)
		return r;
	*ret_host = host;
	*ret_port = port;
	return 0;
}
