/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsbox-egress: started by fsboxd on first use, under a user id of its own in system mode, with an empty
 * environment, fsboxd's link as descriptor 3, the events pipe as descriptor 4 and a file for when nobody
 * reads that as descriptor 5. It takes the
 * connections of sandboxes that may reach some hosts and no others, and dials for them.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/confine.h"
#include "daemon/egress/egress.h"
#include "daemon/log.h"

/* The alarm is only to end an accept(2) that should not have waited. */
static void on_alarm(int signo)
{
	(void)signo;
}

static int set_signals(struct error *err)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ };
	struct sigaction alarm_action = { .sa_handler = on_alarm }; /* no SA_RESTART */

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
	if (sigaction(SIGALRM, &alarm_action, NULL) < 0)
		return error_set(err, ERR_SYSTEM, 0, "sigaction");
	return 0;
}

static int set_non_blocking(int fd, struct error *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, 0, "descriptor %d", fd);
	return 0;
}

/* Nothing else gets the number of the file, which is no ordinary one (jail.c). */
static int occupy(int file_fd, struct error *err)
{
	if (file_fd < 0 && fcntl(EGRESS_FD_EVENTS, F_DUPFD_CLOEXEC, EGRESS_FD_FILE) < 0)
		return error_set(err, ERR_SYSTEM, 0, "descriptor %d", EGRESS_FD_FILE);
	return 0;
}

int main(int argc, char **argv)
{
	struct egress egress = EGRESS_INIT;
	struct error err = ERROR_INIT;
	int file_fd = fcntl(EGRESS_FD_FILE, F_GETFD) < 0 ? -1 : EGRESS_FD_FILE;
	int r = 0;

	(void)argv;
	log_open("fsbox-egress", LOG_WARNING, log_stderr_is_journal());
	if (argc != 1)
		r = error_set(&err, ERR_INVALID, 0, "started by fsboxd, without arguments");
	if (r == 0 &&
	    (r = confine_descriptors(file_fd < 0 ? EGRESS_FD_EVENTS : file_fd, &err)) == 0 &&
	    (r = occupy(file_fd, &err)) == 0 && (r = set_signals(&err)) == 0 &&
	    (r = set_non_blocking(EGRESS_FD_EVENTS, &err)) == 0 &&
	    (r = egress_init(&egress, EGRESS_FD_LINK, EGRESS_FD_EVENTS, file_fd, &err)) == 0)
		r = egress_run(&egress, &err);
	if (r < 0)
		(void)fprintf(stderr, "fsbox-egress: %s (%s)\n", err.message, error_name(err.kind));
	egress_deinit(&egress);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
