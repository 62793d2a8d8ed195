/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/refusal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 4

/* Errors of fsbox's own count down from here by their kind, as in every other reply. */
#define REFUSAL_CODE (-32000)

/* All three at their longest, and the constant text, fit a frame. */
#define MESSAGE_BYTES 600
#define STAGE_BYTES 64
#define HINT_BYTES 600

static void add(char *body, size_t *used, const char *text)
{
	for (; *text != '\0'; text++)
		body[(*used)++] = *text;
}

static void add_safe(char *body, size_t *used, size_t most, const char *text)
{
	for (size_t i = 0; text[i] != '\0' && i < most; i++) {
		bool safe = text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\';

		body[*used] = '?';
		if (safe)
			body[*used] = text[i];
		(*used)++;
	}
}

static void add_member(char *body, size_t *used, const char *name, size_t most, const char *text)
{
	if (!text)
		return;
	add(body, used, ",\"");
	add(body, used, name);
	add(body, used, "\":\"");
	add_safe(body, used, most, text);
	add(body, used, "\"");
}

size_t refusal_frame(char frame[REFUSAL_BYTES], enum error_kind kind, const char *message,
		     const char *stage, const char *hint)
{
	char *body = frame + HEADER_BYTES;
	char code[96];
	size_t used = 0;

	(void)snprintf(code, sizeof(code),
		       "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d",
		       REFUSAL_CODE - (int)kind);
	add(body, &used, code);
	add_member(body, &used, "message", MESSAGE_BYTES, message);
	add(body, &used, ",\"data\":{\"kind\":\"");
	add(body, &used, error_name(kind));
	add(body, &used, "\"");
	add_member(body, &used, "stage", STAGE_BYTES, stage);
	add_member(body, &used, "hint", HINT_BYTES, hint);
	add(body, &used, "}}}");
	for (int i = 0; i < HEADER_BYTES; i++)
		frame[i] = (char)(uint8_t)((uint32_t)used >> (8 * (HEADER_BYTES - 1 - i)));
	return HEADER_BYTES + used;
}
