#!/usr/bin/env bash
# 'tune --style': one style of a kernel is searched and measured, and what is none is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

problem=tokens=1024,heads_k=2,heads_v=4
tuned=(--arch sm90 --backend fake --problem "$problem" --cache cache)
# styles DATABASE: of all that was measured.
styles() {
    python3 -c 'import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT DISTINCT kernel, style FROM results WHERE provenance = ? ORDER BY style", ("measured",))
print(*("/".join(row) for row in rows))' "$1"
}

expect 0 tune gdn_fwd_t "${tuned[@]}" --budget evals=12 --db all.db
all=$(styles all.db)
[ "$(wc -w <<<"$all")" -ge 2 ] || die "several styles were expected without the option: $all"
for style in fragment warp_specialized; do
    has "$all" "gdn_fwd_t/$style"
    expect 0 tune gdn_fwd_t "${tuned[@]}" --budget evals=4 --style "$style" --db "$style.db" --json
    json 'd["candidates"]["measured"] == 4'
    [ "$(styles "$style.db")" = "gdn_fwd_t/$style" ] || die "only $style: $(styles "$style.db")"
done
# A parameter that the style has, and others of the kernel lack.
expect 0 tune gdn_fwd_t "${tuned[@]}" --budget evals=2 --style warp_specialized \
    --config state_registers=240 --db held.db
refuses 2 "unknown parameter" tune gdn_fwd_t "${tuned[@]}" --style fragment \
    --config state_registers=240 --db none.db
# Where nothing fits, the cause is told, and not what most configurations are turned down for.
expect 1 tune gdn_fwd_t --arch sm90 --backend fake --problem heads_k=1,heads_v=1,tokens=16 \
    --style context_parallel --cache cache --db one.db
has "$err" "no configuration of gdn_fwd_t can run here: segments 9 of 64 tokens"

refuses 2 "gdn_fwd_t has no style 'baroque'" tune gdn_fwd_t "${tuned[@]}" --style baroque --db none.db
refuses 2 "kkt_solve has no style 'warp_specialized' with device code" \
    tune kkt_solve "${tuned[@]}" --style warp_specialized --db none.db
refuses 2 "a pipeline has no style of its own" tune gdn_t "${tuned[@]}" --style fragment --db none.db
[ ! -e none.db ] || die "a refusal left a database behind"
