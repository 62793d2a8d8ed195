/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/quote.h"

/* What a shell without PATH uses; execvp(3) too. */
#define DEFAULT_PATH "/bin:/usr/bin"
#define SHELL "/bin/sh"

#define FIRST_LINE_BYTES 128

enum child_stage { CHILD_STDIO = 1, CHILD_CHDIR, CHILD_EXEC };

/* Why the child does not become the command. */
struct child_failure {
	enum child_stage stage;
	int errnum;
	bool found; /* CHILD_EXEC: the file is there */
};

/* ---- in the child -------------------------------------------------------------------- */

static const char *environment_get(char *const *envp, const char *name)
{
	size_t length = strlen(name);

	for (; *envp; envp++) {
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return *envp + length + 1;
	}
	return NULL;
}

/* Whether FILE is text as far as anybody can tell from its first line: then a shell may run it. */
static bool looks_like_text(const char *file)
{
	AUTO(auto_close) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[FIRST_LINE_BYTES];
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line));

	if (n < 0 || (n >= 4 && memcmp(line, "\177ELF", 4) == 0))
		return false;
	for (ssize_t i = 0; i < n && line[i] != '\n'; i++) {
		if (line[i] == '\0')
			return false;
	}
	return true;
}

/* A script without an interpreter line, as execvp(3) and every shell run it. */
static void exec_by_shell(const char *file, char *const *argv, char *const *envp)
{
	size_t argc = 0;
	AUTO(auto_free) char **shell_argv = NULL;

	while (argv[argc])
		argc++;
	shell_argv = calloc(argc + 2, sizeof(*shell_argv));
	if (!shell_argv)
		return;
	shell_argv[0] = (char *)SHELL;
	shell_argv[1] = (char *)file;
	for (size_t i = 1; i < argc; i++)
		shell_argv[i + 1] = argv[i];
	(void)execve(SHELL, shell_argv, envp);
}

/* Returns only on failure, with errno; *ret_found says whether FILE is there at all. */
static void exec_file(const char *file, const struct command *command, bool *ret_found)
{
	int errnum = 0;

	(void)execve(file, command->argv, command->envp);
	errnum = errno;
	if (errnum == ENOEXEC && looks_like_text(file)) {
		exec_by_shell(file, command->argv, command->envp);
		errnum = errno;
	}
	/* ENOENT is also what a missing interpreter or loader gives. */
	*ret_found = faccessat(AT_FDCWD, file, F_OK, 0) == 0;
	errno = errnum;
}

/* execvp(3), but exact about why not. Returns only on failure. */
static void exec_search(const struct command *command, struct child_failure *failure)
{
	const char *name = command->argv[0];
	const char *path = environment_get(command->envp, "PATH");
	char file[PATH_MAX];

	*failure = (struct child_failure){ .stage = CHILD_EXEC, .errnum = ENOENT };
	if (command->program >= 0) {
		(void)syscall(SYS_execveat, command->program, "", command->argv, command->envp,
			      AT_EMPTY_PATH);
		failure->errnum = errno;
		failure->found = true;
		return;
	}
	if (name[0] == '\0')
		return;
	if (strchr(name, '/')) {
		exec_file(name, command, &failure->found);
		failure->errnum = errno;
		return;
	}
	for (path = path ? path : DEFAULT_PATH;; path++) {
		size_t length = strcspn(path, ":");
		bool found = false;
		int n = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, path,
				 length ? "/" : "", name);

		if (n > 0 && (size_t)n < sizeof(file)) {
			exec_file(file, command, &found);
			/*
			 * What is not there, or in a directory that is closed, is passed over. A file
			 * that may not be executed is remembered, the first one, in case none can be.
			 */
			if (found && !failure->found) {
				failure->errnum = errno;
				failure->found = true;
			}
			if (found && failure->errnum != EACCES && failure->errnum != ENOENT)
				return;
		}
		path += length;
		if (*path == '\0')
			return;
	}
}

/* Pid 1 handles no signal and ignores one. */
static void reset_signals(void)
{
	sigset_t none;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* STDIO may hold any numbers, 0 to 2 too: first out of the way, then into place. */
static int place_stdio(const int stdio[3])
{
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, 3);
		if (high[i] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(high[i], i) < 0)
			return -1;
	}
	return 0;
}

/*
 * What the child works on: until exec its memory is pid 1's, which waits. It has a stack of its own.
 *
 * @told  @failure says why it is about to exit without having become the command
 */
struct start {
	const struct command *command;
	struct child_failure failure;
	bool told;
};

#define STACK_BYTES 65536

static int child(void *arg)
{
	struct start *start = arg;
	const struct command *command = start->command;

	/* A session of its own: no terminal that it could type into is its controlling one. */
	(void)setsid();
	if (place_stdio(command->stdio) < 0 ||
	    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
		start->failure.stage = CHILD_STDIO;
		start->failure.errnum = errno;
	} else if (chdir(command->cwd) < 0) {
		start->failure.stage = CHILD_CHDIR;
		start->failure.errnum = errno;
	} else {
		(void)umask(command->umask);
		reset_signals();
		exec_search(command, &start->failure);
	}
	start->told = true;
	_exit(125);
}

/* ---- in pid 1 ------------------------------------------------------------------------ */

static int exec_failure(const struct command *command, const struct child_failure *failure,
			struct error *err)
{
	const struct quote name = quote(command->argv[0]);

	switch (failure->errnum) {
	case ENOENT:
	case ENOTDIR:
		if (!failure->found)
			return error_set(err, ERR_COMMAND_NOT_FOUND, 0, "%s was not found",
					 name.text);
		return error_set(err, ERR_COMMAND_NOT_EXECUTABLE, 0,
				 "%s needs an interpreter that is not there", name.text);
	case EACCES:
	case EPERM:
	case ENOEXEC:
	case ETXTBSY:
	case E2BIG:
	case ELOOP:
	case ENAMETOOLONG:
	case ELIBBAD:
	case EINVAL:
		return error_set(err, ERR_COMMAND_NOT_EXECUTABLE, failure->errnum, "%s", name.text);
	default:
		return error_set(err, ERR_SETUP_FAILED, failure->errnum, "execute %s", name.text);
	}
}

static int failure_of(const struct command *command, const struct child_failure *failure,
		      const char **ret_stage, struct error *err)
{
	*ret_stage = "exec";
	switch (failure->stage) {
	case CHILD_CHDIR:
		*ret_stage = "chdir";
		return error_set(err, ERR_SETUP_FAILED, failure->errnum, "working directory %s",
				 quote(command->cwd).text);
	case CHILD_STDIO:
		*ret_stage = "stdio";
		return error_set(err, ERR_SETUP_FAILED, failure->errnum, "standard descriptors");
	case CHILD_EXEC:
		break;
	}
	return exec_failure(command, failure, err);
}

int command_start(const struct command *command, pid_t *ret_pid, const char **ret_stage,
		  struct error *err)
{
	static _Alignas(16) char stack[STACK_BYTES];
	struct start start = { .command = command };
	pid_t pid = 0;

	/*
	 * No copy of memory is made to be thrown away, and exec's result is known at once. While the child
	 * hangs in exec it can be killed, and so can we.
	 */
	pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
	if (pid < 0) {
		*ret_stage = "fork";
		return error_set(err, ERR_SETUP_FAILED, errno, "fork the command");
	}
	*ret_pid = pid;
	if (!start.told)
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return failure_of(command, &start.failure, ret_stage, err);
}
