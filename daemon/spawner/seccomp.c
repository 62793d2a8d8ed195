/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/seccomp_filter.h" /* generated */

int seccomp_install(struct error *err)
{
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(seccomp_program),
		.filter = (struct sock_filter *)seccomp_program, /* the kernel only reads it */
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &program) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "install the system call filter");
	return 0;
}

const struct sock_filter *seccomp_instructions(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(seccomp_program);
	return seccomp_program;
}
