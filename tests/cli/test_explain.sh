#!/usr/bin/env bash
# explain: its figures against model and occupancy, headroom by asking for more, refusals.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

ask=(explain kkt_solve --arch sm90 --config "chunk=16,couple=tf32,threads=64" --cache "$work/cache")
expect 0 "${ask[@]}" --json
cp "$work/.out" explain.json
json 'd["schema"] == "kkttune.explain/1" and d["kernel"] == "kkt_solve" and d["arch"] == "sm90"'
json '"chunk=16" in d["config"] and "tokens=32768" in d["problem"]'
json 'd["predicted"]["blocks_per_sm"] == min(l["blocks_per_sm"] for l in d["limits"])'
json 'd["compiled"] is None or (d["compiled"]["registers"] > 15
      and d["compiled"]["smem_bytes"] == d["predicted"]["smem_bytes"])'
json 'd["compiled"] is not None or d["compiled_note"]'
json '{m["name"] for m in d["moves"]} >= {"chunk", "threads", "dk", "gated"}'
json 'all(m["verdict"] == "rejected" or m["registers"] > 0 for m in d["moves"])'

# blocks REGISTERS SMEM: blocks per SM of 64 threads, as the occupancy command says.
blocks() {
    expect 0 occupancy --arch sm90 --threads 64 --regs "$1" --smem "$2" --json
    python3 -c 'import json; print(json.load(open("'"$work"'/.out"))["blocks_per_sm"])'
}
read -r registers register_room smem smem_room now < <(python3 - <<'PY'
import json
d = json.load(open("explain.json"))
limit = {l["name"]: l for l in d["limits"]}
r, s = limit["registers"], limit["shared_memory"]
print(r["used"], r["headroom"], s["used"], s["headroom"], d["predicted"]["blocks_per_sm"])
PY
)
[ "$(blocks "$registers" "$smem")" -eq "$now" ] || die "explain and occupancy differ"
[ "$(blocks $((registers + register_room)) "$smem")" -eq "$now" ] || die "headroom too large"
[ "$(blocks $((registers + register_room + 1)) "$smem")" -lt "$now" ] || die "headroom too small"
[ "$(blocks "$registers" $((smem + smem_room)))" -eq "$now" ] || die "bytes of headroom too many"
[ "$(blocks "$registers" $((smem + smem_room + 1)))" -lt "$now" ] || die "bytes of headroom too few"

# What cannot launch, and where: a chunk of 128 in the fused fragment form does not fit an L4.
expect 0 explain gdn_fwd --arch sm89 --config chunk=64,block_dv=64 --json
json '("chunk", "128", "infeasible") in {(m["name"], m["to"], m["verdict"]) for m in d["moves"]}'
json '("threads", "256", "other_limiter") in {(m["name"], m["to"], m["verdict"]) for m in d["moves"]}'
json 'd["compiled"] is None or d["compiled"]["registers"] > 0'
expect 0 explain gdn_fwd --arch sm89 --config chunk=128,block_dv=64
has "$out" "101376"
# The default style where another one would be much faster; the launches and what they keep.
expect 0 explain gdn_fwd_t --arch sm90 --problem heads_k=2,heads_v=8,t_form=t_beta --json
json 'd["style"] == "fragment" and len(d["launches"]) == 1 and d["workspace_bytes"] == 0'
json 'd["faster_style"]["style"] == "context_parallel"'
json '2 * d["faster_style"]["predicted_us"] < d["predicted"]["predicted_us"]'
expect 0 explain gdn_fwd_t --arch sm90 --problem heads_k=2,heads_v=8,t_form=t_beta
has "$out" "Style context_parallel is predicted to take "
expect 0 explain gdn_fwd_t --arch sm90 --problem heads_k=2,heads_v=8,t_form=t_beta \
    --style context_parallel
[[ $out != *"Style "* ]] || die "a style that was named is what is explained"
[ "$(sed -n '/^launch /,/workspace/p' .out | wc -l)" -eq 5 ] || die "three launches"
grep -qE '^[1-9][0-9]+ bytes of workspace' .out || die "no workspace"
# Numbers have neighbours by size, in whatever order they are listed (segments: 9, 5, 3, 17).
expect 0 explain gdn_fwd_t --arch sm90 --style context_parallel --json
json '{m["to"] for m in d["moves"] if m["name"] == "segments"} == {"5", "17"}'
json '{m["to"] for m in d["moves"] if m["name"] == "first_eighths"} == {"6", "8"}'
# Shared memory is that of the last launch; the second takes more.
json 'd["predicted"]["smem_bytes"] == 186032 and d["predicted"]["most_smem_bytes"] == 226304'
expect 0 explain gdn_fwd_t --arch sm90 --style context_parallel
has "$out" "of the launch that takes most     226304"

expect 0 "${ask[@]}"
has "$out" "What breaks first"
has "$out" "headroom"
refuses 2 "base=32 is above chunk=16" explain kkt_solve --arch sm90 --config chunk=16,couple=tf32,base=32
refuses 2 "chunk" explain kkt_solve --arch sm90 --config chunk=17
refuses 2 "--arch" explain kkt_solve
refuses 2 "has no style 'fragment'; it has: materialized" explain kkt_solve --arch sm90 \
    --style fragment
refuses 2 "unknown kernel 'nonsense'" explain nonsense --arch sm90

# Without --config, where the defaults do not apply: what the model likes best, and why.
expect 0 explain gemv --arch sm90 --problem layout=t,m=4099 --json
json '"does not apply: layout t: a thread has 2 rows" in d["config_note"]'
json 'd["style"] == "fragment" and "vec=1" in d["config"] and d["predicted"]["feasible"]'
expect 0 explain gemv --arch sm90 --problem layout=t,m=4099
has "$out" "(the model's best configuration; the default one does not apply: layout t"
expect 0 explain gemm --arch sm90 --style warp_specialized --problem n=4095,layout=tt --json
json 'd["style"] == "warp_specialized" and "store=warps" in d["config"] and d["config_note"]'
expect 0 explain gemv --arch sm90 --problem m=512,k=640,lda=640 --json
json '"lda=0" in d["problem"]' # one problem has one name
expect 0 explain gemv --arch sm90 --json
json '"config_note" not in d'
refuses 2 "rows_per_block must be" explain gemv --arch sm90 --problem layout=t,m=4099 --config vec=8
refuses 2 "no configuration of style warp_specialized applies to this problem; the default one does not: sm80 has no wgmma" \
    explain gemm --arch sm80 --style warp_specialized
has "$err" "; styles that apply: fragment, pipelined"

# A cache that is no folder: the result is the same, with one warning.
touch file
expect 0 explain kkt_solve --arch sm90 --config "chunk=16,couple=tf32,threads=64" --cache "$work/file" --json
has "$err" "what is compiled is not kept: cannot write to folder '$work/file': Not a directory"
[ "$(grep -c 'is not kept' <<<"$err")" -eq 1 ] || die "one warning was expected"
json 'd["predicted"] == json.load(open("explain.json"))["predicted"]'
