#!/usr/bin/env bash
# What a run says and how it is steered: progress on a terminal and elsewhere, an interrupt, --log,
# --revalidate, --objective and --pareto.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

tune=(tune kkt_solve --arch sm90 --problem tokens=8192 --counters none)
on_terminal=(python3 "$tests/on_terminal.py")

# ---- a terminal: one line that is written over; Ctrl-C ends after the candidate in flight ----
try "${on_terminal[@]}" --interrupt-at "measure 3 of" "$kkttune" "${tune[@]}" \
    --backend fake:seed=1,sleep_us=100000 --budget evals=24,seconds=600 --log run.log
[ "$code" -eq 1 ] || die "an interrupted run must end with code 1"
has "$out" $'\r\x1b[Kmeasure 1 of 24, 23 left, best '
has "$out" " us, 0:0"
has "$out" " of 10:00"
has "$out" "interrupted: what was done is kept; the same command goes on from there"
[ -s kkttune-out/kkttune_sm90.json ] || die "an interrupted run must export what it has"
done=$(grep '"step":"measure"' run.log | grep -vc '"style":"library"') # which is no candidate
if [ "$done" -lt 3 ] || [ "$done" -gt 5 ]; then
    die "$done candidates were measured around an interrupt after the third"
fi
has "$(tail -n 1 run.log)" '"interrupted":true'
! grep -q '"outcome":"crashed"' run.log || die "the interrupt reached a worker"
while IFS= read -r line; do
    [ ${#line} -le 90 ] || die "a line of progress is wider than the terminal: $line"
done < <(tr '\r' '\n' <.out | grep '^.\[K')

# The same command goes on, and ends as one that was never stopped.
expect 0 "${tune[@]}" --backend fake:seed=1 --budget evals=24 --json
json "d['candidates']['reused'] == $done and d['candidates']['measured'] == 24 - $done"
expect 0 "${tune[@]}" --backend fake:seed=1 --budget evals=24 --db whole.db --out whole --log run.log
cmp kkttune-out/kkttune_sm90.json whole/kkttune_sm90.json || die "the resumed run ended elsewhere"


# Which chunk size the header's macros are of is said where it is not that of the row shown.
chunk=$(sed -n 's/^#define KKTTUNE_SM90_KKT_SOLVE_CHUNK //p' whole/kkttune_sm90.h)
[ "$chunk" -eq 64 ] || die "the macros are of C = $chunk"
has "$out" "kkt_solve: exported at C = 64 ("
has "$out" "  exported C  "

# ---- elsewhere: a few plain lines ----
[[ $err != *$'\r'* && $err != *$'\x1b'* ]] || die "control characters outside of a terminal"
has "$err" "measure 24 of 24"
[ "$(wc -l <.err)" -le 8 ] || die "more than a few lines of progress"

# ---- the log: JSON lines, each result as it happened ----
python3 - <<'END' || die "the log is not what it should be"
import json
lines = [json.loads(line) for line in open("run.log")]
assert lines[0]["schema"] == "kkttune.log/1" and lines[0]["arch"] == "sm90"
assert lines[-1]["step"] == "end" and not lines[-1]["interrupted"]
measured = [line for line in lines if line["step"] == "measure" and line["style"] != "library"]
finalists = [line for line in lines if line["step"] == "finalist"]
assert len(measured) == 24 and finalists
assert all(line["time_low_us"] <= line["time_us"] <= line["time_high_us"] for line in measured)
assert all("energy_mj" not in line for line in measured)
assert all(line["energy_mj"] > 0 and line["samples"] >= 20 for line in finalists)
assert len({line["config"] for line in measured}) == 24
END
refuses 3 "cannot write the log" "${tune[@]}" --backend fake --log no/such/run.log

# ---- disturbances are said once, and are on the row ----
expect 0 "${tune[@]}" --backend fake:crowd=1 --budget evals=9 --db crowd.db --out crowd
[ "$(grep -c 'timings are disturbed' .err)" -eq 1 ] || die "a disturbance is said once"
has "$(<crowd/kkttune_sm90.json)" '"disturbed"'
has "$(<crowd/report_sm90.md)" "were disturbed"

# ---- revalidating: what is stale is measured again, what is fresh is reused, nothing else ----
python3 - <<'END'
import sqlite3
db = sqlite3.connect("whole.db")
tuned = ("SELECT b.id FROM builds b JOIN candidates c ON c.id = b.candidate_id "
         "JOIN configurations g ON g.id = c.configuration_id WHERE g.style <> 'library' "
         "ORDER BY b.id LIMIT 10")
ids = [row[0] for row in db.execute(tuned)]
db.executemany("UPDATE builds SET kernel_hash = ? WHERE id = ?", [("0" * 64, i) for i in ids])
db.commit()
END
expect 0 "${tune[@]}" --backend fake:seed=1 --db whole.db --out whole --revalidate --json
json "d['candidates']['measured'] == 10 and d['candidates']['reused'] == 14"
cmp kkttune-out/kkttune_sm90.json whole/kkttune_sm90.json || die "revalidated results differ"
expect 0 "${tune[@]}" --backend fake:seed=1 --db whole.db --out whole --revalidate --json
json "d['candidates']['measured'] == 0 and d['candidates']['reused'] == 24"
expect 3 "${tune[@]}" --backend replay --db whole.db --revalidate
has "$err" "--revalidate measures again"

# ---- objectives ----
expect 0 "${tune[@]}" --backend fake:seed=1 --budget evals=24 --db energy.db --objective energy --json
json "all('energy_mj' in e for e in d['best'] if e['provenance'] == 'measured')"
expect 0 "${tune[@]}" --backend fake:seed=1 --budget evals=24 --db energy.db --objective energy --json
json "d['candidates']['measured'] == 0" # their energies are known by now
for objective in time energy error; do
    expect 0 export --arch sm90 --db energy.db --objective $objective --pareto --out $objective --format json
    expect 0 report --arch sm90 --db energy.db --objective $objective --pareto --out $objective --format markdown
done
touch no-folder
for command in report export; do
    refuses 3 "; --out names another folder" $command --arch sm90 --db energy.db --out no-folder/deep
done
has "$(<energy/report_sm90.md)" "chosen by the energy of a launch"
has "$(<error/report_sm90.md)" "time, energy and error"
python3 - <<'END' || die "the exports do not follow their objectives"
import json
def best(name):
    entries = json.load(open(name + "/kkttune_sm90.json"))["entries"]
    return [e for e in entries if e["provenance"] == "measured"]
time, energy, error = best("time"), best("energy"), best("error")
assert time and len(time) == len(energy) == len(error)
for t, e, r in zip(time, energy, error):
    assert t["time_us"]["median"] <= min(e["time_us"]["median"], r["time_us"]["median"])
    assert e["energy_mj"] <= min(t["energy_mj"], r["energy_mj"])
    assert r["error"]["rel_fro"] <= min(t["error"]["rel_fro"], e["error"]["rel_fro"])
assert any(t["config"] != e["config"] for t, e in zip(time, energy))
root = json.load(open("error/kkttune_sm90.json"))
assert root["objective"] == "error" and "objective" not in json.load(open("time/kkttune_sm90.json"))
front = [(p["time_us"]["median"], p["energy_mj"], p["error"]["rel_fro"]) for p in root["pareto"]]
assert front
for p in front:
    assert not any(q != p and all(x <= y for x, y in zip(q, p)) for q in front)
END
refuses 2 "unknown objective 'beauty'; known: time, energy, error" export --arch sm90 --db energy.db --objective beauty
