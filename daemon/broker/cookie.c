/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/cookie.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static void hash_text(const char *text, uint8_t ret_hash[COOKIE_HASH_BYTES])
{
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, text, COOKIE_TEXT - 1);
	sha256_finish(&sha, ret_hash);
}

int cookie_make(char ret_text[COOKIE_TEXT], uint8_t ret_hash[COOKIE_HASH_BYTES], struct error *err)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[COOKIE_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return error_set(err, ERR_SYSTEM, errno, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++) {
		ret_text[2 * i] = digits[bytes[i] >> 4];
		ret_text[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_text[2 * sizeof(bytes)] = '\0';
	explicit_bzero(bytes, sizeof(bytes));
	hash_text(ret_text, ret_hash);
	return 0;
}

bool cookie_fits(const uint8_t hash[COOKIE_HASH_BYTES], const char *text)
{
	uint8_t shown[COOKIE_HASH_BYTES];
	unsigned differs = 0;

	if (strlen(text) != COOKIE_TEXT - 1)
		return false;
	hash_text(text, shown);
	for (size_t i = 0; i < sizeof(shown); i++)
		differs |= (unsigned)hash[i] ^ shown[i];
	return differs == 0;
}
