#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Which libraries each program may load. What fsboxd does not link, it cannot be attacked through.
#
# usage: needed.sh BUILD_FOLDER
set -eu

build=$1
status=0

# needed FILE WORD...: every DT_NEEDED entry of FILE must begin with one of the words.
needed()
{
	file=$build/$1
	shift
	if [ ! -f "$file" ]; then
		echo "$file: is missing"
		status=1
		return
	fi
	libraries=$(LC_ALL=C readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
	for library in $libraries; do
		fine=no
		for word in libc.so ld-linux libasan libubsan libm.so libgcc_s linux-vdso "$@"; do
			case $library in
			"$word"*) fine=yes ;;
			esac
		done
		if [ "$fine" = no ]; then
			echo "$file: links $library"
			status=1
		fi
	done
	echo "$file: $(echo "$libraries" | tr '\n' ' ')"
}

needed daemon/fsboxd
needed daemon/fsbox-init
needed daemon/fsbox-recorder libsystemd
needed daemon/fsbox-broker libevent libyajl
needed client/fsboxctl libyajl libfsbox
needed client/libfsbox.so libyajl

# The init runs inside a stranger's file system: nothing there may be loaded into it.
if LC_ALL=C readelf -l "$build/daemon/fsbox-init" | grep -q INTERP; then
	echo "daemon/fsbox-init: is not static"
	status=1
fi
exit $status
