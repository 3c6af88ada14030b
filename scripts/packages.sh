# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# scripts/packages.sh - sourced by ./demo, ./test and .ci/run: installs Debian packages that are
# missing, by purpose. Nothing is asked of the network when nothing is missing.

packages_for() {
	case $1 in
	build) echo gcc libc6-dev meson ninja-build pkg-config libisal-dev ;;
	test) echo libcmocka-dev ;;
	# Real filesystems for the kill tests; without them those are skipped aloud.
	filesystems) echo xfsprogs e2fsprogs btrfs-progs util-linux mount ;;
	ci) echo clang libclang-rt-14-dev clang-format shellcheck mandoc ;;
	esac
}

is_installed() {
	dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -q '^installed$'
}

# need_packages PURPOSE...: fails only when a package for `build` or `test` can't be had.
need_packages() {
	missing=
	for purpose; do
		for package in $(packages_for "$purpose"); do
			is_installed "$package" || missing="$missing $package"
		done
	done
	[ -n "$missing" ] || return 0
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "not a Debian machine: please install the equivalents of:$missing" >&2
		return 0
	fi
	as_root=
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null 2>&1; then
			echo "please install as root:$missing" >&2
			return 1
		fi
		as_root=sudo
	fi
	echo "installing:$missing"
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
	# shellcheck disable=SC2086
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		$missing >/dev/null || {
		echo "could not install:$missing" >&2
		return 1
	}
}
