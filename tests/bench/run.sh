#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/bench/run.sh [--quick] [OUTPUT]
#
# All benchmarks: one table, and the numbers behind it in OUTPUT (bench.json). Installs what is missing
# (as root on Debian and Ubuntu): without what it needs to build, it ends; without a peer to compare with,
# it leaves that out and says so. See bench.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=packaging/packages.sh
. "$here/../../packaging/packages.sh"

want_to_build
want libcmocka-dev have_library cmocka
want python3 test -x /usr/bin/python3
install_missing

# Each by itself: one that cannot be had is no reason to go without the others.
peer()
{
	MISSING=
	want "$@"
	if [ "$(id -u)" = 0 ]; then
		install_missing || true
	fi
}
peer firejail have_command firejail
peer npm have_command npm
peer ripgrep have_command rg
peer socat have_command socat
peer tinyproxy-bin have_command tinyproxy
peer squid test -x /usr/sbin/squid
peer iproute2 have_command ip

# Not the first python3 of PATH: that may lie in a home, which the machine of the benchmarks hides.
exec /usr/bin/python3 -B "$here/bench.py" "$@"
