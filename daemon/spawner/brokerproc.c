/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/brokerproc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/spawner.h"

#define BROKER_FD_EXEC 5 /* beside BROKER_FD_LINK and BROKER_FD_REQUEST until exec */

_Static_assert(BROKER_FD_LINK == CHILD_FIRST_FD && BROKER_FD_REQUEST == CHILD_FIRST_FD + 1,
	       "the order of broker_birth.keep");

struct broker_birth {
	const struct spawner *spawner;
	const struct identity *identity;
	int keep[3]; /* link, request, exec */
};

/* What fsboxd raised for itself, or was given by its unit, is not the user's. */
static void lower_to_ordinary(const struct spawner *spawner)
{
	AUTO(auto_close) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	(void)setrlimit(RLIMIT_NOFILE, &spawner->nofile);
	if (fd >= 0 && write(fd, "0", 1) != 1)
		(void)fd; /* already lower than we may set: user mode under somebody's wrapper */
	(void)umask(0077);
}

/* In the child: still fsboxd, with all it may do, until identity_become(). */
static int broker_main(void *arg)
{
	const struct broker_birth *birth = arg;
	char name[] = "fsbox-broker";
	char *argv[] = { name, NULL };
	char *envp[] = { NULL };

	lower_to_ordinary(birth->spawner);
	if (child_arrange_fds(birth->keep, ARRAY_SIZE(birth->keep), false, NULL) < 0 ||
	    setsid() < 0 || chdir("/") < 0)
		return 1;
	if (identity_become(birth->identity, NULL) < 0)
		return 1;
	if (fcntl(BROKER_FD_EXEC, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	(void)syscall(SYS_execveat, BROKER_FD_EXEC, "", argv, envp, AT_EMPTY_PATH);
	return 127;
}

static int make_link(int *ret_ours, int *ret_theirs, struct error *err)
{
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	ours = ends[0];
	theirs = ends[1];

	/* Whatever it sends, with or without descriptors, gets EPIPE and never reaches us. */
	if (shutdown(ours, SHUT_RD) < 0)
		return error_set(err, ERR_SYSTEM, errno, "shutdown");
	*ret_ours = steal_fd(&ours);
	*ret_theirs = steal_fd(&theirs);
	return 0;
}

int brokerproc_start(struct spawner *spawner, const struct identity *identity, struct child *child,
		     child_exit_fn *on_exit, void *arg, int *ret_link_fd, int *ret_request_fd,
		     struct error *err)
{
	AUTO(auto_close) int link_fd = -1;
	AUTO(auto_close) int their_link_fd = -1;
	AUTO(auto_close) int request_fd = -1;
	AUTO(auto_close) int their_request_fd = -1;
	struct broker_birth birth = { .spawner = spawner, .identity = identity };
	int ends[2];
	int r = 0;

	if ((r = make_link(&link_fd, &their_link_fd, err)) < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	request_fd = ends[0];
	their_request_fd = ends[1];
	if (fcntl(request_fd, F_SETFL, O_RDONLY | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");

	birth.keep[0] = their_link_fd;
	birth.keep[1] = their_request_fd;
	birth.keep[2] = spawner->broker_exec_fd;
	r = child_start(&spawner->children, child, broker_main, &birth, on_exit, arg, err);
	if (r < 0)
		return r;
	*ret_link_fd = steal_fd(&link_fd);
	*ret_request_fd = steal_fd(&request_fd);
	return 0;
}

static void copy_path(char *to, const char *from)
{
	(void)snprintf(to, PATHS_BYTES, "%s", from);
}

int brokerproc_config(const struct spawner *spawner, const struct identity *identity,
		      struct link_config *ret_config, struct error *err)
{
	const struct paths *paths = &spawner->paths;
	struct link_config *config = ret_config;

	config->version = SPAWNOP_VERSION;
	config->mode = spawner->mode;
	config->engines = spawner->engines;
	config->uid = identity->uid;
	config->gid = identity->gid;
	copy_path(config->run_dir, paths->run_dir);
	copy_path(config->state_dir, paths->state_dir);
	copy_path(config->log_dir, paths->log_dir);
	copy_path(config->config_dir, paths->config_dir);
	copy_path(config->exec_dir, paths->exec_dir);
	copy_path(config->mask_dir, paths->mask_dir);
	copy_path(config->mask_file, paths->mask_file);
	(void)snprintf(config->engine_reason, sizeof(config->engine_reason), "%s",
		       spawner->engine_reason);
	return config_host_facts(&spawner->config, spawner->mode, identity->uid, config->text,
				 sizeof(config->text), err);
}
