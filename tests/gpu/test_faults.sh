#!/bin/sh
# Candidates that misbehave on purpose, on the GPU: each costs itself alone. Exit 77: no GPU here.
# KKTTUNE_FAULTS is the program of tests/faults (build/tests/faults/kkttune_faults).
set -eu
program=$(readlink -f "${KKTTUNE_FAULTS:?the program to test}")

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) ||
    capability=
case $capability in
[0-9]*.[0-9]) arch=sm$(echo "$capability" | tr -d .) ;;
*)
    echo "test_faults: no GPU here, skipped"
    exit 77
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

run() { # run FILE [OPTION...]
    file=$1
    shift
    begun=$(date +%s)
    "$program" tune faulty --arch "$arch" --backend cuda --exhaustive --db faults.db --out out \
        --cache cache --json "$@" >"$file" || {
        echo "test_faults: the run ended with exit code $?" >&2
        exit 1
    }
    echo "test_faults: $file took $(($(date +%s) - begun)) s"
}
run first.json
run second.json
run retry.json --retry

python3 - "$arch" <<'PYTHON'
import json, math, sqlite3, sys

# Fault, the outcome it must get, a word of the reason it must have.
expected = {
    "none": ("ok", None),
    "illegal_address": ("launch_failed", "ILLEGAL_ADDRESS"),
    "endless_loop": ("timed_out", "no answer within"),
    "missing_barrier": ("racy", "differ"),
    "wrong_tile": ("wrong_result", ""),
    "overrun": ("wrong_result", "memory beside y"),
    "too_much_shared": ("launch_failed", "shared memory"),
    "worker_abort": ("crashed", "signal 6"),
}
rows = sqlite3.connect("faults.db").execute(
    "SELECT config, outcome, reason, time_us, provenance FROM results ORDER BY config").fetchall()
wrong = []
for config, outcome, reason, time_us, provenance in rows:
    fault = dict(pair.split("=") for pair in config.split(","))["fault"]
    wanted, word = expected[fault]
    print(f"test_faults: {config}: {outcome} {time_us or ''} {reason or ''}")
    timed = time_us is not None and math.isfinite(time_us) and 0 < time_us < 1e5
    if fault == "none" and outcome == "noisy" and timed:
        print("test_faults: noisy: is something else using the GPU?")
    elif outcome != wanted or (word is not None and word not in (reason or "")):
        wrong.append((config, outcome, reason))
    elif (wanted == "ok") != timed:
        wrong.append((config, "time", time_us))
assert len(rows) == 16, f"{len(rows)} candidates instead of 16"
assert not wrong, wrong
first, second, retry = (json.load(open(f"{n}.json"))["candidates"] for n in
                        ("first", "second", "retry"))
bad = ("launch_failed", "timed_out", "racy", "wrong_result", "crashed")
assert sum(first[k] for k in bad) == 14 and first["measured"] + first["noisy"] == 2, first
assert first["timed_out"] == 2 and first["crashed"] == 2 and first["racy"] == 2, first
# What failed is remembered, not tried again; the good ones are not measured again.
assert second["reused"] == 16 and second["quarantined"] == 14, second
assert sum(second[k] for k in bad) == 0 and second["measured"] == 0, second
# Asked to, all of them are, and nothing else.
assert sum(retry[k] for k in bad) == 14 and retry["measured"] == 0, retry
best = json.load(open("first.json"))["best"]
assert len(best) == 1 and "fault=none" in json.dumps(best[0]["config"]).replace('": "', "="), best
PYTHON
echo "test_faults: passed"
