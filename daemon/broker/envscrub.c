/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/envscrub.h"

#include <errno.h>
#include <search.h>
#include <string.h>

#include "common/childenv.h"
#include "common/scope.h"

/* Of a client that has no PATH. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

/* Of one that has no LANG: names of files are UTF-8 almost everywhere. */
#define DEFAULT_LANG "C.UTF-8"

/* Names with which the usual programs are handed their credentials. */
static const char *const credential_names[] = {
	"ANTHROPIC_AUTH_TOKEN",
	"AWS_ACCESS_KEY_ID",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"CI_JOB_JWT",
	"DATABASE_URL",
	"DBUS_SESSION_BUS_ADDRESS",
	"DOCKER_AUTH_CONFIG",
	"GOOGLE_APPLICATION_CREDENTIALS",
	"GOOGLE_CREDENTIALS",
	"GPG_AGENT_INFO",
	"KRB5CCNAME",
	"MYSQL_PWD",
	"NETRC",
	"NPM_CONFIG__AUTH",
	"PGPASSFILE",
	"PGPASSWORD",
	"REDISCLI_AUTH",
	"SSHPASS",
	"SSH_AGENT_PID",
	"SSH_ASKPASS",
	"SSH_AUTH_SOCK",
	"XAUTHORITY",
};

/* Whole families. */
static const char *const credential_prefixes[] = {
	"ACTIONS_ID_TOKEN_",
	"FSBOX_COOKIE",
};

static const char *const credential_suffixes[] = {
	"_ACCESS_KEY", "_ACCOUNT_KEY", "_API_KEY",  "_APIKEY",      "_AUTH_TOKEN",  "_CREDENTIALS",
	"_PASSPHRASE", "_PASSWD",      "_PASSWORD", "_PAT",         "_PRIVATE_KEY", "_SECRET",
	"_SECRET_KEY", "_SIGNING_KEY", "_TOKEN",    "_WEBHOOK_URL",
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);
	size_t end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool envscrub_is_credential(const char *name)
{
	if (childenv_is_secret(name))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(credential_names); i++) {
		if (strcmp(name, credential_names[i]) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(credential_prefixes); i++) {
		if (strncmp(name, credential_prefixes[i], strlen(credential_prefixes[i])) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(credential_suffixes); i++) {
		/* `TOKEN` alone and `_TOKEN` at the end of anything. */
		if (ends_with(name, credential_suffixes[i]) ||
		    strcmp(name, credential_suffixes[i] + 1) == 0)
			return true;
	}
	return false;
}

static bool listed(const struct string_list *const lists[ENVSCRUB_LISTS], const char *name)
{
	for (size_t i = 0; i < ENVSCRUB_LISTS; i++) {
		for (size_t k = 0; lists[i] != NULL && k < lists[i]->count; k++) {
			const char *pattern = lists[i]->items[k];
			size_t length = strlen(pattern);

			if (length > 0 && pattern[length - 1] == '*'
				    ? strncmp(name, pattern, length - 1) == 0
				    : strcmp(name, pattern) == 0)
				return true;
		}
	}
	return false;
}

/*
 * The environment while it is built: its variables by name. A tree, since a hostile client sends
 * tens of thousands.
 */
struct builder {
	struct string_list *env;
	void *names;
};

struct env_entry {
	size_t index; /* in env */
	size_t name_length;
	char name[];
};

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct env_entry *)a)->name, ((const struct env_entry *)b)->name);
}

static struct env_entry *entry_new(const char *name)
{
	size_t length = strlen(name);
	struct env_entry *entry = malloc(sizeof(*entry) + length + 1);

	if (entry != NULL) {
		entry->name_length = length;
		memcpy(entry->name, name, length + 1);
	}
	return entry;
}

/* Set NAME, whether it was there or not. */
static int put(struct builder *builder, const char *name, const char *value, struct error *err)
{
	AUTO(auto_free) char *text = NULL;
	struct env_entry *entry = entry_new(name);
	struct env_entry **found =
		entry != NULL ? tsearch(entry, &builder->names, compare_entries) : NULL;
	size_t size = strlen(name) + 1 + strlen(value) + 1;
	int r;

	if (found == NULL) {
		free(entry);
		return error_set(err, ERR_NOMEM, ENOMEM, "environment");
	}
	text = malloc(size);
	if (text != NULL) {
		memcpy(text, name, entry->name_length);
		text[entry->name_length] = '=';
		memcpy(text + entry->name_length + 1, value, strlen(value) + 1);
	}
	if (*found != entry) {
		free(entry);
		if (text == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "environment");
		free(builder->env->items[(*found)->index]);
		builder->env->items[(*found)->index] = steal_ptr(&text);
		return 0;
	}
	entry->index = builder->env->count;
	if (entry->index >= LIMIT_ARGS_COUNT)
		return error_set(err, ERR_INVALID, 0, "more than %d variables", LIMIT_ARGS_COUNT);
	if (text == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "environment");
	r = string_list_add(builder->env, text, err);
	return r;
}

static int put_given(struct builder *builder, const struct envscrub_input *input,
		     struct string_list *withheld, struct error *err)
{
	int r = 0;

	for (size_t i = 0; input->given != NULL && i < input->given->count && r == 0; i++) {
		const struct env_var *var = &input->given->items[i];
		bool secret = (input->families_only ? childenv_is_secret(var->name)
						    : envscrub_is_credential(var->name)) ||
			      listed(input->withhold, var->name);

		if (secret && !listed(input->pass, var->name))
			r = string_list_add(withheld, var->name, err);
		else
			r = put(builder, var->name, var->value, err);
	}
	return r;
}

/* What must agree with the sandbox, whatever the caller says. */
static int put_pinned(struct builder *builder, const struct envscrub_input *input,
		      struct error *err)
{
	const struct {
		const char *name;
		const char *value;
	} pinned[] = {
		{ "HOME", input->home },   { "USER", input->user }, { "LOGNAME", input->user },
		{ "SHELL", input->shell }, { "PWD", input->cwd },   { "TMPDIR", "/tmp" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pinned) && r == 0; i++) {
		if (pinned[i].value != NULL)
			r = put(builder, pinned[i].name, pinned[i].value, err);
	}
	return r;
}

int envscrub(const struct envscrub_input *input, struct string_list *ret_env,
	     struct string_list *ret_withheld, struct error *err)
{
	struct builder builder = { .env = ret_env };
	int r = put(&builder, "PATH", DEFAULT_PATH, err);

	if (r == 0)
		r = put(&builder, "LANG", DEFAULT_LANG, err);
	if (r == 0)
		r = put_given(&builder, input, ret_withheld, err);
	if (r == 0)
		r = put_pinned(&builder, input, err);
	for (size_t i = 0; i < ENVSCRUB_LISTS && r == 0; i++) {
		for (size_t k = 0; input->set[i] != NULL && k < input->set[i]->count && r == 0; k++)
			r = put(&builder, input->set[i]->items[k].name,
				input->set[i]->items[k].value, err);
	}
	/* HOME is the one that not even the request changes. */
	if (r == 0 && input->home != NULL)
		r = put(&builder, "HOME", input->home, err);
	tdestroy(builder.names, free);
	string_list_sort_unique(ret_withheld);
	return r;
}
