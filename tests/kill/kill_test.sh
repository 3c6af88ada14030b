#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: kill_test.sh KILL_DRIVER
# Kills writers on real filesystems, fills those up, and shuts them down below a writer. Needs root and
# loop devices for all but the current directory; says aloud what it leaves out.
set -eu
driver=$1
work=$(mktemp -d "${TMPDIR:-.}/lacuna-kill-XXXXXX")
work=$(cd "$work" && pwd)
mounted=
passed=0
failed=0

clean_up() {
	for dir in $mounted; do
		umount "$dir" 2>/dev/null || umount -l "$dir" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

try() { # NAME COMMAND...
	name=$1
	shift
	if result=$("$@" 2>&1); then
		passed=$((passed + 1))
		echo "ok   $name: $(printf '%s' "$result" | tail -n 1)"
	else
		failed=$((failed + 1))
		echo "FAIL $name:"
		printf '%s\n' "$result" | tail -n 15
	fi
}

# make NAME SIZE MKFS...: an image of SIZE mounted at $work/NAME
make() {
	name=$1
	size=$2
	shift 2
	if ! command -v "$1" >/dev/null 2>&1; then
		echo "SKIP kill: $name: no $1"
		return 1
	fi
	truncate -s "$size" "$work/$name.img"
	if ! "$@" "$work/$name.img" >"$work/$name.log" 2>&1; then
		echo "SKIP kill: $name: $1 failed: $(tail -n 1 "$work/$name.log")"
		return 1
	fi
	mkdir "$work/$name"
	if ! mount -o loop "$work/$name.img" "$work/$name" 2>"$work/$name.log"; then
		echo "SKIP kill: $name: can't mount: $(tail -n 1 "$work/$name.log")"
		return 1
	fi
	mounted="$mounted $work/$name"
}

drop() {
	umount "$work/$1"
	rm -f "$work/$1.img"
}

shutdown_rounds() { # NAME
	for round in 1 2 3 4; do
		"$driver" shutdown "$work/$1/store" "$work/$1.model" "$round" || return 1
		umount "$work/$1" || return 1
		mount -o loop "$work/$1.img" "$work/$1" || return 1
		"$driver" verify "$work/$1/store" "$work/$1.model" || return 1
	done
}

try "current directory" "$driver" run "$work/here" 6 11
rm -rf "$work/here"

if [ "$(id -u)" != 0 ]; then
	echo "SKIP kill: images of XFS, ext4, btrfs and tmpfs: not root"
else
	make xfs 400M mkfs.xfs -q && {
		try "xfs" "$driver" run "$work/xfs/store" 8 21
		rm -rf "$work/xfs/store"
		try "xfs shut down" shutdown_rounds xfs
		rm -rf "$work/xfs/store"
		try "xfs full" "$driver" full "$work/xfs/full"
		drop xfs
	}
	make ext4-4k 200M mkfs.ext4 -q -b 4096 && {
		try "ext4, 4 KiB blocks" "$driver" run "$work/ext4-4k/store" 8 31
		rm -rf "$work/ext4-4k/store"
		try "ext4 shut down" shutdown_rounds ext4-4k
		rm -rf "$work/ext4-4k/store"
		try "ext4 full" "$driver" full "$work/ext4-4k/full"
		drop ext4-4k
	}
	make ext4-1k 200M mkfs.ext4 -q -b 1024 && {
		try "ext4, 1 KiB blocks" "$driver" run "$work/ext4-1k/store" 8 41
		drop ext4-1k
	}
	make btrfs 400M mkfs.btrfs -q && {
		try "btrfs" "$driver" run "$work/btrfs/store" 8 51
		rm -rf "$work/btrfs/store"
		try "btrfs full" "$driver" full "$work/btrfs/full"
		drop btrfs
	}
	mkdir "$work/tmpfs"
	if mount -t tmpfs -o size=1500M none "$work/tmpfs" 2>/dev/null; then
		mounted="$mounted $work/tmpfs"
		try "tmpfs" "$driver" run "$work/tmpfs/store" 8 61
		rm -rf "$work/tmpfs/store"
		mount -o remount,size=150M "$work/tmpfs"
		try "tmpfs full" "$driver" full "$work/tmpfs/full"
	else
		echo "SKIP kill: tmpfs: can't mount"
	fi
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
