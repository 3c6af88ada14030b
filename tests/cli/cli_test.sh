#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command as scripts see it: every verb, every exit code, every bad input that can be made
# without touching the format (those are the unit tests' work). One line a check, a count at the
# end, non-zero when one failed. usage: cli_test.sh LACUNA [DIR]
set -u

[ $# -ge 1 ] || { echo "usage: cli_test.sh LACUNA [DIR]" >&2; exit 16; }
case $1 in /*) lacuna=$1 ;; *) lacuna=$PWD/$1 ;; esac
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/lacuna-cli.XXXXXX") || exit 8
mounted=
holder=
cleanup() {
	[ -z "$holder" ] || kill -9 "$holder" 2>/dev/null
	[ -z "$mounted" ] || umount "$mounted" 2>/dev/null
	chmod -R u+rwx "$work" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP
cd "$work" || exit 8

passed=0
failed=0
skipped=0
tab=$(printf '\t')

ok() {
	passed=$((passed + 1))
	echo "ok    $1"
}
bad() {
	failed=$((failed + 1))
	echo "FAIL  $1: $2"
	sed 's/^/      out: /' "$work/out" 2>/dev/null | head -5
	sed 's/^/      err: /' "$work/err" 2>/dev/null | head -5
}
skip() {
	skipped=$((skipped + 1))
	echo "SKIP  $1: $2"
}
# runs: the command with its output in $work/out and $work/err, its exit status in $rc
run() {
	"$lacuna" "$@" >"$work/out" 2>"$work/err"
	rc=$?
}
# exits NAME WANT ARG...: runs and compares the exit status
exits() {
	name=$1
	want=$2
	shift 2
	run "$@"
	if [ "$rc" = "$want" ]; then ok "$name"; else bad "$name" "exit $rc, want $want"; fi
}
# says NAME FILE PATTERN: FILE (out or err) has a line that matches
says() {
	if grep -q -e "$3" "$work/$2"; then ok "$1"; else bad "$1" "$2 lacks \"$3\""; fi
}
same() {
	if cmp -s "$2" "$3"; then ok "$1"; else bad "$1" "$2 and $3 differ"; fi
}
true_that() {
	name=$1
	shift
	if "$@"; then ok "$name"; else bad "$name" "not so: $*"; fi
}

echo "# help, version, usage"
exits "help" 0 --help
says "help lists check" out '^  check '
if grep -qE '^  (compact|map|repair|log|fs|xfs|bench) ' "$work/out"; then
	bad "help lists only what is there" "a later verb is in it"
else
	ok "help lists only what is there"
fi
exits "version" 0 --version
says "version has a number" out '^lacuna '
for verb in init put get rm ls stat import export reclaim check; do
	exits "$verb --help" 0 $verb --help
	says "$verb --help has an example" out "^example: lacuna $verb "
done
for verb in compact map repair log fs xfs bench; do
	exits "$verb: later" 16 $verb store
	says "$verb says so" err 'not in this release'
done
exits "no verb" 16
exits "unknown verb" 16 frobnicate
for verb in init put get rm ls stat import export reclaim check; do
	exits "$verb without a store" 16 $verb
	exits "$verb with an unknown option" 16 $verb store --frobnicate
done
exits "put without a file" 16 put store
exits "get without an id" 16 get store
exits "get with a word for an id" 16 get store one
exits "get with a negative id" 16 get store -- -1
exits "get with an id over 64 bits" 16 get store 18446744073709551616
exits "rm without ids" 16 rm store
exits "rm with ids and --owner" 16 rm store 1 --owner 2
exits "import without --manifest" 16 import store .
exits "export without --manifest" 16 export store .
exits "stat with two ids" 16 stat store 1 2
exits "a size that is none" 16 init store --granule 4X
exits "a size over 64 bits" 16 init store --container-size 99999999999T
exits "a granule out of range" 16 init store --granule 5000
true_that "a refused init makes nothing" [ ! -e store/super ]
rm -rf store
exits "a batch of 0" 16 put store x --batch 0
exits "--progress with a word" 16 ls store --progress perhaps
exits "an option without its value" 16 ls store --limit
exits "reclaim --verify: later" 16 reclaim store --verify
exits "check -j: later" 16 check store -j 4
says "and says so" err 'not in this release'

echo "# stores that are none"
for verb in "ls none" "stat none" "get none 1" "rm none 1" "put none $0" "reclaim none" "check none" \
	"import none . --manifest m" "export none --manifest m out.d"; do
	# shellcheck disable=SC2086 # the words are the arguments
	exits "missing store: ${verb%% *}" 8 $verb
done
true_that "a missing store is not made" [ ! -e none ]
true_that "no manifest without a store" [ ! -e m ]
mkdir foreign
echo something >foreign/file
exits "init in a directory that is not empty" 8 init foreign
exits "a foreign directory is no store" 8 ls foreign
true_that "it is left alone" [ "$(ls foreign)" = file ]
exits "a file is no store" 8 ls foreign/file
exits "init over a file" 8 init foreign/file

echo "# init, put, get, ls, stat"
exits "init" 0 init store --container-size 64M --cache 8M
exits "init twice" 8 init store
mkdir files
printf 'one\n' >files/one
: >files/empty
head -c 300000 /dev/urandom >files/medium
head -c 5000001 /dev/urandom >files/large
exits "put" 0 put store files/one files/empty files/medium files/large --owner 7
true_that "a line a file" [ "$(wc -l <out)" = 4 ]
cut -f1 out >ids
one=$(sed -n 1p ids)
# shellcheck disable=SC2034 # by eval
empty=$(sed -n 2p ids)
medium=$(sed -n 3p ids)
large=$(sed -n 4p ids)
says "with id and name" out "^$large${tab}files/large\$"
for file in one empty medium large; do
	eval "id=\$$file"
	# shellcheck disable=SC2154 # set by eval
	exits "get $file" 0 get store "$id"
	same "get $file: the bytes" out files/$file
done
exits "get -o" 0 get store "$large" -o copy
same "get -o: the bytes" copy files/large
true_that "get -o leaves nothing else" [ -z "$(find . -name '.lacuna-*')" ]
exits "get a part" 0 get store "$large" --offset 1M --length 100
dd if=files/large bs=1 skip=1048576 count=100 of=part 2>/dev/null
same "get a part: the bytes" out part
exits "get beyond the end" 0 get store "$one" --offset 1G
true_that "is empty" [ ! -s out ]
exits "get what is not there" 1 get store 999999
exits "get -o of what is not there" 1 get store 999999 -o none.out
true_that "leaves no file" [ ! -e none.out ]
exits "get -o in a missing directory" 8 get store "$one" -o nowhere/file
exits "get -o /dev/null" 0 get store "$large" -o /dev/null
true_that "leaves the device" [ -c /dev/null ]
exits "ls" 0 ls store
true_that "lists all" [ "$(wc -l <out)" = 4 ]
says "with length and owner" out "^$large${tab}5000001${tab}7\$"
exits "ls --after" 0 ls store --after "$medium"
true_that "lists the rest" [ "$(cut -f1 out)" = "$large" ]
exits "ls --limit" 0 ls store --limit 1
true_that "lists one" [ "$(cut -f1 out)" = "$one" ]
exits "ls --owner of nobody" 0 ls store --owner 8
true_that "lists none" [ ! -s out ]
exits "ls --json" 0 ls store --json
says "with the id as a string" out "\"id\": \"$one\""
exits "stat" 0 stat store
exits "stat --json" 0 stat store --json
for key in uuid format blocks live_bytes dead_bytes hole_bytes allocated_bytes file_bytes containers \
	next_id journal_bytes metadata_bytes lsn_head checkpoint_lsn punches punched_bytes \
	relocated_bytes; do
	says "stat --json has $key" out "\"$key\": "
done
says "live_bytes is the payload" out '"live_bytes": 5300005,'
exits "stat of a block" 0 stat store "$medium"
says "has its length" out '^length  *300000$'
exits "stat of none" 1 stat store 999999

echo "# names and sources"
newline=$(printf 'files/new\nline')
strange=$(printf 'files/t\tb\\s\rr\377\376')
printf x >"$newline"
printf y >"$strange"
exits "put a name with a newline" 0 put store "$newline"
says "is escaped" out "${tab}files/new\\\\nline\$"
exits "put a name with tab, backslash, return, no UTF-8" 0 put store "$strange"
true_that "is one line of two fields" [ "$(LC_ALL=C awk -F'\t' 'END { print NR, NF }' out)" = "1 2" ]
exits "put from standard input" 0 put store - <files/large
id=$(cut -f1 out)
run get store "$id"
same "of 5 MB" out files/large
# shellcheck disable=SC2002 # a pipe is the point
cat files/one | "$lacuna" put store - >out 2>err
run get store "$(cut -f1 out)"
same "put from a pipe" out files/one
exits "put a file of unknown length" 0 put store /proc/self/status
run get store "$(cut -f1 out)"
says "has its content" out '^Name:'
exits "put what is not there" 1 put store files/none files/one
true_that "puts the others" [ "$(wc -l <out)" = 1 ]
says "and names it" err 'files/none'
exits "put a directory" 1 put store files
exits "put in batches" 0 put store files/one files/one files/one --batch 2 --json
true_that "a line each" [ "$(grep -c '"id": "' out)" = 3 ]
if [ "$(id -u)" = 0 ]; then
	skip "put what is not readable" "root reads everything"
else
	echo x >files/secret
	chmod 0 files/secret
	exits "put what is not readable" 1 put store files/secret
	rm -f files/secret
fi

echo "# rm and reclaim"
exits "rm" 0 rm store "$medium"
says "counts" out '^deleted 1, missing 0$'
exits "get it" 1 get store "$medium"
exits "rm again" 1 rm store "$medium"
says "counts it missing" out '^deleted 0, missing 1$'
run put store files/one files/one files/medium --owner 99
cut -f1 out >list
first=$(head -1 list)
exits "rm twice the same" 1 rm store "$first" "$first"
says "is missing once" out '^deleted 1, missing 1$'
exits "rm --from with a bad line" 16 rm store --from files/large
printf '%s\nx\n' "$(sed -n 2p list)" >badlist
exits "rm --from with one bad line" 16 rm store --from badlist
exits "deletes nothing" 0 get store "$(sed -n 2p list)"
sed -n '2,$p' list | sed "s/\$/${tab}5${tab}name/" >manifest-like
exits "rm --from with more fields" 0 rm store --from manifest-like --batch 1
says "deletes all" out '^deleted 2, missing 0$'
run put store files/one files/one files/one --owner 99
exits "rm --owner" 0 rm store --owner 99 --batch 2
says "deletes its blocks" out '^deleted 3, missing 0$'
run ls store --owner 7
true_that "and no others" [ "$(wc -l <out)" = 3 ]
# more index pages than a quarter of 1 MiB holds
i=0
set --
while [ $i -lt 6000 ]; do
	set -- "$@" files/one
	i=$((i + 1))
done
run put store --owner 77 --batch 1000 "$@"
true_that "put 6000 files" [ "$(wc -l <out)" = 6000 ]
exits "rm of more than one transaction can hold" 0 rm store --owner 77 --batch 100000 --cache 1M
says "deletes all the same" out '^deleted 6000, missing 0$'
exits "rm --from a missing file" 8 rm store --from nowhere
exits "reclaim" 0 reclaim store
says "prints what it did" out '^punched '
exits "reclaim again" 0 reclaim store --json
says "has nothing to do" out '"punched_bytes": 0,'
run stat store --json
exits "get after reclaim" 0 get store "$large"
same "the bytes" out files/large

echo "# import and export"
mkdir -p tree/sub/deep tree/none
cp files/* tree/sub/ 2>/dev/null
i=0
while [ $i -lt 300 ]; do
	echo "file $i" >"tree/sub/deep/$i"
	i=$((i + 1))
done
ln -s ../files/one tree/link
ln -s . tree/loop
mkfifo tree/fifo
exits "import" 0 import store tree --manifest list.m --batch 64
says "prints a summary" out '^imported '
true_that "no pending file stays" [ ! -e list.m.pending ]
files=$(find tree -type f -exec printf x \; | wc -c)
true_that "a line a file" [ "$(wc -l <list.m)" = "$files" ]
true_that "three fields a line" [ "$(LC_ALL=C awk -F'\t' 'NF != 3' list.m | wc -l)" = 0 ]
exits "export" 0 export store --manifest list.m exported
rm -f tree/link tree/loop tree/fifo
rmdir tree/none
if diff -r tree exported >diff.out 2>&1; then
	ok "export: every name and byte"
else
	bad "export: every name and byte" "$(head -3 diff.out)"
fi
exits "import again" 0 import store tree --manifest list.m
says "finds all there" out "^imported 0 files.*; $files were there"
true_that "the manifest is the same" [ "$(wc -l <list.m)" = "$files" ]
echo new >tree/new
exits "import what is new" 0 import store tree --manifest list.m --json
says "is one file" out '"files": 1,'
printf '12345\t67\tcut of' >>list.m
exits "import with a torn last line" 0 import store tree --manifest list.m
true_that "cuts it off" [ "$(wc -l <list.m)" = $((files + 1)) ]
printf 'no manifest\n' >bad.m
exits "a manifest that is none" 8 import store tree --manifest bad.m
says "names the line" err 'line 1'
true_that "is not changed" [ "$(cat bad.m)" = "no manifest" ]
printf '999999999\t1\tx\n' >other.m
exits "another store's manifest" 8 import store tree --manifest other.m
exits "import of a missing directory" 8 import store nowhere --manifest n.m
exits "import of a file" 8 import store files/one --manifest n.m
exits "a manifest that is a device" 8 import store tree --manifest /dev/full
exits "import of what holds the store" 0 import store . --manifest self.m
if cut -f3 self.m | grep -q -e '^store/' -e '^self\.m'; then
	bad "leaves store and manifest out" "they are in it"
else
	ok "leaves store and manifest out"
fi
run rm store --from self.m
for path in ../evil /evil sub/../../evil a//b ./x . .. sub/ ""; do
	printf '%s\t4\t%s\n' "$one" "$path" >hostile.m
	exits "export refuses \"$path\"" 8 export store --manifest hostile.m hostile.d
done
true_that "nothing outside" [ ! -e evil ] && true_that "nothing inside" [ -z "$(ls hostile.d)" ]
mkdir trap.d outside
ln -s "$work/outside" trap.d/sub
printf '%s\t4\tsub/file\n' "$one" >hostile.m
exits "export follows no link" 8 export store --manifest hostile.m trap.d
true_that "nothing behind it" [ -z "$(ls outside)" ]
printf '%s\t4\tthere\n999999\t4\tmissing\n' "$one" >some.m
exits "export with a missing block" 1 export store --manifest some.m some.d
same "writes the others" some.d/there files/one
true_that "and no file for it" [ "$(ls some.d)" = there ]
printf '%s\t5\tthere\n' "$one" >length.m
exits "export with a wrong length" 8 export store --manifest length.m some.d
if [ "$(id -u)" = 0 ]; then
	skip "import of what is not readable" "root reads everything"
else
	mkdir -p dark/dir
	echo x >dark/file
	echo y >dark/seen
	chmod 0 dark/file dark/dir
	exits "import of what is not readable" 1 import store dark --manifest dark.m
	says "names the file" err 'dark/file'
	says "names the directory" err 'dark/dir'
	true_that "takes the rest" [ "$(cut -f3 dark.m)" = seen ]
	chmod 700 dark/file dark/dir
fi

echo "# a killed import"
mkdir many
i=0
while [ $i -lt 400 ]; do
	echo "content of $i" >"many/$i"
	i=$((i + 1))
done
"$lacuna" init killed >/dev/null
adopted=0
round=0
rc=0
while [ $round -lt 10 ]; do
	round=$((round + 1))
	"$lacuna" import killed many --manifest killed.m --batch 1 >/dev/null 2>>adopted.err &
	holder=$!
	sleep "0.0$round"
	kill -9 $holder 2>/dev/null
	wait $holder 2>/dev/null
	holder=
	# Every other time it is opened and closed cleanly in between.
	[ $((round % 2)) = 0 ] || continue
	run stat killed
	[ $rc = 0 ] || break
done
true_that "opens after each kill" [ $rc = 0 ]
grep -q 'interrupted batch' adopted.err && adopted=1
exits "resumes after ten kills" 0 import killed many --manifest killed.m --batch 50
grep -q 'interrupted batch' err && adopted=1
if [ $adopted = 1 ]; then
	ok "one of them hit between commit and line"
else
	skip "a kill between commit and line" "none of the ten hit it"
fi
true_that "a line a file" [ "$(wc -l <killed.m)" = 400 ]
"$lacuna" ls killed | cut -f1 | sort >have
cut -f1 killed.m | sort >named
same "the store has what the manifest names, and nothing else" have named
exits "export" 0 export killed --manifest killed.m killed.d
if diff -r many killed.d >/dev/null 2>&1; then ok "every byte"; else bad "every byte" "differs"; fi
exits "check --data" 0 check killed --data


# What a kill right after a commit leaves, made by hand: the last 30 lines are sealed, not listed.
if command -v python3 >/dev/null; then
	"$lacuna" stat killed | sed -n 's/^uuid  *//p' | tr -d - >uuid
	seal() { # LINES-FILE UUID: the sealed pending file on standard output
		python3 -c '
import sys
lines = open(sys.argv[1], "rb").read()
h = 0xcbf29ce484222325
for b in lines:
    h = (h ^ b) * 0x100000001b3 % 2**64
sys.stdout.buffer.write(lines + b"sealed\t%s\t%d\t%016x\n"
    % (sys.argv[2].encode(), lines.count(b"\n"), h))' "$1" "$2"
	}
	cp killed.m whole.m
	tail -30 whole.m >tail.m
	for case in sealed torn foreign; do
		head -370 whole.m >killed.m
		uuid=$(cat uuid)
		[ $case = foreign ] && uuid=00000000000000000000000000000000
		seal tail.m "$uuid" >killed.m.pending
		[ $case = torn ] && truncate -s -1 killed.m.pending
		"$lacuna" stat killed --json >stat.before
		exits "resume with a $case batch" 0 import killed many --manifest killed.m
		if [ $case = sealed ]; then
			says "adopts it" err '30 blocks of an interrupted batch'
			says "imports nothing" out '^imported 0 files'
			same "the manifest is whole" killed.m whole.m
		else
			says "does not believe it" out '^imported 30 files'
			run rm killed --from killed.m
			run import killed many --manifest again.m
			mv again.m whole.m
			tail -30 whole.m >tail.m
		fi
		true_that "no pending file stays" [ ! -e killed.m.pending ]
	done
	# The rounds above left 30 doubles, which the manifest does not name.
	cp whole.m killed.m
else
	skip "a batch that was sealed and not listed" "no python3 to make one"
fi

echo "# a second writer, signals"
mkfifo feed
"$lacuna" put killed files/one - <feed >held.out 2>held.err &
holder=$!
exec 9>feed
tries=0
# Its first block is durable, and it waits for the second one.
while [ ! -s held.out ] && [ $tries -lt 600 ]; do
	sleep 0.05
	tries=$((tries + 1))
done
run stat killed
true_that "a second writer fails" [ $rc = 8 ]
says "and is told the pid" err "$holder"
exits "check needs no lock" 0 check killed
kill -TERM $holder
wait $holder
rc=$?
true_that "SIGTERM ends cleanly with 143" [ $rc = 143 ]
holder=
exec 9>&-
exits "and the store opens" 0 stat killed
true_that "only the first was acknowledged" [ "$(wc -l <held.out)" = 1 ]

echo "# standard output that fails"
there=$("$lacuna" ls killed --limit 1 | cut -f1)
for verb in "ls killed" "stat killed" "--help" "put killed files/one" "get killed $there" "check killed" \
	"reclaim killed" "put --help" "--version"; do
	# shellcheck disable=SC2086 # the words are the arguments
	"$lacuna" $verb >/dev/full 2>"$work/err"
	rc=$?
	: >"$work/out"
	true_that "full: ${verb%% *}" [ $rc = 8 ]
done
"$lacuna" ls killed 2>err | head -1 >/dev/null
true_that "a reader that goes away gets no message" [ ! -s err ]
("$lacuna" ls killed; echo $? >piped) 2>err | (exec <&-; sleep 0.3)
true_that "and the exit status is 8" [ "$(cat piped)" = 8 ]
"$lacuna" ls killed >&- 2>err
rc=$?
true_that "closed: ls" [ $rc = 8 ]

echo "# check and damage"
exits "check" 0 check store
says "has the table" out '^Phase  *Start  *End  *Duration'
says "and the verdict" out '^verdict: clean'
exits "check --json" 0 check store --data --json
for key in findings phases max_lsn head_lsn verdict seconds items bytes; do
	says "check --json has $key" out "\"$key\": "
done
if command -v python3 >/dev/null; then
	if python3 -c 'import json, sys; json.load(open(sys.argv[1]))' out; then
		ok "and is JSON"
	else
		bad "and is JSON" "it does not parse"
	fi
else
	skip "check --json is JSON" "no python3 to ask"
fi
find store -type f -exec cksum {} + | sort >before
exits "check" 0 check store --data
find store -type f -exec cksum {} + | sort >after
same "check writes nothing" before after

# the payload of one block, found by its content, is overwritten
printf 'a payload that nothing else has: %s\n' "$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" >needle.line
head -c 100000 /dev/zero | tr '\0' n >filler
cat needle.line filler >needle
run put store needle
needle=$(cut -f1 out)
hit=$(grep -rlaF -f needle.line store/data 2>/dev/null | head -1)
if [ -n "$hit" ]; then
	at=$(grep -obaF -f needle.line "$hit" | head -1 | cut -d: -f1)
	printf 'X' | dd of="$hit" bs=1 seek=$((at + 20)) conv=notrunc 2>/dev/null
	exits "get a damaged block" 4 get store "$needle"
	true_that "not a byte of it comes out" [ ! -s out ]
	exits "get -o a damaged block" 4 get store "$needle" -o damaged.out
	true_that "leaves no file" [ ! -e damaged.out ]
	true_that "and no half one" [ -z "$(find . -maxdepth 1 -name '.lacuna-*')" ]
	printf '%s\t%s\tbad\n%s\t4\tgood\n' "$needle" "$(wc -c <needle)" "$one" >damaged.m
	exits "export with a damaged block" 4 export store --manifest damaged.m damaged.d
	true_that "writes the others" [ "$(ls damaged.d)" = good ]
	exits "check --data finds it" 4 check store --data
	says "by name" out 'BLOCK_PAYLOAD'
	exits "and in JSON" 4 check store --data --json
	says "by number" out '"id": 406'
	exits "rm removes it" 0 rm store "$needle"
else
	bad "damage a block" "its payload is in no container"
fi
cp -r killed truncated
: >truncated/super
exits "an empty superblock" 4 ls truncated
cp -r killed/super truncated/super
exits "the same with it back" 0 ls truncated
rm truncated/super
run ls truncated
true_that "a missing superblock is no success" [ $rc -ge 4 ]
skip "a newer format" "a superblock with a valid checksum is made by the unit tests"

echo "# full and read-only filesystems"
if [ "$(id -u)" != 0 ]; then
	skip "full disk" "mounting needs root"
	skip "read-only filesystem" "mounting needs root"
elif ! command -v mkfs.ext4 >/dev/null; then
	skip "full disk" "no mkfs.ext4"
	skip "read-only filesystem" "no mkfs.ext4"
else
	truncate -s 256M image
	mkdir mnt
	if mkfs.ext4 -q -F image && mount -o loop image mnt 2>"$work/err"; then
		mounted=$work/mnt
		"$lacuna" init mnt/store --container-size 16M
		head -c 4000000 /dev/urandom >chunk
		rc=0
		count=0
		while [ $rc = 0 ] && [ $count -lt 100 ]; do
			run put mnt/store chunk
			count=$((count + 1))
		done
		true_that "put on a full disk fails" [ $rc = 8 ]
		says "and says why" err '[Ss]pace'
		true_that "acknowledges nothing" [ ! -s out ]
		"$lacuna" ls mnt/store | cut -f1 >full.ids
		true_that "the blocks before it are there" [ "$(wc -l <full.ids)" = $((count - 1)) ]
		run get mnt/store "$(tail -1 full.ids)"
		same "whole" out chunk
		head -10 full.ids >some.ids
		exits "rm on a full disk" 0 rm mnt/store --from some.ids
		exits "reclaim on a full disk" 0 reclaim mnt/store
		exits "then there is room" 0 put mnt/store chunk
		exits "and check is clean" 0 check mnt/store --data
		if mount -o remount,ro mnt; then
			exits "put on a read-only filesystem" 8 put mnt/store chunk
			says "says so" err '[Rr]ead-only'
			exits "init on a read-only filesystem" 8 init mnt/new
			exits "check on a read-only filesystem" 0 check mnt/store
		else
			skip "read-only filesystem" "remount failed"
		fi
		umount mnt && mounted=
	else
		skip "full disk" "no loop device here: $(head -1 "$work/err")"
		skip "read-only filesystem" "no loop device here"
	fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
