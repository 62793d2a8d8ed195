#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/soak/property.sh BUILD [POLICIES [SEED [SECONDS]]]
#
# The property test of the policy in the kernel, for long: POLICIES (2000) random policies in each of
# system, user and root mode, each in a job of bwrap and one of native; at most SECONDS for each mode
# (0: no limit). As an ordinary user: user mode alone. BUILD is a build folder outside of /home and
# /root. FSBOX_PROPERTY_ENGINES chooses engines.
set -euo pipefail

build=$(realpath "${1:?the build folder}")
root=$(realpath "$(dirname "$0")/../..")

export FSBOX_BUILD=$build
export FSBOX_KERNEL_TESTS=$root/tests/kernel
export FSBOX_PROPERTY_POLICIES=${2:-2000}
export FSBOX_PROPERTY_SEED=${3:-1000}
export FSBOX_PROPERTY_SECONDS=${4:-0}

exec nice -n 10 /usr/bin/python3 -B "$root/tests/integration/test_property.py" do_what_the_policy_says
