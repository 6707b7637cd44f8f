#!/usr/bin/env bash
# Hardware counters from the command line: the list, a run that counts, one that is denied them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 list counters --json
json 'd["schema"] == "kkttune.list/1" and len(d["counters"]) > 15'
json 'all(c["name"] and c["unit"] and c["summary"] for c in d["counters"])'
json 'd["counters"][0]["metrics"]["GH100"] == "dram__bytes_read.sum"'
json 'd["counters"][0]["metrics"]["GB20B"] is None'
json 'd["counter_chips"] or "KKTTUNE_CUDA" in d["counter_chips_note"]'
json 'all(c["passes"] <= 4 and not c["missing"] for c in d["counter_chips"] if c["chip"] == "GH100")'
expect 0 list counters
has "$out" dram_read_bytes
# With CUPTI or without: each chip, its architecture, and how many of the counters it has.
for chip in "TU104   sm75 " "GA10B   sm87 " "GH100   sm90    21 counters" "GB20B   sm121   17 counters"; do
    has "$out" "  $chip"
done

job=(tune kkt_solve --arch sm90 --problem tokens=8192 --budget evals=24 --cache "$work/cache" --json)
expect 0 "${job[@]}" --backend fake:seed=4 --db counted.db --out counted
json 'd["candidates"]["counted"] > 0 and "counters_note" not in d'
has "$(<counted/report_sm90.md)" "predicted and counted"
has "$(<counted/report_sm90.html)" "Counted MB"
expect 0 "${job[@]}" --backend fake:seed=4 --db none.db --out none --counters none
json 'd["candidates"]["counted"] == 0'
[[ $(<none/report_sm90.md) != *"Counted MB"* ]] || die "nothing was counted, but is reported"
cmp counted/kkttune_sm90.json none/kkttune_sm90.json || die "counters changed the export"

# Denied: the run is whole, the reason is said once and stands in the report.
expect 0 "${job[@]}" --backend fake:seed=4,counters=denied --db denied.db --out denied
json 'd["candidates"]["measured"] + d["candidates"]["noisy"] == 24'
json 'd["candidates"]["counted"] == 0 and "CAP_SYS_ADMIN" in d["counters_note"]'
[ "$(grep -c CAP_SYS_ADMIN "$work/.err")" -eq 1 ] || die "the reason was not said once"
has "$(<denied/report_sm90.md)" "CAP"

refuses 2 "finalists, all, none" "${job[@]}" --backend fake --counters some
refuses 2 "denied, busy, absent, failed" "${job[@]}" --backend fake:counters=lost
