/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SHA256_H
#define FSBOX_COMMON_SHA256_H

/* SHA-256 (FIPS 180-4), for digests of policies and argument vectors. Not for passwords or keys. */

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK_BYTES 64
#define SHA256_HEX_BYTES (2 * SHA256_BYTES + 1) /* with the NUL */

/* A digest under way. Copying it copies the state. */
struct sha256 {
	uint32_t state[8];
	uint64_t size_bytes;
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t size);

/* SHA must be initialised again before it is used again. */
void sha256_finish(struct sha256 *sha, uint8_t ret_digest[SHA256_BYTES]);

/* The digest of DATA as lower-case hexadecimal text. */
void sha256_hex(const void *data, size_t size, char ret_text[SHA256_HEX_BYTES]);

#endif
