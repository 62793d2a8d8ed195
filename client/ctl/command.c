/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/command.h"

#include <string.h>

#include "common/scope.h"

#define FIELD_OF(member) offsetof(struct ctl_args, member)

/* ---- options ------------------------------------------------------------------------- */

static const struct ctl_option global_options[] = {
	{ "--socket", 0, OPTION_PATH, FIELD_OF(socket), "PATH",
	  "talk to the daemon at this socket; default: FSBOX_SOCKET, then the system service, then "
	  "your own daemon" },
	{ "--user", 0, OPTION_FLAG, FIELD_OF(user), NULL,
	  "use a daemon of your own, never the system service" },
	{ "--no-autostart", 0, OPTION_FLAG, FIELD_OF(no_autostart), NULL,
	  "fail rather than start a daemon of your own" },
	{ "--quiet", 'q', OPTION_FLAG, FIELD_OF(quiet), NULL, "no notes, only errors" },
	{ "--verbose", 'v', OPTION_FLAG, FIELD_OF(verbose), NULL,
	  "notes also where standard error is no terminal" },
	{ "--version", 0, OPTION_FLAG, FIELD_OF(version), NULL, "print the version" },
};

static const struct ctl_option common_options[] = {
	{ "--json", 0, OPTION_FLAG, FIELD_OF(json), NULL, "print JSON, errors too" },
	{ "--help", 'h', OPTION_FLAG, FIELD_OF(help), NULL, "explain, with examples" },
};

static const struct ctl_option policy_options[] = {
	{ "--profile", 0, OPTION_FILE, FIELD_OF(profile), "NAME|FILE",
	  "how the policy is built: generic (the default), host, botmux, or a file" },
	{ "--context", 0, OPTION_PATH, FIELD_OF(context), "FILE",
	  "JSON context of profile botmux; - reads standard input" },
	{ "--rw", 0, OPTION_PATH_LIST, FIELD_OF(rw), "PATH", "may be read and written inside" },
	{ "--ro", 0, OPTION_PATH_LIST, FIELD_OF(ro), "PATH", "may be read inside" },
	{ "--deny", 0, OPTION_PATH_LIST, FIELD_OF(deny), "PATH",
	  "neither read nor written inside, whether it exists or not" },
	{ "--absent", 0, OPTION_CHOICE, FIELD_OF(absent), "placeholder|watch|report|ignore",
	  "what becomes of --deny where there is nothing; default: the configuration's" },
	{ "--cwd", 0, OPTION_PATH, FIELD_OF(cwd), "DIR",
	  "working directory; default: the current one" },
	{ "--allow-home", 0, OPTION_FLAG, FIELD_OF(allow_home), NULL,
	  "let the home directory itself be the working directory" },
	{ "--allow-git-config", 0, OPTION_FLAG, FIELD_OF(allow_git_config), NULL,
	  "keep .git/config writable" },
	{ "--net", 0, OPTION_CHOICE, FIELD_OF(net), "none|proxy|host",
	  "network: none of its own, through the proxy, or the host's" },
	{ "--allow-host", 0, OPTION_TEXT_LIST, FIELD_OF(allow_hosts), "HOST[:PORT]",
	  "may be reached through the proxy: a name, *.NAME, an address; implies --net proxy" },
	{ "--deny-host", 0, OPTION_TEXT_LIST, FIELD_OF(deny_hosts), "HOST[:PORT]",
	  "may not, whatever allows it" },
	{ "--forward", 0, OPTION_TEXT_LIST, FIELD_OF(forward), "PORT",
	  "make this port of the host's 127.0.0.1 reachable inside" },
	{ "--socket-allow", 0, OPTION_PATH_LIST, FIELD_OF(socket_allow), "PATH",
	  "keep this well-known socket (an agent's, a container engine's) reachable" },
	{ "--env", 0, OPTION_ENV_LIST, FIELD_OF(env), "NAME=VALUE", "set a variable inside" },
	{ "--env-pass", 0, OPTION_TEXT_LIST, FIELD_OF(env_pass), "NAME",
	  "pass a variable on that the profile would withhold" },
	{ "--engine", 0, OPTION_CHOICE, FIELD_OF(engine), "bwrap|native",
	  "how to confine; default: what the daemon prefers" },
	{ "--egress-only", 0, OPTION_FLAG, FIELD_OF(egress_only), NULL,
	  "all of the file system, but no network: the profile host" },
};

static const struct ctl_option spawn_options[] = {
	{ "--timeout", 0, OPTION_DURATION, FIELD_OF(timeout_ms), "TIME",
	  "end the job after 500ms, 20s, 5m, 1h" },
	{ "--memory", 0, OPTION_SIZE, FIELD_OF(memory_bytes), "SIZE", "limit on memory: 512M, 2G" },
	{ "--pids", 0, OPTION_COUNT, FIELD_OF(pids), "N", "limit on processes" },
	{ "--cpus", 0, OPTION_CPUS, FIELD_OF(cpus_milli), "X", "limit on processors: 2, 1.5" },
	{ "--detach", 0, OPTION_FLAG, FIELD_OF(detach), NULL,
	  "print the job's number and return; the job goes on" },
	{ "--label", 0, OPTION_TEXT, FIELD_OF(label), "TEXT", "shown by 'fsboxctl ps'" },
	{ "--status-fd", 0, OPTION_FD, FIELD_OF(status_fd), "N",
	  "write how it ended to this descriptor, as one line of JSON" },
	{ "--grant-fd", 0, OPTION_FD, FIELD_OF(grant_fd), "N",
	  "read the token of a grant from this descriptor" },
	{ "--dry-run", 0, OPTION_FLAG, FIELD_OF(dry_run), NULL,
	  "show the policy, run nothing; the status says whether it would run in a room" },
	{ "--grant-request", 0, OPTION_FLAG, FIELD_OF(grant_request), NULL,
	  "with --dry-run: print what an administrator needs to make a grant" },
};

static const struct ctl_option ps_options[] = {
	{ "--all", 'a', OPTION_FLAG, FIELD_OF(all), NULL, "other users' too (administrators)" },
};

static const struct ctl_option events_options[] = {
	{ "--follow", 'f', OPTION_FLAG, FIELD_OF(follow), NULL, "go on with what is recorded now" },
	{ "--job", 0, OPTION_COUNT, FIELD_OF(job), "JOB", "only what is about this job" },
	{ "--all", 'a', OPTION_FLAG, FIELD_OF(all), NULL, "other users' too (administrators)" },
};

static const struct ctl_option grant_options[] = {
	{ "--request", 0, OPTION_PATH, FIELD_OF(request), "FILE",
	  "what 'spawn --dry-run --grant-request' printed; - reads standard input" },
	{ "--ttl", 0, OPTION_DURATION, FIELD_OF(ttl_ms), "TIME",
	  "how long it can be used; default: 10m" },
	{ "--stdin", 0, OPTION_TEXT_LIST, FIELD_OF(stdin_kinds), "KIND",
	  "what standard input may be: null, tty, pipe, socket, file, other; default: the first "
	  "three" },
	{ "--stdout", 0, OPTION_TEXT_LIST, FIELD_OF(stdout_kinds), "KIND",
	  "what standard output may be" },
	{ "--stderr", 0, OPTION_TEXT_LIST, FIELD_OF(stderr_kinds), "KIND",
	  "what standard error may be" },
};

static const struct ctl_option doctor_options[] = {
	{ "--repair", 0, OPTION_FLAG, FIELD_OF(repair), NULL,
	  "try again to remove placeholders that jobs left behind" },
};

static const struct ctl_option wait_options[] = {
	{ "--timeout", 0, OPTION_DURATION, FIELD_OF(timeout_ms), "TIME",
	  "give up waiting after this time; the job goes on" },
};

static const struct ctl_option compile_options[] = {
	{ "--context", 0, OPTION_PATH, FIELD_OF(context), "FILE",
	  "JSON context, all fields; - reads standard input" },
	{ "--to", 0, OPTION_CHOICE, FIELD_OF(to), "rules|plan|bwrap|seatbelt",
	  "what to print; default: rules" },
	{ "--plain", 0, OPTION_FLAG, FIELD_OF(plain), NULL, "without the hardening" },
};

static const struct ctl_option platform_options[] = {
	{ "--platform", 0, OPTION_CHOICE, FIELD_OF(platform), "linux|darwin",
	  "for which system; default: the context's own, else this one" },
};

#define OPTIONS(table) table, ARRAY_SIZE(table)
#define NO_OPTIONS NULL, 0
#define ANY_NUMBER ((size_t)-1)

/* ---- examples ------------------------------------------------------------------------ */

static const char *const completion_examples[] = {
	"for this shell only",
	"source <(fsboxctl completion bash)",
	"for every fish",
	"fsboxctl completion fish >~/.config/fish/completions/fsboxctl.fish",
	NULL,
};

static const char *const doctor_examples[] = {
	"what is missing on this machine?",
	"fsboxctl doctor",
	NULL,
};

static const char *const events_examples[] = {
	"what was run, and what is being run",
	"fsboxctl events -f",
	"all about job 7, for a program",
	"fsboxctl events --job 7 --json",
	NULL,
};

static const char *const grant_create_examples[] = {
	"allow what a user asked for with 'spawn --dry-run --grant-request'",
	"fsboxctl grant create --request request.json --ttl 5m >token",
	NULL,
};

static const char *const grant_list_examples[] = {
	"which grants are open?",
	"fsboxctl grant list",
	NULL,
};

static const char *const grant_revoke_examples[] = {
	"take grant 1764528000 back",
	"fsboxctl grant revoke 1764528000",
	NULL,
};

static const char *const inspect_examples[] = {
	"everything about job 7",
	"fsboxctl inspect 7",
	"its working directory",
	"fsboxctl inspect 7 --json | jq -r .cwd",
	NULL,
};

static const char *const check_examples[] = {
	"can these options be used here?",
	"fsboxctl policy check --rw ~/project --deny ~/.ssh",
	"is a context well-formed?",
	"fsboxctl policy check --context context.json",
	NULL,
};

static const char *const compile_examples[] = {
	"the rules of a context",
	"fsboxctl policy compile --context context.json",
	"what macOS would get",
	"fsboxctl policy compile --context c.json --platform darwin --to seatbelt",
	NULL,
};

static const char *const diff_examples[] = {
	"what changed between two contexts",
	"fsboxctl policy diff old.json new.json",
	NULL,
};

static const char *const migrate_examples[] = {
	"older settings as three tiers",
	"fsboxctl policy migrate bot.json",
	"from a pipe",
	"fsboxctl policy migrate - <bot.json",
	NULL,
};

static const char *const show_examples[] = {
	"the policy a command would get here",
	"fsboxctl policy show",
	"with the paths of your choice",
	"fsboxctl policy show --ro /data --deny ./secrets",
	NULL,
};

static const char *const ps_examples[] = {
	"your jobs",
	"fsboxctl ps",
	"numbers of all that run",
	"fsboxctl ps --json | jq '.jobs[].job'",
	NULL,
};

static const char *const signal_examples[] = {
	"ask job 7 to end", "fsboxctl signal 7 TERM", "end it", "fsboxctl signal 7 KILL", NULL,
};

static const char *const spawn_examples[] = {
	"run tests: only this directory can be written, no network",
	"fsboxctl spawn -- make test",
	"a second directory to write, another one out of sight",
	"fsboxctl spawn --rw ../build --deny ./secrets -- ninja -C ../build",
	"with a limit on time and memory",
	"fsboxctl spawn --timeout 5m --memory 2G -- pytest",
	"what would be enforced?",
	"fsboxctl spawn --dry-run -- true",
	"start and leave",
	"fsboxctl spawn --detach --label nightly -- ./nightly.sh",
	NULL,
};

static const char *const status_examples[] = {
	"is it there, and what is it busy with?",
	"fsboxctl status",
	NULL,
};

static const char *const version_examples[] = { "of this program", "fsboxctl version", NULL };

static const char *const wait_examples[] = {
	"until job 7 is over",
	"fsboxctl wait 7",
	"a minute at most",
	"fsboxctl wait 7 --timeout 1m",
	NULL,
};

static const char *const whoami_examples[] = {
	"as whom does the daemon know me?",
	"fsboxctl whoami",
	NULL,
};

static const char *const why_examples[] = {
	"may a command here read this?",
	"fsboxctl why ~/.ssh/id_ed25519",
	"with the options of a spawn",
	"fsboxctl why --ro /data /data/x.csv",
	"about job 7",
	"fsboxctl why 7 /etc/passwd",
	"from a context, without a daemon",
	"fsboxctl why --context context.json /etc/passwd",
	NULL,
};

/* ---- commands ------------------------------------------------------------------------ */

static const struct ctl_command commands[] = {
	{ "completion", NULL, "bash|zsh|fish", "print a completion script for your shell",
	  "Prints a script that completes commands, options and job numbers.\n",
	  completion_examples, NO_OPTIONS, NO_OPTIONS, false, 1, 1, WORD_SHELL,
	  command_completion },
	{ "doctor", NULL, "", "check step by step what fsbox needs",
	  "Each line is ok, warn or fail; the latter two come with what to do about it. The status "
	  "is 1 when something fails. What is said about placeholders is about yours; with --all about "
	  "everybody's.\n",
	  doctor_examples, OPTIONS(doctor_options), OPTIONS(ps_options), false, 0, 0, WORD_NONE,
	  command_doctor },
	{ "events", NULL, "", "show what was recorded",
	  "Jobs that began, ended or were refused, grants, decisions of the proxy: your own; an "
	  "administrator may ask for everybody's. With --json each line is one event as in "
	  "events.jsonl.\n",
	  events_examples, OPTIONS(events_options), NO_OPTIONS, false, 0, 0, WORD_NONE,
	  command_events },
	{ "grant create", NULL, "", "allow one user one command with more network",
	  "For administrators, for somebody else. Shows what will be allowed: program, arguments, "
	  "directory; then prints the token, which works once, for exactly that and for the "
	  "environment and policy of the request. Whoever holds it passes it to 'spawn --grant-fd'.\n",
	  grant_create_examples, OPTIONS(grant_options), NO_OPTIONS, false, 0, 0, WORD_NONE,
	  command_grant_create },
	{ "grant list", NULL, "", "list grants",
	  "For administrators: those that are open, and those that are not but would be.\n",
	  grant_list_examples, NO_OPTIONS, NO_OPTIONS, false, 0, 0, WORD_NONE, command_grant_list },
	{ "grant revoke", NULL, "GRANT", "take a grant back",
	  "For administrators. A job that was started with it goes on.\n", grant_revoke_examples,
	  NO_OPTIONS, NO_OPTIONS, false, 1, 1, WORD_NONE, command_grant_revoke },
	{ "inspect", NULL, "JOB", "show one job in detail",
	  "What it runs as, what confines it, what was left out of its policy, how it ended.\n",
	  inspect_examples, NO_OPTIONS, NO_OPTIONS, false, 1, 1, WORD_JOB, command_inspect },
	{ "policy check", NULL, "", "say whether a policy can be used",
	  "With --context alone the context is checked without a daemon; otherwise the daemon is "
	  "asked for the policy that the same options would give 'spawn'. The status is 0 when "
	  "nothing is wrong, 1 otherwise.\n",
	  check_examples, OPTIONS(policy_options), NO_OPTIONS, false, 0, 0, WORD_NONE,
	  command_policy_check },
	{ "policy compile", NULL, "", "turn a context into rules or an engine's input",
	  "Needs no daemon and looks at no path of the context. The context is that of profile "
	  "botmux, with all its fields. Unless --plain is given the result is hardened as the "
	  "daemon would harden it.\n",
	  compile_examples, OPTIONS(compile_options), OPTIONS(platform_options), false, 0, 0,
	  WORD_NONE, command_policy_compile },
	{ "policy diff", NULL, "OLD NEW", "compare the rules of two contexts",
	  "One line for each rule that only one of them has, or that differs. The status is 0 when "
	  "both give the same rules, 1 otherwise. Needs no daemon.\n",
	  diff_examples, OPTIONS(platform_options), NO_OPTIONS, false, 2, 2, WORD_FILE,
	  command_policy_diff },
	{ "policy migrate", NULL, "FILE", "translate a bot's older sandbox settings",
	  "Reads a bot's entry as JSON and prints the fields that replace the older ones, or null "
	  "when there is nothing to translate. FILE - is standard input. Needs no daemon.\n",
	  migrate_examples, NO_OPTIONS, NO_OPTIONS, false, 1, 1, WORD_FILE,
	  command_policy_migrate },
	{ "policy show", NULL, "", "show the policy that 'spawn' would enforce",
	  "Asks the daemon with the options of 'spawn'; nothing is run. Rules are listed from the "
	  "root down: the deepest one that covers a path decides.\n",
	  show_examples, OPTIONS(policy_options), NO_OPTIONS, false, 0, 0, WORD_NONE,
	  command_policy_show },
	{ "ps", NULL, "", "list running jobs",
	  "Your own; an administrator may ask for everybody's.\n", ps_examples, OPTIONS(ps_options),
	  NO_OPTIONS, false, 0, 0, WORD_NONE, command_ps },
	{ "signal", NULL, "JOB SIGNAL", "send a signal to a job",
	  "To the command and its process group. SIGNAL is a name (TERM, SIGTERM) or a number.\n",
	  signal_examples, NO_OPTIONS, NO_OPTIONS, false, 2, 2, WORD_JOB, command_signal },
	{ "spawn", "run", "[--] COMMAND [ARG]...", "run a command in a sandbox",
	  "The command sees the system read-only, may write the current directory, and has no "
	  "network and no secrets, unless options say otherwise. Standard input, output and error "
	  "are passed on, and so are the signals that fsboxctl gets; a second interrupt within a "
	  "second kills the job. When fsboxctl dies, the job ends.\n"
	  "The status is the command's own; 128 + n when signal n ended it; 124 after --timeout; 125 "
	  "when fsbox could not run it; 126 when it is not executable; 127 when it was not found; "
	  "123 when nobody knows how it ended.\n",
	  spawn_examples, OPTIONS(policy_options), OPTIONS(spawn_options), true, 1, ANY_NUMBER,
	  WORD_COMMAND, command_spawn },
	{ "status", NULL, "", "show the daemon: version, counters, engines, frozen facts",
	  "Frozen facts are what the daemon took to be true about the host when it started; no "
	  "client can change them.\n",
	  status_examples, NO_OPTIONS, NO_OPTIONS, false, 0, 0, WORD_NONE, command_status },
	{ "version", NULL, "", "print the version", "Of fsboxctl; the daemon's is in 'status'.\n",
	  version_examples, NO_OPTIONS, NO_OPTIONS, false, 0, 0, WORD_NONE, command_version },
	{ "wait", NULL, "JOB", "wait until a job has ended",
	  "Prints how it ended. The status is 0 when the job's own was 0, 1 otherwise.\n",
	  wait_examples, OPTIONS(wait_options), NO_OPTIONS, false, 1, 1, WORD_JOB, command_wait },
	{ "whoami", NULL, "", "show as whom the daemon knows you",
	  "Or why it refuses you: a caller that is itself confined may not start jobs.\n",
	  whoami_examples, NO_OPTIONS, NO_OPTIONS, false, 0, 0, WORD_NONE, command_whoami },
	{ "why", NULL, "[JOB] PATH|HOST", "say which rule decides about a path or a host",
	  "Shows the rule, where it comes from, what it overrides, and what is really there. With "
	  "--context the answer is computed from the context alone, without a daemon; otherwise the "
	  "daemon is asked: about a running JOB, or about the policy that the same options would give "
	  "'spawn'. The status is 0 when the path may at least be read, the host be reached, 1 "
	  "otherwise. A word with a slash, or that begins with a dot, is a path; one with a dot or a "
	  "colon that is no file here is a HOST or HOST:PORT; a URL is about its host.\n",
	  why_examples, OPTIONS(policy_options), OPTIONS(platform_options), false, 1, 2, WORD_PATH,
	  command_why },
};

const struct ctl_command *ctl_commands(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(commands);
	return commands;
}

struct option_table ctl_global_options(void)
{
	return (struct option_table){ OPTIONS(global_options) };
}

struct option_table ctl_common_options(void)
{
	return (struct option_table){ OPTIONS(common_options) };
}

const struct ctl_command *ctl_command_find(char *const *words, size_t *ret_used)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct ctl_command *command = &commands[i];
		const char *space = strchr(command->name, ' ');
		size_t first = space ? (size_t)(space - command->name) : strlen(command->name);
		bool same =
			strlen(words[0]) == first && strncmp(words[0], command->name, first) == 0;

		if (same && space)
			same = words[1] && strcmp(words[1], space + 1) == 0;
		if (same || (command->alias && strcmp(words[0], command->alias) == 0)) {
			*ret_used = space ? 2 : 1;
			return command;
		}
	}
	return NULL;
}
