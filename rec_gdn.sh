#!/bin/bash
# rec_gdn.sh KKTTUNE DB [BACKEND]: directed runs of the ten forward shapes, each member's candidates
# first and then the pipeline end to end. Reuses what DB has. Prints a line a step.
set -u
K=${1:?kkttune}; DB=${2:?database}; BACKEND=${3:-cuda}
t0=$(date +%s)
tune() {
    timeout 60 "$K" tune "$@" --arch sm90 --backend "$BACKEND" --counters none --db "$DB" \
        --out /tmp/out-rec-gdn --log /tmp/rec-gdn.log >/tmp/rec-gdn.txt 2>/tmp/rec-gdn.err
    echo "[$(($(date +%s) - t0)) s] rc $? tune $*" | cut -c1-150
}
S=assemble_fused=1,base=8,block_pad=1,carveout=0,chunks_per_block=1,couple=fp16,inverse=recursive,kload=cp_async,mma=wgmma,negate_early=1,row_stride=16,store=tma_halves,threads=128,transpose=0,warps_per_head=1,min_blocks=4
W=chunk=64,units_per_block=1
B64N=$W,block_dv=64,narrow=1,outputs=0,service_registers=40,stages=3,state_registers=240
B64L=$W,block_dv=64,narrow=1,outputs=0,service_registers=40,stages=3,state_registers=208
B128=block_dv=128,chunk=64,narrow=0,outputs=0,service_registers=32,stages=3,state_registers=208
B32=$W,block_dv=32,narrow=0,outputs=2,service_registers=40,stages=3,state_registers=176
# shape: problem | kkt_solve's rest | gdn_fwd_t's candidates
while IFS='|' read -r problem solve consumers; do
    tune kkt_solve --problem "$problem,t_form=t_beta" --config "chunk=64,$S,$solve" --budget evals=1
    for c in $consumers; do
        tune gdn_fwd_t --style warp_specialized --problem "$problem,t_form=t_beta" --config "$c" --budget evals=1
    done
    tune gdn_t --problem "$problem" --config chunk=64 --budget evals=1
done <<L
tokens=32768,heads_k=2,heads_v=8|heads_per_block=4,share=key_head|$B32 $B64L
tokens=32768,heads_k=8,heads_v=32|heads_per_block=4,share=key_head|$B64L $B64N
tokens=32768,heads_k=8,heads_v=32,sequences=4|heads_per_block=4,share=key_head|$B128,units_per_block=1
tokens=32768,heads_k=16,heads_v=64|heads_per_block=4,share=key_head|$B64N
tokens=8192,heads_k=16,heads_v=64|heads_per_block=4,share=key_head|$B64N
tokens=8192,heads_k=16,heads_v=64,sequences=8|heads_per_block=4,share=key_head|$B128,units_per_block=4 $B128,units_per_block=2
tokens=4096,heads_k=16,heads_v=32|heads_per_block=2,share=key_head|$B64L $B32
tokens=8192,heads_k=32,heads_v=32|heads_per_block=4,share=value_head|$B64L $B32
tokens=16384,heads_k=4,heads_v=16|heads_per_block=4,share=key_head|$B32 $B64L
tokens=8192,heads_k=16,heads_v=64,sequences=4|heads_per_block=4,share=key_head|$B128,units_per_block=2
L
