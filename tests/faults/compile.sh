#!/usr/bin/env bash
# The device code of the misbehaving candidates compiles for every generation, so that a test on a
# GPU fails for what it is meant to find. The shipped program does not know the family.
# shellcheck source=tests/cli/lib.sh
KKTTUNE_PROGRAM=$(readlink -f "$KKTTUNE_PROGRAM")
. "$(dirname "$0")/../cli/lib.sh"

expect 0 list kernels --json
json '"faulty" not in [k["name"] for k in d["kernels"]]'
refuses 2 "unknown kernel 'faulty'" tune faulty --arch sm90

kkttune=$KKTTUNE_FAULTS
for arch in sm80 sm90 sm100 sm120; do
    expect 0 tune faulty --arch $arch --backend replay --exhaustive --db $arch.db --cache cache --json
    if [[ $err == *"nothing is compiled"* ]]; then
        echo "no NVRTC here: skipped"
        exit 77
    fi
    json 'd["candidates"]["build_failed"] == 0 and d["candidates"]["compiled"] == 16'
done
