#!/usr/bin/env bash
# Runs built fuzz targets, several at once, until each has had its inputs, in rounds of half a
# minute: next comes the target that is furthest behind. Goes on from what WORK holds. Stopped with
# TERM or INT it loses no input; killed, the rounds in flight.
#
#   tests/fuzz/rounds.sh TARGETS SEEDS WORK [PROCESSES [INPUTS [SECONDS [TARGET...]]]]
#
# TARGETS: folder of fuzz_*; SEEDS: folder of one corpus a target and NAME.dict where words help.
# SECONDS ends the run before the INPUTS are reached (0: does not). In WORK: `counts` (a line a
# round: target, inputs, seconds, features), corpus/, found/ (what crashed, and the log beside it).
# Exit code 1 where something was found.
set -euo pipefail
targets=$1 seeds=$2 work=$3
processes=${4:-$(nproc)} inputs=${5:-10000000} seconds=${6:-0}
shift $(($# < 6 ? $# : 6))
round=30
mkdir -p "$work"/{corpus,found,logs}
touch "$work/counts"

declare -A executed=() last=() flying=() failed=() name_of=() log_of=() began=()
names=()
for target in "$targets"/fuzz_*; do
    name=${target##*/fuzz_}
    if [ -f "$target" ] && [ -x "$target" ] && { [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; }; then
        names+=("$name")
        executed[$name]=0 last[$name]=100000 flying[$name]=0
        mkdir -p "$work/corpus/$name"
    fi
done
while read -r name count _; do
    if [ -n "${executed[$name]:-}" ]; then
        executed[$name]=$((executed[$name] + count))
        last[$name]=$count
    fi
done <"$work/counts"

# Into `next`: the target with the fewest inputs, a round in flight counted as what the last gave.
# Empty: all have theirs, or failed.
pick() {
    local name expected least=$inputs
    next=
    for name in "${names[@]}"; do
        expected=$((executed[$name] + flying[$name] * last[$name]))
        if [ -z "${failed[$name]:-}" ] && [ "$expected" -lt "$least" ]; then
            next=$name least=$expected
        fi
    done
}

start() { # start TARGET
    local log=$work/logs/$1-$$-$((++started)) words=()
    [ ! -f "$seeds/$1.dict" ] || words=("-dict=$seeds/$1.dict")
    "$targets/fuzz_$1" -max_total_time="$round" -print_final_stats=1 -timeout=20 "${words[@]}" \
        -artifact_prefix="$work/found/$1-" "$work/corpus/$1" "$seeds/$1" >"$log" 2>&1 &
    name_of[$!]=$1 log_of[$!]=$log began[$!]=$SECONDS
    flying[$1]=$((flying[$1] + 1))
}

finish() { # finish PID: counts what it did
    local name=${name_of[$1]} log=${log_of[$1]} count features
    unset "name_of[$1]"
    count=$(awk '/^stat::number_of_executed_units:/ { all = $2 } / INITED /{ seeds = substr($1, 2) }
        END { if (all != "") print (all > seeds ? all - seeds : 0) }' "$log") # without those read in
    features=$(grep -o 'ft: [0-9]*' "$log" | tail -n 1 | cut -c 5- || true)
    flying[$name]=$((flying[$name] - 1))
    executed[$name]=$((executed[$name] + ${count:-0}))
    [ -z "$count" ] || last[$name]=$count
    echo "$name ${count:-0} $((SECONDS - began[$1])) ${features:-0}" >>"$work/counts"
    if grep -q '^SUMMARY:\|^ERROR:\|^==.*ERROR' "$log" || [ -z "$count" ]; then
        failed[$name]=1
        mv "$log" "$work/found/${log##*/}.log"
    else
        rm -f "$log" # its line in `counts` says enough
    fi
}

table() {
    awk '{ inputs[$1] += $2; time[$1] += $3; if ($4 > features[$1]) features[$1] = $4 }
        END { for (n in inputs) printf "%-10s %10d inputs %7d a second and process, %6d features\n",
              n, inputs[n], inputs[n] / (time[n] > 0 ? time[n] : 1), features[n] }' \
        "$work/counts" | sort
}

stopped=0 started=0
trap 'stopped=1' TERM INT
while :; do
    while [ "$stopped" -eq 0 ] && [ "${#name_of[@]}" -lt "$processes" ]; do
        pick
        [ -n "$next" ] || break
        start "$next"
    done
    [ "${#name_of[@]}" -gt 0 ] || break
    sleep 1 & # so that the clock is looked at
    timer=$!
    wait -n -p pid || true
    [ -z "${pid:-}" ] || [ -z "${name_of[$pid]:-}" ] || finish "$pid"
    kill "$timer" 2>/dev/null || true
    wait "$timer" 2>/dev/null || true
    [ "$seconds" -eq 0 ] || [ "$SECONDS" -lt "$seconds" ] || stopped=1
    [ "$stopped" -eq 0 ] || kill -TERM "${!name_of[@]}" 2>/dev/null || true
done
table
if [ -n "$(ls "$work/found")" ]; then
    echo "found: see $work/found"
    exit 1
fi
