// The configuration of the warp-specialized gdn_fwd_t or gdn_fwd, as the compiler was given it, and
// the division of a block's warps into roles. What a parameter means is said in
// gdn_fwd_t_warp_specialized.c.
#pragma once

#include "device/types.cuh"

struct P {
    static constexpr int chunk = KKT_CHUNK;
    static constexpr int dk = KKT_DK;
    static constexpr int dv = KKT_DV; // of a head
    static constexpr bool bf16 = KKT_DTYPE == 0;
    static constexpr bool gated = KKT_GATED;
    static constexpr bool fused = KKT_FUSED;            // gdn_fwd: T is computed here
    static constexpr bool t_beta = fused || KKT_T_BETA; // T's columns carry beta already
    // V' sixteen by sixteen tokens, so that of T the diagonal blocks alone are wanted (gdn_fwd).
    static constexpr bool substitute = KKT_SOLVE == 0;
    static constexpr int block_dv = KKT_BLOCK_DV;
    static constexpr int stages = KKT_STAGES;
    static constexpr int outputs = KKT_OUTPUTS;

    static constexpr bool narrow = KKT_NARROW && chunk > 16;

    // Where a chunk's tokens lie along the rows of K, Q and T in shared memory and along the
    // columns of accumulators: as they come, or, for narrow products with triangles, sixteen by
    // sixteen with the last sixteen first (wgmma_product_lower says why). The same function leads
    // back.
    __host__ __device__ static constexpr int place(int token) {
        return narrow ? token ^ (chunk - 16) : token;
    }
    static constexpr int box_rows = narrow ? 16 : chunk; // of a load of K, Q or T

    // Warpgroups, in this order: state, then helpers (outputs or one for scores, and one that
    // solves for T), then service.
    static constexpr bool state_shared = block_dv < 64;           // ws_state_shared.cuh
    static constexpr int group_dv = state_shared ? block_dv : 64; // columns of a state warpgroup
    static constexpr int groups = block_dv / group_dv;
    static constexpr int scorers = outputs > 0 ? outputs : 1;
    static constexpr int helpers = scorers + fused;
    static constexpr int warpgroup = 4 * kWarp;
    static constexpr int threads = (groups + helpers + 1) * warpgroup;

    // Registers a thread: at launch all have the same number; then warpgroups trade. What is left
    // by the state and service warpgroups goes to the helpers.
    static constexpr int launch_registers = 65536 / threads / 8 * 8;
    static constexpr int state_registers = KKT_STATE_REGISTERS;
    static constexpr int service_registers = KKT_SERVICE_REGISTERS;
    static constexpr int left_registers =
        (groups + helpers + 1) * launch_registers - groups * state_registers - service_registers;
    static constexpr int each_helper = left_registers / helpers / 8 * 8;
    static constexpr int helper_registers = each_helper < 240 ? each_helper : 240;

    static_assert(chunk == 16 || chunk == 32 || chunk == 64, "64 rows of scores at most");
    static_assert(fused || !substitute, "what is read is T");
    static_assert(stages >= 2 && stages >= outputs, "the next chunk is read before this is done");
    static_assert(dk == 64 || dk == 128, "key panels of 64 columns, state in registers");
    static_assert(block_dv % group_dv == 0 && dv % block_dv == 0, "whole warpgroups");
    static_assert(helper_registers >= 24, "a warpgroup would wait for registers for ever");
};
