#compdef fsboxctl
# SPDX-License-Identifier: Apache-2.0
# Completion of fsboxctl for zsh: made by 'fsboxctl completion zsh'.

_fsboxctl_jobs()
{
	local -a jobs
	jobs=(${${(f)"$(fsboxctl --no-autostart ps 2>/dev/null)"}[2,-1]%% *})
	compadd -a jobs
}

_fsboxctl()
{
	local curcontext=$curcontext state line
	local -a commands grant policy
	commands=(
		'completion:print a completion script for your shell'
		'doctor:check step by step what fsbox needs'
		'events:show what was recorded'
		'inspect:show one job in detail'
		'ps:list running jobs'
		'signal:send a signal to a job'
		'spawn:run a command in a sandbox'
		'status:show the daemon: version, counters, engines, frozen facts'
		'version:print the version'
		'wait:wait until a job has ended'
		'whoami:show as whom the daemon knows you'
		'why:say which rule decides about a path or a host'
		'grant:make, list and take back grants'
		'policy:show, check, compile, compare and translate policies'
	)
	grant=(
		'create:allow one user one command with more network'
		'list:list grants'
		'revoke:take a grant back'
	)
	policy=(
		'check:say whether a policy can be used'
		'compile:turn a context into rules or an engine'\''s input'
		'diff:compare the rules of two contexts'
		'migrate:translate a bot'\''s older sandbox settings'
		'show:show the policy that '\''spawn'\'' would enforce'
	)

	_arguments -C \
			'--socket[talk to the daemon at this socket; default\: FSBOX_SOCKET, then the system service, then your own daemon]:PATH:_files' \
			'--user[use a daemon of your own, never the system service]' \
			'--no-autostart[fail rather than start a daemon of your own]' \
			'--quiet[no notes, only errors]' \
			'--verbose[notes also where standard error is no terminal]' \
			'--version[print the version]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
		'1: :->command' '*:: :->arguments'

	case $state in
	command)
		_describe command commands
		;;
	arguments)
		local name=$words[1]
		if [[ $name = (grant|policy) ]]; then
			if (( CURRENT == 2 )); then
				_describe command $name
				return
			fi
			name="$name $words[2]"
			shift words
			(( CURRENT-- ))
		fi
		case $name in
		completion)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'1:shell:(bash zsh fish)'
			;;
		doctor)
			_arguments \
			'--repair[try again to remove placeholders that jobs left behind]' \
			'--all[other users'\'' too (administrators)]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		events)
			_arguments \
			'--follow[go on with what is recorded now]' \
			'--job[only what is about this job]:JOB:' \
			'--all[other users'\'' too (administrators)]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		grant\ create)
			_arguments \
			'--request[what '\''spawn --dry-run --grant-request'\'' printed; - reads standard input]:FILE:_files' \
			'--ttl[how long it can be used; default\: 10m]:TIME:' \
			'*--stdin[what standard input may be\: null, tty, pipe, socket, file, other; default\: the first three]:KIND:' \
			'*--stdout[what standard output may be]:KIND:' \
			'*--stderr[what standard error may be]:KIND:' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		grant\ list)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		grant\ revoke)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		inspect)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'1:job:_fsboxctl_jobs' '*:signal:(TERM INT HUP KILL)'
			;;
		policy\ check)
			_arguments \
			'--profile[how the policy is built\: generic (the default), host, botmux, or a file]:NAME|FILE:_files' \
			'--context[JSON context of profile botmux; - reads standard input]:FILE:_files' \
			'*--rw[may be read and written inside]:PATH:_files' \
			'*--ro[may be read inside]:PATH:_files' \
			'*--deny[neither read nor written inside, whether it exists or not]:PATH:_files' \
			'--absent[what becomes of --deny where there is nothing; default\: the configuration'\''s]:placeholder|watch|report|ignore:(placeholder watch report ignore)' \
			'--cwd[working directory; default\: the current one]:DIR:_files' \
			'--allow-home[let the home directory itself be the working directory]' \
			'--allow-git-config[keep .git/config writable]' \
			'--net[network\: none of its own, through the proxy, or the host'\''s]:none|proxy|host:(none proxy host)' \
			'*--allow-host[may be reached through the proxy\: a name, *.NAME, an address; implies --net proxy]:HOST\[\:PORT\]:' \
			'*--deny-host[may not, whatever allows it]:HOST\[\:PORT\]:' \
			'*--forward[make this port of the host'\''s 127.0.0.1 reachable inside]:PORT:' \
			'*--socket-allow[keep this well-known socket (an agent'\''s, a container engine'\''s) reachable]:PATH:_files' \
			'*--env[set a variable inside]:NAME=VALUE:' \
			'*--env-pass[pass a variable on that the profile would withhold]:NAME:' \
			'--engine[how to confine; default\: what the daemon prefers]:bwrap|native:(bwrap native)' \
			'--egress-only[all of the file system, but no network\: the profile host]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		policy\ compile)
			_arguments \
			'--context[JSON context, all fields; - reads standard input]:FILE:_files' \
			'--to[what to print; default\: rules]:rules|plan|bwrap|seatbelt:(rules plan bwrap seatbelt)' \
			'--plain[without the hardening]' \
			'--platform[for which system; default\: the context'\''s own, else this one]:linux|darwin:(linux darwin)' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		policy\ diff)
			_arguments \
			'--platform[for which system; default\: the context'\''s own, else this one]:linux|darwin:(linux darwin)' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'*:path:_files'
			;;
		policy\ migrate)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'*:path:_files'
			;;
		policy\ show)
			_arguments \
			'--profile[how the policy is built\: generic (the default), host, botmux, or a file]:NAME|FILE:_files' \
			'--context[JSON context of profile botmux; - reads standard input]:FILE:_files' \
			'*--rw[may be read and written inside]:PATH:_files' \
			'*--ro[may be read inside]:PATH:_files' \
			'*--deny[neither read nor written inside, whether it exists or not]:PATH:_files' \
			'--absent[what becomes of --deny where there is nothing; default\: the configuration'\''s]:placeholder|watch|report|ignore:(placeholder watch report ignore)' \
			'--cwd[working directory; default\: the current one]:DIR:_files' \
			'--allow-home[let the home directory itself be the working directory]' \
			'--allow-git-config[keep .git/config writable]' \
			'--net[network\: none of its own, through the proxy, or the host'\''s]:none|proxy|host:(none proxy host)' \
			'*--allow-host[may be reached through the proxy\: a name, *.NAME, an address; implies --net proxy]:HOST\[\:PORT\]:' \
			'*--deny-host[may not, whatever allows it]:HOST\[\:PORT\]:' \
			'*--forward[make this port of the host'\''s 127.0.0.1 reachable inside]:PORT:' \
			'*--socket-allow[keep this well-known socket (an agent'\''s, a container engine'\''s) reachable]:PATH:_files' \
			'*--env[set a variable inside]:NAME=VALUE:' \
			'*--env-pass[pass a variable on that the profile would withhold]:NAME:' \
			'--engine[how to confine; default\: what the daemon prefers]:bwrap|native:(bwrap native)' \
			'--egress-only[all of the file system, but no network\: the profile host]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		ps)
			_arguments \
			'--all[other users'\'' too (administrators)]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		signal)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'1:job:_fsboxctl_jobs' '*:signal:(TERM INT HUP KILL)'
			;;
		spawn|run)
			_arguments \
			'--profile[how the policy is built\: generic (the default), host, botmux, or a file]:NAME|FILE:_files' \
			'--context[JSON context of profile botmux; - reads standard input]:FILE:_files' \
			'*--rw[may be read and written inside]:PATH:_files' \
			'*--ro[may be read inside]:PATH:_files' \
			'*--deny[neither read nor written inside, whether it exists or not]:PATH:_files' \
			'--absent[what becomes of --deny where there is nothing; default\: the configuration'\''s]:placeholder|watch|report|ignore:(placeholder watch report ignore)' \
			'--cwd[working directory; default\: the current one]:DIR:_files' \
			'--allow-home[let the home directory itself be the working directory]' \
			'--allow-git-config[keep .git/config writable]' \
			'--net[network\: none of its own, through the proxy, or the host'\''s]:none|proxy|host:(none proxy host)' \
			'*--allow-host[may be reached through the proxy\: a name, *.NAME, an address; implies --net proxy]:HOST\[\:PORT\]:' \
			'*--deny-host[may not, whatever allows it]:HOST\[\:PORT\]:' \
			'*--forward[make this port of the host'\''s 127.0.0.1 reachable inside]:PORT:' \
			'*--socket-allow[keep this well-known socket (an agent'\''s, a container engine'\''s) reachable]:PATH:_files' \
			'*--env[set a variable inside]:NAME=VALUE:' \
			'*--env-pass[pass a variable on that the profile would withhold]:NAME:' \
			'--engine[how to confine; default\: what the daemon prefers]:bwrap|native:(bwrap native)' \
			'--egress-only[all of the file system, but no network\: the profile host]' \
			'--timeout[end the job after 500ms, 20s, 5m, 1h]:TIME:' \
			'--memory[limit on memory\: 512M, 2G]:SIZE:' \
			'--pids[limit on processes]:N:' \
			'--cpus[limit on processors\: 2, 1.5]:X:' \
			'--detach[print the job'\''s number and return; the job goes on]' \
			'--label[shown by '\''fsboxctl ps'\'']:TEXT:' \
			'--status-fd[write how it ended to this descriptor, as one line of JSON]:N:' \
			'--grant-fd[read the token of a grant from this descriptor]:N:' \
			'--dry-run[show the policy, run nothing; the status says whether it would run in a room]' \
			'--grant-request[with --dry-run\: print what an administrator needs to make a grant]' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'(-)1:command:_command_names -e' '*::argument:_normal'
			;;
		status)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		version)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		wait)
			_arguments \
			'--timeout[give up waiting after this time; the job goes on]:TIME:' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'1:job:_fsboxctl_jobs' '*:signal:(TERM INT HUP KILL)'
			;;
		whoami)
			_arguments \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]'
			;;
		why)
			_arguments \
			'--profile[how the policy is built\: generic (the default), host, botmux, or a file]:NAME|FILE:_files' \
			'--context[JSON context of profile botmux; - reads standard input]:FILE:_files' \
			'*--rw[may be read and written inside]:PATH:_files' \
			'*--ro[may be read inside]:PATH:_files' \
			'*--deny[neither read nor written inside, whether it exists or not]:PATH:_files' \
			'--absent[what becomes of --deny where there is nothing; default\: the configuration'\''s]:placeholder|watch|report|ignore:(placeholder watch report ignore)' \
			'--cwd[working directory; default\: the current one]:DIR:_files' \
			'--allow-home[let the home directory itself be the working directory]' \
			'--allow-git-config[keep .git/config writable]' \
			'--net[network\: none of its own, through the proxy, or the host'\''s]:none|proxy|host:(none proxy host)' \
			'*--allow-host[may be reached through the proxy\: a name, *.NAME, an address; implies --net proxy]:HOST\[\:PORT\]:' \
			'*--deny-host[may not, whatever allows it]:HOST\[\:PORT\]:' \
			'*--forward[make this port of the host'\''s 127.0.0.1 reachable inside]:PORT:' \
			'*--socket-allow[keep this well-known socket (an agent'\''s, a container engine'\''s) reachable]:PATH:_files' \
			'*--env[set a variable inside]:NAME=VALUE:' \
			'*--env-pass[pass a variable on that the profile would withhold]:NAME:' \
			'--engine[how to confine; default\: what the daemon prefers]:bwrap|native:(bwrap native)' \
			'--egress-only[all of the file system, but no network\: the profile host]' \
			'--platform[for which system; default\: the context'\''s own, else this one]:linux|darwin:(linux darwin)' \
			'--json[print JSON, errors too]' \
			'--help[explain, with examples]' \
			'*:path:_files'
			;;
		esac
		;;
	esac
}

_fsboxctl "$@"
