/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/profiles.h"

#include <errno.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/lookuprecord.h"

static int find_next(struct profile_load *load, struct error *err);

enum profile_base profiles_builtin(const char *name)
{
	for (int base = PROFILE_BASE_GENERIC; base <= PROFILE_BASE_BOTMUX; base++) {
		if (strcmp(name, profile_base_name((enum profile_base)base)) == 0)
			return (enum profile_base)base;
	}
	return PROFILE_BASE_NONE;
}

const char *profile_base_name(enum profile_base base)
{
	switch (base) {
	case PROFILE_BASE_GENERIC:
		return "generic";
	case PROFILE_BASE_HOST:
		return "host";
	case PROFILE_BASE_BOTMUX:
		return "botmux";
	case PROFILE_BASE_NONE:
		break;
	}
	return "none";
}

/* Letters, digits, `-`, `_` and inner dots: nothing that leaves a directory. */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length > LIMIT_NAME_BYTES - 1 || name[0] == '.')
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && c != '.')
			return false;
	}
	return true;
}

void profiles_deinit(struct profile_load *load)
{
	if (load == NULL)
		return;
	lookup_cancel(load->lookup);
	load->lookup = NULL;
	profile_deinit(&load->profile);
	free(load->asked);
	free(load->path);
	load->asked = NULL;
	load->path = NULL;
	string_list_deinit(&load->visited);
}

/* A file was read: put it beneath what extends it. 1: nothing more to read, 0: more is. */
static int take_file(struct profile_load *load, const char *text, size_t size, struct error *err)
{
	struct profile found = { 0 };
	int r = profile_parse(&found, text, size, load->path, err);

	if (r < 0)
		return r;
	if (load->visited.count == 0) {
		load->profile = found;
	} else {
		r = profile_merge_take(&load->profile, &found, err);
		profile_deinit(&found);
	}
	if (r == 0)
		r = string_list_add(&load->visited, load->path, err);
	if (r < 0)
		return r;
	if (load->profile.extends == NULL)
		return 1;
	load->base = profiles_builtin(load->profile.extends);
	if (load->base != PROFILE_BASE_NONE)
		return 1;
	free(load->asked);
	load->asked = strdup(load->profile.extends);
	load->dir = 0;
	if (load->asked == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a profile");
	r = find_next(load, err);
	if (r < 0)
		error_prefix(err, "%s: extends", load->visited.items[load->visited.count - 1]);
	return r;
}

static struct buf read_request(const struct profile_load *load)
{
	struct buf values = BUF_INIT(2 * LIMIT_PATH_BYTES + 64);

	pack_string(&values, load->path);
	pack_u32(&values, LIMIT_PROFILE_BYTES);
	return values;
}

static void keep_record(struct profile_load *load, const void *answer, size_t size)
{
	struct buf values = read_request(load);

	lookup_record_add(load->record, LOOKUP_READ, &values, answer, size);
	buf_deinit(&values);
}

static void on_read(void *arg, const void *values, size_t size, const struct error *why)
{
	struct profile_load *load = arg;
	struct unpack in = UNPACK_INIT(values, size);
	struct error err = ERROR_INIT;
	const char *text;
	size_t text_size;
	int errnum;
	int r;

	load->lookup = NULL;
	if (why != NULL) {
		err = *why;
		error_prefix(&err, "profile '%s'", load->asked);
		load->done(load->arg, &err);
		return;
	}
	if (load->record != NULL)
		keep_record(load, values, size);
	errnum = (int)unpack_u32(&in);
	text = unpack_bytes(&in, &text_size);
	r = unpack_end(&in, &err);
	if (r == 0 && errnum == 0) {
		r = take_file(load, text, text_size, &err);
	} else if (r == 0 && (errnum == ENOENT || errnum == ENOTDIR) && load->asked[0] != '/') {
		load->dir++;
		r = find_next(load, &err);
	} else if (r == 0) {
		r = error_set(&err, ERR_CONFIG, errnum, "profile '%s': '%s'", load->asked,
			      load->path);
	}
	if (r != 0)
		load->done(load->arg, r < 0 ? &err : NULL);
}

/* Whether the file is one of those that led here. */
static int check_chain(const struct profile_load *load, struct error *err)
{
	if (string_list_has(&load->visited, load->path))
		return error_set(err, ERR_CONFIG, 0, "profile '%s' extends itself", load->path);
	if (load->visited.count >= PROFILE_DEPTH_MAX)
		return error_set(err, ERR_CONFIG, 0, "more than %d profiles extend one another",
				 PROFILE_DEPTH_MAX);
	return 0;
}

/* Ask for the file that load->asked means, in the directory that is next. */
static int find_next(struct profile_load *load, struct error *err)
{
	struct buf values;
	int r;

	free(load->path);
	load->path = NULL;
	if (load->asked[0] == '/') {
		load->path = path_collapse(load->asked);
	} else if (!is_name(load->asked)) {
		return error_set(err, ERR_CONFIG, 0,
				 "neither a profile's name nor an absolute path");
	} else {
		char file[LIMIT_NAME_BYTES + 8];

		while (load->dir < PROFILE_DIRS && load->dirs.dirs[load->dir] == NULL)
			load->dir++;
		if (load->dir == PROFILE_DIRS)
			return error_set(err, ERR_CONFIG, 0, "there is no profile '%s'",
					 load->asked);
		(void)memcpy(file, load->asked, strlen(load->asked));
		(void)memcpy(file + strlen(load->asked), ".json", sizeof(".json"));
		load->path = path_join(load->dirs.dirs[load->dir], file);
	}
	if (load->path == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a profile");
	r = check_chain(load, err);
	if (r < 0)
		return r;
	values = read_request(load);
	r = resolver_pool_ask(load->pool, LOOKUP_READ, &values, on_read, load, &load->lookup, err);
	buf_deinit(&values);
	return r;
}

int profiles_load(struct profile_load *load, struct resolver_pool *pool,
		  const struct profile_dirs *dirs, const char *name, profiles_done_fn *done,
		  void *arg, struct error *err)
{
	load->base = profiles_builtin(name);
	if (load->base != PROFILE_BASE_NONE)
		return 1;
	if (name[0] != '/' && !is_name(name))
		return error_set(err, ERR_INVALID, 0,
				 "params.profile: neither a profile's name nor an absolute path");
	load->pool = pool;
	load->dirs = *dirs;
	load->done = done;
	load->arg = arg;
	load->asked = strdup(name);
	if (load->asked == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a profile");
	return find_next(load, err);
}
