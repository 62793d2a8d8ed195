/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/quote.h"

#define ESCAPED_BYTES 4 /* \xNN */
#define TAIL_BYTES 5    /* ..., the quote, NUL */

struct quote quote(const char *text)
{
	static const char hex[] = "0123456789abcdef";
	struct quote out;
	char *at = out.text;
	const char *end = out.text + sizeof(out.text) - TAIL_BYTES - ESCAPED_BYTES;

	*at++ = '\'';
	for (; *text && at < end; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte >= 0x20 && byte < 0x7f && byte != '\'' && byte != '\\') {
			*at++ = (char)byte;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = hex[byte >> 4];
		*at++ = hex[byte & 0xf];
	}
	for (int i = 0; *text && i < 3; i++)
		*at++ = '.';
	*at++ = '\'';
	*at = '\0';
	return out;
}
