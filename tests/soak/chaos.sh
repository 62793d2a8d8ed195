#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/soak/chaos.sh BUILD [ROUNDS [SEED [MODE [SECONDS]]]]
#
# The chaos test for long: ROUNDS (1000) rounds from SEED (1) on, in MODE (system or user; default: half of them
# in each), at most SECONDS for each mode (0: no limit). A round that failed is told with its seed, what was done
# to whom and when, and how to repeat it; the orders in which processes run differ each time, so repeat it some
# times (tests/soak/chaos.sh BUILD 1 SEED MODE). BUILD is a build folder outside of /home and /root.
set -euo pipefail

build=$(realpath "${1:?the build folder}")
rounds=${2:-1000}
mode=${4:-both}
root=$(realpath "$(dirname "$0")/../..")

case $mode in
system | user) only=in_${mode}_mode ;;
both) only=in_ rounds=$(((rounds + 1) / 2)) ;;
*)
	echo "no such mode: $mode" >&2
	exit 2
	;;
esac

export FSBOX_BUILD=$build
export FSBOX_CHAOS_ROUNDS=$rounds
export FSBOX_CHAOS_SEED=${3:-1}
export FSBOX_CHAOS_SECONDS=${5:-0}
export FSBOX_CHAOS_STOP=${FSBOX_CHAOS_STOP:-5}

exec nice -n 10 /usr/bin/python3 -B "$root/tests/integration/test_chaos.py" "$only"
