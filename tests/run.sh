#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole suite, or the suites named: unit golden lint fuzz integration root.
#
# Installs what the tests need (as root on Debian and Ubuntu; elsewhere it prints the commands),
# builds with sanitizers and warnings as errors in a folder that is removed again, and runs the
# tests. The last line is "N passed, N failed" with ", N skipped" where some could not run here;
# the exit status is 0 when none failed.
#
#   FSBOX_MUST_WORK=1     a test that cannot run has failed
#   FSBOX_TEST_BUILD=DIR  keep the builds in DIR and use them again
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=packaging/packages.sh
. packaging/packages.sh

want_to_build
want libcmocka-dev have_library cmocka
want scdoc have_command scdoc
want python3 test -x /usr/bin/python3
want python3-venv /usr/bin/python3 -c 'import ensurepip'
want python3-jsonschema /usr/bin/python3 -c 'import jsonschema'
want git have_command git
want make have_command make
want nodejs have_command node
want btrfs-progs have_command mkfs.btrfs
want e2fsprogs have_command mkfs.ext4
want binutils have_command readelf
want curl have_command curl
want wget have_command wget
want openssl have_command openssl
want openssh-client have_command ssh
want openssh-server test -x /usr/sbin/sshd
want netcat-openbsd have_command nc.openbsd
want procps have_command ps
want iproute2 have_command ip
want shellcheck have_command shellcheck
want clang-14 have_command clang-14
want clang-format-14 have_command clang-format-14
want clang-tidy-14 have_command clang-tidy-14
want systemd have_command systemd-socket-activate
want systemd-container have_command systemd-nspawn
want dbus have_command dbus-daemon
install_missing || {
	echo "0 passed, 1 failed"
	exit 1
}

exec /usr/bin/python3 -B tests/suites.py "$@"
