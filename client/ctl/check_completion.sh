#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# packaging/completion against what fsboxctl prints.
#
# usage: check_completion.sh FSBOXCTL FOLDER [--write]
set -eu

status=0
for shell in bash zsh fish; do
	file=$2/fsboxctl.$shell
	if [ "${3:-}" = --write ]; then
		"$1" completion "$shell" >"$file"
	elif ! "$1" completion "$shell" | diff -u "$file" -; then
		echo "$file is not what fsboxctl prints: $0 $1 $2 --write"
		status=1
	fi
done
if ! bash -n "$2/fsboxctl.bash"; then
	status=1
fi
exit $status
