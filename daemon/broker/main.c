/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fsbox-broker: started by fsboxd, as the user it serves, with an empty environment (R3). Not for
 * people to start.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/confine.h"
#include "daemon/log.h"
#include "proto/wire/spawnop.h"

int main(int argc, char *argv[])
{
	static struct broker broker; /* threads that hang on a close keep pointers into it */
	struct error err = ERROR_INIT;
	int r;

	(void)argv;
	log_open("fsbox-broker", LOG_WARNING, log_stderr_is_journal());
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 1) {
		(void)fprintf(stderr, "fsbox-broker is started by fsboxd\n");
		return EXIT_FAILURE;
	}
	if ((r = confine_descriptors(BROKER_FD_REQUEST, &err)) == 0 &&
	    (r = confine_enter(CONFINE_BROKER, &err)) == 0 && (r = broker_init(&broker, &err)) == 0)
		r = broker_run(&broker, &err);
	if (r < 0)
		log_failure(&err, "broker of uid %u", getuid());
	broker_deinit(&broker);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
