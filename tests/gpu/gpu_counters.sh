#!/bin/sh
# Hardware counters on the GPU; see README.md. Exit 77: skipped, there is no GPU or no counters.
set -eu
program=$(readlink -f "${KKTTUNE_PROGRAM:?the program to test}")
evals=${KKT_GPU_EVALS:-16}

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) ||
    capability=
case $capability in
[0-9]*.[0-9]) arch=sm$(echo "$capability" | tr -d .) ;;
*)
    echo "gpu_counters: no GPU here, skipped"
    exit 77
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$program" tune kkt_solve --arch "$arch" --backend cuda --budget "evals=$evals,seconds=240" \
    --db counters.db --out out --json >run.json

python3 - <<'PYTHON'
import json, sqlite3, sys

run = json.load(open("run.json"))
print("gpu_counters:", run["candidates"])
if "counters_note" in run:
    print("gpu_counters: skipped:", run["counters_note"])
    sys.exit(77)
assert run["candidates"]["counted"] > 0, "nothing was counted"
db = sqlite3.connect("counters.db")
for note, count in db.execute("SELECT counters_note, count(*) FROM runs "
                              "WHERE counters_note IS NOT NULL GROUP BY 1"):
    print("gpu_counters: note on", count, "runs:", note)
names = dict(db.execute("SELECT name, count(*) FROM counters GROUP BY 1"))
print("gpu_counters:", len(names), "counters")
rows = db.execute("SELECT problem, config, hbm_bytes_predicted, hbm_bytes_counted FROM results "
                  "WHERE hbm_bytes_counted IS NOT NULL ORDER BY hbm_bytes_counted").fetchall()
apart = 0
for problem, config, predicted, counted in rows:
    difference = predicted / counted - 1
    bad = counted >= 50e6 and abs(difference) > 0.05
    apart += bad
    print(f"{predicted / 1e6:10.2f} MB predicted {counted / 1e6:10.2f} MB counted "
          f"{100 * difference:+6.2f} % {'!' if bad else ' '} {config} | {problem}")
for name, low, high in db.execute("SELECT name, min(value), max(value) FROM counters GROUP BY 1"):
    print(f"gpu_counters: {name:24} {low:.6g} .. {high:.6g}")
    assert low >= 0, name
shares = db.execute("SELECT count(*) FROM counters WHERE unit = '%' AND value > 101").fetchone()[0]
assert shares == 0, "a share is above 100 %"
assert rows and apart == 0, f"{apart} of {len(rows)} differ by more than 5 %"
PYTHON
echo "gpu_counters: passed"
