/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_OPTIONS_H
#define FSBOX_DAEMON_SPAWNER_OPTIONS_H

/* fsboxd's command line and the switches it takes from its environment. One table makes both help
 * and parser. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

#define OPTIONS_CONFIG_FILES 16

/*
 * Strings are borrowed from argv; NULL: the mode's default.
 *
 * @mode           0: not given
 * @config_files   none given: the mode's default files
 * @idle_exit_ms   0: serve for ever
 * @ready_fd       gets one byte and is closed once fsboxd serves; -1: none
 * @end_jobs       take over what runs, end it, and end
 * @unavailable    FSBOX_FORCE_UNAVAILABLE=1: no engine is used
 * @required       FSBOX_SANDBOX_REQUIRED=1: do not even start without an engine
 */
struct options {
	enum daemon_mode mode;
	const char *socket;
	const char *run_dir;
	const char *state_dir;
	const char *log_dir;
	const char *exec_dir;
	const char *config_files[OPTIONS_CONFIG_FILES];
	size_t config_file_count;
	uint64_t idle_exit_ms;
	int ready_fd;
	bool check_config;
	bool end_jobs;
	bool help;
	bool version;
	bool unavailable;
	bool required;
};

/* Fails with ERR_INVALID, naming the option. ARGV must outlive RET_OPTIONS. */
int options_parse(struct options *ret_options, int argc, char *const argv[], struct error *err);

void options_help(FILE *out);

/*
 * The mode that was asked for, else the one that fits: an ordinary user gets the user mode; root
 * gets the system mode when the service manager passed a socket, else the embedded one for root
 * alone.
 */
enum daemon_mode options_mode(const struct options *options, uid_t uid, bool activated);

#endif
