#!/bin/sh
# The main job on the GPU with a small budget; see README.md. Exit 77: skipped, there is no GPU.
set -eu
program=$(readlink -f "${KKTTUNE_PROGRAM:?the program to test}")
evals=${KKT_GPU_EVALS:-16}

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) ||
    capability=
case $capability in
[0-9]*.[0-9]) arch=sm$(echo "$capability" | tr -d .) ;;
*)
    echo "gpu_smoke: no GPU here, skipped"
    exit 77
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

run() {
    "$program" --arch "$arch" --backend cuda --budget "evals=$evals,seconds=240" --db smoke.db \
        --out out --json >"$1" || {
        echo "gpu_smoke: the run ended with exit code $?" >&2
        exit 1
    }
}
run first.json
run second.json

python3 - "$arch" <<'PYTHON'
import json, sys

first, second = (json.load(open(name)) for name in ("first.json", "second.json"))
counts = first["candidates"]
print("gpu_smoke:", sys.argv[1], counts)
assert first["schema"] == "kkttune.run/1" and first["tier"] == "measured", first["tier"]
bad = {k: counts[k] for k in ("build_failed", "wrong_result", "racy", "launch_failed", "timed_out",
                              "crashed") if counts[k]}
assert not bad, f"candidates that should run right did not: {bad}"
assert counts["measured"] > 0, "nothing was measured"
assert counts["verified"] >= counts["measured"], "timed before it was checked"
if counts["noisy"]:
    print("gpu_smoke: noisy:", counts["noisy"], "(is something else using the GPU?)")
measured = [entry for entry in first["best"] if entry.get("time_us") is not None]
assert measured, "no entry has a time"
for entry in measured:
    assert 0 < entry["time_us"] < 1e6, entry
assert second["candidates"]["reused"] > 0, "the second run reused nothing"
assert second["candidates"]["measured"] == 0, "the second run measured again"
PYTHON
echo "gpu_smoke: passed"
