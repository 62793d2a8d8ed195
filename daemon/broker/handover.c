/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/scope.h"
#include "proto/wire/spawnop.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define DEFAULT_UMASK 022

static int write_sealed(int fd, const struct buf *data, struct error *err)
{
	for (size_t done = 0; done < data->size;) {
		ssize_t n = write(fd, data->data + done, data->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, ERR_SYSTEM, errno, "write to a memfd");
		done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, ALL_SEALS) < 0)
		return error_set(err, ERR_SYSTEM, errno, "seal a memfd");
	return 0;
}

int handover_plan(const struct buf *plan, int plan_fd, struct error *err)
{
	return write_sealed(plan_fd, plan, err);
}

/* The items of LIST with a NULL at the end; the caller frees the array. */
static char **as_vector(const struct string_list *list)
{
	char **vector = calloc(list->count + 1, sizeof(*vector));

	if (vector != NULL && list->count > 0)
		memcpy(vector, list->items, list->count * sizeof(*vector));
	return vector;
}

int handover_args(const char *cwd, const struct string_list *argv, const struct string_list *env,
		  int *ret_fd, uint8_t ret_hash[SHA256_BYTES], struct error *err)
{
	AUTO(auto_free) char **arguments = as_vector(argv);
	AUTO(auto_free) char **variables = as_vector(env);
	AUTO(auto_close) int fd = -1;
	struct buf out = BUF_INIT((size_t)2 * LIMIT_ARGS_BYTES);
	struct sha256 sha;
	int r;

	if (arguments == NULL || variables == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "arguments");
	r = args_encode(&out, cwd, arguments, variables, err);
	if (r == 0) {
		fd = memfd_create("fsbox-args", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
		if (fd < 0 && errno == EINVAL)
			fd = memfd_create("fsbox-args", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		r = fd >= 0 ? write_sealed(fd, &out, err)
			    : error_set(err, ERR_SYSTEM, errno, "memfd_create");
	}
	if (out.data != NULL)
		explicit_bzero(out.data, out.size); /* the environment was in it (R15) */
	buf_deinit(&out);
	if (r < 0)
		return r;
	sha256_init(&sha);
	for (size_t i = 0; i < argv->count; i++)
		sha256_add(&sha, argv->items[i], strlen(argv->items[i]) + 1);
	sha256_finish(&sha, ret_hash);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/*
 * Whether FD is a regular file that the job could not open for writing by its path. Asks the kernel
 * for what it has at hand; the file system is not asked, since it may hang.
 */
static bool needs_relay(int fd, const struct policy *policy)
{
	char link[64];
	char path[LIMIT_PATH_BYTES + 1];
	struct statx stx;
	int flags = fcntl(fd, F_GETFL);
	ssize_t n;

	if (flags >= 0 && (flags & O_PATH) != 0)
		return false; /* nothing can be relayed from it; init refuses it by kind */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_NLINK, &stx) < 0)
		return true;
	if (!S_ISREG(stx.stx_mode))
		return false;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n > 0 && path[0] != '/')
		return false; /* a namespace, which init refuses by kind */
	if (n <= 0 || (size_t)n >= sizeof(path) || stx.stx_nlink == 0)
		return true; /* too long, or no name any more */
	path[n] = '\0';
	return policy_access(policy, path).access != ACCESS_READ_WRITE;
}

int handover_check_stdio(const struct call *call, const struct policy *policy,
			 struct index_list *ret_indexes, struct error *err)
{
	const struct msg_stdio *stdio = &call->params.spawn.stdio;
	const int fds[] = { stdio->in_fd, stdio->out_fd, stdio->err_fd };

	memset(ret_indexes, 0, sizeof(*ret_indexes));
	ret_indexes->items = calloc(ARRAY_SIZE(fds), sizeof(*ret_indexes->items));
	if (ret_indexes->items == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "check descriptors");
	ret_indexes->capacity = ARRAY_SIZE(fds);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		int index;

		if (fds[i] < 0 || !needs_relay(fds[i], policy))
			continue;
		index = call_fd_index(call, fds[i]);
		ret_indexes->items[ret_indexes->count++] = (uint32_t)(index >= 0 ? index : 0);
	}
	return 0;
}

int handover_start(int channel, struct spawn_params *params, int args_fd, struct closer *closer,
		   struct error *err)
{
	int *const all[] = { &params->stdio.in_fd, &params->stdio.out_fd, &params->stdio.err_fd,
			     &params->lifeline_fd, &args_fd };
	struct start_message message = {
		.size = sizeof(message),
		.umask = params->umask >= 0 ? (uint32_t)params->umask & 0777 : DEFAULT_UMASK,
	};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * ARRAY_SIZE(all))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
	int fds[ARRAY_SIZE(all)];
	size_t count = 0;
	ssize_t n;

	/* In the order of enum start_fds. */
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (*all[i] < 0)
			continue;
		message.fds |= 1u << i;
		fds[count++] = *all[i];
	}
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	do
		n = sendmsg(channel, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		n = -errno;
	/* Copies are with the channel now: ours are closed where that cannot hold anybody up. */
	for (size_t i = 0; i < ARRAY_SIZE(all) - 1; i++)
		closer_take(closer, steal_fd(all[i]));
	/* It failed already, and fsboxd closed the other end: it will say why. */
	if (n == -EPIPE)
		return 0;
	if (n < 0)
		return error_set(err, ERR_SYSTEM, (int)-n, "hand descriptors over");
	return 0;
}
