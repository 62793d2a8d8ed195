/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grant create, list, revoke; and what a grant is asked for with: spawn --dry-run --grant-request.
 *
 * A request is text for an administrator to read. The hash of its command is computed again from the
 * words that he sees, and that of the program from the file that he has: he approves of nothing else.
 */

#include "client/ctl/grants.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/request.h"
#include "client/hint.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/pathview.h"
#include "common/scope.h"
#include "common/sha256.h"
#include "common/units.h"
#include "proto/json/json.h"
#include "proto/json/utf8.h"

#define DEFAULT_TTL_MS UINT64_C(600000)

static int refused(const struct ctl *ctl, const struct fsbox_error *err)
{
	output_error(ctl, NULL, err);
	return strcmp(err->kind, error_name(ERR_NOT_AUTHORIZED)) == 0 ||
			       strcmp(err->kind, error_name(ERR_GRANT_INVALID)) == 0
		       ? CTL_NO
		       : CTL_FAILED;
}

/* ---- asking for one ------------------------------------------------------------------- */

static enum path_kind kind_of(void *arg, const char *path)
{
	struct stat st;

	(void)arg;
	if (stat(path, &st) < 0)
		return PATH_KIND_ABSENT;
	if (S_ISDIR(st.st_mode))
		return PATH_KIND_DIRECTORY;
	return S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0 ? PATH_KIND_EXECUTABLE
							       : PATH_KIND_OTHER;
}

/* The program that COMMAND will be, absolute; the caller frees. */
static int find_program(const char *command, char **ret_path, struct error *err)
{
	const struct path_view view = { .cwd = "/", .kind = kind_of };
	int r = path_find_executable(&view, command, getenv("PATH"), ret_path, err);

	if (r < 0)
		return r;
	if (!*ret_path || (*ret_path)[0] != '/')
		return error_set(
			err, ERR_COMMAND_NOT_FOUND, 0,
			"a grant is for a program by its absolute path or by a name on PATH");
	return 0;
}

static void write_request(struct json_writer *writer, const struct spawn_params *params,
			  const struct policy_result *policy, const char *program)
{
	const struct {
		const char *key;
		const char *value;
	} texts[] = {
		{ "cwd", params->cwd },
		{ "program", program },
		{ "net", net_mode_name(policy->net) },
		{ "argsHash", policy->args_hash },
		{ "envHash", policy->env_hash },
		{ "planHash", policy->plan_hash },
	};

	json_write_object(writer);
	json_write_key(writer, "uid");
	json_write_uint(writer, geteuid());
	json_write_key(writer, "argv");
	json_write_array(writer);
	for (size_t i = 0; i < params->argv.count; i++)
		json_write_bytes(writer, params->argv.items[i]);
	json_write_array_end(writer);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		json_write_key(writer, texts[i].key);
		json_write_bytes(writer, texts[i].value);
	}
	json_write_object_end(writer);
}

int grants_show_request(const struct ctl *ctl, const struct spawn_params *params,
			const struct policy_result *policy)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	AUTO(auto_free) char *program = NULL;
	struct json_writer writer;
	struct error err = ERROR_INIT;

	if (!policy->args_hash || !policy->env_hash || !policy->plan_hash)
		(void)error_set(&err, ERR_INVALID, 0, "the daemon knows no grants");
	if (err.kind != ERR_NONE || find_program(params->argv.items[0], &program, &err) < 0) {
		output_failure(ctl, "--grant-request", &err);
		return CTL_FAILED;
	}
	json_writer_init(&writer, &out);
	write_request(&writer, params, policy, program);
	return output_json(ctl, stdout, &writer, &out, CTL_OK);
}

/* ---- reading a request ---------------------------------------------------------------- */

struct wish {
	struct json_doc *doc;
	const char *cwd;
	const char *program;
	const char *hash; /* of arguments, as the request says */
	const struct json_value *argv;
	struct grant_create_params *params;
};

static int wish_text(const struct json_value *root, const char *key, const char **ret_text,
		     struct error *err)
{
	const struct json_value *value = json_get(root, key);

	if (!value || value->type != JSON_STRING)
		return error_set(err, ERR_INVALID, 0, "the request has no '%s' that is text", key);
	*ret_text = value->u.text;
	return 0;
}

static int wish_dup(const struct json_value *root, const char *key, char **ret_text,
		    struct error *err)
{
	const char *text = NULL;
	int r = wish_text(root, key, &text, err);

	if (r == 0 && !(*ret_text = strdup(text)))
		r = error_set(err, ERR_NOMEM, ENOMEM, "the request");
	return r;
}

static int hash_text(char **ret_text, struct sha256 *sha, struct error *err)
{
	uint8_t hash[SHA256_BYTES];
	char *text = malloc(SHA256_HEX_BYTES);

	if (!text)
		return error_set(err, ERR_NOMEM, ENOMEM, "a hash");
	sha256_finish(sha, hash);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", hash[i]);
	*ret_text = text;
	return 0;
}

/* From the words that are shown, never from the request's own number. */
static int hash_words(struct wish *wish, struct error *err)
{
	struct sha256 sha;
	int r = 0;

	sha256_init(&sha);
	sha256_add(&sha, wish->cwd, strlen(wish->cwd) + 1);
	for (const struct json_value *word = wish->argv->u.first; word; word = word->next) {
		if (word->type != JSON_STRING)
			return error_set(err, ERR_INVALID, 0,
					 "an argument is no text: nobody could approve of it");
		sha256_add(&sha, word->u.text, word->size + 1);
	}
	r = hash_text(&wish->params->args_hash, &sha, err);
	if (r == 0 && strcmp(wish->hash, wish->params->args_hash) != 0)
		return error_set(err, ERR_INVALID, 0,
				 "the request contradicts itself: argsHash is of another command");
	return r;
}

/* The file as this administrator has it. */
static int hash_program(struct wish *wish, struct error *err)
{
	AUTO(auto_close) int fd = open(wish->program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char block[32768];
	struct sha256 sha;
	struct stat st;
	ssize_t got = 0;
	bool first = true;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, ERR_PATH_NOT_FOUND, errno, "'%s'", wish->program);
	if (!S_ISREG(st.st_mode) || st.st_uid == wish->params->uid || (st.st_mode & 022) != 0)
		return error_set(err, ERR_INVALID, 0,
				 "'%s' is no program that its user cannot change", wish->program);
	sha256_init(&sha);
	while ((got = read(fd, block, sizeof(block))) > 0) {
		if (first && got >= 2 && memcmp(block, "#!", 2) == 0)
			return error_set(err, ERR_INVALID, 0,
					 "'%s' is a script: grant its interpreter, with the script"
					 " as argument",
					 wish->program);
		first = false;
		sha256_add(&sha, block, (size_t)got);
	}
	if (got < 0)
		return error_set(err, ERR_SYSTEM, errno, "read '%s'", wish->program);
	return hash_text(&wish->params->exec_hash, &sha, err);
}

static int name_command(struct wish *wish, struct error *err)
{
	const char *slash = strrchr(wish->program, '/');
	const char *leaf = slash ? slash + 1 : wish->program;

	wish->params->command = strndup(leaf, LIMIT_NAME_BYTES - 1);
	return wish->params->command ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "the request");
}

static int wish_read(struct wish *wish, const char *path, struct error *err)
{
	AUTO(auto_free) char *text = NULL;
	const struct json_value *root = NULL;
	const struct json_value *uid = NULL;
	const char *net = NULL;
	size_t size = 0;
	int r = file_read(path, &text, &size, err);

	if (r < 0 || (r = json_parse(&wish->doc, text, size, NULL, err)) < 0)
		return r;
	root = json_root(wish->doc);
	uid = json_get(root, "uid");
	wish->argv = json_get(root, "argv");
	if (!uid || uid->type != JSON_INT || uid->u.number < 0 || uid->u.number >= UINT32_MAX ||
	    !wish->argv || wish->argv->type != JSON_ARRAY || wish->argv->size == 0)
		return error_set(err, ERR_INVALID, 0, "'%s' is no request for a grant", path);
	wish->params->uid = (uint32_t)uid->u.number;
	if ((r = wish_text(root, "cwd", &wish->cwd, err)) < 0 ||
	    (r = wish_text(root, "program", &wish->program, err)) < 0 ||
	    (r = wish_text(root, "argsHash", &wish->hash, err)) < 0 ||
	    (r = wish_text(root, "net", &net, err)) < 0 ||
	    (r = wish_dup(root, "envHash", &wish->params->env_hash, err)) < 0 ||
	    (r = wish_dup(root, "planHash", &wish->params->plan_hash, err)) < 0)
		return r;
	if (wish->program[0] != '/' || !net_mode_parse(net, &wish->params->net))
		return error_set(err, ERR_INVALID, 0, "'%s' is no request for a grant", path);
	if ((r = hash_words(wish, err)) < 0 || (r = hash_program(wish, err)) < 0)
		return r;
	return name_command(wish, err);
}

/* ---- making one ----------------------------------------------------------------------- */

static int copy_kinds(struct string_list *out, const struct ctl_list *names, const char *option,
		      struct error *err)
{
	enum stdio_kind kind;
	int r = 0;

	for (size_t i = 0; i < names->count && r == 0; i++) {
		if (!stdio_kind_parse(names->items[i], &kind))
			return error_set(err, ERR_INVALID, 0,
					 "%s: one of null, tty, pipe, socket, file, other", option);
		r = string_list_add(out, names->items[i], err);
	}
	return r;
}

/* What is granted, in words that may be foreign. */
static void show_wish(const struct wish *wish)
{
	const struct passwd *user = getpwuid(wish->params->uid);

	(void)fprintf(stderr, "grant for user %" PRIu32 " (", wish->params->uid);
	output_text(stderr, user ? user->pw_name : "unknown");
	(void)fprintf(stderr, "): once, for %" PRIu64 " s, network %s\n  program   ",
		      wish->params->ttl_ms / 1000, net_mode_name(wish->params->net));
	output_text(stderr, wish->program);
	(void)fputs("\n  directory ", stderr);
	output_text(stderr, wish->cwd);
	for (const struct json_value *word = wish->argv->u.first; word; word = word->next) {
		(void)fputs(word == wish->argv->u.first ? "\n  command   " : "\n            ",
			    stderr);
		output_text(stderr, word->u.text);
	}
	(void)fputc('\n', stderr);
}

static int create(struct ctl *ctl, const union method_params *params)
{
	struct conn_event *event = NULL;
	const struct grant_create_result *result = NULL;
	struct fsbox_error err;

	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	if (conn_request(fsbox_conn(ctl->box), METHOD_GRANT_CREATE, params, &event, &err) < 0)
		return refused(ctl, &err);
	result = &event->result.grant_create;
	if (ctl->args.json) {
		(void)printf("%s\n", event->json);
	} else {
		/* The token alone: what is written to a file is what --grant-fd reads. */
		(void)printf("%s\n", result->token);
		output_note(ctl, "this is grant %" PRIu64, result->grant);
	}
	(void)conn_event_free(event);
	return CTL_OK;
}

int command_grant_create(struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	union method_params params;
	struct wish wish = { .params = &params.grant_create };
	struct error err = ERROR_INIT;
	int status = CTL_USAGE;
	int r = 0;

	method_params_init(METHOD_GRANT_CREATE, &params);
	wish.params->ttl_ms = args->ttl_ms != 0 ? args->ttl_ms : DEFAULT_TTL_MS;
	if (!args->request)
		r = error_set(&err, ERR_INVALID, 0, "it needs --request FILE");
	if (r == 0)
		r = copy_kinds(&wish.params->stdin_kinds, &args->stdin_kinds, "--stdin", &err);
	if (r == 0)
		r = copy_kinds(&wish.params->stdout_kinds, &args->stdout_kinds, "--stdout", &err);
	if (r == 0)
		r = copy_kinds(&wish.params->stderr_kinds, &args->stderr_kinds, "--stderr", &err);
	if (r < 0) {
		status = output_usage(ctl, NULL, &err);
	} else if (wish_read(&wish, args->request, &err) < 0) {
		output_failure(ctl, NULL, &err);
		status = CTL_NO;
	} else {
		show_wish(&wish);
		status = create(ctl, &params);
	}
	(void)json_doc_free(wish.doc);
	method_params_deinit(METHOD_GRANT_CREATE, &params);
	return status;
}

/* ---- list, revoke --------------------------------------------------------------------- */

static void print_grants(const struct ctl *ctl, const struct msg_grant_list *grants)
{
	struct timespec now = { .tv_sec = 0 };
	uint64_t now_ms = 0;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	now_ms = (uint64_t)now.tv_sec * 1000;
	output_style(ctl, stdout, STYLE_BOLD);
	(void)printf("%-12s %-8s %-8s %-8s %-6s %-8s %-6s %s", "GRANT", "USER", "BY", "STATE",
		     "NET", "LEFT", "JOB", "COMMAND");
	output_style(ctl, stdout, STYLE_PLAIN);
	(void)fputc('\n', stdout);
	for (size_t i = 0; i < grants->count; i++) {
		const struct msg_grant *grant = &grants->items[i];
		char left[32];
		char job[24] = "-";

		if (grant->job != 0)
			(void)snprintf(job, sizeof(job), "%" PRIu64, grant->job);
		(void)printf("%-12" PRIu64 " %-8" PRIu32 " %-8" PRIu32 " %-8s %-6s %-8s %-6s ",
			     grant->grant, grant->uid, grant->creator,
			     grant_state_name(grant->state), net_mode_name(grant->net),
			     output_age(left, grant->expires_ms > now_ms
						      ? grant->expires_ms - now_ms
						      : 0),
			     job);
		output_text(stdout, grant->command);
		(void)fputc('\n', stdout);
	}
}

int command_grant_list(struct ctl *ctl)
{
	const union method_params params = { .grant_list = { .none = false } };
	struct conn_event *event = NULL;
	struct fsbox_error err;

	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	fsbox_conn(ctl->box)->want_text = ctl->args.json;
	if (conn_request(fsbox_conn(ctl->box), METHOD_GRANT_LIST, &params, &event, &err) < 0)
		return refused(ctl, &err);
	if (ctl->args.json)
		(void)printf("%s\n", event->json);
	else
		print_grants(ctl, &event->result.grant_list.grants);
	(void)conn_event_free(event);
	return CTL_OK;
}

int command_grant_revoke(struct ctl *ctl)
{
	union method_params params = { .grant_revoke = { .grant = 0 } };
	struct conn_event *event = NULL;
	struct error fail = ERROR_INIT;
	struct fsbox_error err;

	if (!parse_count(ctl->args.words[0], 1, INT64_MAX, &params.grant_revoke.grant)) {
		(void)error_set(&fail, ERR_INVALID, 0, "'%s' is no number of a grant",
				ctl->args.words[0]);
		return output_usage(ctl, NULL, &fail);
	}
	if (ctl_open(ctl) < 0)
		return CTL_FAILED;
	if (conn_request(fsbox_conn(ctl->box), METHOD_GRANT_REVOKE, &params, &event, &err) < 0)
		return refused(ctl, &err);
	(void)conn_event_free(event);
	return CTL_OK;
}
