/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sha256.h"

#include <string.h>

#define LENGTH_BYTES 8

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

/* The same of the square roots of the first eight. */
static const uint32_t initial_state[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotate_right(uint32_t word, unsigned int bits)
{
	return (word >> bits) | (word << (32 - bits));
}

static void expand_block(uint32_t schedule[64], const uint8_t block[SHA256_BLOCK_BYTES])
{
	for (size_t i = 0; i < 16; i++)
		schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			      (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t w15 = schedule[i - 15];
		uint32_t w2 = schedule[i - 2];
		uint32_t s0 = rotate_right(w15, 7) ^ rotate_right(w15, 18) ^ (w15 >> 3);
		uint32_t s1 = rotate_right(w2, 17) ^ rotate_right(w2, 19) ^ (w2 >> 10);

		schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
	}
}

/* The variables are those of the standard: v[0] is a, v[7] is h. */
static void digest_block(uint32_t state[8], const uint8_t block[SHA256_BLOCK_BYTES])
{
	uint32_t schedule[64];
	uint32_t v[8];

	expand_block(schedule, block);
	memcpy(v, state, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		uint32_t s1 =
			rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choice + round_constants[i] + schedule[i];
		uint32_t s0 =
			rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + s0 + majority;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *sha)
{
	*sha = (struct sha256){ .size_bytes = 0 };
	memcpy(sha->state, initial_state, sizeof(initial_state));
}

void sha256_add(struct sha256 *sha, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	while (size > 0) {
		size_t used = (size_t)(sha->size_bytes % SHA256_BLOCK_BYTES);
		size_t part = SHA256_BLOCK_BYTES - used < size ? SHA256_BLOCK_BYTES - used : size;

		memcpy(sha->block + used, bytes, part);
		sha->size_bytes += part;
		bytes += part;
		size -= part;
		if (used + part == SHA256_BLOCK_BYTES)
			digest_block(sha->state, sha->block);
	}
}

void sha256_finish(struct sha256 *sha, uint8_t ret_digest[SHA256_BYTES])
{
	static const uint8_t padding[SHA256_BLOCK_BYTES] = { 0x80 };
	uint64_t bits = sha->size_bytes * 8;
	size_t used = (size_t)(sha->size_bytes % SHA256_BLOCK_BYTES);
	size_t room = SHA256_BLOCK_BYTES - LENGTH_BYTES;
	uint8_t length[LENGTH_BYTES];

	for (size_t i = 0; i < LENGTH_BYTES; i++)
		length[i] = (uint8_t)(bits >> (8 * (LENGTH_BYTES - 1 - i)));
	sha256_add(sha, padding, used < room ? room - used : SHA256_BLOCK_BYTES + room - used);
	sha256_add(sha, length, sizeof(length));

	for (size_t i = 0; i < SHA256_BYTES; i++)
		ret_digest[i] = (uint8_t)(sha->state[i / 4] >> (8 * (3 - i % 4)));
}

void sha256_hex(const void *data, size_t size, char ret_text[SHA256_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[SHA256_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, data, size);
	sha256_finish(&sha, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		ret_text[2 * i] = digits[digest[i] >> 4];
		ret_text[2 * i + 1] = digits[digest[i] & 15];
	}
	ret_text[SHA256_HEX_BYTES - 1] = '\0';
}
