// Macros and look-up in device code.
#include "kkttune_sm90.h"
#include "kkttune_dispatch.h"

__global__ void __launch_bounds__(KKTTUNE_SM90_KKT_SOLVE_THREADS) use(int *out) {
    int exact = 0;
    const kkttune_sm90_kkt_solve_entry *row =
        kkttune_sm90_kkt_solve_find(1, 1, 32768, 16, 64, 128, 0, 1, 0, 0, &exact);
    out[threadIdx.x] = row ? row->chunk + exact : KKTTUNE_SM90_KKT_SOLVE_CHUNK;
}

int main() {
    return KKTTUNE_DISPATCH(90, KKT_SOLVE, CHUNK, 7) == 64 ? 0 : 1;
}
