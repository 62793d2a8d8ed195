/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_SIGNALS_H
#define FSBOX_CLIENT_CTL_SIGNALS_H

/* Signals by name, and those that fsboxctl passes on to its job. */

#include <signal.h>
#include <stdbool.h>

/* "TERM", "SIGTERM", "15"; false for anything else. */
bool signal_parse(const char *text, int *ret_signo);

/* "SIGTERM"; "signal 35" in OUT for those without a name. */
const char *signal_label(char out[static 32], int signo);

/*
 * Block the signals that are passed on and hand them out through a descriptor instead. RET_BEFORE gets
 * the mask to go back to. Returns the descriptor (close-on-exec, non-blocking), or -1 with errno.
 */
int signals_catch(sigset_t *ret_before);

/* End of the program by SIGNO itself, as if it had never been caught. */
_Noreturn void signals_die(int signo);

#endif
