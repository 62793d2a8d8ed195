/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsboxd: the service's main process, the only privileged one. It listens, starts the other roles and
 * keeps the jobs; it never reads a client's bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/confine.h"
#include "daemon/log.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/config.h"
#include "daemon/spawner/notify.h"
#include "daemon/spawner/options.h"
#include "daemon/spawner/spawner.h"

/* Ended by a wrong command line or configuration, for service managers and scripts. */
#define EXIT_USAGE 2

/* The standard three must exist, or what we open first would take their numbers. */
static int have_standard_fds(struct error *err)
{
	int fd = -1;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /dev/null");
	(void)close(fd);
	return 0;
}

/* Whatever else whoever started us had open is not ours to keep. */
static int close_inherited(int listen_count, int ready_fd, struct error *err)
{
	unsigned first = 3 + (unsigned)listen_count;
	long r = 0;

	if (ready_fd >= (int)first) {
		if (fcntl(ready_fd, F_SETFD, FD_CLOEXEC) < 0)
			return error_set(err, ERR_INVALID, errno, "--ready-fd");
		if (ready_fd > (int)first)
			r = syscall(SYS_close_range, first, (unsigned)ready_fd - 1, 0);
		first = (unsigned)ready_fd + 1;
	}
	if (r == 0)
		r = syscall(SYS_close_range, first, ~0u, 0);
	return r == 0 ? 0 : error_set(err, ERR_SYSTEM, errno, "close_range");
}

static int check_mode(enum daemon_mode mode, struct error *err)
{
	if (mode == MODE_USER && geteuid() == 0)
		return error_set(err, ERR_INVALID, 0,
				 "--mode user is for ordinary users; root uses --mode root");
	if (mode != MODE_USER && geteuid() != 0)
		return error_set(err, ERR_INVALID, 0, "--mode %s needs root",
				 daemon_mode_name(mode));
	return 0;
}

static int check_config(const struct options *options, enum daemon_mode mode, struct error *err)
{
	struct config config = { 0 };
	struct paths paths;
	int r = 0;

	if ((r = paths_choose(&paths, options, mode, geteuid(), err)) < 0 ||
	    (r = config_load(&config, options, &paths, mode, err)) < 0)
		return r;
	config_deinit(&config);
	(void)printf("configuration is fine\n");
	return 0;
}

#define CAPABILITY(name) (UINT64_C(1) << (name))

/* What fsboxd works with, as its unit says too: no child of it is ever given anything else. */
static const uint64_t capabilities =
	CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID) |
	CAPABILITY(CAP_SETPCAP) | CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_KILL) |
	CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_DAC_OVERRIDE) |
	CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_NET_ADMIN) | CAPABILITY(CAP_SYS_CHROOT) |
	CAPABILITY(CAP_SYS_RESOURCE) | CAPABILITY(CAP_SYS_NICE) |
	CAPABILITY(
		CAP_SETFCAP); /* bwrap as root maps user 0 (user_namespaces(7), since Linux 5.12) */

static int serve(const struct options *options, struct error *err)
{
	static struct spawner spawner = SPAWNER_INIT;
	struct fdstore store = { 0 };
	int listen_count = notify_listen_fds(err);
	enum daemon_mode mode = 0;
	int r = listen_count;

	if (r < 0)
		return r;
	mode = options_mode(options, geteuid(), listen_count > 0);
	if ((r = check_mode(mode, err)) < 0)
		return r;
	if (options->check_config)
		return check_config(options, mode, err);
	if ((r = confine_bounding(capabilities, err)) == 0 &&
	    (r = close_inherited(listen_count, options->ready_fd, err)) == 0 &&
	    (r = fdstore_take(&store, &listen_count, err)) == 0 &&
	    (r = spawner_init(&spawner, options, mode, listen_count, &store, err)) == 0)
		r = spawner_run(&spawner, err);
	spawner_deinit(&spawner);
	return r;
}

int main(int argc, char *argv[])
{
	struct options options;
	struct error err = ERROR_INIT;
	int r = 0;

	log_open("fsboxd", LOG_WARNING, log_stderr_is_journal());
	child_reset_signals();
	if ((r = have_standard_fds(&err)) == 0)
		r = options_parse(&options, argc, argv, &err);
	if (r == 0 && options.help) {
		options_help(stdout);
		return EXIT_SUCCESS;
	}
	if (r == 0 && options.version) {
		(void)printf("fsboxd %s\n", FSBOX_VERSION);
		return EXIT_SUCCESS;
	}
	if (r == 0)
		r = serve(&options, &err);
	if (r == 0)
		return EXIT_SUCCESS;
	log_failure(&err, "cannot serve");
	return r == -ERR_INVALID || r == -ERR_CONFIG ? EXIT_USAGE : EXIT_FAILURE;
}
