/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 12
#define LANDLOCK_ABI_RENAME 2 /* from here on files may be renamed between directories */

/* /proc/sys file NAME as text without its newline; false when it is not there. */
static bool read_line(const char *path, char *ret_text, size_t size)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, ret_text, size - 1);

	if (got < 0)
		return false;
	ret_text[got] = '\0';
	ret_text[strcspn(ret_text, "\n")] = '\0';
	return true;
}

static bool sysctl_is(const char *name, const char *value)
{
	char path[128];
	char text[64];

	(void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
	return read_line(path, text, sizeof(text)) && strcmp(text, value) == 0;
}

__attribute__((format(printf, 3, 4))) static void found(struct check *check, enum finding finding,
							const char *format, ...)
{
	va_list args;

	check->finding = finding;
	va_start(args, format);
	(void)vsnprintf(check->detail, sizeof(check->detail), format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fix(struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(check->fix, sizeof(check->fix), format, args);
	va_end(args);
}

/* ---- kernel -------------------------------------------------------------------------- */

static void check_kernel(struct check *check)
{
	struct utsname name;
	unsigned long major = 0;
	unsigned long minor = 0;
	char *dot = NULL;

	if (uname(&name) == 0)
		major = strtoul(name.release, &dot, 10);
	if (dot && *dot == '.')
		minor = strtoul(dot + 1, NULL, 10);
	if (major == 0) {
		found(check, FINDING_WARN, "its version cannot be read");
		return;
	}
	if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR)) {
		found(check, FINDING_OK, "Linux %s", name.release);
		return;
	}
	found(check, FINDING_FAIL, "Linux %s is older than %d.%d", name.release, KERNEL_MAJOR,
	      KERNEL_MINOR);
	fix(check, "install a newer kernel");
}

static void check_landlock(struct check *check)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U /* version */);

	if (abi >= LANDLOCK_ABI_RENAME) {
		found(check, FINDING_OK, "version %ld", abi);
		return;
	}
	if (abi > 0)
		found(check, FINDING_WARN, "version %ld is too old to be used", abi);
	else if (errno == EOPNOTSUPP)
		found(check, FINDING_WARN, "built into the kernel, but switched off");
	else
		found(check, FINDING_WARN, "not in this kernel");
	fix(check, "a second wall will be missing, everything works without it; boot with "
		   "'lsm=landlock,...' in front, or a kernel from 5.19 on");
}

/* ---- user namespaces ----------------------------------------------------------------- */

/*
 * In a child: make one and use it as bwrap does. Its exit status says how far it came: 0 all the way, 1
 * not made, 2 made but without power (how AppArmor refuses).
 */
static int try_user_namespace(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			_exit(1);
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void check_user_namespaces(struct check *check)
{
	int outcome = try_user_namespace();

	if (outcome == 0) {
		found(check, FINDING_OK, "usable");
		return;
	}
	found(check, geteuid() == 0 ? FINDING_WARN : FINDING_FAIL, "%s",
	      outcome == 2 ? "can be made, but give no rights" : "refused");
	if (sysctl_is("kernel/apparmor_restrict_unprivileged_userns", "1"))
		fix(check, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an "
			   "AppArmor profile that lets bwrap make them (Ubuntu: sudo apt install "
			   "apparmor-profiles, then enable bwrap-userns-restrict), or the system "
			   "service, which needs none");
	else if (sysctl_is("kernel/unprivileged_userns_clone", "0"))
		fix(check,
		    "sudo sysctl -w kernel.unprivileged_userns_clone=1, or the system service, "
		    "which needs none");
	else if (sysctl_is("user/max_user_namespaces", "0"))
		fix(check, "sudo sysctl -w user.max_user_namespaces=15000");
	else
		fix(check, "are you in a container? It must allow nested user namespaces (docker: "
			   "--security-opt seccomp=unconfined --security-opt apparmor=unconfined)");
}

/* ---- programs ------------------------------------------------------------------------ */

/*
 * Run ARGV (found on PATH) and keep the beginning of what it prints on either output. Returns its exit
 * status, 127 when it is not there, -1 when it cannot be known.
 */
static int run_program(const char *const argv[], char *ret_text, size_t size)
{
	AUTO(auto_close) int read_fd = -1;
	size_t used = 0;
	int status = 0;
	int ends[2];
	pid_t pid = 0;

	ret_text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	read_fd = ends[0];
	pid = fork();
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
		    dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(126);
		(void)execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	(void)close(ends[1]);
	if (pid < 0)
		return -1;

	for (;;) {
		char rest[256];
		bool room = used + 1 < size;
		ssize_t got = room ? read(read_fd, ret_text + used, size - 1 - used)
				   : read(read_fd, rest, sizeof(rest));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (room)
			used += (size_t)got;
	}
	ret_text[used] = '\0';
	ret_text[strcspn(ret_text, "\n")] = '\0';
	if (waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_bwrap(struct check *check)
{
	static const char *const version[] = { "bwrap", "--version", NULL };
	static const char *const trial[] = { "bwrap",  "--ro-bind",      "/",
					     "/",      "--unshare-user", "--unshare-pid",
					     "--proc", "/proc",          "true",
					     NULL };
	char text[128];
	char why[128];
	int status = run_program(version, text, sizeof(text));

	if (status != 0) {
		found(check, FINDING_FAIL,
		      status == 127 ? "bwrap is not installed" : "bwrap does not run");
		fix(check, "sudo apt install bubblewrap (dnf, pacman and apk call it the same)");
		return;
	}
	if (run_program(trial, why, sizeof(why)) == 0) {
		found(check, FINDING_OK, "%s, runs a command", text);
		return;
	}
	found(check, FINDING_FAIL, "%s, but: %s", text, why);
	fix(check, "see 'user namespaces' above");
}

/* ---- ourselves ----------------------------------------------------------------------- */

/* Field NAME of /proc/self/status; false when it is not there. */
static bool own_status(const char *name, char *ret_value, size_t size)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t length = strlen(name);
	bool there = false;

	while (file && !there && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length) != 0 || line[length] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(ret_value, size, "%s",
			       line + length + 1 + strspn(line + length + 1, " \t"));
		there = true;
	}
	if (file)
		(void)fclose(file);
	return there;
}

static void check_caller(struct check *check)
{
	char value[128];
	char label[128] = "";

	if (own_status("NoNewPrivs", value, sizeof(value)) && strcmp(value, "0") != 0)
		found(check, FINDING_FAIL, "you run with no_new_privs set");
	else if (own_status("Seccomp", value, sizeof(value)) && strcmp(value, "0") != 0)
		found(check, FINDING_FAIL, "you run under a seccomp filter");
	else if (read_line("/proc/self/attr/current", label, sizeof(label)) && label[0] &&
		 !strstr(label, "unconfined"))
		found(check, FINDING_FAIL, "you run under the security label %s", label);
	else {
		found(check, FINDING_OK, "uid %lu, not confined", (unsigned long)geteuid());
		return;
	}
	fix(check,
	    "the daemon refuses callers that are confined themselves: run fsboxctl outside "
	    "the sandbox or container, or let the administrator set 'admit-confined-uid = "
	    "%lu' in /etc/fsbox/fsboxd.conf",
	    (unsigned long)geteuid());
}

void doctor_check_host(struct doctor *doctor)
{
	check_kernel(doctor_add(doctor, "kernel"));
	check_user_namespaces(doctor_add(doctor, "user namespaces"));
	check_bwrap(doctor_add(doctor, "bubblewrap"));
	check_landlock(doctor_add(doctor, "landlock"));
	check_caller(doctor_add(doctor, "caller"));
}
