#!/usr/bin/env bash
# An architecture that no kernel here is written for: what cannot run says so, and why.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
why="sm75 has neither cp.async nor bf16 tensor cores"

# The whole main job: no empty table, no export without entries.
expect 1 --arch sm75 --cache cache
has "$err" "no kernel can run on sm75; kkt_solve cannot because $why"
[[ $out != *configurations* && $out != *tier* ]] || die "an empty table was printed"
[ -z "$(ls kkttune-out)" ] || die "something was exported"
expect 1 tune kkt_solve --arch sm75 --cache cache
has "$err" "no configuration of kkt_solve can run here: $why"
# Of several styles the plainest one's reason.
expect 1 tune gdn_fwd_t --arch sm75 --cache cache
has "$err" "no configuration of gdn_fwd_t can run here: $why"

expect 0 lookup kkt_solve --arch sm75
has "$out" "tier        default, nothing is known to run: $why"
expect 0 lookup gdn_t --arch sm75
[ "$(grep -c "default, nothing is known to run: $why" .out)" -eq 2 ] ||
    die "the members of a pipeline do not say that they cannot run"
expect 0 lookup gdn_t --arch sm75 --json
json "all(m['tier'] == 'default' and m['reason'].startswith('$why') for m in d['members'])"
