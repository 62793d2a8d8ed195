/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#error "confine_linux.c does not know this architecture"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef WITH_ADDRESS_SANITIZER
/* Looking for leaks works by ptrace, which is exactly what a confined role refuses. */
__attribute__((visibility("default"))) const char *
__asan_default_options(void);            /* NOLINT(bugprone-reserved-identifier) */
const char *__asan_default_options(void) /* NOLINT(bugprone-reserved-identifier) */
{
	return "detect_leaks=0";
}
#endif

int confine_descriptors(int last, struct error *err)
{
	for (int fd = 0; fd <= last; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			return error_set(err, ERR_SYSTEM, errno, "inherited descriptor %d", fd);
	}
	if (syscall(SYS_close_range, (unsigned)last + 1, ~0u, 0) < 0)
		return error_set(err, ERR_SYSTEM, errno, "close other descriptors");
	return 0;
}

int confine_not_dumpable(struct error *err)
{
	/* Said aloud: becoming another user clears it, going from 0 to 0 does not. */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	return 0;
}

int confine_no_new_privs(struct error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_NO_NEW_PRIVS");
	return 0;
}

/* Without CAP_SETPCAP the bounding set stays, and with no_new_privs then means nothing. */
int confine_bounding(uint64_t kept, struct error *err)
{
	for (unsigned long cap = 0; cap < 64; cap++) {
		if (kept & UINT64_C(1) << cap)
			continue;
		/* Looking first: a drop makes new credentials, also where there is nothing to drop. */
		if (prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) == 0 ||
		    prctl(PR_CAPBSET_DROP, cap, 0L, 0L, 0L) == 0)
			continue;
		if (errno == EPERM || errno == EINVAL)
			break; /* may drop none, or past the last one this kernel knows */
		return error_set(err, ERR_SYSTEM, errno, "PR_CAPBSET_DROP %lu", cap);
	}
	return 0;
}

int confine_drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int r = confine_bounding(0, err);

	if (r < 0)
		return r;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_CAP_AMBIENT_CLEAR_ALL");
	if (syscall(SYS_capset, &header, data) < 0)
		return error_set(err, ERR_SYSTEM, errno, "capset");

	/* Believe the kernel only after asking it. */
	memset(data, 0xff, sizeof(data));
	if (syscall(SYS_capget, &header, data) < 0)
		return error_set(err, ERR_SYSTEM, errno, "capget");
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		if (data[i].effective || data[i].permitted || data[i].inheritable)
			return error_set(err, ERR_SYSTEM, 0, "capabilities are left after capset");
	}
	return 0;
}

/*
 * A role never executes a program and never traces one; the recorder never opens an internet socket.
 * What else it may do its user may do anyway. Linear, since it is short.
 */
static int install_filter(enum confine_role role, struct error *err)
{
	const unsigned nr_at = offsetof(struct seccomp_data, nr);
	const unsigned arch_at = offsetof(struct seccomp_data, arch);
	/* The kernel reads the domain as an int: the low half, wherever this machine keeps it. */
	const unsigned domain_at = offsetof(struct seccomp_data, args[0]) +
				   (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arch_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr_at),
#ifdef X32_BIT
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, domain_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, role == CONFINE_RECORDER
						  ? SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA)
						  : SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA)),
	};
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(filter),
		.filter = (struct sock_filter *)filter, /* the kernel only reads it */
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program) < 0)
		return error_set(err, ERR_SYSTEM, errno, "seccomp filter");
	return 0;
}

int confine_enter(enum confine_role role, struct error *err)
{
	const struct rlimit no_core = { 0, 0 };
	int r = confine_not_dumpable(err);

	if (r < 0)
		return r;
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return error_set(err, ERR_SYSTEM, errno, "RLIMIT_CORE");
	if (role == CONFINE_RECORDER || geteuid() != 0) {
		r = confine_drop_capabilities(err);
		if (r < 0)
			return r;
	}
	r = confine_no_new_privs(err);
	if (r < 0)
		return r;
	return install_filter(role, err);
}

/* ---- Landlock of jobs ---------------------------------------------------------------- */

int confine_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0L, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

const char *confine_landlock_gap(int abi, size_t index)
{
	static const struct {
		int from;
		const char *what;
	} gaps[] = {
		{ LANDLOCK_ABI_MIN,
		  "this kernel has no Landlock to use (Linux 5.19): mounts and namespaces hold alone" },
		{ LANDLOCK_ABI_SCOPES,
		  "this kernel cannot scope abstract sockets (Linux 6.12): with"
		  " network 'host' a job reaches those of the host" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		if (abi < gaps[i].from && index-- == 0)
			return gaps[i].what;
	}
	return NULL;
}
