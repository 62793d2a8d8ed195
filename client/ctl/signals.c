/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/signals.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/scope.h"
#include "common/units.h"

static const int passed_on[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT,
};

bool signal_parse(const char *text, int *ret_signo)
{
	uint64_t number = 0;

	if (parse_count(text, 1, NSIG - 1, &number)) {
		*ret_signo = (int)number;
		return true;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int signo = 1; signo < NSIG; signo++) {
		const char *name = sigabbrev_np(signo);

		if (name && strcasecmp(name, text) == 0) {
			*ret_signo = signo;
			return true;
		}
	}
	return false;
}

const char *signal_label(char out[static 32], int signo)
{
	const char *name = sigabbrev_np(signo);

	if (name)
		(void)snprintf(out, 32, "SIG%s", name);
	else
		(void)snprintf(out, 32, "signal %d", signo);
	return out;
}

int signals_catch(sigset_t *ret_before)
{
	sigset_t caught;

	(void)sigemptyset(&caught);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
		struct sigaction current;

		/* What was ignored when we were started (nohup, background jobs) stays so. */
		if (sigaction(passed_on[i], NULL, &current) < 0 || current.sa_handler == SIG_IGN)
			continue;
		(void)sigaddset(&caught, passed_on[i]);
	}
	if (sigprocmask(SIG_BLOCK, &caught, ret_before) < 0)
		return -1;
	return signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

_Noreturn void signals_die(int signo)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t one;

	(void)sigaction(signo, &standard, NULL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, signo);
	(void)raise(signo);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	_exit(128 + signo);
}
