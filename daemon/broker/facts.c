/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/facts.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"

#define PASSWD_BYTES_MAX (1u << 20)

static int dup_into(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "host facts");
}

static int read_passwd(struct facts *facts, struct error *err)
{
	struct passwd entry;
	struct passwd *found = NULL;
	size_t size = 4096;
	int r;

	for (;;) {
		AUTO(auto_free) char *space = malloc(size);

		if (space == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "the passwd entry");
		r = getpwuid_r(facts->uid, &entry, space, size, &found);
		if (r == ERANGE && size < PASSWD_BYTES_MAX) {
			size *= 2;
			continue;
		}
		if (r == EINTR)
			continue;
		if (found == NULL)
			return error_set(err, ERR_CONFIG, r,
					 "uid %u has no passwd entry, so no home directory",
					 facts->uid);
		r = dup_into(&facts->user, entry.pw_name, err);
		if (r == 0)
			r = dup_into(&facts->passwd_home, entry.pw_dir, err);
		if (r == 0)
			r = dup_into(&facts->shell,
				     entry.pw_shell[0] == '/' ? entry.pw_shell : "/bin/sh", err);
		return r;
	}
}

const char *facts_configured(const char text[LINK_TEXT_BYTES], const char *name)
{
	size_t length = strlen(name);
	const char *found = NULL;

	for (; *text != '\0'; text += strlen(text) + 1) {
		if (strncmp(text, name, length) == 0 && text[length] == '=' &&
		    text[length + 1] == '/')
			found = text + length + 1;
	}
	return found;
}

static int lexical_dir(char **ret_path, const char *text, const char *name, const char *home,
		       const char *below, struct error *err)
{
	const char *value = facts_configured(text, name);

	*ret_path = value != NULL ? path_clean(value) : path_join(home, below);
	if (*ret_path == NULL)
		return error_set(err, errno == ENOMEM ? ERR_NOMEM : ERR_CONFIG, 0,
				 "%s is not a usable path", name);
	return 0;
}

/* Replace each path by where it really is. */
static int canonicalise(char **paths[], size_t count, struct resolver_pool *pool,
			struct lookup_path *ret_first, struct buf *answer, struct error *err)
{
	struct buf values = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	struct unpack in;
	int r;

	pack_u32(&values, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		pack_string(&values, *paths[i]);
	r = resolver_pool_call(pool, LOOKUP_PATHS, &values, answer, err);
	buf_deinit(&values);
	if (r < 0)
		return r;
	in = (struct unpack)UNPACK_INIT(answer->data, answer->size);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct lookup_path found;

		lookup_path_unpack(&in, &found);
		if (i == 0)
			*ret_first = found;
		free(*paths[i]);
		r = dup_into(paths[i], found.real, err);
	}
	return r < 0 ? r : unpack_end(&in, err);
}

static int check_home(const struct facts *facts, const struct lookup_path *found, struct error *err)
{
	if (strcmp(facts->home, "/") == 0)
		return error_set(err, ERR_CONFIG, 0,
				 "the home directory of uid %u is '/': give it one of its own",
				 facts->uid);
	if (found->type != NODE_DIRECTORY)
		return error_set(err, ERR_CONFIG, found->errnum,
				 "the home directory '%s' of uid %u is not a directory that it can"
				 " reach",
				 facts->passwd_home, facts->uid);
	return 0;
}

static int find_directories(struct facts *facts, struct resolver_pool *pool, const char *text,
			    struct error *err)
{
	char **paths[] = { &facts->home, &facts->config_home, &facts->cache_home, &facts->data_home,
			   &facts->state_home };
	struct buf answer = BUF_INIT(RESOLVER_MESSAGE_BYTES);
	struct lookup_path home = { .type = NODE_UNKNOWN };
	int r;

	facts->home = path_clean(facts->passwd_home);
	if (facts->home == NULL)
		return error_set(err, errno == ENOMEM ? ERR_NOMEM : ERR_CONFIG, 0,
				 "the passwd entry of uid %u has no absolute home directory",
				 facts->uid);
	r = lexical_dir(&facts->config_home, text, "XDG_CONFIG_HOME", facts->home, ".config", err);
	if (r == 0)
		r = lexical_dir(&facts->cache_home, text, "XDG_CACHE_HOME", facts->home, ".cache",
				err);
	if (r == 0)
		r = lexical_dir(&facts->data_home, text, "XDG_DATA_HOME", facts->home,
				".local/share", err);
	if (r == 0)
		r = lexical_dir(&facts->state_home, text, "XDG_STATE_HOME", facts->home,
				".local/state", err);
	if (r == 0)
		r = canonicalise(paths, ARRAY_SIZE(paths), pool, &home, &answer, err);
	if (r == 0)
		r = check_home(facts, &home, err);
	buf_deinit(&answer);
	return r;
}

/* Links in / itself: the root file system only, so this cannot hang on anything of the user's. */
static void find_links(struct facts *facts)
{
	static const char *const candidates[FACTS_LINKS] = { "/bin",   "/sbin",  "/lib",
							     "/lib64", "/lib32", "/libx32" };

	for (size_t i = 0; i < FACTS_LINKS; i++) {
		struct facts_link *link = &facts->links[facts->link_count];
		ssize_t n = readlink(candidates[i], link->target, sizeof(link->target));

		if (n <= 0 || (size_t)n >= sizeof(link->target))
			continue;
		link->target[n] = '\0';
		link->path = candidates[i];
		facts->link_count++;
	}
}

int facts_init(struct facts *facts, struct resolver_pool *pool, const char text[LINK_TEXT_BYTES],
	       struct error *err)
{
	int r;

	memset(facts, 0, sizeof(*facts));
	facts->uid = getuid();
	find_links(facts);
	r = read_passwd(facts, err);
	if (r == 0)
		r = find_directories(facts, pool, text, err);
	return r;
}

void facts_deinit(struct facts *facts)
{
	if (facts == NULL)
		return;
	free(facts->user);
	free(facts->shell);
	free(facts->passwd_home);
	free(facts->home);
	free(facts->config_home);
	free(facts->cache_home);
	free(facts->data_home);
	free(facts->state_home);
	memset(facts, 0, sizeof(*facts));
}

int facts_list(const struct facts *facts, struct env_list *list, struct error *err)
{
	const struct {
		const char *name;
		const char *value;
	} shown[] = {
		{ "user", facts->user },
		{ "home", facts->home },
		{ "XDG_CONFIG_HOME", facts->config_home },
		{ "XDG_CACHE_HOME", facts->cache_home },
		{ "XDG_DATA_HOME", facts->data_home },
		{ "XDG_STATE_HOME", facts->state_home },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shown) && r == 0; i++) {
		if (shown[i].value != NULL)
			r = env_list_add(list, shown[i].name, shown[i].value, err);
	}
	return r;
}
