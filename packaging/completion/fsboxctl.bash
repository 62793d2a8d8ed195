# SPDX-License-Identifier: Apache-2.0
# Completion of fsboxctl for bash: made by 'fsboxctl completion bash'.
_fsboxctl_words()
{
	COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_fsboxctl_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_fsboxctl_jobs()
{
	_fsboxctl_words "$(fsboxctl --no-autostart ps 2>/dev/null |
		while read -r job _; do [ "$job" = JOB ] || echo "$job"; done)" "$1"
}

# What may follow option $1; false when it takes nothing.
_fsboxctl_argument()
{
	case $1 in
	--socket) _fsboxctl_files "$2" ;;
	--job) COMPREPLY=() ;;
	--request) _fsboxctl_files "$2" ;;
	--ttl) COMPREPLY=() ;;
	--stdin) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--stdout) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--stderr) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--profile) _fsboxctl_files "$2" ;;
	--context) _fsboxctl_files "$2" ;;
	--rw) _fsboxctl_files "$2" ;;
	--ro) _fsboxctl_files "$2" ;;
	--deny) _fsboxctl_files "$2" ;;
	--absent) _fsboxctl_words 'placeholder watch report ignore' "$2" ;;
	--cwd) _fsboxctl_files "$2" ;;
	--net) _fsboxctl_words 'none proxy host' "$2" ;;
	--allow-host) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--deny-host) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--forward) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--socket-allow) _fsboxctl_files "$2" ;;
	--env) COMPREPLY=() ;;
	--env-pass) _fsboxctl_words "$(compgen -e)" "$2" ;;
	--engine) _fsboxctl_words 'bwrap native' "$2" ;;
	--to) _fsboxctl_words 'rules plan bwrap seatbelt' "$2" ;;
	--platform) _fsboxctl_words 'linux darwin' "$2" ;;
	--timeout) COMPREPLY=() ;;
	--memory) COMPREPLY=() ;;
	--pids) COMPREPLY=() ;;
	--cpus) COMPREPLY=() ;;
	--label) COMPREPLY=() ;;
	--status-fd) COMPREPLY=() ;;
	--grant-fd) COMPREPLY=() ;;
	*) return 1 ;;
	esac
}

_fsboxctl()
{
	local current=$2 before=$3 command= index=1 word

	# The command is the first word that is neither an option nor the argument of --socket.
	while [ "$index" -lt "$COMP_CWORD" ]; do
		word=${COMP_WORDS[index]}
		case $word in
		--socket) index=$((index + 1)) ;;
		-*) ;;
		grant | policy) command=$word ;;
		*) command=${command:+$command }$word; index=$((index + 1)); break ;;
		esac
		index=$((index + 1))
	done

	if _fsboxctl_argument "$before" "$current"; then
		return
	fi
	case $command in
	'')
		_fsboxctl_words ' completion doctor events grant inspect policy ps signal spawn run status version wait whoami why --socket --user --no-autostart --quiet --verbose --version --json --help' "$current"
		;;
	grant)
		_fsboxctl_words ' create list revoke' "$current"
		;;
	policy)
		_fsboxctl_words ' check compile diff migrate show' "$current"
		;;
	'completion')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) _fsboxctl_words 'bash zsh fish' "$current" ;;
		esac
		;;
	'doctor')
		case $current in
		-*) _fsboxctl_words ' --repair --all --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'events')
		case $current in
		-*) _fsboxctl_words ' --follow --job --all --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'grant create')
		case $current in
		-*) _fsboxctl_words ' --request --ttl --stdin --stdout --stderr --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'grant list')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'grant revoke')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'inspect')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) _fsboxctl_jobs "$current" ;;
		esac
		;;
	'policy check')
		case $current in
		-*) _fsboxctl_words ' --profile --context --rw --ro --deny --absent --cwd --allow-home --allow-git-config --net --allow-host --deny-host --forward --socket-allow --env --env-pass --engine --egress-only --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'policy compile')
		case $current in
		-*) _fsboxctl_words ' --context --to --plain --platform --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'policy diff')
		case $current in
		-*) _fsboxctl_words ' --platform --json --help' "$current" ;;
		*) _fsboxctl_files "$current" ;;
		esac
		;;
	'policy migrate')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) _fsboxctl_files "$current" ;;
		esac
		;;
	'policy show')
		case $current in
		-*) _fsboxctl_words ' --profile --context --rw --ro --deny --absent --cwd --allow-home --allow-git-config --net --allow-host --deny-host --forward --socket-allow --env --env-pass --engine --egress-only --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'ps')
		case $current in
		-*) _fsboxctl_words ' --all --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'signal')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) _fsboxctl_jobs "$current" ;;
		esac
		;;
	'spawn' | run)
		case $current in
		-*) _fsboxctl_words ' --profile --context --rw --ro --deny --absent --cwd --allow-home --allow-git-config --net --allow-host --deny-host --forward --socket-allow --env --env-pass --engine --egress-only --timeout --memory --pids --cpus --detach --label --status-fd --grant-fd --dry-run --grant-request --json --help' "$current" ;;
		*) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -c -f -- "$current") ;;
		esac
		;;
	'status')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'version')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'wait')
		case $current in
		-*) _fsboxctl_words ' --timeout --json --help' "$current" ;;
		*) _fsboxctl_jobs "$current" ;;
		esac
		;;
	'whoami')
		case $current in
		-*) _fsboxctl_words ' --json --help' "$current" ;;
		*) COMPREPLY=() ;;
		esac
		;;
	'why')
		case $current in
		-*) _fsboxctl_words ' --profile --context --rw --ro --deny --absent --cwd --allow-home --allow-git-config --net --allow-host --deny-host --forward --socket-allow --env --env-pass --engine --egress-only --platform --json --help' "$current" ;;
		*) _fsboxctl_files "$current" ;;
		esac
		;;
	esac
}

complete -F _fsboxctl fsboxctl
