#!/usr/bin/env bash
# Fuzzes every target for long with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and
# prints one line a target: inputs, inputs a second, features reached. See rounds.sh for the rest.
#
#   tests/fuzz/long_run.sh [BUILD_FOLDER [PROCESSES [INPUTS [SECONDS [TARGET...]]]]]
#
# INPUTS a target: 10 million unless given. SECONDS ends the run before that: 0 (unless given) does
# not. Counts, corpora and what crashed stay in BUILD_FOLDER/fuzz-work, where another run goes on.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build-fuzz}
processes=${2:-$(nproc)}
inputs=${3:-10000000}
seconds=${4:-0}
shift $(($# < 4 ? $# : 4))

mkdir -p "$build"
CC=clang cmake -S "$root" -B "$build" -G Ninja -DKKT_FUZZ=ON -DKKT_SANITIZE=ON \
    -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link >"$build/fuzz-build.log" 2>&1 || {
    cat "$build/fuzz-build.log" >&2
    exit 1
}
sources=("$root"/tests/fuzz/fuzz_*.c)
sources=("${sources[@]##*/}")
ninja -C "$build" "${sources[@]%.c}" >>"$build/fuzz-build.log" 2>&1 || {
    tail -n 30 "$build/fuzz-build.log" >&2
    exit 1
}
exec "$root/tests/fuzz/rounds.sh" "$build/tests/fuzz" "$root/tests/fuzz/corpus" \
    "$build/fuzz-work" "$processes" "$inputs" "$seconds" "$@"
