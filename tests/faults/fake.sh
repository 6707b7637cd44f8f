#!/usr/bin/env bash
# Each kind of fault through a whole run on the fake backend: what is counted and stored, that the
# reason is kept, that nothing is tried again until --retry asks, that no failure is exported.
# shellcheck source=tests/cli/lib.sh
KKTTUNE_PROGRAM=$(readlink -f "$KKTTUNE_PROGRAM")
. "$(dirname "$0")/../cli/lib.sh"

tune() { # tune BACKEND [OPTION...]
    local backend=$1
    shift
    expect 0 tune kkt_solve --arch sm90 --problem tokens=8192,heads_k=2,heads_v=8 --backend "$backend" \
        --budget evals=40 --db faults.db --cache cache --json "$@"
}

# stored OUTCOME: how many candidates have it in the database, each with a reason.
stored() {
    python3 - "$1" <<'PYTHON'
import sqlite3, sys
rows = sqlite3.connect("faults.db").execute(
    "SELECT reason FROM results WHERE outcome = ? AND provenance = 'measured'", sys.argv[1:]).fetchall()
assert all(reason and "injected" in reason for reason, in rows), rows
print(len(rows))
PYTHON
}

exports_no_failure() {
    python3 - <<'PYTHON'
import json, sqlite3, sys
def text(values):
    return ",".join(f"{key}={values[key]}" for key in sorted(values))
failed = set(sqlite3.connect("faults.db").execute(
    "SELECT problem, config FROM results WHERE provenance = 'measured' AND outcome != 'ok'"))
entries = json.load(open("kkttune-out/kkttune_sm90.json"))["entries"]
here = {(text(e["problem"]), text(e["config"])) for e in entries}
timed = {(text(e["problem"]), text(e["config"])) for e in entries if "time_us" in e}
known = set(sqlite3.connect("faults.db").execute("SELECT problem, config FROM results"))
sys.exit(not (timed and timed <= known and failed and not failed & here))
PYTHON
}

while read -r fault outcome; do
    rm -f faults.db*
    tune "fake:seed=4,fault=$fault"
    json "(lambda c: c['$outcome'] >= 1 and c['measured'] + c['noisy'] >= 20)(d['candidates'])"
    failed=$(stored "$outcome") || die "a $outcome candidate has no reason"
    [ "$failed" -ge 1 ] || die "no $outcome candidate is stored"
    exports_no_failure || die "a failed candidate is exported"

    tune "fake:seed=4" # the cause is gone, but nobody asked to look again
    json "d['candidates']['reused'] == 40 and d['candidates']['quarantined'] == $failed"
    json "d['candidates']['measured'] == 0"
    [ "$(stored "$outcome")" -eq "$failed" ] || die "a failure went away by itself"

    tune "fake:seed=4" --retry
    json "d['candidates']['quarantined'] == 0 and d['candidates']['measured'] >= $failed"
    [ "$(stored "$outcome")" -eq 0 ] || die "a $outcome candidate was not tried again"
done <<'FAULTS'
illegal_address launch_failed
hang timed_out
abort crashed
wrong wrong_result
race racy
too_much_smem rejected
FAULTS
