#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/bench/run.sh [OUTPUT]
#
# Builds an optimised fsbox in a folder of its own, runs every benchmark, prints the tables and writes
# their numbers, one JSON object a line, to OUTPUT (bench.json). FSBOX_BENCH_BUILD names a folder to
# build in and keep.
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
output=${1:-bench.json}
benchmarks="bench_policy"

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

: >"$output"
for name in $benchmarks; do
	ninja -C "$build" "tests/bench/$name" >/dev/null
	"$build/tests/bench/$name" --json >>"$output"
done

python3 "$source_dir/tests/bench/table.py" "$output"
