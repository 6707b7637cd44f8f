#!/usr/bin/env bash
# ablate on the fake backend: JSON, the page, repetition, resuming, replay, refusals.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache

ask=(ablate kkt_solve --arch sm90 --backend fake:seed=3 --db a.db --problem tokens=8192)
expect 0 "${ask[@]}" --chunk 32,64 --out page.md --json
cp "$work/.out" first.json
has "$err" "base 2 of 2: C = 64"
json 'd["schema"] == "kkttune.ablate/1" and d["kernel"] == "kkt_solve" and d["arch"] == "sm90"'
json '[a["chunk"] for a in d["ablations"]] == [32, 64]'
json 'all(a["tier"] == "measured" and a["base"]["outcome"] == "ok" for a in d["ablations"])'
# Each parameter but the chunk is moved; what can be had is timed, the rest says why not.
json 'all({m["parameter"] for m in a["moves"]} == {"inverse", "base", "couple", "threads",
      "heads_per_block", "kload", "block_pad", "row_stride", "transpose", "negate_early",
      "assemble_fused", "mma", "store", "share", "warps_per_head",
      "chunks_per_block", "min_blocks", "carveout", "persistent"}
      for a in d["ablations"])'
json 'all(m["to"]["figures"]["timed"]["time"]["value"] > 0 if m["effect"] != "rejected"
      else m["reason"] for a in d["ablations"] for m in a["moves"])'
json 'all(m["to"]["figures"]["counted"]["wavefronts"]["value"] > 0
      for a in d["ablations"] for m in a["moves"] if m["effect"] != "rejected")'
json '{c["name"] for c in d["claims"]} >= {"recursive_beats_row", "block_pad_modelled",
      "transpose_with_padding", "negate_early", "assemble_fused", "heads_share"}'
json 'all(c["verdict"] in ("confirmed", "refuted", "conditional", "within_noise", "undecided")
      and c["comparisons"] for c in d["claims"])'
# A verdict of time follows from the two intervals.
json 'all(k["verdict"] == ("confirmed" if k["to"]["figures"]["timed"]["time"]["high"]
                                        < k["from"]["figures"]["timed"]["time"]["low"] else
                           "refuted" if k["to"]["figures"]["timed"]["time"]["low"]
                                      > k["from"]["figures"]["timed"]["time"]["high"] else
                           "within_noise")
      for c in d["claims"] if c["figure"] == "time" for k in c["comparisons"]
      if k["expected"] == "lower" and k["verdict"] != "undecided")'
has "$(<page.md)" "Written by: kkttune ablate kkt\\_solve"
[[ $(<page.md) != *"$work"* && $(<page.md) != *a.db* ]] || die "the page names a place"

# Again: the same page, nothing measured twice.
runs() {
    python3 -c 'import sqlite3; print(sqlite3.connect("a.db").execute(
        "select count(*) from runs").fetchone()[0])'
}
before=$(runs)
expect 0 "${ask[@]}" --chunk 32,64 --out again.md
has "$out" "block_pad_conflicts"
has "$out" "again.md"
[ "$(runs)" -eq "$before" ] || die "measured again: $before runs, then $(runs)"
cmp page.md again.md || die "the same database gave another page"

# Killed in the middle and started again, it ends like one that ran through.
expect 0 "${ask[@]}" --chunk 64 --out whole.md
for delay in 0.02 0.06; do
    timeout -s KILL "$delay" "$kkttune" "${ask[@]/a.db/b.db}" --chunk 64 >/dev/null 2>&1 &
    wait $! 2>/dev/null
done
expect 0 "${ask[@]/a.db/b.db}" --chunk 64 --out resumed.md
cmp whole.md resumed.md || die "the resumed page differs"

# Of a style, the chunk sizes that it has, and of these the ones that can be launched: known before
# any work, so that none is thrown away.
small=heads_k=2,heads_v=8,tokens=8192
fake=(--arch sm90 --backend fake:seed=3)
expect 0 ablate gdn_fwd_t --style context_parallel "${fake[@]}" --problem "$small" --db s.db --json
json '[a["chunk"] for a in d["ablations"]] == [16, 32, 64]'
refuses 2 "--chunk 128: there are 16, 32, 64" \
    ablate gdn_fwd_t --style context_parallel "${fake[@]}" --problem "$small" --chunk 64,128
expect 0 ablate gdn_fwd --style warp_specialized "${fake[@]}" --problem "$small" --db s.db --json
json '[a["chunk"] for a in d["ablations"]] == [16, 32, 64]'
has "$err" "no configuration of gdn_fwd in the style warp_specialized can be had at chunk=128"
refuses 1 "can be had at chunk=128 on this problem: " ablate gdn_fwd --style warp_specialized \
    "${fake[@]}" --problem "$small" --chunk 64,128 --db none.db
[ ! -e none.db ] || die "a refusal left a database behind"

# A base of one's own; failures are rows.
expect 0 ablate kkt_solve --arch sm90 --backend fake:seed=3,fault=wrong --db c.db \
    --problem tokens=8192 --config chunk=64,couple=tf32,threads=256 --json
json '[(a["chunk"], a["base_from"]) for a in d["ablations"]] == [(64, "given")]'
json '"threads=256" in d["ablations"][0]["base"]["config"]'
json '"wrong_result" in {p["outcome"] for a in d["ablations"]
      for p in [a["base"]] + [m["to"] for m in a["moves"]]} | {k["to"]["outcome"]
      for c in d["claims"] for k in c["comparisons"]}'

# Each claim has its sentence, and where it holds reads as one, without chunk sizes too.
expect 0 ablate gemv --arch sm90 --backend fake:seed=3 --db v.db --problem m=64,k=256 --out v.md
has "$out" "Adding up once takes fewer instructions."
grep -Eq '^wide_loads .*(confirmed|refuted|within noise) \(against ' .out || die "conditions of a claim"
! grep -q ' at against\| at *;\| at$' .out v.md || die "a claim holds at no place"

# Without a GPU what was measured elsewhere is not at hand: predictions, which decide nothing.
expect 0 ablate kkt_solve --arch sm120 --backend replay --db d.db \
    --chunk 16 --json
json 'd["ablations"][0]["tier"] in ("predicted", "compiled")'
json 'all(m["effect"] == "rejected" or (d["ablations"][0]["tier"] == "compiled")
      == ("registers" in m["to"]["figures"]["compiled"]) for m in d["ablations"][0]["moves"])'
json '{c["verdict"] for c in d["claims"] if c["figure"] == "time"} == {"undecided"}'

expect 0 ablate kkt_solve --arch sm120 --backend replay --db d.db --chunk 16
grep -Eq '^[1-9][0-9]* of [0-9]+ claims are not decidable here.* docs/experiments.md' .out ||
    die "where the measured verdicts are is not told"

refuses 2 "unknown kernel 'nonsense'" ablate nonsense --arch sm90
refuses 2 "--chunk 48: there are 16, 32, 64, 128" ablate kkt_solve --arch sm90 --chunk 48
expect 2 ablate kkt_solve --arch sm90 --backend fake --db e.db --config heads_per_block=3
has "$err" "heads_per_block=3"
refuses 2 "names no file" ablate kkt_solve --arch sm90 --out docs/
refuses 3 "/proc" ablate kkt_solve --arch sm90 --backend fake --db e.db --out /proc/no/page.md
# The page's folder is made, before any work.
touch file
refuses 3 "'file'" ablate kkt_solve --arch sm90 --backend fake --db never.db --out file/page.md
[ ! -e never.db ] || die "work was done before --out was checked"
expect 0 "${ask[@]}" --chunk 32 --out made/for/page.md
[ -s made/for/page.md ] || die "the page is missing"
