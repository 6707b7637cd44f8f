#!/bin/sh
# Writes docs/experiments.md (to standard output) from databases of ablations on a GPU: the pages
# of `kkttune ablate` one behind the other, each from the base it was measured with.
#
#   scripts/experiments.sh DATABASE [PROGRAM] > docs/experiments.md
set -eu
database=$(readlink -f "${1:?the database that holds the ablations}")
program=$(readlink -f "${2:-build/cli/kkttune}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

page() { # KERNEL OPTION...
    cp "$database" "$work/copy.db" # what is compiled for a page stays out of the recordings
    "$program" ablate "$@" --arch sm90 --db "$work/copy.db" --out "$work/page.md" \
        >"$work/log" 2>&1 || {
        echo "experiments.sh: ablate $* ended with exit code $?:" >&2
        tail -n 3 "$work/log" >&2
        exit 1
    }
    cat "$work/page.md"
    echo
}

page kkt_solve --chunk 32,64,128
page gemm --style fragment --config a_place=shared,b_place=shared,bk=64
page gemm --style pipelined \
    --config bm=128,bn=256,bk=32,warps_m=2,warps_n=4,stages=4
page gemm --style warp_specialized
page gemm --style materialized --problem m=128,n=8192,k=8192 \
    --config bm=128,bn=256,bk=64,warps_m=2,warps_n=4,split_k=4
page gemv --problem m=8192,k=8192 \
    --config rows_per_block=2,row_threads=256,threads=256,unroll=4
