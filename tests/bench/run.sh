#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/bench/run.sh [--quick] [OUTPUT]
#
# Builds an optimised fsbox in a folder of its own, runs every benchmark, prints the tables and writes
# their numbers, one JSON object a line, to OUTPUT (bench.json). FSBOX_BENCH_BUILD names a folder to
# build in and keep. As root all modes are measured, in a machine of their own; else user mode. --quick:
# fewer rounds, to see whether it works.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
quick=
if [ "${1:-}" = --quick ]; then
	quick=--quick
	shift
fi
output=${1:-bench.json}

build=${FSBOX_BENCH_BUILD:-}
if [ -z "$build" ]; then
	build=$(mktemp -d)
	trap 'rm -rf "$build"' EXIT
fi
if [ ! -f "$build/build.ninja" ]; then
	meson setup --buildtype=release -Db_lto=true "$build" "$source_dir" >"$build.log" 2>&1 ||
		{ cat "$build.log" >&2; rm -f "$build.log"; exit 1; }
	rm -f "$build.log"
fi

ninja -C "$build" daemon/fsboxd daemon/fsbox-broker daemon/fsbox-init daemon/fsbox-recorder \
	client/fsboxctl tests/bench/bench_policy tests/bench/bench_spawn tests/bench/bench_throughput \
	>/dev/null
chmod 755 "$build"

: >"$output"
"$build/tests/bench/bench_policy" --json >>"$output"
python3 "$source_dir/tests/bench/table.py" "$output"
# Not the first python3 of PATH: that may lie in a home, which the machine of the benchmarks hides.
/usr/bin/python3 -B "$source_dir/tests/bench/bench.py" "$build" "$output" $quick
