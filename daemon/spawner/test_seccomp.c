/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The filter, twice: run in an interpreter here, for exactness over all numbers and arguments; and by
 * this machine's kernel in a child, for the calls that were seen to be dangerous.
 */

#include "daemon/spawner/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <linux/vm_sockets.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/seccomp_table.h"
#include "tests/test.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#endif

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)

/* ---- interpreter --------------------------------------------------------------------- */

static bool jump(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	case BPF_JSET:
		return (a & k) != 0;
	default:
		fail_msg("jump 0x%x", code);
	}
	return false;
}

static uint32_t filter(const struct seccomp_data *data)
{
	size_t count = 0;
	const struct sock_filter *code = seccomp_instructions(&count);
	uint32_t a = 0;

	for (size_t at = 0; at < count; at++) {
		const struct sock_filter *now = &code[at];

		switch (BPF_CLASS(now->code)) {
		case BPF_LD:
			assert_int_equal(now->code, BPF_LD | BPF_W | BPF_ABS);
			assert_true(now->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + now->k, 4);
			break;
		case BPF_ALU:
			assert_int_equal(now->code, BPF_ALU | BPF_AND | BPF_K);
			a &= now->k;
			break;
		case BPF_JMP:
			if (BPF_OP(now->code) == BPF_JA)
				at += now->k;
			else
				at += jump(now->code, a, now->k) ? now->jt : now->jf;
			break;
		case BPF_RET:
			return now->k;
		default:
			fail_msg("instruction 0x%x", now->code);
		}
	}
	fail_msg("the filter has no end");
	return 0;
}

static uint32_t ask(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = NATIVE_ARCH, .args = { a0, a1, a2 } };

	return filter(&data);
}

/* ---- table --------------------------------------------------------------------------- */

enum kind { IS_ALWAYS, IS_LOW32, IS_BIT };

struct condition {
	enum kind kind;
	unsigned arg;
	uint64_t value;
};

#define ALWAYS                  \
	{                       \
		IS_ALWAYS, 0, 0 \
	}
#define LOW32(n, v)                        \
	{                                  \
		IS_LOW32, n, (uint32_t)(v) \
	}
#define BIT(n, v)                        \
	{                                \
		IS_BIT, n, (uint32_t)(v) \
	}
#define X(name, errnum, ...) { #name, __NR_##name, errnum, __VA_ARGS__ },
static const struct row {
	const char *name;
	uint32_t nr;
	int errnum;
	struct condition condition;
} rows[] = { SECCOMP_DENY(X) };
#undef X

#define X(name, ...) __NR_##name,
static const uint32_t only_numbers[] = { SECCOMP_ONLY(X) };
#undef X

static uint32_t ask_arg(uint32_t nr, unsigned arg, uint64_t value)
{
	/* Others are such that no other row of the same call fits. */
	uint64_t args[3] = { 7, 7, 7 };

	args[arg] = value;
	return ask(nr, args[0], args[1], args[2]);
}

static void R17_every_row_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		const struct condition *condition = &row->condition;
		const uint32_t action = SECCOMP_RET_ERRNO | (uint32_t)row->errnum;

		assert_int_equal(ask_arg(row->nr, condition->arg, condition->value), action);
		/* The kernel looks at 32 bits of these; so must we. */
		assert_int_equal(ask_arg(row->nr, condition->arg, condition->value | 1ull << 32),
				 action);
		assert_int_equal(ask_arg(row->nr, condition->arg,
					 condition->value | 0xffffffffull << 32),
				 action);
		if (condition->kind == IS_ALWAYS)
			assert_int_equal(ask(row->nr, ~0ull, ~0ull, ~0ull), action);
		if (condition->kind == IS_BIT)
			assert_int_equal(ask_arg(row->nr, condition->arg,
						 condition->value | SIGCHLD),
					 action);
	}
}

static bool is_listed(uint32_t nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].nr == nr)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(only_numbers); i++) {
		if (only_numbers[i] == nr)
			return true;
	}
	return false;
}

static void R17_everything_else_is_allowed(void **state)
{
	(void)state;
	for (uint32_t nr = 0; nr <= SECCOMP_HIGHEST; nr++) {
		if (!is_listed(nr))
			assert_int_equal(ask(nr, 1, 1, 1), SECCOMP_RET_ALLOW);
	}
	/* And what the conditions leave. */
	assert_int_equal(ask(__NR_unshare, CLONE_FILES | CLONE_FS, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_clone,
			     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				     CLONE_SETTLS | SIGCHLD,
			     0, 0),
			 SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_ioctl, 0, TCGETS, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_ioctl, 0, TIOCGWINSZ, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_prlimit64, 0, 1, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_setpriority, PRIO_PROCESS, 0, 1), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_sched_setaffinity, 0, 1, 1), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_sched_setaffinity, 2, 1, 1), SECCOMP_RET_ALLOW);
}

static void R17_unknown_numbers_do_not_exist(void **state)
{
	(void)state;
	for (uint32_t nr = SECCOMP_HIGHEST + 1; nr < SECCOMP_HIGHEST + 2000; nr++)
		assert_int_equal(ask(nr, 0, 0, 0), UNKNOWN);
	assert_int_equal(ask(0x3fffffff, 0, 0, 0), UNKNOWN);
	assert_int_equal(ask(UINT32_MAX, 0, 0, 0), UNKNOWN);
}

static void R17_foreign_callers_are_killed(void **state)
{
	static const uint32_t archs[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		struct seccomp_data data = { .nr = 1, .arch = archs[i] };

		assert_int_equal(filter(&data), SECCOMP_RET_KILL_PROCESS);
	}
#ifdef __x86_64__
	for (uint32_t nr = 0; nr <= SECCOMP_HIGHEST; nr++)
		assert_int_equal(ask(nr | 0x40000000u, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
#endif
}

static void R17_socket_families(void **state)
{
	(void)state;
	for (uint32_t domain = 0; domain < 256; domain++) {
		for (uint32_t protocol = 0; protocol < 32; protocol++) {
			bool good = domain == AF_UNIX || domain == AF_INET || domain == AF_INET6 ||
				    (domain == AF_NETLINK && protocol == NETLINK_ROUTE);
			uint32_t action = good ? SECCOMP_RET_ALLOW : REFUSE;

			assert_int_equal(ask(__NR_socket, domain, SOCK_STREAM, protocol), action);
			assert_int_equal(ask(__NR_socket, domain | 5ull << 32, SOCK_RAW,
					     protocol | 5ull << 32),
					 action);
		}
	}
}

static void R17_personality(void **state)
{
	(void)state;
	assert_int_equal(ask(__NR_personality, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_personality, 0xffffffff, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_personality, ADDR_NO_RANDOMIZE, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(__NR_personality, READ_IMPLIES_EXEC, 0, 0), REFUSE);
	assert_int_equal(ask(__NR_personality, ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC, 0, 0),
			 REFUSE);
	assert_int_equal(ask(__NR_personality, PER_LINUX32, 0, 0), REFUSE);
}

/* ---- in the kernel ------------------------------------------------------------------- */

/* The errno of a system call under the filter, 0 for success, or -signal. */
static int try_call(long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		long r = 0;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 || seccomp_install(NULL) < 0)
			_exit(255);
		r = syscall(nr, a0, a1, a2, a3, 0L, 0L);
		_exit(r < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return WEXITSTATUS(status);
}

static void R17_kernel_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t args[3] = { ~0ull, ~0ull, ~0ull }; /* harmless should the filter fail */

		if (rows[i].condition.kind == IS_BIT && rows[i].nr == __NR_clone)
			continue; /* below */
		args[rows[i].condition.arg] = rows[i].condition.value;
		assert_int_equal(try_call(rows[i].nr, args[0], args[1], args[2], ~0ull),
				 rows[i].errnum);
	}
	assert_int_equal(try_call(__NR_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_unshare, CLONE_NEWUSER | CLONE_FS, 0, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_unshare, CLONE_FS, 0, 0, 0), 0);
	assert_int_equal(try_call(__NR_socket, AF_VSOCK, SOCK_STREAM, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_socket, AF_VSOCK | 1ull << 32, SOCK_STREAM, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_socket, AF_ALG, SOCK_SEQPACKET, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_socket, AF_PACKET, SOCK_RAW, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_socket, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, 0), EPERM);
	assert_int_equal(try_call(__NR_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0), 0);
	assert_int_equal(try_call(__NR_socket, AF_UNIX | 1ull << 32, SOCK_STREAM, 0, 0), 0);
	assert_int_equal(try_call(__NR_ioctl, 0, TIOCSTI | 1ull << 32, 0, 0), EPERM);
	assert_int_equal(try_call(__NR_personality, 0xffffffff, 0, 0, 0), 0);
	assert_int_equal(try_call(SECCOMP_HIGHEST + 1, 0, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(100000, 0, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(__NR_getpid, 0, 0, 0, 0), 0);
#ifdef __x86_64__
	assert_int_equal(try_call(__NR_getpid | 0x40000000, 0, 0, 0, 0), -SIGSYS);
	assert_int_equal(try_call(512, 0, 0, 0, 0),
			 ENOSYS); /* x32's own numbers, without its bit */
#endif
}

#ifdef __x86_64__
static void R17_i386_gate_kills(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		long r = 20; /* getpid of i386 */

		if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 || seccomp_install(NULL) < 0)
			_exit(255);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* SIGSEGV where the kernel has no such gate. */
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
}
#endif

static void children_stay_under_the_filter(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 || seccomp_install(NULL) < 0)
			_exit(255);
		pid = fork();
		if (pid == 0)
			_exit(syscall(__NR_unshare, CLONE_NEWUSER) < 0 && errno == EPERM ? 5 : 6);
		(void)waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R17_every_row_is_refused),
		cmocka_unit_test(R17_everything_else_is_allowed),
		cmocka_unit_test(R17_unknown_numbers_do_not_exist),
		cmocka_unit_test(R17_foreign_callers_are_killed),
		cmocka_unit_test(R17_socket_families),
		cmocka_unit_test(R17_personality),
		cmocka_unit_test(R17_kernel_agrees),
#ifdef __x86_64__
		cmocka_unit_test(R17_i386_gate_kills),
#endif
		cmocka_unit_test(children_stay_under_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
