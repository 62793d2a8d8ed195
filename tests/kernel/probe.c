/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can really be done with each path, tried from inside a job.
 *
 * Standard input: paths, each ended by a NUL. Standard output: one line for each, in order, ten
 * fields: what lstat says (a letter of "-dflso" for absent, directory, file, link, socket, other), then
 * the errno of each operation, 0 for success, or "-" where it makes no sense for what is there:
 *
 *	kind stat read write list create mkdir rename content names
 *
 * A link is looked at by lstat and rename; the rest is tried on what it leads to. content is the first
 * line of a readable regular file, names are those in a directory (each in hexadecimal digits, with a
 * comma before it), "-" where there are none. Everything made is removed again; files are opened for
 * writing but not written.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char joined[PATH_MAX * 2];
static char names[64 * 1024];
static size_t names_size;

static const char *below(const char *dir, const char *name)
{
	(void)snprintf(joined, sizeof(joined), "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
	return joined;
}

static char kind_letter(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return 'd';
	if (S_ISREG(st->st_mode))
		return 'f';
	if (S_ISLNK(st->st_mode))
		return 'l';
	if (S_ISSOCK(st->st_mode))
		return 's';
	return 'o';
}

static void print_errno(int result)
{
	printf(" %d", result < 0 ? errno : 0);
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

/* What does not fit any more is left out, and missed by the reader. */
static void add_name(const char *name)
{
	if (names_size + 2 * strlen(name) + 2 > sizeof(names))
		return;
	names[names_size++] = ',';
	for (; *name; name++, names_size += 2)
		(void)snprintf(names + names_size, 3, "%02x", (unsigned char)*name);
}

/* The names are kept for print_names(). */
static int try_list(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry = NULL;

	names_size = 0;
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			add_name(entry->d_name);
	(void)closedir(dir);
	return 0;
}

static void print_names(void)
{
	names[names_size] = '\0';
	printf(" %s\n", names_size > 0 ? names : "-");
}

static int try_create(const char *dir)
{
	const char *path = below(dir, ".probe-file");

	if (try_open(path, O_WRONLY | O_CREAT | O_EXCL) < 0)
		return -1;
	return unlink(path);
}

static int try_mkdir(const char *dir)
{
	const char *path = below(dir, ".probe-dir");

	if (mkdir(path, 0700) < 0)
		return -1;
	return rmdir(path);
}

/* Away and back again. */
static int try_rename(const char *path)
{
	char away[PATH_MAX * 2];

	(void)snprintf(away, sizeof(away), "%s.probe-moved", path);
	if (rename(path, away) < 0)
		return -1;
	return rename(away, path);
}

static void print_content(const char *path)
{
	char text[64] = "-";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (got > 0)
		text[got] = '\0';
	text[strcspn(text, "\n ")] = '\0';
	printf(" %s", text[0] ? text : "-");
	if (fd >= 0)
		(void)close(fd);
}

static void probe_absent(const char *path)
{
	int result = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	printf(" - - -");
	print_errno(result);
	if (result >= 0) {
		(void)close(result);
		(void)unlink(path);
	}
	result = mkdir(path, 0700);
	print_errno(result);
	if (result == 0)
		(void)rmdir(path);
	printf(" - - -\n");
}

static void probe(const char *path)
{
	struct stat st;
	int found = lstat(path, &st);

	printf("%c", found < 0 ? '-' : kind_letter(&st));
	print_errno(found);
	if (found < 0) {
		probe_absent(path);
		return;
	}
	/* What a link leads to; where that is nothing, all that follows fails. */
	if (S_ISLNK(st.st_mode))
		(void)stat(path, &st);
	if (S_ISDIR(st.st_mode)) {
		printf(" - -");
		print_errno(try_list(path));
		print_errno(try_create(path));
		print_errno(try_mkdir(path));
		print_errno(try_rename(path));
		printf(" -");
		print_names();
		return;
	}
	print_errno(try_open(path, O_RDONLY));
	print_errno(try_open(path, O_WRONLY));
	printf(" - - -");
	print_errno(try_rename(path));
	print_content(path);
	printf(" -\n");
}

int main(void)
{
	char *path = NULL;
	size_t capacity = 0;

	while (getdelim(&path, &capacity, '\0', stdin) > 0)
		probe(path);
	free(path);
	return fflush(stdout) == 0 ? 0 : 1;
}
