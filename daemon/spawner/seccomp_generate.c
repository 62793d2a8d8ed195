/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build-time program: seccomp_table.h → a C array of BPF instructions on standard output.
 *
 * libseccomp turns SECCOMP_DENY into a binary tree over the system call number. In front of it comes
 * what it cannot express, written by hand: numbers that nobody reviewed, foreign calling conventions, and
 * the system calls of SECCOMP_ONLY. Nothing of libseccomp is needed at run time.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/spawner/seccomp_table.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_NUMBERS 0x40000000u /* x32 numbers begin here */
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#error "no filter for this architecture yet"
#endif

#define PROGRAM_MAX 2048
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)

enum condition_kind { IS_ALWAYS, IS_LOW32, IS_BIT };

struct row {
	const char *name;
	int nr;
	int errnum;
	struct condition {
		enum condition_kind kind;
		unsigned arg;
		uint64_t value;
	} condition;
};

struct only {
	uint32_t nr;
	uint8_t arg;
	uint32_t value;
	uint8_t arg2;
	uint32_t value2;
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
static const struct row rows[] = { SECCOMP_DENY(X) };
#undef X

#define X(name, arg, value, arg2, value2) { __NR_##name, arg, (uint32_t)(value), arg2, value2 },
static const struct only onlys[] = { SECCOMP_ONLY(X) };
#undef X

struct program {
	struct sock_filter code[PROGRAM_MAX];
	size_t count;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

static void emit(struct program *program, struct sock_filter instruction)
{
	if (program->count == PROGRAM_MAX)
		die("the filter is longer than %d instructions", PROGRAM_MAX);
	program->code[program->count++] = instruction;
}

static void emit_load(struct program *program, size_t offset)
{
	emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_jump(struct program *program, unsigned test, uint32_t value, uint8_t if_true,
		      uint8_t if_false)
{
	emit(program, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), value,
						   if_true, if_false));
}

static void emit_return(struct program *program, uint32_t action)
{
	emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static size_t low_half(unsigned arg)
{
	return offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t) +
	       (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0);
}

/* Foreign architectures and calling conventions die; numbers past the reviewed ones do not exist. */
static void emit_numbers(struct program *program)
{
	emit_load(program, offsetof(struct seccomp_data, arch));
	emit_jump(program, BPF_JEQ, NATIVE_ARCH, 1, 0);
	emit_return(program, SECCOMP_RET_KILL_PROCESS);
	emit_load(program, offsetof(struct seccomp_data, nr));
#ifdef FOREIGN_NUMBERS
	emit_jump(program, BPF_JGT, SECCOMP_HIGHEST, 0, 4);
	/* -1 is how a tracer skips a call, not one of theirs. */
	emit_jump(program, BPF_JEQ, UINT32_MAX, 2, 0);
	emit_jump(program, BPF_JGE, FOREIGN_NUMBERS, 0, 1);
	emit_return(program, SECCOMP_RET_KILL_PROCESS);
#else
	emit_jump(program, BPF_JGT, SECCOMP_HIGHEST, 0, 1);
#endif
	emit_return(program, UNKNOWN);
}

/* One system call of SECCOMP_ONLY: its rows, then refusal. The accumulator holds the number before
 * and, for every other number, after. */
static void emit_only(struct program *program, uint32_t nr)
{
	size_t start = program->count;

	emit_jump(program, BPF_JEQ, nr, 0, 0); /* the way round is filled in below */
	for (size_t i = 0; i < sizeof(onlys) / sizeof(onlys[0]); i++) {
		const struct only *row = &onlys[i];

		if (row->nr != nr)
			continue;
		emit_load(program, low_half(row->arg));
		if (row->arg2 == SECCOMP_ANY) {
			emit_jump(program, BPF_JEQ, row->value, 0, 1);
		} else {
			emit_jump(program, BPF_JEQ, row->value, 0, 3);
			emit_load(program, low_half(row->arg2));
			emit_jump(program, BPF_JEQ, row->value2, 0, 1);
		}
		emit_return(program, SECCOMP_RET_ALLOW);
	}
	emit_return(program, REFUSE);
	if (program->count - start - 1 > UINT8_MAX)
		die("system call %u has too many rows", nr);
	program->code[start].jf = (uint8_t)(program->count - start - 1);
}

static void emit_onlys(struct program *program)
{
	for (size_t i = 0; i < sizeof(onlys) / sizeof(onlys[0]); i++) {
		size_t first = 0;

		while (onlys[first].nr != onlys[i].nr)
			first++;
		if (first == i)
			emit_only(program, onlys[i].nr);
	}
}

static void add_row(scmp_filter_ctx filter, const struct row *row)
{
	uint32_t action = SCMP_ACT_ERRNO((unsigned)row->errnum);
	struct scmp_arg_cmp compare;
	uint64_t mask = 0;
	int r = 0;

	switch (row->condition.kind) {
	case IS_ALWAYS:
		r = seccomp_rule_add_exact(filter, action, row->nr, 0);
		break;
	case IS_LOW32:
	case IS_BIT:
		mask = row->condition.kind == IS_BIT ? row->condition.value : UINT32_MAX;
		compare = SCMP_CMP64(row->condition.arg, SCMP_CMP_MASKED_EQ, mask,
				     row->condition.value);
		r = seccomp_rule_add_exact_array(filter, action, row->nr, 1, &compare);
		break;
	}
	if (r < 0)
		die("rule for %s: %s", row->name, strerror(-r));
}

/* What libseccomp makes of SECCOMP_DENY. */
static void emit_denied(struct program *program)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t size = 0;

	if (!filter || fd < 0)
		die("no filter");
	if (seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
	    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
		die("this libseccomp cannot make a binary tree (2.5 can)");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(filter, &rows[i]);
	if (seccomp_export_bpf(filter, fd) < 0)
		die("seccomp_export_bpf");
	seccomp_release(filter);

	size = pread(fd, program->code + program->count,
		     (PROGRAM_MAX - program->count) * sizeof(program->code[0]), 0);
	if (size <= 0 || size % (ssize_t)sizeof(program->code[0]) != 0)
		die("the exported filter cannot be read");
	program->count += (size_t)size / sizeof(program->code[0]);
	if (program->count >= PROGRAM_MAX)
		die("the filter is longer than %d instructions", PROGRAM_MAX);
	(void)close(fd);
}

int main(void)
{
	static struct program program;

	emit_numbers(&program);
	emit_onlys(&program);
	emit_denied(&program);

	(void)printf("/* Made by seccomp_generate.c from seccomp_table.h. */\n"
		     "static const struct sock_filter seccomp_program[] = {\n");
	for (size_t i = 0; i < program.count; i++) {
		const struct sock_filter *at = &program.code[i];

		(void)printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", at->code, at->jt, at->jf, at->k);
	}
	(void)printf("};\n");
	return fflush(stdout) == 0 ? 0 : 1;
}
