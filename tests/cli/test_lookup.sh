#!/usr/bin/env bash
# What a look-up says of times: a neighbour's configuration that the model would not take, and a
# result that was compiled and not timed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 tune kkt_solve --arch sm90 --backend fake --budget evals=4 --problem tokens=8192 --db k.db \
    --out out
# edited FILE PYTHON: of the export the entry at C = 64 alone, e, changed by the Python.
edited() {
    python3 -c 'import json, sys
d = json.load(open("out/kkttune_sm90.json"))
e = next(e for e in d["entries"] if e["kernel"] == "kkt_solve" and e["config"]["chunk"] == 64
         and e["problem"]["tokens"] == 8192)
assert e.pop("provenance") == "measured"
exec(sys.argv[2])
d["entries"] = [e]
json.dump(d, open(sys.argv[1], "w"))' "$@" || die "the export has no such entry"
}
find=(lookup kkt_solve --arch sm90 --chunk 64 --config)

edited compiled.json 'e["provenance"] = "compiled"
for key in ("time_us", "measured_on", "error", "energy_mj"): e.pop(key, None)'
expect 0 "${find[@]}" compiled.json --problem tokens=8192
has "$out" "tier        exact"
has "$out" "predicted   "
[[ $out != *"model's own"* ]] || die "an exact result needs no other"

edited slow.json 'e["provenance"] = "measured"
e["config"].update(base=16, couple="tf32", heads_per_block=1, inverse="row", kload="cp_async",
                   min_blocks=0, mma="mma_sync", persistent=0, store="staged", threads=128)'
expect 0 "${find[@]}" slow.json --problem tokens=8192
[[ $out != *"predicted  "* ]] || die "it was measured"
expect 0 "${find[@]}" slow.json --problem tokens=16384
has "$out" "tier        nearest, distance 1 from "
has "$out" "model's own assemble_fused="
has "$out" "'kkttune tune kkt_solve --arch sm90 --problem tokens=16384' compares them"
expect 0 "${find[@]}" slow.json --problem tokens=16384 --json
json '1.1 * d["model_pick"]["predicted_us"] < d["entry"]["predicted_us"]'
json '"inverse=row" not in d["model_pick"]["config"] and "chunk=64" in d["model_pick"]["config"]'
