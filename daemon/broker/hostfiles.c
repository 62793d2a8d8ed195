/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/hostfiles.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

static void auto_buf(struct buf *buf)
{
	buf_deinit(buf);
}

/* Through a resolver child also for root's files: one way, with one limit on time and size. */
static int read_one(struct hostconf *conf, const char *path, bool user_file,
		    struct resolver_pool *pool, struct error *err)
{
	AUTO(auto_buf) struct buf values = BUF_INIT((size_t)2 * LIMIT_PATH_BYTES);
	AUTO(auto_buf) struct buf answer = BUF_INIT(LIMIT_CONFIG_BYTES + 4096);
	struct unpack in;
	const char *text;
	size_t size;
	int errnum;
	int r;

	pack_string(&values, path);
	pack_u32(&values, LIMIT_CONFIG_BYTES);
	r = resolver_pool_call(pool, LOOKUP_READ, &values, &answer, err);
	if (r < 0) {
		error_prefix(err, "%s", path);
		return r;
	}
	in = (struct unpack)UNPACK_INIT(answer.data, answer.size);
	errnum = (int)unpack_u32(&in);
	text = unpack_bytes(&in, &size);
	r = unpack_end(&in, err);
	if (r < 0 || errnum == ENOENT || errnum == ENOTDIR)
		return r;
	if (errnum != 0)
		return error_set(err, ERR_CONFIG, errnum, "%s: cannot be read", path);
	return hostconf_parse(conf, text, size, path, user_file, err);
}

static int is_conf(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_dir(struct hostconf *conf, const char *dir, struct resolver_pool *pool,
		    struct error *err)
{
	struct dirent **entries = NULL;
	int count = scandir(dir, &entries, is_conf, by_bytes);
	int r = 0;

	if (count < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (count < 0)
		return error_set(err, ERR_CONFIG, errno, "%s: cannot be read", dir);
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *path = path_join(dir, entries[i]->d_name);

		if (r == 0 && path == NULL)
			r = error_set(err, ERR_NOMEM, ENOMEM, "%s", dir);
		if (r == 0)
			r = read_one(conf, path, false, pool, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int hostfiles_read(struct hostconf *conf, const char *config_dir, const char *user_file,
		   struct resolver_pool *pool, struct error *err)
{
	AUTO(auto_free) char *main_file = path_join(config_dir, "fsboxd.conf");
	AUTO(auto_free) char *more = path_join(config_dir, "fsboxd.conf.d");
	int r;

	if (main_file == NULL || more == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "%s", config_dir);
	r = read_one(conf, main_file, false, pool, err);
	if (r == 0)
		r = read_dir(conf, more, pool, err);
	if (r == 0 && user_file != NULL)
		r = read_one(conf, user_file, true, pool, err);
	return r;
}
