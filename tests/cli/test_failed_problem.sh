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

# What is known of a pipeline's kernels counts: its one new candidate is wrong, and it is timed all
# the same. Without anything known it is a failure.
rm -f failed.db*
pipeline() { # pipeline CODE OPTION...
    local wanted=$1
    shift
    expect "$wanted" tune gdn_t --arch sm90 --backend fake:seed=4,fault=wrong --db failed.db \
        --cache cache --problem $problem --config chunk=64 --budget evals=1 "$@"
}
pipeline 1
has "$err" "no candidate of gdn_t with $problem works"
rm -f failed.db*
tune 0 fake:seed=4 --budget evals=1 --problem $problem --config chunk=64,couple=fp32
expect 0 tune gdn_fwd_t --arch sm90 --backend fake:seed=4 --db failed.db --cache cache \
    --problem $problem --config chunk=64 --budget evals=1
pipeline 0 --json
json "d['candidates']['wrong_result'] == 1 and d['candidates']['measured'] == 0"
json "d['candidates']['pipelines'] > 0"
# The same for a kernel of which something is known.
rm -f failed.db*
tune 0 fake:seed=4 --budget evals=1 --problem $problem --config chunk=64,couple=fp32
tune 0 fake:seed=4,fault=wrong --budget evals=1 --problem $problem --config chunk=32
has "$out" "1 wrong"

# The same of a problem that is asked for by another of its texts: rows without padding have lda 0,
# however that is said.
rm -f failed.db*
vector() { # vector PROBLEM CONFIG BACKEND
    expect 0 tune gemv --arch sm90 --backend "$3" --db failed.db --cache cache --problem "$1" \
        --style fragment --config "$2" --budget evals=1 --json
}
vector m=64,k=256 vec=8 fake:seed=4
vector m=64,k=256 vec=4 fake:seed=4,fault=wrong
json "d['candidates']['wrong_result'] == 1 and d['candidates']['measured'] == 0"
vector m=64,k=256,lda=256 vec=2 fake:seed=4,fault=wrong
json "d['candidates']['wrong_result'] == 1 and d['candidates']['measured'] == 0"
