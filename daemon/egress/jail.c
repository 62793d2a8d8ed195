/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/confine.h"
#include "proto/wire/egressop.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#error "jail.c does not know this architecture"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#endif

/* Later than the oldest headers that this is built with. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif
#define ABI_TRUNCATE 3
#define ABI_NETWORK 4
#define ABI_SCOPES 6

#define FILES_WANTED 65536

struct ruleset_attributes {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

/* Everything up to LANDLOCK_ACCESS_FS_MAKE_SYM, the last of ABI 1. */
#define RIGHTS_ALL ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define RIGHTS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/*
 * Where resolv.conf, hosts, nsswitch.conf and their like are, and the libraries of name services.
 * Folders, since these files are replaced by renaming. Nothing in them is for this user's eyes alone.
 */
static const char *const readable[] = {
	"/etc",
	"/usr/lib",
	"/usr/lib64",
	"/lib",
	"/lib64",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/nix/store",
};

static int add_readable(int ruleset_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(readable); i++) {
		AUTO(auto_close) int fd = open(readable[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct landlock_path_beneath_attr rule = { .allowed_access = RIGHTS_READ,
							   .parent_fd = fd };

		if (fd < 0)
			continue;
		if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			    0L) < 0)
			return error_set(err, ERR_SYSTEM, errno, "Landlock rule for '%s'",
					 readable[i]);
	}
	return 0;
}

static int enter_landlock(enum jail_role role, struct error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0L, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset_attributes attributes = { .handled_access_fs = RIGHTS_ALL };
	size_t size = sizeof(attributes);
	AUTO(auto_close) int fd = -1;

	if (abi < 1)
		return 0;
	if (abi >= 2)
		attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= ABI_TRUNCATE)
		attributes.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= ABI_NETWORK)
		attributes.handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP;
	if (abi >= ABI_SCOPES)
		attributes.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0L);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "Landlock rule set");
	if (role == JAIL_RESOLVER && add_readable(fd, err) < 0)
		return -ERR_SYSTEM;
	if (syscall(SYS_landlock_restrict_self, fd, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "Landlock");
	return 0;
}

#define REFUSE (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))
#define HIGH_HALF_LAST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args[n]) + HIGH_HALF_LAST)

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define IF_NOT(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))

/* Kill what comes by another calling convention; the number is loaded afterwards. */
#define FILTER_HEAD                                                        \
	LOAD(offsetof(struct seccomp_data, arch)), IF_NOT(NATIVE_ARCH, 2), \
		LOAD(offsetof(struct seccomp_data, nr)),                   \
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1),    \
		RETURN(SECCOMP_RET_KILL_PROCESS)

/* One row: if the number is NAME's, then this. */
#define ROW(name, action) IF_NOT(__NR_##name, 1), RETURN(action),

/* socket() of one more family; NEXT instructions follow within the call. */
#define FAMILY(family) IF_NOT((family), 1), RETURN(SECCOMP_RET_ALLOW)

/* Never, for either: what turns a foothold into a program. */
#define NEVER(X)             \
	X(execve)            \
	X(execveat)          \
	X(ptrace)            \
	X(process_vm_readv)  \
	X(process_vm_writev) \
	X(pidfd_getfd)       \
	X(bpf)               \
	X(userfaultfd)       \
	X(io_uring_setup)    \
	X(unshare)           \
	X(setns)             \
	X(mount)             \
	X(keyctl)            \
	X(add_key)           \
	X(request_key)       \
	X(perf_event_open)

/* All that the proxy asks of the kernel; what is asked for each piece of data comes first. */
#define PROXY_CALLS(X)     \
	X(splice)          \
	X(epoll_pwait)     \
	X(epoll_ctl)       \
	X(read)            \
	X(write)           \
	X(recvfrom)        \
	X(sendto)          \
	X(accept4)         \
	X(connect)         \
	X(close)           \
	X(shutdown)        \
	X(getsockopt)      \
	X(setsockopt)      \
	X(getsockname)     \
	X(getpeername)     \
	X(recvmsg)         \
	X(sendmsg)         \
	X(setitimer)       \
	X(pipe2)           \
	X(fstat)           \
	X(newfstatat)      \
	X(pread64)         \
	X(writev)          \
	X(readv)           \
	X(lseek)           \
	X(ppoll)           \
	X(clock_gettime)   \
	X(gettimeofday)    \
	X(getrandom)       \
	X(munmap)          \
	X(mremap)          \
	X(madvise)         \
	X(brk)             \
	X(futex)           \
	X(rt_sigaction)    \
	X(rt_sigprocmask)  \
	X(rt_sigreturn)    \
	X(sigaltstack)     \
	X(getpid)          \
	X(gettid)          \
	X(tgkill)          \
	X(sched_yield)     \
	X(restart_syscall) \
	X(exit)            \
	X(exit_group)

#define ROW_KILL(name) ROW(name, SECCOMP_RET_KILL_PROCESS)
#define ROW_ALLOW(name) ROW(name, SECCOMP_RET_ALLOW)

/* A sanitizer looks at itself in ways of its own. */
#ifdef WITH_ADDRESS_SANITIZER
#define PROXY_OTHERWISE SECCOMP_RET_ALLOW
#else
#define PROXY_OTHERWISE REFUSE
#endif

static const struct sock_filter proxy_filter[] = {
	FILTER_HEAD,
#ifdef __NR_epoll_wait
	ROW_ALLOW(epoll_wait)
#endif
#ifdef __NR_poll
		ROW_ALLOW(poll)
#endif
			PROXY_CALLS(ROW_ALLOW) NEVER(ROW_KILL)
	/* Memory that is new or changes is never executable. */
	IF_NOT(__NR_mmap, 4),
	LOAD(ARGUMENT(2)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(REFUSE),
	IF_NOT(__NR_mprotect, 4),
	LOAD(ARGUMENT(2)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(REFUSE),
	/* That its file can only be appended to (O_APPEND) is a flag that could be taken off, also by a copy. */
	IF_NOT(__NR_fcntl, 4),
	LOAD(ARGUMENT(0)),
	IF_NOT(EGRESS_FD_FILE, 1),
	RETURN(REFUSE),
	RETURN(SECCOMP_RET_ALLOW),
	IF_NOT(__NR_socket, 6),
	LOAD(ARGUMENT(0)),
	FAMILY(AF_INET),
	FAMILY(AF_INET6),
	RETURN(REFUSE),
	RETURN(PROXY_OTHERWISE),
};

static const struct sock_filter resolver_filter[] = {
	FILTER_HEAD,
	NEVER(ROW_KILL) IF_NOT(__NR_socket, 10),
	LOAD(ARGUMENT(0)),
	FAMILY(AF_INET),
	FAMILY(AF_INET6),
	FAMILY(AF_UNIX),
	FAMILY(AF_NETLINK),
	RETURN(REFUSE),
	RETURN(SECCOMP_RET_ALLOW),
};

static int enter_filter(enum jail_role role, struct error *err)
{
	const struct sock_fprog program = {
		.len = role == JAIL_PROXY ? ARRAY_SIZE(proxy_filter) : ARRAY_SIZE(resolver_filter),
		/* The kernel only reads it. */
		.filter =
			(struct sock_filter *)(role == JAIL_PROXY ? proxy_filter : resolver_filter),
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program) < 0)
		return error_set(err, ERR_SYSTEM, errno, "seccomp filter");
	return 0;
}

int jail_enter(enum jail_role role, struct error *err)
{
	const struct rlimit none = { 0, 0 };
	int r = confine_not_dumpable(err);

	if (r == 0 && setrlimit(RLIMIT_CORE, &none) < 0)
		r = error_set(err, ERR_SYSTEM, errno, "RLIMIT_CORE");
	if (r == 0)
		r = confine_drop_capabilities(err);
	if (r == 0)
		r = confine_no_new_privs(err);
	if (r == 0)
		r = enter_landlock(role, err);
	if (r == 0)
		r = enter_filter(role, err);
	return r;
}

unsigned jail_raise_files(void)
{
	struct rlimit files = { 0 };

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 256;
	files.rlim_cur = files.rlim_max < FILES_WANTED ? files.rlim_max : FILES_WANTED;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return 256;
	return (unsigned)files.rlim_cur;
}
