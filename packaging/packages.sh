# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by quickstart.sh and tests/run.sh: find out which Debian or Ubuntu packages are missing,
# and install them where we may. Sets MISSING.

have_command()
{
	command -v "$1" >/dev/null 2>&1
}

have_library()
{
	pkg-config --exists "$1" 2>/dev/null || pkgconf --exists "$1" 2>/dev/null
}

# want PACKAGE TEST...: remember PACKAGE when TEST fails.
MISSING=
want()
{
	local package=$1
	shift
	if ! "$@"; then
		MISSING="$MISSING $package"
	fi
}

want_to_build()
{
	want gcc have_command cc
	want libc6-dev test -e /usr/include/stdio.h
	want pkg-config have_command pkg-config
	want meson have_command meson
	want ninja-build have_command ninja
	want libevent-dev have_library libevent
	want libyajl-dev have_library yajl
	want libsystemd-dev have_library libsystemd
	want libseccomp-dev have_library libseccomp
	want bubblewrap have_command bwrap
}

# The static init needs libc.a, which libc6-dev brings; pkg-config is asked again after it is there.
install_missing()
{
	if [ -z "$MISSING" ]; then
		return 0
	fi
	echo "missing packages:$MISSING"
	if ! have_command apt-get; then
		echo "This is neither Debian nor Ubuntu; install what corresponds to them, then start again." >&2
		return 1
	fi
	if [ "$(id -u)" != 0 ]; then
		echo "Install them as root, then start again:" >&2
		echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$MISSING" >&2
		return 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq </dev/null || echo "apt-get update failed; trying with the lists that are there" >&2
	install_without_services || return
	MISSING=
}

# openssh-server and squid bring services: only their programs are wanted, so none is started, now or
# at boot.
install_without_services()
(
	services=
	case " $MISSING " in
	*" openssh-server "*) services="$services ssh.service" ;;
	esac
	case " $MISSING " in
	*" squid "*) services="$services squid.service" ;;
	esac
	if [ -n "$services" ] && [ ! -e /usr/sbin/policy-rc.d ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod 755 /usr/sbin/policy-rc.d
	fi
	# shellcheck disable=SC2086 # a list of words
	apt-get install -y -qq --no-install-recommends $MISSING </dev/null >&2 || exit
	for service in $services; do
		systemctl -q disable "$service" >/dev/null 2>&1 || true
	done
)
