#!/bin/sh
# compute-sanitizer over a spread of configurations, on the GPU: memcheck, racecheck and synccheck
# must find nothing, and racecheck must find a barrier that was taken out. Exit 77: no GPU or no
# compute-sanitizer here.
#
# KKT_GPU_COUNT     how many configurations of kkt_solve a problem (default 16)
# KKT_GPU_FAMILIES  those to look at, names between spaces (unset: all)
# KKT_GPU_TOOLS     the tools to look with (unset: all three)
# Exit 2: one of the two lists is blank or has a name that is not known; nothing has run then.
set -eu
program=$(readlink -f "${KKTTUNE_PROGRAM:?the program to test}")
here=$(cd -- "$(dirname -- "$0")" && pwd)
kernels=$(readlink -f "${KKTTUNE_KERNELS:-$here/../../kernels}")
count=${KKT_GPU_COUNT:-16}
all_families="kkt_solve gdn_wu gdn_state gdn_output gdn_fwd_t gdn_fwd gemv gemm"
all_tools="memcheck racecheck synccheck"
families=${KKT_GPU_FAMILIES-$all_families}
tools=${KKT_GPU_TOOLS-$all_tools}

# check_list VARIABLE ASKED KNOWN: a list without a name, or with one that is not known, would pass
# without having looked at what it was to look at.
check_list() {
    asked=0
    for name in $2; do
        case " $3 " in
        *" $name "*) asked=$((asked + 1)) ;;
        *)
            echo "sanitize: $1: '$name' is none of: $3"
            exit 2
            ;;
        esac
    done
    if [ "$asked" -eq 0 ]; then
        echo "sanitize: $1 names nothing; leave it unset for all of: $3"
        exit 2
    fi
}
check_list KKT_GPU_FAMILIES "$families" "$all_families"
check_list KKT_GPU_TOOLS "$tools" "$all_tools"
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

nvidia-smi --query-gpu=compute_cap --format=csv,noheader >/dev/null 2>&1 || {
    echo "sanitize: no GPU here, skipped"
    exit 77
}
command -v compute-sanitizer >/dev/null || {
    echo "sanitize: no compute-sanitizer here, skipped"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# sanitize TOOL [OPTION...]: `verify` under a tool, kernels of the worker process included. The
# findings are in log, their number in $findings; the tools count warnings of their own too.
sanitize() {
    tool=$1
    shift
    begun=$(date +%s)
    code=0
    rm -f log # else a tool that does not start would leave the last one's
    # The compiler's processes never touch the GPU; that is no error.
    compute-sanitizer --tool "$tool" --target-processes all --require-cuda-init no --log-file log \
        --print-limit 20 "$program" verify "$family" --cache cache --json "$@" >out.json 2>err ||
        code=$?
    summaries=$(grep -c 'SUMMARY:' log 2>/dev/null) || {
        echo "sanitize: $tool said nothing; exit code $code: $(cat err)"
        exit 1
    }
    findings=$(sed -n 's/.*SUMMARY: \([0-9]*\) .*/\1/p' log | awk '{ n += $1 } END { print n + 0 }')
    echo "sanitize: $tool $*: $findings findings in $summaries summaries, exit code $code," \
        "$(($(date +%s) - begun)) s"
}

# What did not pass the gate, but for wrong results of the path that it is to refuse: powers instead
# of substitution.
unexpected() {
    python3 - <<'PYTHON'
import json

for c in json.load(open("out.json"))["candidates"]:
    lossy = "inverse=neumann" in c["config"]
    if c["outcome"] != "ok" and not (lossy and c["outcome"] == "wrong_result"):
        print(c["outcome"], c["config"], c["reason"])
PYTHON
}

clean() {
    sanitize "$@"
    refused=$(unexpected)
    if [ "$findings" -ne 0 ] || [ -n "$refused" ]; then
        echo "$refused"
        failed=1
        head -n 60 log
        cat err
    fi
}

# wanted TOOL: whether it is asked for.
wanted() {
    case " $tools " in
    *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

sanitize_kkt_solve() {
    for tool in $tools; do
        for problem in tokens=300,heads_k=1,heads_v=4,dk=64 \
            tokens=200,heads_k=2,heads_v=4,dk=128,gated=0,dtype=fp16; do
            clean "$tool" --problem "$problem" --count "$count"
        done
        clean "$tool" --problem tokens=300,heads_k=4,heads_v=4,dk=64,t_form=t_beta --count "$count" \
            --config share=value_head,couple=bf16x3,inverse=recursive
        clean "$tool" --problem tokens=300,heads_k=1,heads_v=4,dk=64 --count "$count" \
            --config warps_per_head=2,couple=bf16x3,inverse=recursive
        # Warps that meet at instructions of their own: K K^T goes where K is still read.
        clean "$tool" --problem tokens=300,heads_k=1,heads_v=4 --count 3 --config \
            mma=mma_sync,persistent=0,heads_per_block=2,threads=64,store=direct,couple=fp16,inverse=recursive
        # More units than persistent blocks, so that some go round.
        clean "$tool" --problem tokens=2600,heads_k=4,heads_v=16,dk=64 --count "$count" \
            --config persistent=1,chunk=16,couple=bf16x3
        # The library's calls, where it is there. Not racecheck: it looks into cuBLAS's kernels, too,
        # and their triangular solve at chunk 128 takes longer under it than a candidate is given.
        [ "$tool" = racecheck ] ||
            clean "$tool" --style library --problem tokens=300,heads_k=1,heads_v=4,dk=64 --count 3
    done
    ! wanted racecheck || sanitize_mutation
}

# That racecheck sees the kernels at all.
sanitize_mutation() {
    python3 "$here/mutations.py" make "$kernels" "$work" >/dev/null
    sanitize racecheck --problem tokens=300,heads_k=1,heads_v=1,dk=64 --count 4 \
        --sources no_barrier_tile \
        --config chunk=64,inverse=recursive,base=16,couple=tf32,threads=128,heads_per_block=1
    if [ "$findings" -eq 0 ]; then
        failed=1
        echo "sanitize: racecheck did not find the missing barrier: it does not see the kernels"
    fi
}

materialized_solver() {
    for tool in $tools; do
        clean "$tool" --problem tokens=150,heads_k=1,heads_v=2,dk=64,dv=64 --count 4
        clean "$tool" --problem tokens=90,sequences=3,heads_k=1,heads_v=1,dk=96,dv=64,dtype=fp16 \
            --count 2
    done
}

sanitize_gdn_wu() {
    materialized_solver
}

sanitize_gdn_state() {
    materialized_solver
}

sanitize_gdn_output() {
    materialized_solver
}

# Tails, an empty or short sequence and 64 columns, which all three styles take; the warp-specialized
# one by what its warps hand to each other: o by the state's or by others, 32 columns, T by
# substitution or inverted.
fused_styles() {
    for tool in $tools; do
        for style in fragment pipelined; do
            clean "$tool" --style "$style" --count 3 \
                --problem tokens=150,sequences=3,heads_k=1,heads_v=2,dk=64,dv=64,dtype=fp16
        done
        for config in "$@"; do
            clean "$tool" --style warp_specialized --config "$config" --count 2 \
                --problem tokens=150,sequences=2,heads_k=1,heads_v=1
        done
    done
}

sanitize_gdn_fwd_t() {
    fused_styles chunk=64,outputs=0,narrow=1 chunk=64,outputs=2 chunk=32,block_dv=32
    # Segments, some of which have no tokens.
    for tool in $tools; do
        for config in chunk=64,segments=5,outputs=0 chunk=32,segments=9,outputs=1; do
            clean "$tool" --style context_parallel --config "$config" --count 2 \
                --problem tokens=700,sequences=2,heads_k=1,heads_v=2
        done
    done
}

sanitize_gdn_fwd() {
    fused_styles chunk=64,solve=substitute chunk=64,solve=invert block_dv=32
}

sanitize_gemv() {
    for tool in $tools; do
        clean "$tool" --problem m=300,k=3001 --count 4
        clean "$tool" --problem m=300,k=992,layout=t --count 4
        clean "$tool" --problem m=77,k=3000,lda=3005 --style materialized --count 2
    done
}

sanitize_gemm() {
    for tool in $tools; do
        for style in fragment pipelined materialized; do
            clean "$tool" --style "$style" --problem m=133,n=264,k=200 --count 3
        done
        gemm_warp_specialized
    done
}

gemm_warp_specialized() {
    clean "$tool" --style warp_specialized --problem m=392,n=776,k=328 --count 4
    clean "$tool" --style warp_specialized --problem m=517,n=771,k=327,layout=tt --count 2
    clean "$tool" --style warp_specialized --problem m=904,n=2056,k=328 --count 1 \
        --config bn=128,consumers=ping_pong,stages=3,store_panels=1
    # Tiles of few steps, which wait for their loads: the warps of a warpgroup must agree that they do.
    clean "$tool" --style warp_specialized --problem m=2000,n=4104,k=136 --count 2 \
        --config bm=128,bn=128,consumers=ping_pong,split_k=1,persistent=1
}

for family in $families; do
    "sanitize_$family"
done
[ "$failed" -eq 0 ] || exit 1
echo "sanitize: passed"
