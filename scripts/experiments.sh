#!/bin/sh
# Writes docs/experiments.md (to standard output) from databases of ablations on a GPU: the pages
# of `kkttune ablate` one behind the other, each from the base it was measured with.
#
#   scripts/experiments.sh DATABASE [PROGRAM [EARLIER_PROGRAM CHUNK=DATABASE...]] > docs/experiments.md
#
# What was measured with earlier device sources says nothing of the present ones, and ablate does
# not take it for that. EARLIER_PROGRAM is built with those of the ablations of kkt_solve, where they
# are not the present ones; its pages say so, one for each CHUNK=DATABASE.
set -eu
database=$(readlink -f "${1:?the database that holds the ablations}")
program=$(readlink -f "${2:-build/cli/kkttune}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

page() { # DATABASE PROGRAM KERNEL OPTION...
    cp "$1" "$work/copy.db" # what is compiled for a page stays out of the recordings
    with=$2
    shift 2
    "$with" ablate "$@" --arch sm90 --db "$work/copy.db" --out "$work/page.md" \
        >"$work/log" 2>&1 || {
        echo "experiments.sh: ablate $* ended with exit code $?:" >&2
        tail -n 3 "$work/log" >&2
        exit 1
    }
    cat "$work/page.md"
    echo
}

if [ $# -eq 3 ]; then
    echo "experiments.sh: EARLIER_PROGRAM without CHUNK=DATABASE: say which pages it is for" >&2
    exit 2
elif [ $# -gt 3 ]; then
    earlier=$(readlink -f "$3")
    shift 3
    for base; do
        page "${base#*=}" "$earlier" kkt_solve --chunk "${base%%=*}" >"$work/kkt.md"
        sed '/^Written by:/a\
\
Measured with the device sources before the last change of kkt_solve (docs/kkt-solve.md, "A launch of one wave"), which changes when gates and zeros are made and no parameter.' \
            "$work/kkt.md"
    done
else
    page "$database" "$program" kkt_solve --chunk 32,64,128
fi
page "$database" "$program" gemm --style fragment --config a_place=shared,b_place=shared,bk=64
page "$database" "$program" gemm --style pipelined \
    --config bm=128,bn=256,bk=32,warps_m=2,warps_n=4,stages=4
page "$database" "$program" gemm --style warp_specialized
page "$database" "$program" gemm --style materialized --problem m=128,n=8192,k=8192 \
    --config bm=128,bn=256,bk=64,warps_m=2,warps_n=4,split_k=4
page "$database" "$program" gemv --problem m=8192,k=8192 \
    --config rows_per_block=2,row_threads=256,threads=256,unroll=4
