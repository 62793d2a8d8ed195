/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/grantcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/scope.h"
#include "common/sha256.h"
#include "daemon/spawner/quote.h"

enum stdio_kind grantcheck_kind(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return STDIO_KIND_OTHER;
	if (S_ISFIFO(st.st_mode))
		return STDIO_KIND_PIPE;
	if (S_ISSOCK(st.st_mode))
		return STDIO_KIND_SOCKET;
	if (S_ISREG(st.st_mode))
		return STDIO_KIND_FILE;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return STDIO_KIND_NULL;
	return S_ISCHR(st.st_mode) && isatty(fd) ? STDIO_KIND_TTY : STDIO_KIND_OTHER;
}

static int check_stdio(const struct grant_terms *terms, const struct command *command, int null_fd,
		       struct error *err)
{
	static const char *const names[] = { "standard input", "standard output",
					     "standard error" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		enum stdio_kind kind = command->stdio[i] == null_fd
					       ? STDIO_KIND_NULL
					       : grantcheck_kind(command->stdio[i]);

		if ((terms->stdio[i] & kind) == 0)
			return error_set(err, ERR_GRANT_INVALID, 0,
					 "the grant is for another kind of %s than '%s'", names[i],
					 stdio_kind_name(kind));
	}
	return 0;
}

/* A regular file that can be executed, or -1. */
static int open_program(const char *path)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;

	if (path[0] != '/' || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? steal_fd(&fd) : -1;
}

static const char *search_path(char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return "";
}

static int find_program(const struct command *command)
{
	const char *path = search_path(command->envp);
	char file[PATH_MAX];
	int fd = -1;

	if (strchr(command->argv[0], '/'))
		return open_program(command->argv[0]);
	while (fd < 0 && *path) {
		size_t length = strcspn(path, ":");
		int n = snprintf(file, sizeof(file), "%.*s/%s", (int)length, path,
				 command->argv[0]);

		if (n > 0 && (size_t)n < sizeof(file))
			fd = open_program(file);
		path += path[length] ? length + 1 : length;
	}
	return fd;
}

static int hash_program(int fd, uint8_t ret_hash[HASH_BYTES], bool *ret_script, struct error *err)
{
	char block[32768];
	struct sha256 sha;
	ssize_t got = 0;
	off_t at = 0;

	sha256_init(&sha);
	while ((got = pread(fd, block, sizeof(block), at)) > 0) {
		if (at == 0)
			*ret_script = got >= 2 && memcmp(block, "#!", 2) == 0;
		sha256_add(&sha, block, (size_t)got);
		at += got;
	}
	if (got < 0)
		return error_set(err, ERR_SYSTEM, errno, "read the program");
	sha256_finish(&sha, ret_hash);
	return 0;
}

static int check_program(const struct grant_terms *terms, const char *name, int fd,
			 struct error *err)
{
	uint8_t exec_hash[HASH_BYTES];
	bool script = false;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_SYSTEM, errno, "look at the program");
	if (st.st_uid == getuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(err, ERR_GRANT_INVALID, 0,
				 "%s can be changed by who uses the grant", quote(name).text);
	if ((r = hash_program(fd, exec_hash, &script, err)) < 0)
		return r;
	if (script)
		return error_set(err, ERR_GRANT_INVALID, 0,
				 "%s is a script; a grant is for its interpreter",
				 quote(name).text);
	if (memcmp(exec_hash, terms->exec_hash, HASH_BYTES) != 0)
		return error_set(err, ERR_GRANT_INVALID, 0, "%s is not the program of the grant",
				 quote(name).text);
	return 0;
}

int grantcheck(const struct grant_terms *terms, const void *args, const struct command *command,
	       int null_fd, int *ret_program, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	uint8_t ours[HASH_BYTES];
	uint8_t env[HASH_BYTES];
	int r = check_stdio(terms, command, null_fd, err);

	if (r < 0)
		return r;
	args_hash(args, ours, env);
	if (memcmp(ours, terms->args_hash, HASH_BYTES) != 0)
		return error_set(err, ERR_GRANT_INVALID, 0, "the grant is for other arguments");
	if (memcmp(env, terms->env_hash, HASH_BYTES) != 0)
		return error_set(err, ERR_GRANT_INVALID, 0, "the grant is for another environment");
	fd = find_program(command);
	if (fd < 0)
		return error_set(err, ERR_COMMAND_NOT_FOUND, 0, "%s was not found",
				 quote(command->argv[0]).text);
	if ((r = check_program(terms, command->argv[0], fd, err)) < 0)
		return r;
	*ret_program = steal_fd(&fd);
	return 0;
}
