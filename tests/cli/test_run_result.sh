#!/usr/bin/env bash
# What a run says at its end: the problem that was asked for first, and old times as such.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

recorded=$tests/../../db/reference/sm90_h200.jsonl
[ -e "$recorded" ] || die "the recordings of the H200 are missing"
mkdir reference
sed -E 's/"kernel_hash":"[0-9a-f]{64}"/"kernel_hash":"'"$(printf '%064d' 7)"'"/' "$recorded" \
    >reference/sm90_h200.jsonl
export KKTTUNE_REFERENCE=$work/reference
run=(tune kkt_solve --arch sm90 --backend replay --budget "evals=1,seconds=1" --cache cache)

expect 0 "${run[@]}" --problem tokens=1024
[[ $(sed -n 3p .out) == *" tokens=1024 "* ]] || die "the problem that was asked for is not the first"
# A configuration means nothing without its style.
[[ $(sed -n 2p .out) == *"provenance  style  "* && $(sed -n 3p .out) == *" materialized "* ]] ||
    die "the style of a result is not told"
has "$out" "tier replayed, all of it stale (kernel source changed: 000000000000 then, "
grep -E '^[0-9]+ stored times are stale \(kernel source changed: 0' .out | grep -q 'with --revalidate' ||
    die "stale times are not counted"
expect 0 lookup kkt_solve --arch sm90
has "$err" " stored times are stale (kernel source changed: 000000000000 then, "
expect 0 "${run[@]}" --problem tokens=1024 --json
json 'd["stale_times"] > 100'
json 'd["best"][0]["problem"]["tokens"] == 1024 and len(d["best"]) > 5'
json 'd["tier"] == "replayed"'

# Times of today: nothing is said.
expect 0 tune kkt_solve --arch sm90 --backend fake --budget evals=2 --cache cache --db fresh.db \
    --problem tokens=512
has "$out" "tier fake: "
[[ $out != *stale* ]] || die "nothing is stale"
has "$out" "  fake  "
[[ $out != *measured* ]] || die "a fake time is called measured"
expect 0 lookup kkt_solve --arch sm90 --db fresh.db --problem tokens=512 --chunk "$(python3 -c '
import sqlite3
print(sqlite3.connect("fresh.db").execute("SELECT config FROM results WHERE time_us > 0 AND style != ?",
      ("library",)).fetchone()[0].split("chunk=")[1].split(",")[0])')"
has "$out" "provenance  fake"
