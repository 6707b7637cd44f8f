// Step 3 of the register path where one warp has a head: its chunks one after the other, block by
// block into the tile as they are ready.
#pragma once

#include "kkt_solve/register_inverse.cuh"
#include "kkt_solve/register_output.cuh"

// The diagonal half that starts at strip FIRST, into the tile; its columns start at block COLUMN.
template <bool TRANSPOSED, int FIRST, int COLUMN, int N>
KKT_DEVICE void put_half(const Out &out, const LowerOperands<N> &t) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 0; j <= i; ++j)
            out.put<TRANSPOSED>(
                FIRST + i, COLUMN + j,
                out.finish<TRANSPOSED>(TRANSPOSED ? t.transposed[t.at(i, j)] : t.plain[t.at(i, j)],
                                       FIRST + j));
        if (!(Layout::apart && FIRST == 0)) // clear_first_half
            out.clear_above<Tiles::side>(FIRST + i);
    }
}

// The chunk that starts at strip FIRST.
template <int FIRST, int STRIPS> KKT_DEVICE void invert_chunk(const Head &head, const Out &out) {
    if constexpr (STRIPS == 1) {
        out.put<false>(FIRST, 0, out.finish<false>(head.take<kPlain>(FIRST).plain, FIRST));
    } else {
        constexpr int half = STRIPS / 2;
        LowerOperands<half> upper, lower;
        const auto send_first = [&] {
            put_half<true, FIRST, 0>(out, upper);
            out.send(out.tile[0], 0, 0);
        };
        invert<FIRST, half, kTransposed>(upper, head);
        if constexpr (Layout::apart)
            send_first();
        invert<FIRST + half, half, kPlain>(lower, head);
        __syncwarp(); // scratch was read
        if constexpr (Layout::halves && !Layout::apart)
            send_first();
        Block m[half][half];
        multiply_upper<FIRST, half>(m, head, upper);
        if constexpr (Layout::alone)
            __syncwarp(); // K K^T was read
        if constexpr (!Layout::halves)
            put_half<true, FIRST, 0>(out, upper);
        if constexpr (Layout::in_turn)
            out.wait();
        put_half<false, FIRST + half, half>(out, lower);
#pragma unroll
        for (int i = 0; i < half; ++i)
#pragma unroll
            for (int j = 0; j < half; ++j)
                out.put<false>(FIRST + half + i, j,
                               out.finish<false>(multiply_lower<false>(lower, m, i, j), FIRST + j));
    }
}

template <int CHUNK> KKT_DEVICE void invert_chunks(const Head &head, const Out &out) {
    if constexpr (CHUNK < Tiles::chunks) {
        invert_chunk<CHUNK * Tiles::side, Tiles::side>(head, out);
        invert_chunks<CHUNK + 1>(head, out);
    }
}

// One head. `out` lacks its tiles, which are in region `region` of the area's work.
KKT_DEVICE void solve_by_warp(const u8 *k_kt, const Factors &factors, const LaneGate &gate,
                              u8 *work, int region, Out out) {
    out.tile[0] = work + Layout::first_out(region);
    out.tile[1] = work + Layout::second_out(region);
    Head head;
    head.k_kt = k_kt;
    head.factors = factors;
    head.gate = &gate;
    head.scratch = work + Layout::scratch(region);
    head.lane = out.lane;
    if (P::persistent)
        out.wait(); // for the last unit's tile to be read
    head.substitute_diagonal();
    invert_chunks<0>(head, out);
    if constexpr (Layout::halves)
        out.send(out.tile[1], Layout::out_rows, 0);
    else
        out.send(out.tile[0], 0, 0);
    if (!P::persistent)
        out.wait(); // the region is the next head's, or the block's to leave
}
