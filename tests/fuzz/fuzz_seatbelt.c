/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Strings ended by NUL as a policy: the first byte of each says what it is (`w`, `r`, `d` a rule,
 * `W` and `D` expressions, `f` a final read-only path, anything else the network), the rest is its
 * text. Both texts are compiled; the hardened one must have no control character besides newlines and
 * must be balanced outside of strings, whatever the policy says.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "common/seatbelt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void add(struct policy *policy, const char *text)
{
	const char *rest = text + 1;

	switch (text[0]) {
	case 'w':
		(void)rule_list_append(&policy->rules, rest, ACCESS_READ_WRITE, RULE_USER, NULL,
				       NULL);
		break;
	case 'r':
		(void)rule_list_append(&policy->rules, rest, ACCESS_READ_ONLY, RULE_USER, NULL,
				       NULL);
		break;
	case 'd':
		(void)rule_list_append(&policy->rules, rest, ACCESS_DENY, RULE_MANDATORY, NULL,
				       NULL);
		break;
	case 'W':
		(void)string_list_add(&policy->write_regexes, rest, NULL);
		break;
	case 'D':
		(void)string_list_add(&policy->deny_regexes, rest, NULL);
		break;
	case 'f':
		(void)string_list_add(&policy->final_read_only, rest, NULL);
		break;
	default:
		policy->net = NET_HOST;
		break;
	}
}

static void check_hard_text(const struct buf *out)
{
	bool in_string = false;
	int depth = 0;

	for (size_t i = 0; i < out->size; i++) {
		unsigned char byte = (unsigned char)out->data[i];

		must(byte == '\n' ? !in_string : byte >= 0x20 && byte != 0x7f);
		if (in_string && byte == '\\')
			i++;
		else if (byte == '"')
			in_string = !in_string;
		else if (!in_string && (byte == '(' || byte == ')'))
			depth += byte == '(' ? 1 : -1;
		must(depth >= 0);
	}
	must(depth == 0 && !in_string);
	must(!out->data || !strstr(out->data, "regex"));
}

/* An empty policy text cannot contain the word; one about paths called so can. */
static bool says_regex(const uint8_t *data, size_t size)
{
	return memmem(data, size, "regex", 5) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf plain = BUF_INIT(4u << 20);
	AUTO(buf_deinit) struct buf hard = BUF_INIT(4u << 20);
	AUTO(auto_free) char *text = malloc(size + 1);

	if (!text || says_regex(data, size))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		if (text[at])
			add(&policy, text + at);

	(void)seatbelt_compile(&plain, &policy, 0, NULL);
	if (seatbelt_compile(&hard, &policy, SEATBELT_HARDEN_ALL, NULL) == 0)
		check_hard_text(&hard);
	return 0;
}
