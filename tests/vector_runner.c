/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vector-runner FILE...
 *
 * Runs every case of the files and ends with "N passed, N failed, N skipped". Exit status 1 when any
 * failed, 2 when there is nothing to run.
 *
 * Skipped, and said so: cases with a NUL inside an argument, which no function here can be given, and
 * files about functions that are not part of this program (later_functions below). Any other unknown
 * function is a failure. A file that is a plain list holds the baseline of the platform in its name.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/baseline.h"
#include "common/scope.h"
#include "tests/json_lite.h"
#include "tests/vector_handlers.h"

struct score {
	size_t passed;
	size_t failed;
	size_t skipped;
};

/* Covered elsewhere: the probe of the kernel. */
static const char *const later_functions[] = { "pidNamespaceProbe" };

static bool is_later(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(later_functions); i++)
		if (strncmp(function, later_functions[i], strlen(later_functions[i])) == 0)
			return true;
	return false;
}

static char *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	char *data = NULL;
	size_t size = 0;
	size_t got = 0;

	if (!file)
		return NULL;
	do {
		char *grown = realloc(data, size + 65536);

		if (!grown)
			break;
		data = grown;
		got = fread(data + size, 1, 65536, file);
		size += got;
	} while (got > 0);
	if (ferror(file) || got > 0) {
		free(data);
		data = NULL;
	}
	(void)fclose(file);
	*ret_size = size;
	return data;
}

static bool has_tag(const struct json_value *test, const char *tag)
{
	const struct json_value *tags = json_get(test, "tags");

	for (size_t i = 0; tags && i < tags->count; i++)
		if (tags->items[i]->type == JSON_STRING && strcmp(tags->items[i]->text, tag) == 0)
			return true;
	return false;
}

static void print_labelled(const char *label, const struct json_value *value)
{
	(void)printf("  %s ", label);
	json_print(value, stdout);
	(void)putchar('\n');
}

static void report(const char *file, const char *name)
{
	(void)printf("FAILED %s: %s\n", file, name);
}

/* Whether RESULT (NULL with ERR filled: an error) is what TEST expects; says so if not. */
static bool check_case(const char *file, const struct json_value *test,
		       const struct vector_function *function, const struct json_value *result,
		       const struct error *err)
{
	const char *name = json_get_string(test, "name");
	const char *want_kind = json_get_string(json_get(test, "error"), "kind");
	const struct json_value *want = json_get(test, "expectByteOrder");

	if (!want)
		want = json_get(test, "expect");
	if (!result && want_kind && strcmp(error_name(err->kind), want_kind) == 0)
		return true;
	if (result && want &&
	    (function->agrees ? function->agrees(want, result)
			      : json_equal(want, result, function->empty_is_absent)))
		return true;

	report(file, name ? name : "case without a name");
	if (want)
		print_labelled("expected", want);
	else
		(void)printf("  expected the error %s\n",
			     want_kind ? want_kind : "(none is named)");
	if (result)
		print_labelled("got     ", result);
	else
		(void)printf("  got the error %s: %s\n", error_name(err->kind), err->message);
	return false;
}

static void run_case(struct score *score, const char *file, const struct json_value *test,
		     const struct vector_function *function)
{
	const struct json_value *input = json_get(test, "input");
	AUTO(json_release) struct json_value *result = NULL;
	struct error err = ERROR_INIT;

	if (!input) {
		report(file, "case without input");
		score->failed++;
		return;
	}
	if (has_tag(test, "embedded-nul") || json_has_nul(input)) {
		score->skipped++;
		return;
	}
	result = function->handle_case ? function->handle_case(test, &err)
				       : function->handle(input, &err);
	if (check_case(file, test, function, result, &err))
		score->passed++;
	else
		score->failed++;
}

static void run_function(struct score *score, const char *file, const struct json_value *root)
{
	const char *name = json_get_string(root, "function");
	const struct json_value *cases = json_get(root, "cases");
	const struct vector_function *function = name ? vector_function(name) : NULL;

	if (!name || !cases || cases->type != JSON_ARRAY) {
		report(file, "neither a function with cases nor a baseline");
		score->failed++;
	} else if (function) {
		for (size_t i = 0; i < cases->count; i++)
			run_case(score, file, cases->items[i], function);
	} else if (is_later(name)) {
		(void)printf("skipped %s: %s is not tested by this program\n", file, name);
		score->skipped += cases->count;
	} else {
		(void)printf("FAILED %s: no such function: %s\n", file, name);
		score->failed += cases->count ? cases->count : 1;
	}
}

/* One entry of a baseline file against ours at the same place. */
static bool check_entry(const struct json_value *want, const struct baseline_entry *entry)
{
	const char *path = json_get_string(want, "path");
	const char *access = json_get_string(want, "access");
	char written[256];

	if (!path || !access || !entry)
		return false;
	(void)snprintf(written, sizeof(written), "%s%s", entry->path[0] == '~' ? "${HOME}" : "",
		       entry->path + (entry->path[0] == '~'));
	return strcmp(path, written) == 0 && strcmp(access, access_name(entry->access)) == 0;
}

static void run_baseline(struct score *score, const char *file, const struct json_value *list)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	enum platform platform = strstr(name, "darwin") ? PLATFORM_DARWIN : PLATFORM_LINUX;

	if (!strstr(name, platform_name(platform))) {
		report(file, "a list, and no platform in the file's name");
		score->failed++;
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		if (check_entry(list->items[i], baseline_entry(platform, i))) {
			score->passed++;
			continue;
		}
		report(file, "entry differs");
		print_labelled("expected", list->items[i]);
		score->failed++;
	}
	if (baseline_entry(platform, list->count)) {
		report(file, "our baseline has more entries");
		score->failed++;
	}
}

static void run_file(struct score *score, const char *file)
{
	AUTO(auto_free) char *data = NULL;
	AUTO(json_release) struct json_value *root = NULL;
	size_t size = 0;
	size_t offset = 0;

	data = read_file(file, &size);
	if (!data) {
		report(file, "cannot be read");
		score->failed++;
		return;
	}
	root = json_parse(data, size, &offset);
	if (!root) {
		(void)printf("FAILED %s: no JSON from byte %zu on\n", file, offset);
		score->failed++;
	} else if (root->type == JSON_ARRAY) {
		run_baseline(score, file, root);
	} else {
		run_function(score, file, root);
	}
}

int main(int argc, char **argv)
{
	struct score score = { 0 };

	if (argc < 2) {
		(void)fputs("usage: vector-runner FILE...\n", stderr);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		run_file(&score, argv[i]);
	(void)printf("%zu passed, %zu failed, %zu skipped\n", score.passed, score.failed,
		     score.skipped);
	return score.failed > 0 ? 1 : 0;
}
