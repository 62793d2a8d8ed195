/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fuzz_NAME_replay DIRECTORY...
 *
 * Gives every file of the directories to the fuzz target it is linked with: what a fuzzer once found
 * stays found, with any compiler. Fails when there is no file at all.
 */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

#define CORPUS_FILE_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	AUTO(auto_free) char *data = NULL;
	char *exact = NULL;
	FILE *file = fopen(path, "rb");
	size_t size = 0;

	if (!file) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	data = malloc(CORPUS_FILE_BYTES);
	size = data ? fread(data, 1, CORPUS_FILE_BYTES, file) : 0;
	(void)fclose(file);

	/* Memory of its size: a sanitizer then sees a read behind the end. */
	exact = malloc(size ? size : 1);
	if (!data || !exact) {
		free(exact);
		return -1;
	}
	memcpy(exact, data, size);
	(void)LLVMFuzzerTestOneInput((const uint8_t *)exact, size);
	free(exact);
	return 0;
}

/* How many files were replayed, or -1. */
static int replay_directory(const char *directory)
{
	DIR *dir = opendir(directory);
	const struct dirent *entry = NULL;
	char path[PATH_MAX];
	int count = 0;

	if (!dir) {
		(void)fprintf(stderr, "%s: %s\n", directory, strerror(errno));
		return -1;
	}
	while (count >= 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		count = replay_file(path) < 0 ? -1 : count + 1;
	}
	(void)closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay_directory(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	(void)printf("%d inputs replayed\n", total);
	return total > 0 ? 0 : 1;
}
