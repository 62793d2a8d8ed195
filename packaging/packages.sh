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
	# shellcheck disable=SC2086 # a list of words
	apt-get install -y -qq --no-install-recommends $MISSING </dev/null >&2
	MISSING=
}
