#!/usr/bin/env bash
# Device code with a mistake in it: nothing of the kernel stands as best or is exported, and every
# run says so.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
kkttune=$KKTTUNE_BROKEN

# Whatever is asked: the first run, another one that has nothing to do, all kernels, another problem.
for what in "tune row_sum" "tune row_sum" "" "tune row_sum --problem rows=4096"; do
    # shellcheck disable=SC2086
    expect 1 $what --arch sm90 --db k.db --cache cache --out out
    has "$err" "nothing of row_sum could be built"
    has "$err" 'identifier "flaot" is undefined'
    [[ $out != *row_sum* ]] || die "something is shown as best"
    grep -qi "row_sum" out/kkttune_sm90.h && die "the header has a kernel that does not build"
    python3 -c 'import json, sys
sys.exit(any(e["kernel"] == "row_sum" for e in json.load(open("out/kkttune_sm90.json"))["entries"]))' || die "something is exported"
    grep -q "flaot" out/report_sm90.md || die "the report does not say why"
done
expect 0 export --arch sm90 --db k.db --out out
grep -qi "row_sum" out/kkttune_sm90.h && die "the header has a kernel that does not build"
expect 0 lookup row_sum --arch sm90 --db k.db
has "$out" "tier        default, nothing is known to run"

# The mistake is gone.
kkttune=$KKTTUNE_PROGRAM
expect 0 tune row_sum --arch sm90 --db k.db --cache cache --out out --json
json "[e['provenance'] for e in d['best']] == ['compiled']"
grep -q "KKTTUNE_SM90_ROW_SUM_PROVENANCE \"compiled\"" out/kkttune_sm90.h || die "nothing is exported"

