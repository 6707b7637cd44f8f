#!/usr/bin/env bash
# A problem that was asked for fails as a whole: exit code 1, with its exports and the reason.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

problem=tokens=8192,heads_k=2,heads_v=8
tune() { # tune CODE BACKEND [OPTION...]
    local wanted=$1 backend=$2
    shift 2
    expect "$wanted" tune kkt_solve --arch sm90 --backend "$backend" --db failed.db --cache cache "$@"
}

# What the kernel cannot do at all is no problem of it.
for command in tune verify; do
    refuses 2 "dk 100 is no multiple of 16" $command kkt_solve --arch sm90 --problem dk=100
done

# The fake backend gives an injected fault to the first candidate of a run.
tune 1 fake:seed=4,fault=wrong --budget evals=1 --problem $problem
has "$out" "1 wrong"
has "$err" "no candidate of kkt_solve with $problem works: all 1 that were tried failed"
[ -s kkttune-out/kkttune_sm90.json ] || die "nothing was exported"
tune 1 fake:seed=4 --budget evals=1 --problem $problem --json
has "$err" "--retry tries them again"
json "d['candidates']['quarantined'] == 1"
tune 0 fake:seed=4 --budget evals=1 --problem $problem --retry
tune 0 fake:seed=4 --budget evals=1 --problem $problem

# One that works is enough; and of a default problem nobody asked that it should.
rm -f failed.db*
tune 0 fake:seed=4,fault=wrong --budget evals=20 --problem $problem --json
json "d['candidates']['wrong_result'] >= 1 and d['candidates']['measured'] >= 1"
rm -f failed.db*
tune 0 fake:seed=4,fault=wrong --budget evals=1 --json
json "d['candidates']['wrong_result'] == 1 and d['candidates']['measured'] == 0"
