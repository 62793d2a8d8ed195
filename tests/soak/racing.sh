#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Racing clients for a minute, at least 2,000 spawns: racing.sh BUILD-FOLDER
set -eu
FSBOX_BUILD=$(realpath "${1:?build folder}")
export FSBOX_BUILD FSBOX_SOAK_SECONDS=60 FSBOX_SOAK_SPAWNS=2000 PYTHONDONTWRITEBYTECODE=1
exec python3 "$(dirname "$0")/../integration/test_racing.py"
