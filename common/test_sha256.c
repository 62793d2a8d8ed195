/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sha256.h"

#include <stdio.h>
#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

/* FIPS 180-4 examples and the NIST short-message vectors (SHA256ShortMsg.rsp). */
static const struct {
	const char *message;
	size_t size;
	const char *digest;
} vectors[] = {
	{ "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
	  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	  112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	{ "\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1" },
	{ "\x11\xaf", 2, "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98" },
	{ "\xc9\x8c\x8e\x55", 4,
	  "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504" },
};

static void standard_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		char text[SHA256_HEX_BYTES];

		sha256_hex(vectors[i].message, vectors[i].size, text);
		assert_string_equal(text, vectors[i].digest);
	}
}

static void hex_of(struct sha256 *sha, char text[SHA256_HEX_BYTES])
{
	uint8_t digest[SHA256_BYTES];

	sha256_finish(sha, digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void a_million_letters_in_odd_pieces(void **state)
{
	struct sha256 sha;
	char piece[997];
	char text[SHA256_HEX_BYTES];
	size_t left = 1000000;

	(void)state;
	memset(piece, 'a', sizeof(piece));
	sha256_init(&sha);
	for (size_t size = 1; left > 0; size = size % sizeof(piece) + 1) {
		size_t part = size < left ? size : left;

		sha256_add(&sha, piece, part);
		left -= part;
	}
	hex_of(&sha, text);
	assert_string_equal(text,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the borders where padding takes another block: pieces agree with one go. */
static void padding_borders(void **state)
{
	char message[200];

	(void)state;
	memset(message, 'x', sizeof(message));
	for (size_t size = 0; size < sizeof(message); size++) {
		struct sha256 sha;
		char whole[SHA256_HEX_BYTES];
		char pieces[SHA256_HEX_BYTES];

		sha256_hex(message, size, whole);
		sha256_init(&sha);
		for (size_t i = 0; i < size; i++)
			sha256_add(&sha, message + i, 1);
		hex_of(&sha, pieces);
		assert_string_equal(whole, pieces);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(standard_vectors),
		cmocka_unit_test(a_million_letters_in_odd_pieces),
		cmocka_unit_test(padding_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
