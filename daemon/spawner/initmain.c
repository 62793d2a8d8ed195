/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fsbox-init: the static program that bubblewrap runs as pid 1 of a job. Its descriptors are
 * INIT_FD_*; it takes no argument and reads no environment.
 *
 * With --check it only confines itself, as pid 1 of a job would, and exits 0: fsboxd's probe of the
 * engine.
 */

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/limits.h"
#include "daemon/spawner/init.h"
#include "daemon/spawner/initconfine.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/sealed.h"

static int check(void)
{
	struct error err = ERROR_INIT;
	const char *stage = "";

	if (init_confine(NULL, 0, -1, &stage, &err) == 0)
		return 0;
	(void)fprintf(stderr, "%s: %s\n", stage, err.message);
	return 1;
}

/* Everything that is not ours is closed; what is ours does not leak into the command. */
static int take_descriptors(struct error *err)
{
	static const int needed[] = { INIT_FD_REPORT, INIT_FD_GO, INIT_FD_CHANNEL, INIT_FD_SETUP };

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (fcntl(needed[i], F_SETFD, FD_CLOEXEC) < 0)
			return error_set(err, ERR_SETUP_FAILED, 0, "descriptor %d is missing",
					 needed[i]);
	}
	(void)close(INIT_FD_SELF);
	if (syscall(SYS_close_range, (unsigned)INIT_FD_RESULT + 1, ~0u, 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, 0, "close other descriptors");
	return 0;
}

int main(int argc, char **argv)
{
	struct init_input input = {
		.report_fd = INIT_FD_REPORT,
		.go_fd = INIT_FD_GO,
		.channel_fd = INIT_FD_CHANNEL,
		.dev_fd = INIT_FD_DEV,
		.ruleset_fd = -1,
		.egress_fd = INIT_FD_EGRESS,
		.guard_fd = -1,
		.result = { .scribe_fd = INIT_FD_RESULT },
	};
	struct report_message message;
	struct error err = ERROR_INIT;
	int r = 0;

	if (argc == 2 && strcmp(argv[1], "--check") == 0)
		return check();
	for (int signo = 1; signo < NSIG; signo++)
		(void)signal(signo, SIG_DFL); /* whatever the engine ignores */
	if (fcntl(INIT_FD_DEV, F_SETFD, FD_CLOEXEC) < 0)
		input.dev_fd = -1;
	if (fcntl(INIT_FD_EGRESS, F_SETFD, FD_CLOEXEC) < 0)
		input.egress_fd = -1;
	if (fcntl(INIT_FD_RESULT, F_SETFD, FD_CLOEXEC) < 0)
		input.result.scribe_fd = -1;
	if ((r = take_descriptors(&err)) == 0 &&
	    (r = sealed_map(INIT_FD_SETUP, LIMIT_PLAN_BYTES, &input.setup, &input.setup_bytes,
			    &err)) == 0)
		r = setup_check(input.setup, input.setup_bytes, &err);
	(void)close(INIT_FD_SETUP);
	if (r == 0)
		init_run(&input);

	report_begin(&message, REPORT_FAILED);
	failure_set(&message.u.failure, &err, "setup");
	report_send(INIT_FD_CHANNEL, &message, -1);
	(void)report_write(INIT_FD_REPORT, &message, NULL);
	return 125;
}
