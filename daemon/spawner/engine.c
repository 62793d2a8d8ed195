/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"

/* Exit statuses of the probing child before it is the engine. */
#define EXIT_IDENTITY 124
#define EXIT_EXEC 125

bool engine_forced_unavailable(void)
{
	const char *value = getenv("FSBOX_FORCE_UNAVAILABLE");

	return value && value[0] != '\0' && strcmp(value, "0") != 0;
}

const char *engine_find_bwrap(void)
{
	static const char *const places[] = { "/usr/bin/bwrap", "/bin/bwrap",
					      "/usr/local/bin/bwrap",
					      "/run/current-system/sw/bin/bwrap" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

static void say_no(struct engine_info *info, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Fill the reason; bytes that are not printable ASCII become question marks. */
static void say_no(struct engine_info *info, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(info->reason, sizeof(info->reason), format, args);
	va_end(args);
	for (char *at = info->reason; *at; at++) {
		if (*at < 0x20 || *at >= 0x7f)
			*at = '?';
	}
	info->available = false;
}

/* ---- in the child -------------------------------------------------------------------- */

static bool place(int fd, int number)
{
	/* dup2() onto itself would leave close-on-exec set. */
	if (fd == number)
		return fcntl(fd, F_SETFD, 0) == 0;
	return dup2(fd, number) == number;
}

static _Noreturn void child(const char *program, const struct engine_probe *probe, int stderr_fd)
{
	static char *const envp[] = { NULL };
	/* clang-format off */
	const char *const with_init[] = {
		program, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc",
		"--unshare-uts", "--unshare-cgroup-try", "--unshare-net", "--cap-drop", "ALL",
		"--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--perms", "0111", "--tmpfs", "/x",
		"--as-pid-1", "--", "/proc/self/fd/7", "--check", NULL,
	};
	const char *const alone[] = {
		program, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", program, "--version",
		NULL,
	};
	/* clang-format on */
	int init_fd = -1;
	int error_fd = -1;
	int null_fd = -1;
	struct error err;

	_Static_assert(INIT_FD_SELF == 7, "the path in with_init");
	/* The user's other processes must not look into what fork copied from fsboxd. */
	(void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
	(void)setsid();
	/* Out of the way of the numbers that they get. */
	error_fd = fcntl(stderr_fd, F_DUPFD_CLOEXEC, INIT_FD_SELF + 1);
	init_fd = fcntl(probe->init_fd, F_DUPFD_CLOEXEC, INIT_FD_SELF + 1);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!place(null_fd, 0) || !place(null_fd, 1) || !place(error_fd, 2) ||
	    (init_fd >= 0 && !place(init_fd, INIT_FD_SELF)) || chdir("/") < 0)
		_exit(EXIT_EXEC);
	(void)syscall(SYS_close_range, 3u, (unsigned)INIT_FD_SELF - 1, 0);
	(void)syscall(SYS_close_range, (unsigned)(init_fd >= 0) + INIT_FD_SELF, ~0u, 0);
	if (probe->identity && identity_become(probe->identity, &err) < 0) {
		(void)!write(2, err.message, strlen(err.message));
		_exit(EXIT_IDENTITY);
	}
	(void)execve(program, (char *const *)(init_fd >= 0 ? with_init : alone), envp);
	_exit(EXIT_EXEC);
}

/* ---- in fsboxd ----------------------------------------------------------------------- */

/* True with the wait status; false when the child had to be killed. */
static bool wait_for(pid_t pid, int *ret_status)
{
	AUTO(auto_close) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int n = 0;

	if (pidfd < 0)
		return waitpid(pid, ret_status, 0) == pid;
	do
		n = poll(&ended, 1, ENGINE_PROBE_MS);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return waitpid(pid, ret_status, 0) == pid;
	(void)kill(pid, SIGKILL);
	/* It may hang uninterruptibly: whoever reaps our children later gets it. */
	(void)waitpid(pid, ret_status, WNOHANG);
	return false;
}

static long read_number(const char *path)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

/* The usual reasons for which an ordinary user gets no namespaces, and what to do; "" if none shows. */
static const char *namespace_hint(void)
{
	if (read_number("/proc/sys/user/max_user_namespaces") == 0)
		return "; user namespaces are off: sysctl user.max_user_namespaces";
	if (read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "; user namespaces are for root only: sysctl kernel.unprivileged_userns_clone=1";
	if (read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
		return "; AppArmor restricts user namespaces: allow bwrap by a profile";
	return "";
}

static void judge(struct engine_info *info, int status, int stderr_fd)
{
	char line[ENGINE_REASON_BYTES] = "";
	ssize_t n = pread(stderr_fd, line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		info->available = true;
	else if (WIFSIGNALED(status))
		say_no(info, "bubblewrap was killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_EXEC && line[0] == '\0')
		say_no(info, "'%s' cannot be executed", info->path);
	else
		say_no(info, "%.120s%s", line[0] ? line : "bubblewrap failed", namespace_hint());
}

static void probe_bwrap(const struct engine_probe *probe, struct engine_info *info)
{
	const char *program = probe->program ? probe->program : engine_find_bwrap();
	AUTO(auto_close) int stderr_fd = -1;
	int status = 0;
	pid_t pid = 0;

	if (!program) {
		say_no(info, "bubblewrap is not installed");
		return;
	}
	(void)snprintf(info->path, sizeof(info->path), "%s", program);
	stderr_fd = memfd_create("engine probe", MFD_CLOEXEC);
	pid = stderr_fd < 0 ? -1 : fork();
	if (pid == 0)
		child(program, probe, stderr_fd);
	if (pid < 0)
		say_no(info, "cannot try: %s", strerror(errno));
	else if (!wait_for(pid, &status))
		say_no(info, "bubblewrap did not end within %d ms", ENGINE_PROBE_MS);
	else
		judge(info, status, stderr_fd);
}

void engine_probe(enum engine_kind engine, const struct engine_probe *probe,
		  struct engine_info *ret_info)
{
	*ret_info = (struct engine_info){ .engine = engine };
	switch (engine) {
	case ENGINE_BWRAP:
		ret_info->supported = true;
		if (probe->unavailable)
			say_no(ret_info, "FSBOX_FORCE_UNAVAILABLE is set");
		else
			probe_bwrap(probe, ret_info);
		return;
	case ENGINE_NATIVE:
		say_no(ret_info, "not part of this version");
		return;
	case ENGINE_SEATBELT:
		say_no(ret_info, "for macOS only");
		return;
	case ENGINE_DEFAULT:
		break;
	}
	say_no(ret_info, "no such engine");
}
