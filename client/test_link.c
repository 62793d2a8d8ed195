/* SPDX-License-Identifier: Apache-2.0 */

/* A program as others write them: the installed header alone, the shared library alone. */

#include <fsbox.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct fsbox_options options = FSBOX_OPTIONS_INIT;
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct fsbox *box = NULL;
	struct fsbox_error err;

	options.socket = "/nonexistent/fsbox.sock";
	if (fsbox_open(&box, &options, &err) == 0 || box) {
		puts("connected to nothing");
		return 1;
	}
	if (strcmp(err.kind, "daemon-unreachable") != 0 || err.hint[0] == '\0' ||
	    strcmp(err.message, "look at '/nonexistent': No such file or directory") != 0) {
		printf("%s (%s); %s\n", err.message, err.kind, err.hint);
		return 1;
	}
	if (spawn.stdin_fd != -1 || spawn.grant_fd != -1 || spawn.detach ||
	    spawn.size != sizeof(spawn)) {
		puts("FSBOX_SPAWN_INIT is wrong");
		return 1;
	}

	/* Somebody built with an older, shorter struct. */
	options.size = offsetof(struct fsbox_options, daemon);
	if (fsbox_open(&box, &options, &err) == 0 || strcmp(err.kind, "daemon-unreachable") != 0) {
		puts("short options are not understood");
		return 1;
	}
	return 0;
}
