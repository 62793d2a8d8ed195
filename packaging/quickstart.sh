#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a sandboxed command: installs what is missing (as root on Debian and Ubuntu;
# elsewhere it prints the commands), builds into build/, and shows what fsbox does through the
# daemon that fsboxctl starts for its caller. Nothing is installed. The daemon ends when it has been
# idle for a minute; besides build/ its state and private caches stay (~/.local/state/fsbox and
# ~/.cache/fsbox, or /var/lib/fsbox-root).
#
#   FSBOX_BUILD=DIR   build there instead
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=packaging/packages.sh
. packaging/packages.sh

build=${FSBOX_BUILD:-$PWD/build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac

bold='' dim='' green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi

say()
{
	printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

failures=0

# outcome WORKED TEXT
outcome()
{
	if [ "$1" = yes ]; then
		printf '%s  as it should be:%s %s\n' "$green" "$plain" "$2"
	else
		printf '%s  NOT as it should be:%s %s\n' "$red" "$plain" "$2"
		failures=$((failures + 1))
	fi
}

say "1. What is needed"
want_to_build
install_missing
echo "everything is here"

say "2. Build"
if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" -Dtests=false >"$build.log" 2>&1 || {
		mv "$build.log" "$build/setup.log" 2>/dev/null || true
		tail -20 "$build/setup.log" "$build.log" 2>/dev/null || true
		exit 1
	}
	rm -f "$build.log"
fi
ninja -C "$build" >"$build/ninja.log" 2>&1 || {
	grep -A20 -m1 FAILED "$build/ninja.log" || tail -20 "$build/ninja.log"
	exit 1
}
echo "built in $build: daemon/fsboxd, client/fsboxctl, client/libfsbox.so"

fsboxctl=$build/client/fsboxctl
if [ "$(id -u)" = 0 ]; then
	echo "${dim}(as root: the demonstration uses a daemon for root alone; an ordinary user gets one of his own)$plain"
elif ! bwrap --unshare-user --ro-bind / / true 2>/dev/null; then
	cat <<-'TEXT'

	This machine does not let ordinary users make user namespaces, which a daemon of your own
	needs. Any one of these helps:
	  - run this script as root (sudo packaging/quickstart.sh): root needs no user namespaces
	  - install the system service, which needs none either: docs/fsboxd.8.scd
	  - Ubuntu 24.04: an AppArmor profile that lets /usr/bin/bwrap do it, or, for all programs,
	        sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0
	  - Debian 10 and older: sudo sysctl kernel.unprivileged_userns_clone=1
	TEXT
	exit 1
fi

# A project and, beside it, what must stay out of reach.
top=$(mktemp -d "${TMPDIR:-/tmp}/fsbox-demo.XXXXXX")
trap 'rm -rf "$top"' EXIT
mkdir -p "$top/project" "$top/other-project"
echo "the secret of another project" >"$top/other-project/secret.txt"
cd "$top/project"
# shellcheck disable=SC2016 # for make and for its shell
printf 'all:\n\t@echo "built by $(MAKE) as user $$(id -un)" | tee result.txt\n' >Makefile

# run fsboxctl ARGUMENT...: show and run; sets STATUS and leaves the output in $top/out.
run()
{
	local word shown=
	for word in "$@"; do
		case $word in
		*[!A-Za-z0-9_./=-]*) shown="$shown \"$word\"" ;;
		*) shown="$shown $word" ;;
		esac
	done
	printf '%s  $%s%s\n' "$dim" "$shown" "$plain"
	STATUS=0
	"$fsboxctl" "${@:2}" >"$top/out" 2>&1 </dev/null || STATUS=$?
	sed 's/^/  /' "$top/out"
}

say "3. A job works in its project"
run fsboxctl spawn -- make
grep -q '^built by' result.txt 2>/dev/null && ok=yes || ok=no
outcome "$ok" "make ran inside, and its result is in the project on the host"

say "4. Another project, and your keys, are unreadable"
run fsboxctl spawn -- cat "$top/other-project/secret.txt"
grep -q 'the secret' "$top/out" && ok=no || ok=yes
[ "$STATUS" != 0 ] || ok=no
outcome "$ok" "the file beside the project cannot be read"
if [ -d ~/.ssh ]; then
	run fsboxctl spawn -- ls -A ~/.ssh
	[ "$STATUS" != 0 ] && ok=yes || ok=no
	outcome "$ok" "nor can $HOME/.ssh"
fi

say "5. A write outside of the project is refused"
run fsboxctl spawn -- sh -c "echo planted >>'$top/other-project/secret.txt'"
grep -q planted "$top/other-project/secret.txt" && ok=no || ok=yes
[ "$STATUS" != 0 ] || ok=no
outcome "$ok" "the file is as it was"

say "6. There is no network unless asked for"
run fsboxctl spawn -- sh -c 'wc -l </proc/net/route'
[ "$(tr -d ' ' <"$top/out")" = 1 ] && ok=yes || ok=no
outcome "$ok" "the job has a private loopback and no route"

say "7. The exit status is the command's, and failures are told apart"
run fsboxctl spawn -- sh -c 'exit 37'
[ "$STATUS" = 37 ] && ok=yes || ok=no
outcome "$ok" "exit status $STATUS"
run fsboxctl spawn -- no-such-command
[ "$STATUS" = 127 ] && ok=yes || ok=no
outcome "$ok" "exit status $STATUS, and why"

say "Done"
if [ "$failures" != 0 ]; then
	echo "${red}$failures of the steps did not do what they should.$plain"
	exit 1
fi
echo "Try it: cd to a project of yours, then"
echo "    $fsboxctl spawn -- make test"
echo "    $fsboxctl why ~/.ssh/id_ed25519"
echo "    $fsboxctl spawn --help"
