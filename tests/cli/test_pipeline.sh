#!/usr/bin/env bash
# A pipeline from the search to the look-up: its curve, what is written of it, and what it refuses.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

problem=tokens=4096,heads_k=2,heads_v=4
run=(tune gdn_t --arch sm90 --backend fake --problem "$problem" --budget evals=60 --cache cache)
expect 0 "${run[@]}" --json
json 'd["candidates"]["pipelines"] >= 3'
json 'all(c["pipeline"] == "gdn_t" for c in d["chunk_choice"])'
json '[[p["chunk"] for p in c["curve"] if "end_to_end_us" in p] for c in d["chunk_choice"]
      if c["problem"]["tokens"] == 4096] == [[16, 32, 64, 128]]'
json '{b["kernel"] for b in d["best"]} <= {"kkt_solve", "gdn_fwd_t"}'
# A best time is one of the problem beside it: a pipeline is none that was searched.
[[ $err == *"pipelines "* ]] || die "no progress of the pipelines"
grep '^pipelines .*best' .err && die "the best of a kernel stands beside a pipeline"
expect 0 "${run[@]}"
has "$out" "gdn_t, heads_k=2"
for other in gdn_fwd gdn_wu gdn_state gdn_output; do # no rows of what was not asked for
    grep -qE "^${other}[ :]" <<<"$out" && die "'tune gdn_t' shows $other"
done
has "$out" ", 0 made up, "

find=(lookup gdn_t --arch sm90)
expect 0 "${find[@]}" --problem "$problem" --json
json 'd["tier"] == "exact" and d["chunk"] == d["choice"]["best"] and d["distance"] == 0'
json '[m["entry"]["kernel"] for m in d["members"]] == ["kkt_solve", "gdn_fwd_t"]'
json 'all(m["entry"]["config"]["chunk"] == d["chunk"] and m["tier"] == "exact" for m in d["members"])'
expect 0 "${find[@]}" --problem tokens=8192,heads_k=2,heads_v=4
has "$out" "tier        nearest, distance 1 from "
for chunk in 16 128; do
    expect 0 "${find[@]}" --problem "$problem" --chunk $chunk --json
    json "d['tier'] == 'exact' and d['chunk'] == $chunk"
    json 'all(m["entry"]["provenance"] == "measured" for m in d["members"])'
done


# What was timed for the very problem at one chunk size, which is no choice, is shown beside the
# curve that another problem chose by.
own=tokens=2048,heads_k=2,heads_v=4
expect 0 tune gdn_t --arch sm90 --backend fake --problem $own --config chunk=64 --budget evals=20 \
    --cache cache
expect 0 "${find[@]}" --problem $own --chunk 64 --json
json 'd["tier"] == "exact" and d["distance"] == 0 and d["form"] in ("t", "t_beta")'
json 'd["own"]["problem"]["tokens"] == 2048 and d["choice"]["problem"]["tokens"] == 4096'
json '[p["chunk"] for p in d["own"]["curve"] if "end_to_end_us" in p] == [64]'
json '[p["form"] for p in d["own"]["curve"] if p["chunk"] == 64] == [d["form"]]'
json 'all(m["entry"]["problem"]["t_form"] == d["form"] for m in d["members"])'
expect 0 "${find[@]}" --problem $own --chunk 64
has "$out" "gdn_t, heads_k=2,heads_v=4,tokens=2048"
has "$out" $'tier        exact\nchunk       64\nform        t'
refuses 2 "is no chunk size" "${find[@]}" --chunk many
refuses 2 "has no chunk size 7" "${find[@]}" --chunk 7
refuses 2 "no multiple of batch" "${find[@]}" --problem tokens=10,batch=3
refuses 2 "give --db, not --config" "${find[@]}" --config kkttune-out/kkttune_sm90.json
sed -E 's/("registers":[[:space:]]*)/\1-/' kkttune-out/kkttune_sm90.json >senseless.json
refuses 2 "senseless.json: entry 1: launch.registers is -" lookup kkt_solve --arch sm90 \
    --config senseless.json
refuses 2 "unknown parameter of a pipeline 'threads'" tune gdn_t --arch sm90 --config threads=1
refuses 2 "'kkttune list pipelines' has the pipelines" tune gdn_q --arch sm90

# The main job's table gives the time of a pipeline that was measured at one chunk size alone.
run=(--arch sm90 --backend replay --budget "evals=1,seconds=1" --cache cache --db all.db --out all)
expect 0 "${run[@]}"
has "$out" "  why C  "
rows=$(sed -n '/^pipeline .* why C /,/^tier /p' .out | grep -E '[0-9]: [0-9.]+') || die "no pipelines"
! grep -E ' 64 .* - +- +.*64: [0-9]' <<<"$rows" || die "a time at the exported C is no total"
