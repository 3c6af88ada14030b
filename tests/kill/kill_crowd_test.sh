#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: kill_crowd_test.sh KILL_CROWD KILL_WRITER
# Kills writers with several threads on real filesystems, also while they recover, and shuts the
# filesystem down below them. Needs root and loop devices for all but the current directory; says
# aloud what it leaves out.
set -eu
crowd=$1
writer=$2
work=$(mktemp -d "${TMPDIR:-.}/lacuna-crowd-XXXXXX")
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

skip() {
	echo "SKIP kill by threads: $*"
	return 1
}

# make NAME SIZE MKFS...: an image of SIZE mounted at $work/NAME
make() {
	name=$1
	size=$2
	shift 2
	command -v "$1" >/dev/null 2>&1 || skip "$name: no $1" || return 1
	truncate -s "$size" "$work/$name.img"
	"$@" "$work/$name.img" >"$work/$name.txt" 2>&1 ||
		skip "$name: $1 failed: $(tail -n 1 "$work/$name.txt")" || return 1
	mkdir "$work/$name"
	mount -o loop "$work/$name.img" "$work/$name" 2>"$work/$name.txt" ||
		skip "$name: can't mount: $(tail -n 1 "$work/$name.txt")" || return 1
	mounted="$mounted $work/$name"
}

drop() {
	umount "$work/$1"
	rm -f "$work/$1.img"
}

# The log stands elsewhere: it must outlive the filesystem.
shutdown_rounds() { # NAME
	for round in 1 2 3 4; do
		"$crowd" shutdown "$writer" "$work/$1/shut" "$work/$1.shut.log" "$round" || return 1
		umount "$work/$1" || return 1
		mount -o loop "$work/$1.img" "$work/$1" || return 1
		"$crowd" verify "$work/$1/shut" "$work/$1.shut.log" || return 1
	done
}

kills() { # NAME SEED
	try "$1" "$crowd" run "$writer" "$work/$1/store" "$work/$1.log" 4 "$2"
	rm -rf "$work/$1/store"
}

mkdir "$work/here"
kills here 1
if [ "$(id -u)" != 0 ]; then
	skip "images of XFS, ext4, btrfs and tmpfs: not root" || true
else
	make xfs 400M mkfs.xfs -q && {
		kills xfs 2
		try "xfs shut down" shutdown_rounds xfs
		drop xfs
	}
	make ext4-4k 300M mkfs.ext4 -q -b 4096 && {
		kills ext4-4k 3
		try "ext4 shut down" shutdown_rounds ext4-4k
		drop ext4-4k
	}
	make ext4-1k 300M mkfs.ext4 -q -b 1024 && {
		kills ext4-1k 4
		drop ext4-1k
	}
	make btrfs 400M mkfs.btrfs -q && {
		kills btrfs 5
		drop btrfs
	}
	mkdir "$work/tmpfs"
	if mount -t tmpfs -o size=400M none "$work/tmpfs" 2>/dev/null; then
		mounted="$mounted $work/tmpfs"
		kills tmpfs 6
	else
		skip "tmpfs: can't mount" || true
	fi
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
