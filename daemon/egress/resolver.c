/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/resolver.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/netpolicy.h"
#include "common/scope.h"
#include "daemon/egress/jail.h"
#include "daemon/log.h"

#define OWN_FD 3 /* our socket, the only thing besides the standard streams */

static void take_address(const struct addrinfo *info, struct resolver_answer *answer)
{
	struct netaddr address = { 0 };

	if (info->ai_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)info->ai_addr;

		address = netaddr_from_v4(&in->sin_addr);
	} else if (info->ai_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)info->ai_addr;

		address = netaddr_from_v6(&in6->sin6_addr);
	}
	for (size_t i = 0; i < answer->count; i++)
		if (netaddr_equal(&answer->addresses[i], &address))
			return;
	if (address.family != 0 && answer->count < LIMIT_EGRESS_ADDRESSES)
		answer->addresses[answer->count++] = address;
}

static void look_up(const struct resolver_query *query)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct resolver_answer answer = { .id = query->id, .reason = NET_RESOLVE_FAILED };
	struct addrinfo *found = NULL;

	(void)alarm(LIMIT_RESOLVE_MS / 1000);
	if (getaddrinfo(query->name, NULL, &hints, &found) == 0) {
		for (const struct addrinfo *at = found; at; at = at->ai_next)
			take_address(at, &answer);
		freeaddrinfo(found);
	}
	if (answer.count > 0)
		answer.reason = NET_ALLOWED;
	(void)send(OWN_FD, &answer, sizeof(answer), MSG_NOSIGNAL);
	_exit(0);
}

/* Never returns. */
static void __attribute__((noreturn)) serve(void)
{
	struct resolver_query query;
	struct addrinfo *found = NULL;

	/* What every lookup needs is loaded once, here, and shared with the children. */
	if (getaddrinfo("localhost", NULL, NULL, &found) == 0)
		freeaddrinfo(found);
	for (;;) {
		ssize_t got = recv(OWN_FD, &query, sizeof(query), 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got != (ssize_t)sizeof(query) || !memchr(query.name, '\0', sizeof(query.name)))
			_exit(got == 0 ? 0 : 1);
		/* No answer for want of a process: the proxy's own timer sees to it. */
		if (fork() == 0)
			look_up(&query);
	}
}

static void __attribute__((noreturn)) resolver_main(int fd)
{
	struct error err = ERROR_INIT;

	if (dup2(fd, OWN_FD) < 0 || syscall(SYS_close_range, OWN_FD + 1, ~0u, 0) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, "fsbox-names");
	(void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps */
	if (jail_enter(JAIL_RESOLVER, &err) < 0) {
		log_failure(&err, "confine the resolver");
		_exit(1);
	}
	serve();
}

int resolver_start(int *ret_fd, struct error *err)
{
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int ends[2];
	pid_t pid = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SYSTEM, errno, "fork the resolver");
	if (pid == 0)
		resolver_main(theirs);
	*ret_fd = steal_fd(&ours);
	return 0;
}
