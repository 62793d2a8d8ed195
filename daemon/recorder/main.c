/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsbox-recorder: started by fsboxd with the events pipe as descriptor 3, under a user id of its own
 * in system mode. It holds that pipe, its log directory and its log file, and takes orders from
 * nobody else. It ends when fsboxd closes the pipe; signals that end a service are ignored, so that
 * the last events are written too.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/confine.h"
#include "daemon/log.h"
#include "daemon/recorder/recorder.h"
#include "proto/wire/spawnop.h"

static const char usage[] =
	"usage: fsbox-recorder --events FILE [--max-bytes N] [--group-readable] [--no-journal]\n"
	"                      [--linked]\n"
	"Started by fsboxd; reads events from descriptor 3; --linked: takes orders from descriptor 4,\n"
	"acknowledges on descriptor 5.\n";

static int parse_number(const char *text, uint64_t *ret_number, struct error *err)
{
	char *end = NULL;
	unsigned long long number = 0;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return error_set(err, ERR_INVALID, 0, "--max-bytes: '%s' is no number", text);
	*ret_number = number;
	return 0;
}

static int options_parse(struct recorder_options *options, int argc, char **argv, struct error *err)
{
	static const struct option table[] = {
		{ "events", required_argument, NULL, 'e' },
		{ "max-bytes", required_argument, NULL, 'm' },
		{ "group-readable", no_argument, NULL, 'g' },
		{ "no-journal", no_argument, NULL, 'n' },
		{ "linked", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int option = 0;
	int r = 0;

	*options = (struct recorder_options){ .journal = true };
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 'e':
			options->path = optarg;
			break;
		case 'm':
			if ((r = parse_number(optarg, &options->max_bytes, err)) < 0)
				return r;
			break;
		case 'g':
			options->group_readable = true;
			break;
		case 'n':
			options->journal = false;
			break;
		case 'l':
			options->linked = true;
			break;
		default:
			(void)fputs(usage, stderr);
			return error_set(err, ERR_INVALID, 0, "usage");
		}
	}
	if (options->path == NULL || optind != argc) {
		(void)fputs(usage, stderr);
		return error_set(err, ERR_INVALID, 0, "--events is needed, and nothing else");
	}
	return 0;
}

static void ignore_signals(void)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
}

/* Nobody waits for it: it takes the processor from nobody who runs, least of all from a job that begins. */
static void stand_back(void)
{
	const struct sched_param plain = { 0 };

	(void)sched_setscheduler(0, SCHED_BATCH, &plain);
}

int main(int argc, char **argv)
{
	struct recorder_options options;
	struct recorder recorder = RECORDER_INIT;
	struct error err = ERROR_INIT;
	int r = 0;

	log_open("fsbox-recorder", LOG_WARNING, log_stderr_is_journal());
	ignore_signals();
	stand_back();
	if ((r = options_parse(&options, argc, argv, &err)) == 0 &&
	    (r = confine_descriptors(options.linked ? RECORDER_FD_ACK : RECORDER_FD_EVENTS,
				     &err)) == 0 &&
	    (r = recorder_init(&recorder, &options, &err)) == 0 &&
	    (r = confine_enter(CONFINE_RECORDER, &err)) == 0)
		r = recorder_run(&recorder, RECORDER_FD_EVENTS, &err);
	if (r < 0)
		(void)fprintf(stderr, "fsbox-recorder: %s (%s)\n", err.message,
			      error_name(err.kind));
	recorder_deinit(&recorder);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
