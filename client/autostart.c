/* SPDX-License-Identifier: Apache-2.0 */
#include "client/autostart.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/trust.h"
#include "common/scope.h"

#define LOCK_NAME "start.lock"
#define LOG_NAME "fsboxd.log"
#define LOG_BYTES (1 << 20) /* a longer log is begun anew */
#define LOCK_RETRY_MS 20
#define IDLE_EXIT_SECONDS "60"

/* Of the caller's environment the daemon sees only these: enough to find the user's directories. */
static const char *const passed_variables[] = {
	"FSBOX_FORCE_UNAVAILABLE",
	"FSBOX_SANDBOX_REQUIRED",
	"HOME",
	"LANG",
	"LOGNAME",
	"PATH",
	"TMPDIR",
	"TZ",
	"USER",
	"XDG_CACHE_HOME",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"XDG_RUNTIME_DIR",
	"XDG_STATE_HOME",
};

/* The program or library that this very function is in; false when nobody can say. */
static bool own_image(char *ret_path)
{
	AUTO(auto_free) char *real = NULL;
	Dl_info info = { .dli_fname = NULL };
	bool is_library = dladdr((const void *)(uintptr_t)own_image, &info) != 0 &&
			  info.dli_fname && strstr(info.dli_fname, ".so");

	real = realpath(is_library ? info.dli_fname : "/proc/self/exe", NULL);
	if (!real || strlen(real) > LIMIT_PATH_BYTES)
		return false;
	memcpy(ret_path, real, strlen(real) + 1);
	return true;
}

int autostart_find_daemon(const char *given, char *ret_path, struct error *err)
{
	char beside[LIMIT_PATH_BYTES + 1] = "";
	char *slash = NULL;

	if (given) {
		if (strlen(given) > LIMIT_PATH_BYTES)
			return error_set(err, ERR_INVALID, 0, "the path of fsboxd is too long");
		memcpy(ret_path, given, strlen(given) + 1);
		return 0;
	}

	if (own_image(beside))
		slash = strrchr(beside, '/');
	if (slash && (size_t)(slash - beside) + sizeof("/../daemon/fsboxd") <= sizeof(beside)) {
		memcpy(slash, "/../daemon/fsboxd", sizeof("/../daemon/fsboxd"));
		if (access(beside, X_OK) == 0) {
			memcpy(ret_path, beside, strlen(beside) + 1);
			return 0;
		}
	}

	if (access(FSBOXD_PATH, X_OK) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "no daemon to start: '%s'",
				 FSBOXD_PATH);
	memcpy(ret_path, FSBOXD_PATH, sizeof(FSBOXD_PATH));
	return 0;
}

int autostart_lock(int dir_fd, const char *dir, int timeout_ms, int *ret_fd, struct error *err)
{
	int64_t deadline_ms = clock_ms() + timeout_ms;
	AUTO(auto_close) int fd = -1;

	fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "open '%s/%s'", dir, LOCK_NAME);

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const struct timespec pause = { .tv_nsec = LOCK_RETRY_MS * 1000000L };

		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_set(err, ERR_UNREACHABLE, errno, "lock '%s/%s'", dir,
					 LOCK_NAME);
		if (clock_ms() >= deadline_ms)
			return error_set(err, ERR_UNREACHABLE, 0,
					 "another program has been starting the daemon for %d s "
					 "('%s/%s' is locked)",
					 timeout_ms / 1000, dir, LOCK_NAME);
		(void)nanosleep(&pause, NULL);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* The log to append to, or -1: a daemon without a log is better than none. */
static int open_log(const struct location *location, off_t *ret_offset)
{
	AUTO(auto_close) int dir_fd = -1;
	AUTO(auto_close) int fd = -1;
	struct stat st;

	*ret_offset = 0;
	if (location->state_dir[0] == '\0' ||
	    trust_make_private(location->state_dir, geteuid(), &dir_fd, NULL) < 0)
		return -1;

	fd = openat(dir_fd, LOG_NAME,
		    O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		    0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	if (st.st_size > LOG_BYTES && ftruncate(fd, 0) == 0)
		st.st_size = 0;
	*ret_offset = st.st_size;
	return steal_fd(&fd);
}

/* The first line that the daemon wrote to the log from OFFSET on, unprintable bytes as `?`. */
static void first_line(int log_fd, off_t offset, char *ret_line, size_t size)
{
	ssize_t got = log_fd < 0 ? -1 : pread(log_fd, ret_line, size - 1, offset);
	size_t length = 0;

	if (got > 0)
		for (; length < (size_t)got && ret_line[length] != '\n'; length++)
			if (ret_line[length] < ' ' || ret_line[length] > '~')
				ret_line[length] = '?';
	ret_line[length] = '\0';
}

/* "NAME=VALUE" of those variables that are set, ended by NULL; the strings are the environment's. */
static void collect_environment(char *ret_env[static ARRAY_SIZE(passed_variables) + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(passed_variables); i++) {
		size_t length = strlen(passed_variables[i]);

		for (char **variable = environ; variable && *variable; variable++)
			if (strncmp(*variable, passed_variables[i], length) == 0 &&
			    (*variable)[length] == '=') {
				ret_env[count++] = *variable;
				break;
			}
	}
	ret_env[count] = NULL;
}

/* What the daemon's process does before exec: async-signal-safe calls only. */
_Noreturn static void become_daemon(const char *path, char *const argv[], char *const envp[],
				    int ready_fd, int log_fd)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (null_fd < 0 || setsid() < 0)
		_exit(127);
	for (int signo = 1; signo < NSIG; signo++)
		(void)sigaction(signo, &standard, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);

	if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
	    dup2(log_fd >= 0 ? log_fd : null_fd, STDERR_FILENO) < 0 ||
	    dup2(ready_fd, STDERR_FILENO + 1) < 0)
		_exit(127);
	for (int fd = 0; fd <= STDERR_FILENO + 1; fd++)
		(void)fcntl(fd, F_SETFD, 0); /* dup2() onto itself leaves the flag */
	(void)syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
	if (chdir("/") < 0)
		_exit(127);
	(void)umask(077);

	(void)execve(path, argv, envp);
	if (write(STDERR_FILENO, "fsboxd could not be executed\n", 29) < 0)
		_exit(127);
	_exit(127);
}

/*
 * Descriptors 0 to 3 get new meanings in the daemon's process; ours must not be among them. FD is
 * consumed.
 */
static int move_up(int fd, struct error *err)
{
	int moved = -1;

	if (fd < 0 || fd > STDERR_FILENO + 1)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 2);
	if (moved < 0)
		(void)error_set(err, ERR_UNREACHABLE, errno, "start the daemon");
	(void)close(fd);
	return moved;
}

/* Wait for the byte that says it listens, or the end that says it does not. */
static int wait_ready(int ready_fd, int timeout_ms, struct error *err)
{
	int64_t deadline_ms = clock_ms() + timeout_ms;

	for (;;) {
		struct pollfd entry = { .fd = ready_fd, .events = POLLIN };
		int64_t left_ms = deadline_ms - clock_ms();
		char byte = 0;
		ssize_t got = 0;

		if (left_ms <= 0)
			return error_set(err, ERR_UNREACHABLE, 0,
					 "the daemon was started but is not ready after %d s",
					 timeout_ms / 1000);
		if (poll(&entry, 1, (int)left_ms) <= 0)
			continue;
		got = read(ready_fd, &byte, 1);
		if (got > 0)
			return 0;
		if (got == 0)
			return error_set(err, ERR_UNREACHABLE, 0, "the daemon did not start");
		if (errno != EINTR && errno != EAGAIN)
			return error_set(err, ERR_UNREACHABLE, errno, "wait for the daemon");
	}
}

/* Fork twice, so that the daemon is nobody's child here. */
static int launch(const char *path, char *const argv[], int ready_fd, int log_fd, struct error *err)
{
	char *envp[ARRAY_SIZE(passed_variables) + 1];
	int status = 0;
	pid_t pid = 0;

	collect_environment(envp);
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "start the daemon: fork");
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			become_daemon(path, argv, envp, ready_fd, log_fd);
		_exit(pid < 0 ? 1 : 0);
	}

	/* Somebody else's wait may have taken the status; the ready pipe tells the truth anyway. */
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return error_set(err, ERR_UNREACHABLE, 0, "start the daemon: fork failed");
	return 0;
}

int autostart_run(const char *daemon, const struct location *location, int timeout_ms,
		  struct error *err)
{
	const char *mode = location->place == LOCATE_ROOT ? "root" : "user";
	char *const argv[] = { (char *)"fsboxd",
			       (char *)"--mode",
			       (char *)mode,
			       (char *)"--socket",
			       (char *)location->socket,
			       (char *)"--idle-exit",
			       (char *)IDLE_EXIT_SECONDS,
			       (char *)"--ready-fd",
			       (char *)"3",
			       NULL };
	AUTO(auto_close) int log_fd = -1;
	AUTO(auto_close) int read_fd = -1;
	AUTO(auto_close) int write_fd = -1;
	off_t log_offset = 0;
	char line[256];
	int ends[2];
	int r = 0;

	log_fd = move_up(open_log(location, &log_offset), err);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "start the daemon: pipe");
	read_fd = ends[0];
	write_fd = move_up(ends[1], err);
	if (write_fd < 0)
		return -(int)ERR_UNREACHABLE;

	r = launch(daemon, argv, write_fd, log_fd, err);
	if (r < 0)
		return r;
	(void)close(steal_fd(&write_fd));

	r = wait_ready(read_fd, timeout_ms, err);
	if (r < 0) {
		first_line(log_fd, log_offset, line, sizeof(line));
		if (line[0])
			return error_set(err, ERR_UNREACHABLE, 0, "the daemon did not start: %s",
					 line);
	}
	return r;
}
