#!/usr/bin/env bash
# Without --device every command means the same one: that of the recorded measurements, else the
# first of the table.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export KKTTUNE_REFERENCE=$tests/../../db/reference
[ -e "$KKTTUNE_REFERENCE/sm90_h200.jsonl" ] || die "the recordings of the H200 are missing"

# The main job first: its database is what the look-up then reads.
run=(tune kkt_solve --arch sm90 --problem "tokens=8192,heads_v=32" --backend replay
    --budget "evals=1,seconds=1" --cache cache --json)

# all_on SHORT FULL: what each command prints.
all_on() {
    expect 0 model --arch sm90 --chunk 64 --json
    json "d['device'] == '$1' and d['device_name'] == '$2'"
    expect 0 occupancy --arch sm90 --threads 128 --regs 64 --smem 0 --json
    json "d['device'] == '$1' and d['device_name'] == '$2'"
    expect 0 explain kkt_solve --arch sm90 --cache cache --json
    json "d['device'] == '$1' and d['device_name'] == '$2'"
    expect 0 lookup kkt_solve --arch sm90 --json
    json "d['device'] == '$2' and d['device_id'] == '$1'"
}

all_on h200 "NVIDIA H200"
expect 0 lookup kkt_solve --arch sm90 --json
json 'd["tier"] == "model"' # no database yet: the default device alone decides
expect 0 "${run[@]}"
json 'd["device"] == "NVIDIA H200" and d["device_id"] == "h200"'
all_on h200 "NVIDIA H200"
rm -r kkttune.db* kkttune-out

# Nothing recorded: the first row, the same for all.
mkdir empty
export KKTTUNE_REFERENCE=$work/empty
all_on h100 "NVIDIA H100 80GB HBM3"
expect 0 "${run[@]}"
json 'd["device"] == "NVIDIA H100 80GB HBM3" and d["device_id"] == "h100"'

# A refused recording leaves no database behind.
mkdir broken
head -c 100000 "$tests/../../db/reference/sm90_h200.jsonl" >broken/sm90_h200.jsonl
export KKTTUNE_REFERENCE=$work/broken
for command in "tune kkt_solve" "ablate kkt_solve --chunk 64"; do
    # shellcheck disable=SC2086 # words are wanted
    expect 2 $command --arch sm90 --backend replay --db fresh.db --cache cache
    has "$err" "sm90_h200.jsonl"
    [ ! -e fresh.db ] || die "$command left a database behind"
done

# A name is a name.
export KKTTUNE_REFERENCE=$tests/../../db/reference
expect 0 model --arch sm90 --device h20 --chunk 64 --json
json 'd["device"] == "h20"'
# What is recorded of one architecture says nothing of another.
expect 0 model --arch sm80 --chunk 64 --json
json 'd["device"] == "a100"'
