/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/doctor.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/autostart.h"
#include "client/conn.h"
#include "client/convert.h"
#include "client/ctl/command.h"
#include "client/locate.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "proto/json/json.h"

#define GROUP "fsbox"

/* Tenths of a second that the removal of placeholders may take. */
#define LEDGER_ROUNDS 60

struct check *doctor_add(struct doctor *doctor, const char *name)
{
	/* DOCTOR_CHECKS is more than there are steps. */
	struct check *check = &doctor->checks[doctor->count++];

	*check = (struct check){ .name = name, .finding = FINDING_SKIP };
	return check;
}

/* ---- the daemon ---------------------------------------------------------------------- */

static void check_program(struct check *check)
{
	char path[LIMIT_PATH_BYTES + 1];
	struct error err = ERROR_INIT;

	if (autostart_find_daemon(NULL, path, &err) == 0) {
		AUTO(auto_free) char *real = realpath(path, NULL);

		check->finding = FINDING_OK;
		(void)snprintf(check->detail, sizeof(check->detail), "%.200s", real ? real : path);
		return;
	}
	check->finding = FINDING_WARN;
	(void)snprintf(check->detail, sizeof(check->detail), "%.200s", err.message);
	(void)snprintf(check->fix, sizeof(check->fix),
		       "without it no daemon of your own can be started: install fsbox completely");
}

static bool in_group(gid_t gid)
{
	gid_t groups[LIMIT_GROUPS];
	int count = getgroups(LIMIT_GROUPS, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == gid)
			return true;
	return getegid() == gid || geteuid() == 0;
}

static void check_group(struct check *check)
{
	const struct group *group = NULL;
	struct stat st;

	if (stat(LOCATE_SYSTEM_SOCKET, &st) < 0 && errno == ENOENT) {
		(void)snprintf(check->detail, sizeof(check->detail),
			       "no system service here; it is not needed");
		return;
	}
	group = getgrnam(GROUP); /* NOLINT(concurrency-mt-unsafe): one thread */
	if (!group) {
		check->finding = FINDING_FAIL;
		(void)snprintf(check->detail, sizeof(check->detail),
			       "there is a system service, but no group " GROUP);
		(void)snprintf(check->fix, sizeof(check->fix),
			       "sudo systemd-sysusers (or: sudo groupadd --system " GROUP ")");
		return;
	}
	if (in_group(group->gr_gid)) {
		check->finding = FINDING_OK;
		(void)snprintf(check->detail, sizeof(check->detail), "you are in group " GROUP);
		return;
	}
	check->finding = FINDING_WARN;
	(void)snprintf(check->detail, sizeof(check->detail),
		       "you are not in group " GROUP ", the system service refuses you");
	(void)snprintf(check->fix, sizeof(check->fix),
		       "sudo usermod -aG " GROUP
		       " \"$USER\", then log in again; or use a daemon of "
		       "your own: --user");
}

static void check_daemon(struct ctl *ctl, struct check *check)
{
	struct fsbox_error err;
	const struct fsbox_server *server = NULL;

	if (ctl_open_error(ctl, &err) < 0) {
		check->finding = FINDING_FAIL;
		(void)snprintf(check->detail, sizeof(check->detail), "%.200s (%s)", err.message,
			       err.kind);
		if (!strstr(err.hint, "doctor")) /* that is what is running */
			(void)snprintf(check->fix, sizeof(check->fix), "%.380s", err.hint);
		return;
	}
	server = fsbox_server(ctl->box);
	check->finding = FINDING_OK;
	(void)snprintf(check->detail, sizeof(check->detail), "%.80s answers at %.150s, mode %s",
		       server->server, server->socket, server->mode);
}

static void check_engines(struct ctl *ctl, struct doctor *doctor)
{
	const union method_params params = { .status = { .none = false } };
	struct conn_event *event = NULL;
	struct fsbox_error err;
	const struct status_result *status = NULL;
	struct check *check = doctor_add(doctor, "engine");

	if (conn_request(fsbox_conn(ctl->box), METHOD_STATUS, &params, &event, &err) < 0) {
		check->finding = FINDING_FAIL;
		(void)snprintf(check->detail, sizeof(check->detail), "%.200s (%s)", err.message,
			       err.kind);
		(void)snprintf(check->fix, sizeof(check->fix), "%.380s", err.hint);
		return;
	}
	status = &event->result.status;

	check->finding = FINDING_FAIL;
	(void)snprintf(check->detail, sizeof(check->detail), "none is available");
	for (size_t i = 0; i < status->engines.count; i++) {
		const struct msg_engine *engine = &status->engines.items[i];

		if (engine->available) {
			check->finding = FINDING_OK;
			(void)snprintf(check->detail, sizeof(check->detail), "%s is available",
				       engine_name(engine->name));
			break;
		}
		if (engine->supported && engine->reason)
			(void)snprintf(check->fix, sizeof(check->fix), "%s: %.350s",
				       engine_name(engine->name), engine->reason);
	}
	if (check->finding == FINDING_OK)
		check->fix[0] = '\0';

	check = doctor_add(doctor, "promises");
	check->finding = status->unenforced.count == 0 ? FINDING_OK : FINDING_WARN;
	if (status->unenforced.count == 0) {
		(void)snprintf(check->detail, sizeof(check->detail), "all held");
	} else {
		(void)snprintf(check->detail, sizeof(check->detail),
			       "%zu cannot be held on this machine", status->unenforced.count);
		(void)snprintf(check->fix, sizeof(check->fix), "'fsboxctl status' says which");
	}
	(void)conn_event_free(event);
}

/* The proof: a command, run. */
static void check_spawn(struct ctl *ctl, struct check *check)
{
	static const char *const argv[] = { "true", NULL };
	char place[] = "/tmp/fsbox-doctor-XXXXXX";
	struct fsbox_spawn spawn = FSBOX_SPAWN_INIT;
	struct fsbox_exit *end = NULL;
	struct fsbox_error err;
	int r = 0;

	if (!mkdtemp(place)) {
		check->finding = FINDING_WARN;
		(void)snprintf(check->detail, sizeof(check->detail),
			       "not tried: a directory in /tmp cannot be made: %s",
			       strerror(errno));
		return;
	}
	spawn.argv = argv;
	spawn.cwd = place;
	spawn.wall_ms = 30000;
	spawn.label = "doctor";
	r = fsbox_run(ctl->box, &spawn, &end, &err);
	(void)rmdir(place);
	if (r < 0) {
		check->finding = FINDING_FAIL;
		(void)snprintf(check->detail, sizeof(check->detail), "%.200s (%s)", err.message,
			       err.kind);
		(void)snprintf(check->fix, sizeof(check->fix), "%.380s", err.hint);
		return;
	}
	check->finding = fsbox_exit_status(end) == 0 ? FINDING_OK : FINDING_FAIL;
	(void)snprintf(check->detail, sizeof(check->detail),
		       fsbox_exit_status(end) == 0 ? "a command ran, in %" PRIu64 " ms"
						   : "'true' failed after %" PRIu64 " ms",
		       end->wall_ms);
	(void)fsbox_exit_free(end);
}

/* ---- showing ------------------------------------------------------------------------- */

static const char *finding_name(enum finding finding)
{
	switch (finding) {
	case FINDING_OK:
		return "ok";
	case FINDING_WARN:
		return "warn";
	case FINDING_FAIL:
		return "fail";
	case FINDING_SKIP:
		return "-";
	}
	return "-";
}

static enum output_style finding_style(enum finding finding)
{
	switch (finding) {
	case FINDING_OK:
		return STYLE_GOOD;
	case FINDING_WARN:
		return STYLE_WARN;
	case FINDING_FAIL:
		return STYLE_BAD;
	case FINDING_SKIP:
		return STYLE_DIM;
	}
	return STYLE_PLAIN;
}

static void print_text(const struct ctl *ctl, const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		const struct check *check = &doctor->checks[i];

		output_style(ctl, stdout, finding_style(check->finding));
		(void)printf("%-4s", finding_name(check->finding));
		output_style(ctl, stdout, STYLE_PLAIN);
		(void)printf("  %-15s  ", check->name);
		output_text(stdout, check->detail);
		(void)fputc('\n', stdout);
		if (check->fix[0] && check->finding != FINDING_OK) {
			(void)printf("%23sto do: ", "");
			output_text(stdout, check->fix);
			(void)fputc('\n', stdout);
		}
	}
}

static int print_json(const struct ctl *ctl, const struct doctor *doctor, int status)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct json_writer writer;

	json_writer_init(&writer, &out);
	json_write_object(&writer);
	json_write_key(&writer, "checks");
	json_write_array(&writer);
	for (size_t i = 0; i < doctor->count; i++) {
		const struct check *check = &doctor->checks[i];

		json_write_object(&writer);
		json_write_key(&writer, "name");
		json_write_text(&writer, check->name);
		json_write_key(&writer, "finding");
		json_write_text(&writer, check->finding == FINDING_SKIP
						 ? "skip"
						 : finding_name(check->finding));
		json_write_key(&writer, "detail");
		json_write_bytes(&writer, check->detail);
		if (check->fix[0]) {
			json_write_key(&writer, "fix");
			json_write_bytes(&writer, check->fix);
		}
		json_write_object_end(&writer);
	}
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	return output_json(ctl, stdout, &writer, &out, status);
}

/* What is at one place, for people. */
static void describe_placeholder(char *text, size_t size, const struct msg_placeholder *what)
{
	(void)snprintf(text, size, "%s (user %" PRIu32 ", %s)", what->path, what->uid,
		       what->jobs > 0 ? "a job stands on it"
		       : what->left   ? "could not be removed"
				      : "being removed");
}

static void judge_ledger(const struct ledger_result *ledger, struct check *check)
{
	const struct msg_placeholder *left = NULL;
	size_t count = 0;
	char place[200];

	for (size_t i = 0; i < ledger->placeholders.count; i++) {
		const struct msg_placeholder *at = &ledger->placeholders.items[i];

		if (at->jobs == 0 && at->left) {
			left = left ? left : at;
			count++;
		}
	}
	check->finding = FINDING_OK;
	(void)snprintf(check->detail, sizeof(check->detail), "%" PRIu32 " on the host",
		       ledger->entries);
	if (ledger->damaged > 0) {
		check->finding = FINDING_WARN;
		(void)snprintf(check->detail, sizeof(check->detail),
			       "%" PRIu32 " lines of the ledger were damaged when fsboxd started",
			       ledger->damaged);
		(void)snprintf(
			check->fix, sizeof(check->fix),
			"look at ledger.damaged in the daemon's state directory, then remove it");
	}
	if (count > 0) {
		check->finding = FINDING_WARN;
		describe_placeholder(place, sizeof(place), left);
		(void)snprintf(check->detail, sizeof(check->detail), "%zu left behind: %s", count,
			       place);
		(void)snprintf(check->fix, sizeof(check->fix),
			       "mount the file system it is on, or see what is in the way; then "
			       "fsboxctl doctor --repair");
	}
	if (ledger->unwritable) {
		check->finding = FINDING_WARN;
		(void)snprintf(check->detail, sizeof(check->detail), "%.200s", ledger->unwritable);
		(void)snprintf(
			check->fix, sizeof(check->fix),
			"make room in the daemon's state directory; until then jobs that need "
			"placeholders are refused");
	}
}

/* Whether something is still being tried. */
static bool is_under_way(const struct ledger_result *ledger)
{
	for (size_t i = 0; i < ledger->placeholders.count; i++)
		if (ledger->placeholders.items[i].jobs == 0 && !ledger->placeholders.items[i].left)
			return true;
	return false;
}

/* Placeholders and their ledger; with --repair what is left over is tried again first. */
static void check_ledger(struct ctl *ctl, struct check *check)
{
	union method_params params = { .ledger = { .all = ctl->args.all,
						   .repair = ctl->args.repair } };
	const struct timespec pause = { .tv_nsec = 100000000 };

	for (int round = 0; round < LEDGER_ROUNDS; round++) {
		struct conn_event *event = NULL;
		struct fsbox_error err;
		bool again = false;

		if (conn_request(fsbox_conn(ctl->box), METHOD_LEDGER, &params, &event, &err) < 0) {
			check->finding = FINDING_FAIL;
			(void)snprintf(check->detail, sizeof(check->detail), "%.200s (%s)",
				       err.message, err.kind);
			(void)snprintf(check->fix, sizeof(check->fix), "%.380s", err.hint);
			return;
		}
		again = params.ledger.repair || is_under_way(&event->result.ledger);
		check->fix[0] = '\0';
		judge_ledger(&event->result.ledger, check);
		(void)conn_event_free(event);
		if (!again || !ctl->args.repair)
			return;
		params.ledger.repair = false;
		(void)nanosleep(&pause, NULL);
	}
}

int command_doctor(struct ctl *ctl)
{
	struct doctor doctor = { .count = 0 };
	int status = CTL_OK;

	doctor_check_host(&doctor);
	check_program(doctor_add(&doctor, "fsboxd"));
	check_group(doctor_add(&doctor, "group"));
	check_daemon(ctl, doctor_add(&doctor, "daemon"));
	if (ctl->box) {
		check_engines(ctl, &doctor);
		check_ledger(ctl, doctor_add(&doctor, "placeholders"));
		check_spawn(ctl, doctor_add(&doctor, "sandbox"));
	}

	for (size_t i = 0; i < doctor.count; i++)
		if (doctor.checks[i].finding == FINDING_FAIL)
			status = CTL_NO;
	if (ctl->args.json)
		return print_json(ctl, &doctor, status);
	print_text(ctl, &doctor);
	return status;
}
