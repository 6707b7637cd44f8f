#!/usr/bin/env bash
# kkttune model and kkttune occupancy: golden values, keys of the contract, other values, errors.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
golden=$tests/../golden

# ---- JSON against the golden values: integers exactly, reals to 1e-12 ----
expect 0 model --arch sm90 --device h200 --json
[ -z "$err" ] || die "nothing was expected on standard error"
python3 - "$golden" "$work/.out" <<'PYTHON' || die "the JSON differs from the golden values"
import json, sys

golden, out = sys.argv[1:]
model = json.load(open(out))

def differs(actual, expected, where):
    if isinstance(expected, dict):
        found = [differs(actual.get(k), v, f"{where}.{k}") for k, v in expected.items()]
        return next((f for f in found if f), None)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{where}: length"
        found = [differs(a, e, f"{where}[{i}]") for i, (a, e) in enumerate(zip(actual, expected))]
        return next((f for f in found if f), None)
    if isinstance(expected, float):
        ok = isinstance(actual, (int, float)) and abs(actual - expected) <= 1e-12 * abs(expected)
    else:
        ok = actual == expected
    return None if ok else f"{where}: {actual} instead of {expected}"

def read(name):
    return json.load(open(f"{golden}/{name}"))

seed = [l for l in model["layouts"] if l["name"] == "seed_warp_specialized"]
for problem in (
    differs(model["ledger"], read("ledger.json")["ledger"], "ledger"),
    differs(model["traffic"], read("traffic.json"), "traffic"),
    differs(seed, read("published_layouts.json")["seed_warp_specialized"], "layouts"),
):
    if problem:
        sys.exit(problem)
PYTHON
json 'd["schema"] == "kkttune.model/1" and d["arch"] == "sm90" and d["device"] == "h200"'
json '{"name", "chunk", "block_dv", "buffers", "parts", "total", "blocks_per_sm"} <= set(d["layouts"][0])'
json 'all(sum(l["parts"].values()) == l["total"] for l in d["layouts"])'
json '({l["name"] for l in d["layouts"]} >= {"seed_warp_specialized", "flashqla_fwd",
    "flashqla_kkt_solve", "kkt_solve_materialized", "gdn_fwd_fragment", "gdn_fwd_warp_specialized"})'
json '(all({"kernel", "style", "chunk", "config", "threads", "registers", "smem_bytes",
    "hbm_bytes_per_token", "hbm_bytes", "blocks_per_sm", "feasible", "spills", "may_spill", "limiter", "reason",
    "chain_steps", "lower_bound_us", "predicted_us"} <= set(s) for s in d["styles"]))'
json '(all(s["limiter"] in ("registers shared_memory threads blocks barriers hbm l2 shared_bandwidth "
    "tensor fp32 issue latency").split() for s in d["styles"] if s["calibrated"]))'
json 'all(s["lower_bound_us"] <= s["predicted_us"] for s in d["styles"] if s["feasible"])'
json 'len(d["styles"]) == len({(s["kernel"], s["style"], s["chunk"]) for s in d["styles"]})'
json 'all(s["calibrated"] == (s["limiter"] is not None) for s in d["styles"])'
# The layout of the project's own kernel: what it asserts of itself when it is compiled.
json 'any(l["name"] == "gdn_fwd_warp_specialized" and l["total"] == 191936 for l in d["layouts"])'

# ---- one row for each asked value ----
expect 0 model --arch 9.0 --chunk 64,128 --threads 128,256 --json
json '([(s["chunk"], s["threads"]) for s in d["styles"] if s["kernel"] == "gdn_fwd" and s["style"] == "fragment"] ==
    [(64, 128), (64, 256), (128, 128), (128, 256)])'
json 'set(d["ledger"][0]["table_regs_per_thread"]) == {"128", "256"}'
# Three tables of C = 128 in registers of 128 threads spill, and stay feasible.
expect 0 explain gdn_fwd --arch sm90 --style fragment --config chunk=128,threads=128,tables=registers \
    --json
json 'd["predicted"]["spills"] and d["predicted"]["feasible"]'
# 512 threads fill the register file, whatever the shared memory.
expect 0 model --arch sm90 --chunk 32 --json
json '([(s["blocks_per_sm"], s["occupancy_limiter"], s["registers"]) for s in d["styles"]
    if s["kernel"] == "gdn_fwd" and s["style"] == "warp_specialized"] == [(1, "registers", 128)])'
# On 100 KB parts the double-buffered layout of C = 64 cannot launch; a single buffer can.
expect 0 model --arch sm89 --chunk 64 --json
json '[l["blocks_per_sm"] for l in d["layouts"] if l["name"] == "seed_warp_specialized"] == [1, 0]'
expect 0 model --arch sm89 --chunk 128 --block-dv 128 --json
json '(any(not s["feasible"] and s["limiter"] == "shared_memory" and "sm89 allows 101376" in s["reason"]
    and s["predicted_us"] is None for s in d["styles"]))'

# ---- values that are in no table ----
expect 0 model --arch sm90 --chunk 256 --base 32 --dk 96 --threads 384 --json
json 'd["ledger"][0]["fma_recursive"] == 8 * 4960 + 2 * (4 * 32**3 + 2 * 64**3 + 128**3)'
json 'd["ledger"][0]["fma_main_per_token_seed"] == 2 * 96 * 128 + 256 * (96 + 128)'
json 'abs(d["ledger"][0]["table_regs_per_thread"]["384"] - 65536 / 384) < 1e-9'
expect 0 model --arch sm90 --chunk 64 --problem tokens=1000,heads_k=2,heads_v=6,dk=96,gated=0 --json
json 'd["traffic"]["hbm"][0]["bytes"] == 1000 * (2 * 2 * 96 + 6 * (4 + 128))'
json 'd["traffic"]["hbm"][0]["gated"] == 0 and d["ledger"][0]["dk"] == 96'
expect 0 model --arch sm90 --dtype fp32 --chunk 64 --json
has "$err" "kkt_solve is left out of the styles"
json 'd["styles"] == [] and d["ledger"][0]["t_write_bytes_per_token"] == 256'

# What was asked for and does not exist is told, not left out.
expect 0 model --arch sm90 --chunk 64 --threads 128,1024 --json
json '([(s["threads"], s["feasible"]) for s in d["styles"] if s["kernel"] == "kkt_solve"] ==
    [(128, True), (1024, False)])'
json '(all("has no threads 1024; known: " in s["reason"] and s["config"] == {"chunk": 64, "threads": 1024}
    and s["registers"] is None and s["predicted_us"] is None for s in d["styles"]
    if s["threads"] == 1024 and s["kernel"] == "kkt_solve"))'
expect 0 model --arch sm90 --chunk 256 --json
json '([(s["chunk"], s["reason"]) for s in d["styles"] if s["kernel"] == "kkt_solve"] ==
    [(256, "kkt_solve has no chunk 256; known: 16, 32, 64, 128")])'
json 'not any(l["chunk"] == 256 and l["name"].startswith("kkt_solve") for l in d["layouts"])'
expect 0 model --arch sm90 --threads 384 --dk 96 --chunk 256 --json
json '(len(d["styles"]) >= 2 and len({s["style"] for s in d["styles"]}) >= 2 and
    all(s["reason"] for s in d["styles"] if not s["feasible"]))'
expect 0 model --arch sm90 --threads 384 --chunk 64
has "$out" "kkt_solve has no threads 384; known: 32, 64, 128, 256"
has "$out" "gdn_fwd fragment has no threads 384; known: 64, 128, 256"
# Constraints that no configuration passes, in the kernel's words.
expect 0 model --arch sm75 --chunk 64 --json
json '(any(s["kernel"] == "kkt_solve" and not s["feasible"] and "sm75 has neither cp.async" in s["reason"]
    for s in d["styles"]))'

# ---- for a person ----
expect 0 model --arch sm90
for text in "63.0 KB" "137.0 KB" "384 regs a thread > 255: spills" "3 / 1 by smem, 1 / 1 exactly" \
    "1 / 0 by smem" "counts shared memory alone" "parallelism of the serial substitution" \
    "ratio of producer to consumer warps" "not from a calibration"; do
    has "$out" "$text"
done
expect 0 model --arch sm90 --device h20
has "$out" "1024? FLOP/clock/SM (unconfirmed)"

# ---- errors ----
refuses 2 "--arch ARCH is needed" model
refuses 2 "unknown architecture 'sm42'; known: sm75" model --arch sm42
refuses 2 "device 'b200' has architecture sm100, not sm90" model --arch sm90 --device b200
refuses 2 "chunk 48 cannot be halved down to base 16" model --arch sm90 --chunk 48 --base 16
refuses 2 "give --base" model --arch sm90 --chunk 64,48
refuses 2 "every base is larger than every chunk" model --arch sm90 --chunk 32 --base 64
refuses 2 "'0' is not an integer from 1 to 4096" model --arch sm90 --chunk 0
refuses 2 "--threads: '2000'" model --arch sm90 --threads 128,2000
refuses 2 "--threads lists 128 twice" model --arch sm90 --threads 128,128
refuses 2 "--dtype 'int' is not one of bf16, fp16, fp32" model --arch sm90 --dtype int
refuses 2 "unknown problem key 'foo'; known: batch" model --arch sm90 --problem tokens=8,foo=1
refuses 2 "unknown problem key 'm'; known: batch" model --arch sm90 --problem m=4096 # gemm has no chunks
refuses 2 "'tokens' cannot be 'abc'" model --arch sm90 --problem tokens=abc
refuses 2 "heads_v 6 is no multiple of heads_k 4" model --arch sm90 --problem heads_k=4,heads_v=6
refuses 2 "--dk '0'" model --arch sm90 --dk 0

# ---- occupancy ----
expect 0 occupancy --arch sm90 --threads 512 --regs 128 --smem 64512 --json
json '(d == {"schema": "kkttune.occupancy/1", "arch": "sm90", "device": d["device"],
    "device_name": d["device_name"], "blocks_per_sm": 1,
    "warps_per_sm": 16, "limiter": "registers", "limits": {"registers": 1, "shared_memory": 3,
    "threads": 4, "blocks": 32, "barriers": 64}})'
expect 0 occupancy --arch sm89 --threads 512 --regs 128 --smem 140288 --json
json 'd["blocks_per_sm"] == 0 and d["limiter"] == "shared_memory"'
expect 0 occupancy --arch sm90 --threads 32 --regs 16 --smem 0 --static-smem 2048 --barriers 16 --json
json 'd["limiter"] == "barriers" and d["blocks_per_sm"] == 4 and d["limits"]["shared_memory"] == 76'
expect 0 occupancy --arch sm90 --threads 512 --regs 128 --smem 64512
has "$out" "1 block per SM, 16 of 64 warps; the next is stopped by registers"
refuses 2 "--threads '0' is not a number from 1 to 1024" occupancy --arch sm90 --threads 0 --regs 1 --smem 0
refuses 2 "--threads '1025'" occupancy --arch sm90 --threads 1025 --regs 1 --smem 0
refuses 2 "--regs '256'" occupancy --arch sm90 --threads 32 --regs 256 --smem 0
refuses 2 "--smem '-1'" occupancy --arch sm90 --threads 32 --regs 32 --smem=-1
refuses 2 "--static-smem '-1'" occupancy --arch sm90 --threads 32 --regs 32 --smem 0 --static-smem=-1
refuses 2 "--regs is missing" occupancy --arch sm90 --threads 32 --smem 0
