#!/bin/sh
# usage: check_install.sh CMAKE BUILD: installs BUILD into a temporary folder, moves it, and runs
# the program there with an empty environment and nothing of its own to be found elsewhere.
set -eu
cmake=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "check_install: $*" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "cmake --install failed"
}
mkdir "$work/a folder with spaces"
mv "$work/first" "$work/a folder with spaces/moved"
root="$work/a folder with spaces/moved"
program="$root/bin/kkttune"

cd /
version=$(env -i "$program" --version) || fail "the moved program does not run"
case $version in
"kkttune "[0-9]*) ;;
*) fail "unexpected version '$version'" ;;
esac

# The run path is relative, and no path of the build is left in it. $ORIGIN is the loader's word.
# shellcheck disable=SC2016
readelf -d "$program" | grep -E 'R(UN)?PATH' | grep -qF '[$ORIGIN/../lib]' ||
    fail "the program's run path is not \$ORIGIN/../lib"
# shellcheck disable=SC2016
readelf -d "$root"/lib/libkkttune.so | grep -E 'R(UN)?PATH' | grep -qF '[$ORIGIN]' ||
    fail "the library's run path is not \$ORIGIN"

# The program needs what is carried and the system's own libraries (or a sanitizer's) alone, and
# what is carried resolves inside the folder.
needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
env -i ldd "$program" >"$work/ldd"
grep -q 'not found' "$work/ldd" && fail "$(grep 'not found' "$work/ldd")"
carried=0
for name in $needed; do
    case $name in
    libsqlite3.so* | libcjson.so* | libmd.so*)
        grep -F "$name => " "$work/ldd" | grep -qE '/moved/(bin/\.\./)?lib/' ||
            fail "$name is not taken from the installed folder: $(grep -F "$name" "$work/ldd")"
        carried=$((carried + 1))
        ;;
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libgcc_s.so* | libasan.so* | \
        libubsan.so* | ld-linux*) ;;
    *) fail "$name is neither carried nor the system's" ;;
    esac
done
[ "$carried" -gt 0 ] || fail "no library is carried"

# What the program and the CMake package look for.
ls "$root"/share/kkttune/kernels/device/*.cu* >/dev/null || fail "no kernel sources"
[ -d "$root/share/kkttune/reference" ] || fail "no folder of recordings"
ls "$root"/lib/cmake/kkttune/*.cmake >/dev/null || fail "no CMake package"

# It works there: a command that needs tables and arithmetic, from a folder it cannot write to.
env -i "$program" occupancy --arch sm90 --threads 128 --regs 64 --smem 0 --json |
    grep -q 'kkttune.occupancy/1' || fail "occupancy does not run"
echo "installed, moved and run: $version, $carried libraries carried"
