/* SPDX-License-Identifier: Apache-2.0 */

/* spawn: starts a job, stands in for it towards the terminal and the shell, ends as it ended. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/ctl/command.h"
#include "client/ctl/request.h"
#include "client/ctl/show.h"
#include "client/ctl/signals.h"
#include "client/hint.h"
#include "common/scope.h"

#define SECOND_INTERRUPT_MS 1000
#define EARLY_SIGNAL_MS 2000

/* A daemon that went may be followed by another one: how it is looked for, and how long after the end. */
#define RETRY_FIRST_MS 50
#define RETRY_LONGEST_MS 1000
#define RETRY_ATTEMPT_MS 500
#define RETRY_AFTER_END_MS 10000

/*
 * @signal_fd    signals to pass on
 * @request_id   of the spawn that was sent
 * @job          once it runs
 * @relay        once the daemon asked for one
 * @end          how it ended
 * @interrupted_ms  when the last interrupt came
 * @early_signal  came before the daemon's answer; 0: none; at @early_ms
 * @cut_off      the connection broke while the job ran: another one is tried at @retry_ms, after a pause
 *               of @pause_ms
 * @found_ms     when another one was found
 * @gone_ms      cut off: when its pidfd told that it is over
 */
struct run {
	struct ctl *ctl;
	struct request request;
	int signal_fd;
	uint64_t request_id;
	struct fsbox_job *job;
	struct fsbox_relay *relay;
	struct fsbox_exit *end;
	int64_t interrupted_ms;
	int64_t early_ms;
	int early_signal;
	bool cut_off;
	int64_t retry_ms;
	int64_t pause_ms;
	int64_t found_ms;
	int64_t gone_ms;
};

static int fail_run(struct run *run, const struct fsbox_error *err)
{
	output_error(run->ctl, NULL, err);
	if (run->ctl->args.status_fd >= 0)
		show_status_error(run->ctl, run->ctl->args.status_fd, err);
	return fsbox_error_exit_status(err->kind);
}

/* ---- start --------------------------------------------------------------------------- */

static int send_spawn(struct run *run, struct fsbox_error *err)
{
	struct fsbox_spawn *spawn = &run->request.spawn;
	int *const fds[] = { &spawn->stdin_fd, &spawn->stdout_fd, &spawn->stderr_fd };

	for (int i = 0; i < 3; i++) {
		*fds[i] = run->ctl->null_stdio & (1U << i) ? -1 : i;
		if (run->relay)
			*fds[i] = fsbox_relay_fd(run->relay, i);
	}
	return fsbox_spawn_send(run->ctl->box, spawn, &run->request_id, err);
}

/* The daemon wants regular files relayed: the same once more, with pipes in their place. */
static int send_relayed(struct run *run, struct fsbox_error *err)
{
	int fds[3];

	for (int i = 0; i < 3; i++)
		fds[i] = run->ctl->null_stdio & (1U << i) ? -1 : i;
	if (fsbox_relay_new(&run->relay, fds, err) < 0)
		return -1;
	return send_spawn(run, err);
}

/* ---- signals ------------------------------------------------------------------------- */

static bool find_daemon(struct run *run)
{
	if (fsbox_reconnect(run->ctl->box, RETRY_ATTEMPT_MS, NULL) < 0)
		return false;
	run->found_ms = clock_ms();
	run->cut_off = false;
	return true;
}

/* Each pause is longer than the one before. */
static void pause_a_while(struct run *run)
{
	run->retry_ms = clock_ms() + run->pause_ms;
	if (run->pause_ms < RETRY_LONGEST_MS)
		run->pause_ms = run->pause_ms == 0 ? RETRY_FIRST_MS : 2 * run->pause_ms;
}

static void forward(struct run *run, int signo)
{
	uint64_t ignored = 0;

	if (run->cut_off && !find_daemon(run)) {
		/* Nobody can pass signals on: the lifeline is what is left to end it with. */
		if (run->job->lifeline >= 0 && signo != SIGWINCH && signo != SIGCONT &&
		    signo != SIGTSTP)
			fsbox_job_end(run->job);
		return;
	}
	(void)fsbox_signal_send(run->ctl->box, run->job->id, NULL, signo, &ignored, NULL);
}

/*
 * Before the daemon's answer nobody knows whether the command runs already. Its signal waits for the
 * answer; one that insists, or that waited too long, ends us, and the lifeline ends the job.
 */
static void on_early_signal(struct run *run, int signo)
{
	if (signo == SIGWINCH || signo == SIGCONT)
		return;
	if (signo == SIGTSTP) {
		(void)raise(SIGSTOP);
		return;
	}
	if (run->early_signal != 0)
		signals_die(signo);
	run->early_signal = signo;
	run->early_ms = clock_ms();
}

static void on_signal(struct run *run, int signo)
{
	int64_t now_ms = clock_ms();

	if (signo == SIGINT) {
		bool again = run->interrupted_ms != 0 &&
			     now_ms - run->interrupted_ms <= SECOND_INTERRUPT_MS;

		run->interrupted_ms = now_ms;
		if (again)
			signo = SIGKILL;
	}
	if (signo != SIGTSTP) {
		forward(run, signo);
		return;
	}

	/* Stop the job, then ourselves; being continued comes as a SIGCONT, which is passed on. */
	forward(run, SIGSTOP);
	(void)fsbox_process(run->ctl->box, NULL);
	(void)raise(SIGSTOP);
}

static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (run->job)
			on_signal(run, (int)info.ssi_signo);
		else
			on_early_signal(run, (int)info.ssi_signo);
}

/* How long to wait at most for something to happen; ends us when an early signal waited too long. */
static int patience_ms(const struct run *run)
{
	int64_t left_ms = 0;

	if (run->cut_off)
		return run->retry_ms > clock_ms() ? (int)(run->retry_ms - clock_ms()) : 0;

	if (run->job || run->early_signal == 0)
		return -1;
	left_ms = run->early_ms + EARLY_SIGNAL_MS - clock_ms();
	if (left_ms <= 0)
		signals_die(run->early_signal);
	return (int)left_ms;
}

/* ---- answers ------------------------------------------------------------------------- */

/* The answer to our spawn. */
static int take_reply(struct run *run, struct fsbox_event *event, struct fsbox_error *err)
{
	if (event->request != run->request_id)
		return 0; /* of a signal: whatever it says, the job's end will tell */
	if (event->error) {
		if (strcmp(event->error->kind, "stdio-relay") == 0 && !run->relay)
			return send_relayed(run, err);
		*err = *event->error;
		return -1;
	}
	run->job = fsbox_event_take_job(event);
	if (run->relay)
		fsbox_relay_started(run->relay);
	show_started(run->ctl, run->job);
	if (run->early_signal != 0)
		on_signal(run, run->early_signal);
	return 0;
}

static int take_events(struct run *run, struct fsbox_error *err)
{
	struct fsbox_event *event = NULL;
	int r = 0;

	while (r == 0 && (event = fsbox_event_next(run->ctl->box))) {
		if (event->type == FSBOX_EVENT_REPLY)
			r = take_reply(run, event, err);
		else if (run->job && event->end && event->end->job == run->job->id)
			run->end = fsbox_event_take_end(event);
		(void)fsbox_event_free(event);
	}
	return r;
}

/* ---- the loop ------------------------------------------------------------------------ */

/*
 * The connection broke. A job that runs goes on, and its pid 1 still tells when it is over; how, the next
 * daemon knows.
 */
static int lose_daemon(struct run *run, const struct fsbox_error *why, struct fsbox_error *err)
{
	if (!run->job || run->job->pidfd < 0) {
		*err = *why;
		return -1;
	}
	run->cut_off = true;
	/* One that hangs up on us at once is not asked at once again. */
	if (clock_ms() - run->found_ms > RETRY_LONGEST_MS)
		run->pause_ms = 0;
	pause_a_while(run);
	return 0;
}

/* Cut off: 1 when nobody will tell how the job ended. */
static int look_for_daemon(struct run *run, bool is_over)
{
	int64_t now_ms = clock_ms();

	if (is_over && run->gone_ms == 0)
		run->gone_ms = now_ms;
	if (now_ms < run->retry_ms)
		return 0;
	if (run->gone_ms != 0 && now_ms - run->gone_ms > RETRY_AFTER_END_MS)
		return 1;
	if (!find_daemon(run))
		pause_a_while(run);
	return 0;
}

static int step(struct run *run, struct fsbox_error *err)
{
	struct pollfd fds[2 + FSBOX_RELAY_POLLFDS];
	struct fsbox_error broken;
	size_t relayed = 0;

	fds[0] = (struct pollfd){ .fd = run->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = -1 };
	if (run->cut_off) {
		/* Once it is over that would be told for ever. */
		fds[1].fd = run->gone_ms == 0 ? run->job->pidfd : -1;
		fds[1].events = POLLIN;
	} else {
		fds[1].fd = fsbox_fd(run->ctl->box);
		fds[1].events = fsbox_poll_events(run->ctl->box);
	}
	if (run->relay && run->job)
		relayed = fsbox_relay_poll(run->relay, fds + 2);
	if (poll(fds, 2 + relayed, patience_ms(run)) < 0 && errno != EINTR)
		return 0;

	take_signals(run);
	if (run->relay && run->job)
		fsbox_relay_process(run->relay);
	if (run->cut_off)
		return look_for_daemon(run, fds[1].revents != 0);

	if (fsbox_process(run->ctl->box, &broken) < 0) {
		/* What arrived before it broke still counts. */
		if (take_events(run, err) < 0)
			return -1;
		if (run->end || (run->job && run->ctl->args.detach))
			return 0;
		return lose_daemon(run, &broken, err);
	}
	return take_events(run, err);
}

/* Returns the exit status. */
static int follow(struct run *run)
{
	struct fsbox_error err = { .kind = "" };
	int r = send_spawn(run, &err);

	while (r == 0 && !run->end) {
		r = step(run, &err);
		if (r == 0 && run->job && run->ctl->args.detach)
			return show_detached(run->ctl, run->job);
	}
	if (r < 0)
		return fail_run(run, &err);

	if (run->relay && fsbox_relay_finish(run->relay, &err) < 0)
		output_error(run->ctl, NULL, &err);
	if (!run->end)
		return show_lost(run->ctl, run->job);
	return show_end(run->ctl, run->end);
}

static int check_options(const struct ctl_args *args, struct error *err)
{
	if (args->detach && args->status_fd >= 0)
		return error_set(
			err, ERR_INVALID, 0,
			"--detach and --status-fd exclude each other: see 'fsboxctl wait'");
	if (args->grant_request && !args->dry_run)
		return error_set(err, ERR_INVALID, 0,
				 "--grant-request goes with --dry-run: nothing is run");
	if (args->context && strcmp(args->context, "-") == 0)
		return error_set(err, ERR_INVALID, 0,
				 "--context: standard input is the command's; name a file");
	return 0;
}

static int spawn_and_follow(struct run *run)
{
	sigset_t before;
	int status = 0;

	run->signal_fd = signals_catch(&before);
	if (run->signal_fd < 0) {
		struct error fail = ERROR_INIT;

		(void)error_set(&fail, ERR_SYSTEM, errno, "catch signals");
		output_failure(run->ctl, NULL, &fail);
		return CTL_FAILED;
	}
	status = follow(run);
	(void)close(run->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

/*
 * A job reads from any terminal that it holds, in whatever direction it was opened and whoever is in the
 * foreground: one that stays behind would read what is typed to the next program there.
 */
static void keep_terminal(struct ctl *ctl)
{
	for (int fd = 0; fd < 3; fd++)
		if (isatty(fd))
			ctl->null_stdio |= 1U << fd;
}

int command_spawn(struct ctl *ctl)
{
	struct run run = { .ctl = ctl, .signal_fd = -1 };
	struct error fail = ERROR_INIT;
	struct fsbox_error err;
	int status = 0;

	if (check_options(&ctl->args, &fail) < 0)
		return output_usage(ctl, NULL, &fail);
	if (ctl->args.status_fd >= 0)
		(void)fcntl(ctl->args.status_fd, F_SETFD, FD_CLOEXEC);
	if (ctl->args.detach)
		keep_terminal(ctl);
	if (request_fill(&run.request, ctl, &fail) < 0) {
		(void)hint_fill(&err, &fail, NULL);
		status = fail_run(&run, &err);
	} else if (ctl->args.dry_run) {
		run.request.spawn.argv = (const char *const *)ctl->args.words;
		status = show_policy_of(ctl, &run.request);
	} else if (ctl_open_error(ctl, &err) < 0) {
		status = fail_run(&run, &err);
	} else {
		run.request.spawn.argv = (const char *const *)ctl->args.words;
		status = spawn_and_follow(&run);
	}

	(void)fsbox_exit_free(run.end);
	(void)fsbox_job_free(run.job);
	(void)fsbox_relay_free(run.relay);
	request_deinit(&run.request);
	return status;
}
