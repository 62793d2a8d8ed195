/* SPDX-License-Identifier: Apache-2.0 */
#include "common/netaddr.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/scope.h"

/* @bits  of the prefix that must agree. 0 bits stand for the default. */
struct prefix {
	uint8_t bytes[16];
	uint8_t bits;
	uint8_t class; /* enum netaddr_class */
};

/* From the special-purpose registries of IANA (RFC 6890); the first that fits is it. */
static const struct prefix prefixes_v4[] = {
	/* Metadata services: EC2 and most others, Azure, Alibaba, Oracle. */
	{ { 169, 254, 169, 254 }, 32, NETADDR_METADATA },
	{ { 169, 254, 170, 2 }, 32, NETADDR_METADATA },
	{ { 169, 254, 170, 23 }, 32, NETADDR_METADATA },
	{ { 168, 63, 129, 16 }, 32, NETADDR_METADATA },
	{ { 100, 100, 100, 200 }, 32, NETADDR_METADATA },
	{ { 192, 0, 0, 192 }, 32, NETADDR_METADATA },
	{ { 0 }, 32, NETADDR_UNSPECIFIED },
	{ { 0 }, 8, NETADDR_RESERVED },
	{ { 10 }, 8, NETADDR_PRIVATE },
	{ { 100, 64 }, 10, NETADDR_CGNAT },
	{ { 127 }, 8, NETADDR_LOOPBACK },
	{ { 169, 254 }, 16, NETADDR_LINK_LOCAL },
	{ { 172, 16 }, 12, NETADDR_PRIVATE },
	{ { 192, 0, 0 }, 24, NETADDR_RESERVED },
	{ { 192, 0, 2 }, 24, NETADDR_RESERVED },
	{ { 192, 88, 99 }, 24, NETADDR_TUNNEL },
	{ { 192, 168 }, 16, NETADDR_PRIVATE },
	{ { 198, 18 }, 15, NETADDR_PRIVATE }, /* benchmarks; some use it at home */
	{ { 198, 51, 100 }, 24, NETADDR_RESERVED },
	{ { 203, 0, 113 }, 24, NETADDR_RESERVED },
	{ { 224 }, 4, NETADDR_MULTICAST },
	{ { 255, 255, 255, 255 }, 32, NETADDR_MULTICAST },
	{ { 240 }, 4, NETADDR_RESERVED },
};

static const struct prefix prefixes_v6[] = {
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128, NETADDR_METADATA }, /* EC2 */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128, NETADDR_METADATA },    /* GCE */
	{ { 0 }, 128, NETADDR_UNSPECIFIED },
	{ { [15] = 1 }, 128, NETADDR_LOOPBACK },
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, NETADDR_PRIVATE }, /* a local translator */
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, NETADDR_PUBLIC },   /* what it carries counts */
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, NETADDR_TUNNEL },   /* Teredo */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, NETADDR_RESERVED }, /* documentation */
	{ { 0x20, 0x01, 0x00 }, 23, NETADDR_RESERVED },       /* IETF protocols */
	{ { 0x20, 0x02 }, 16, NETADDR_TUNNEL },               /* 6to4 */
	{ { 0x3f, 0xff }, 20, NETADDR_RESERVED },             /* documentation */
	{ { 0x20 }, 3, NETADDR_PUBLIC },                      /* global unicast */
	{ { 0xfc }, 7, NETADDR_UNIQUE_LOCAL },
	{ { 0xfe, 0x80 }, 10, NETADDR_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, NETADDR_PRIVATE }, /* site-local, of old */
	{ { 0xff }, 8, NETADDR_MULTICAST },
	{ { 0 }, 0, NETADDR_RESERVED }, /* nothing else was ever given out */
};

static bool prefix_holds(const struct prefix *prefix, const uint8_t *bytes)
{
	size_t whole = prefix->bits / 8;
	unsigned rest = prefix->bits % 8;

	if (memcmp(prefix->bytes, bytes, whole) != 0)
		return false;
	return rest == 0 || ((prefix->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}

static enum netaddr_class find(const struct prefix *prefixes, size_t count, const uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++)
		if (prefix_holds(&prefixes[i], bytes))
			return (enum netaddr_class)prefixes[i].class;
	return NETADDR_PUBLIC;
}

static bool parse_v4(const char *text, size_t size, uint8_t *ret_bytes)
{
	size_t at = 0;

	for (size_t part = 0; part < 4; part++) {
		size_t start = at;
		unsigned value = 0;

		if (part > 0 && (at == size || text[at++] != '.'))
			return false;
		start = at;
		while (at < size && at - start < 3 && text[at] >= '0' && text[at] <= '9')
			value = value * 10 + (unsigned)(text[at++] - '0');
		if (at == start || value > 255 || (at - start > 1 && text[start] == '0'))
			return false;
		ret_bytes[part] = (uint8_t)value;
	}
	return at == size;
}

struct netaddr netaddr_from_v4(const void *bytes)
{
	struct netaddr address = { .family = 4 };

	memcpy(address.bytes, bytes, 4);
	return address;
}

struct netaddr netaddr_from_v6(const void *bytes)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct netaddr address = { .family = 6 };

	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		return netaddr_from_v4((const uint8_t *)bytes + sizeof(mapped));
	memcpy(address.bytes, bytes, 16);
	return address;
}

bool netaddr_parse(const char *text, size_t size, struct netaddr *ret_address)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (size == 0 || size >= sizeof(copy) || memchr(text, '\0', size))
		return false;
	if (!memchr(text, ':', size)) {
		if (!parse_v4(text, size, bytes))
			return false;
		*ret_address = netaddr_from_v4(bytes);
		return true;
	}
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (inet_pton(AF_INET6, copy, bytes) != 1)
		return false;
	*ret_address = netaddr_from_v6(bytes);
	return true;
}

bool netaddr_equal(const struct netaddr *a, const struct netaddr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void netaddr_format(const struct netaddr *address, char *text)
{
	_Static_assert(NETADDR_TEXT_BYTES >= INET6_ADDRSTRLEN, "any address fits");

	text[0] = '\0';
	if (address->family == 4 || address->family == 6)
		(void)inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text,
				NETADDR_TEXT_BYTES);
}

bool netaddr_embedded(const struct netaddr *address, struct netaddr *ret_inner)
{
	static const uint8_t zeros[12] = { 0 };
	static const uint8_t translator[12] = { 0x00, 0x64, 0xff, 0x9b };
	const uint8_t *bytes = address->bytes;
	const uint8_t *inner = NULL;

	if (address->family != 6)
		return false;
	/* ISATAP: the interface is 0000:5efe or 0200:5efe. Compatible: but not :: and ::1. */
	if (bytes[0] == 0x20 && bytes[1] == 0x02)
		inner = bytes + 2;
	else if (memcmp(bytes, translator, sizeof(translator)) == 0 ||
		 ((bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e &&
		  bytes[11] == 0xfe) ||
		 (memcmp(bytes, zeros, sizeof(zeros)) == 0 &&
		  (bytes[12] || bytes[13] || bytes[14])))
		inner = bytes + 12;
	if (!inner)
		return false;
	*ret_inner = netaddr_from_v4(inner);
	return true;
}

enum netaddr_class netaddr_classify(const struct netaddr *address)
{
	enum netaddr_class class = NETADDR_UNSPECIFIED;
	struct netaddr inner;

	if (address->family == 4)
		return find(prefixes_v4, ARRAY_SIZE(prefixes_v4), address->bytes);
	if (address->family != 6)
		return NETADDR_UNSPECIFIED;
	/* What it carries first: a tunnel to the metadata service is that service. */
	if (netaddr_embedded(address, &inner)) {
		class = find(prefixes_v4, ARRAY_SIZE(prefixes_v4), inner.bytes);
		if (class != NETADDR_PUBLIC)
			return class;
	}
	return find(prefixes_v6, ARRAY_SIZE(prefixes_v6), address->bytes);
}

#define X(symbol, name, text) { name, text },
static const struct {
	const char *name;
	const char *text;
} classes[] = { NETADDR_CLASSES(X) };
#undef X

const char *netaddr_class_name(enum netaddr_class class)
{
	return (size_t) class < ARRAY_SIZE(classes) ? classes[class].name : "unknown";
}

const char *netaddr_class_text(enum netaddr_class class)
{
	return (size_t) class < ARRAY_SIZE(classes) ? classes[class].text : "an unknown address";
}
