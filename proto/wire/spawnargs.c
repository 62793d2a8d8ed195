/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/spawnop.h"

/* The files behind struct args_header and struct setup_header. */

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/rule.h"
#include "common/scope.h"
#include "common/sha256.h"

/* The mapping behind DATA need not be aligned for a struct: headers are copied out. */

static const char *const args_what = "args";
static const char *const setup_what = "setup";

static int size_check(const char *what, size_t size, size_t header_bytes, size_t max_bytes,
		      struct error *err)
{
	if (size <= header_bytes || size > max_bytes)
		return error_set(err, ERR_BAD_FRAME, 0, "%s of %zu bytes, not in %zu..%zu", what,
				 size, header_bytes + 1, max_bytes);
	return 0;
}

static int head_check(const char *what, uint32_t magic, uint32_t expected_magic, uint32_t size,
		      size_t expected_size, struct error *err)
{
	if (magic != expected_magic)
		return error_set(err, ERR_BAD_FRAME, 0, "%s with magic 0x%x", what, magic);
	if (size != expected_size)
		return error_set(err, ERR_BAD_FRAME, 0, "%s says %u bytes and has %zu", what, size,
				 expected_size);
	return 0;
}

/* Where the string at AT ends, or NULL. END is past the last byte. */
static const char *string_end(const char *at, const char *end)
{
	return at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
}

static int absolute_check(const char *what, const char *path, size_t size, struct error *err)
{
	if (path[0] != '/' || size > LIMIT_PATH_BYTES)
		return error_set(err, ERR_BAD_FRAME, 0, "%s: not an absolute path of %d bytes",
				 what, LIMIT_PATH_BYTES);
	return 0;
}

#define ARGS_MAX_BYTES (sizeof(struct args_header) + LIMIT_PATH_BYTES + 1 + LIMIT_ARGS_BYTES)

static int args_strings_check(const char *at, const char *end, const struct args_header *header,
			      struct error *err)
{
	size_t count = 1 + (size_t)header->argc + header->envc;

	for (size_t i = 0; i < count; i++) {
		const char *stop = string_end(at, end);
		int r = 0;

		if (!stop)
			return error_set(err, ERR_BAD_FRAME, 0, "args: string %zu of %zu is cut", i,
					 count);
		if (i == 0)
			r = absolute_check("args: working directory", at, (size_t)(stop - at), err);
		else if (i == 1 && stop == at)
			r = error_set(err, ERR_BAD_FRAME, 0, "args: the command is empty");
		else if (i > header->argc && (*at == '=' || !strchr(at, '=')))
			r = error_set(err, ERR_BAD_FRAME, 0, "args: variable %zu is not NAME=VALUE",
				      i - header->argc - 1);
		if (r < 0)
			return r;
		at = stop + 1;
	}
	if (at != end)
		return error_set(err, ERR_BAD_FRAME, 0, "args: %zu bytes after the last string",
				 (size_t)(end - at));
	return 0;
}

int args_check(const void *data, size_t size, struct error *err)
{
	struct args_header header;
	int r = size_check(args_what, size, sizeof(header), ARGS_MAX_BYTES, err);

	if (r < 0)
		return r;
	memcpy(&header, data, sizeof(header));
	r = head_check(args_what, header.magic, ARGS_MAGIC, header.size, size, err);
	if (r < 0)
		return r;
	if (header.argc < 1 || header.argc > LIMIT_ARGS_COUNT || header.envc > LIMIT_ARGS_COUNT)
		return error_set(err, ERR_BAD_FRAME, 0, "args: %u arguments and %u variables",
				 header.argc, header.envc);
	return args_strings_check((const char *)data + sizeof(header), (const char *)data + size,
				  &header, err);
}

/* Listeners are for a network of the job's own, one for each port. */
static int setup_net_check(const struct setup_header *header, struct error *err)
{
	uint32_t count = header->forward_count;
	bool bad = count > LIMIT_FORWARDS ||
		   (header->flags & SETUP_NET_HOST && (count > 0 || header->flags & SETUP_PROXY));

	for (uint32_t i = 0; i < LIMIT_FORWARDS && !bad; i++)
		bad = (header->forwards[i] == 0) != (i >= count) ||
		      (i > 0 && i < count && header->forwards[i] <= header->forwards[i - 1]);
	return bad ? error_set(err, ERR_BAD_FRAME, 0, "setup with flags 0x%x and %u ports",
			       header->flags, count)
		   : 0;
}

int setup_check(const void *data, size_t size, struct error *err)
{
	const char *at = (const char *)data + sizeof(struct setup_header);
	const char *end = (const char *)data + size;
	struct setup_header header;
	int r = size_check(setup_what, size, sizeof(header) - 1, LIMIT_PLAN_BYTES, err);

	if (r < 0)
		return r;
	memcpy(&header, data, sizeof(header));
	r = head_check(setup_what, header.magic, SETUP_MAGIC, header.size, size, err);
	if (r < 0)
		return r;
	if ((header.flags &
	     ~(uint32_t)(SETUP_NET_HOST | SETUP_DETACHED | SETUP_PROXY | SETUP_GRANTED)) != 0 ||
	    header.engine < ENGINE_BWRAP || header.engine > ENGINE_SEATBELT)
		return error_set(err, ERR_BAD_FRAME, 0, "setup with flags 0x%x, engine %u",
				 header.flags, header.engine);
	if ((header.flags & SETUP_GRANTED) && (r = grant_terms_check(&header.grant, err)) < 0)
		return r;
	if (header.path_count > LIMIT_RULES)
		return error_set(err, ERR_BAD_FRAME, 0, "setup with %u paths", header.path_count);
	r = setup_net_check(&header, err);
	if (r < 0)
		return r;

	for (uint32_t i = 0; i < header.path_count; i++) {
		const char *stop = at < end ? string_end(at + 1, end) : NULL;

		if (!stop)
			return error_set(err, ERR_BAD_FRAME, 0, "setup: path %u is cut", i);
		if (*at < ACCESS_READ_WRITE || *at > ACCESS_DENY)
			return error_set(err, ERR_BAD_FRAME, 0, "setup: path %u has access %d", i,
					 *at);
		r = absolute_check("setup", at + 1, (size_t)(stop - at - 1), err);
		if (r < 0)
			return r;
		at = stop + 1;
	}
	if (at != end)
		return error_set(err, ERR_BAD_FRAME, 0, "setup: %zu bytes after the last path",
				 (size_t)(end - at));
	return 0;
}

/* Append each string of the NULL-ended VECTOR with its NUL; *ret_count says how many. */
static int strings_add(struct buf *out, char *const vector[], uint32_t *ret_count,
		       struct error *err)
{
	uint32_t count = 0;

	for (; vector[count]; count++) {
		if (count == LIMIT_ARGS_COUNT)
			return error_set(err, ERR_INVALID, 0, "more than %d arguments or variables",
					 LIMIT_ARGS_COUNT);
		(void)buf_add(out, vector[count], strlen(vector[count]) + 1);
	}
	*ret_count = count;
	return buf_check(out, "argv and environment", err);
}

int args_encode(struct buf *out, const char *cwd, char *const argv[], char *const envp[],
		struct error *err)
{
	struct args_header header = { .magic = ARGS_MAGIC };
	size_t start = out->size;
	struct error why = ERROR_INIT;
	int r = 0;

	(void)buf_add(out, &header, sizeof(header));
	(void)buf_add(out, cwd, strlen(cwd) + 1);
	r = strings_add(out, argv, &header.argc, err);
	if (r < 0)
		return r;
	r = strings_add(out, envp, &header.envc, err);
	if (r < 0)
		return r;

	/* Nothing leaves here that the other side would refuse. */
	if (out->size - start > ARGS_MAX_BYTES)
		return error_set(err, ERR_INVALID, 0,
				 "argv and environment are longer than %u bytes", LIMIT_ARGS_BYTES);
	header.size = (uint32_t)(out->size - start);
	memcpy(out->data + start, &header, sizeof(header));
	r = args_check(out->data + start, header.size, &why);
	if (r < 0)
		return error_set(err, ERR_INVALID, 0, "%s", why.message);
	return 0;
}

/* COUNT pointers to the strings from *AT on, ended by NULL; *AT moves behind them. */
static char **strings_view(char **at, size_t count)
{
	char **view = calloc(count + 1, sizeof(*view));

	if (!view)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		view[i] = *at;
		*at += strlen(*at) + 1;
	}
	return view;
}

int args_split(const void *data, const char **ret_cwd, char ***ret_argv, char ***ret_envp,
	       struct error *err)
{
	AUTO(auto_free) char **argv = NULL;
	AUTO(auto_free) char **envp = NULL;
	struct args_header header;
	const char *cwd = (const char *)data + sizeof(header);
	char *at = (char *)(uintptr_t)(cwd + strlen(cwd) + 1);

	memcpy(&header, data, sizeof(header));
	argv = strings_view(&at, header.argc);
	if (argv)
		envp = strings_view(&at, header.envc);
	if (!argv || !envp)
		return error_set(err, ERR_NOMEM, 0, "argv and environment");

	*ret_cwd = cwd;
	*ret_argv = steal_ptr(&argv);
	*ret_envp = steal_ptr(&envp);
	return 0;
}

void args_hash(const void *data, uint8_t ret_args[HASH_BYTES], uint8_t ret_env[HASH_BYTES])
{
	const char *strings = (const char *)data + sizeof(struct args_header);
	const char *variables = strings;
	struct args_header header;
	struct sha256 sha;

	memcpy(&header, data, sizeof(header));
	for (uint32_t i = 0; i < header.argc + 1; i++)
		variables += strlen(variables) + 1;
	sha256_init(&sha);
	sha256_add(&sha, strings, (size_t)(variables - strings));
	sha256_finish(&sha, ret_args);
	sha256_init(&sha);
	sha256_add(&sha, variables, header.size - (size_t)(variables - (const char *)data));
	sha256_finish(&sha, ret_env);
}
