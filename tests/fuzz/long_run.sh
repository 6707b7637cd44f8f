#!/usr/bin/env bash
# Fuzzes every target for long with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and
# prints one line a target: inputs run, inputs a second, features reached.
#
#   tests/fuzz/long_run.sh [BUILD_FOLDER [INPUTS [SECONDS [TARGET...]]]]
#
# INPUTS a target: 10 million unless given. SECONDS ends a target before that: 0 (unless given) does
# not. The corpora that are found stay in BUILD_FOLDER/tests/fuzz/found; a crash is kept there too,
# and ends the run with exit code 1.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:-$root/build-fuzz}
inputs=${2:-10000000}
seconds=${3:-0}
shift $(($# < 3 ? $# : 3))

CC=clang cmake -S "$root" -B "$build" -G Ninja -DKKT_FUZZ=ON -DKKT_SANITIZE=ON \
    -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link >"$build.log" 2>&1 || {
    cat "$build.log" >&2
    exit 1
}
targets=()
for source in "$root"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    if [ $# -eq 0 ] || [[ " $* " == *" ${name#fuzz_} "* ]]; then
        targets+=("$name")
    fi
done
ninja -C "$build" "${targets[@]}" >>"$build.log" 2>&1 || {
    tail -n 30 "$build.log" >&2
    exit 1
}

figure() { # figure NAME FILE: one of libFuzzer's final figures
    sed -n "s/^stat::$1: *//p" "$2" | tail -n 1
}

failed=0
for name in "${targets[@]}"; do
    short=${name#fuzz_}
    found=$build/tests/fuzz/found/$short
    log=$build/tests/fuzz/$short.log
    mkdir -p "$found"
    code=0
    "$build/tests/fuzz/$name" -runs="$inputs" -max_total_time="$seconds" -print_final_stats=1 \
        -timeout=10 -artifact_prefix="$found/" "$found" "$root/tests/fuzz/corpus/$short" \
        >"$log" 2>&1 || code=$?
    printf '%-10s %10s inputs %8s a second, %6s features, %5s MiB' "$short" \
        "$(figure number_of_executed_units "$log")" "$(figure average_exec_per_sec "$log")" \
        "$(grep -o 'ft: [0-9]*' "$log" | tail -n 1 | cut -c 5-)" "$(figure peak_rss_mb "$log")"
    if [ "$code" -ne 0 ]; then
        failed=1
        printf ', FAILED: see %s' "$log"
    fi
    printf '\n'
done
exit "$failed"
