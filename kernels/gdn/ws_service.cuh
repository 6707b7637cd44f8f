// The service warpgroup of the warp-specialized gdn_fwd_t and gdn_fwd: warps that move tiles and
// prepare the gates, so that the others only compute.
#pragma once

#include "device/convert.cuh"
#include "device/dependent_launch.cuh"
#include "device/gate.cuh"
#include "device/tensor_map.cuh"
#include "device/types.cuh"
#include "device/warp_roles.cuh"
#include "gdn/ws_layout.cuh"
#include "gdn/ws_work.cuh"

using Stages = Ring<P::stages>;

// ---- loads ----

// A chunk's tiles: where they lie and where they go.
struct Load {
    int row, head_k, column_v, column_t;
    u8 *stage;
    u64 *barrier;
};

KKT_DEVICE Load make_load(const Unit &u, int chunk, const Shared &shared, int slot) {
    Load l;
    l.row = (int)u.first + chunk * P::chunk;
    l.head_k = u.head_k;
    l.column_v = u.head_v * P::dv + u.column;
    l.column_t = u.head_v * P::chunk;
    l.stage = shared.stage(slot);
    l.barrier = shared.barrier((u.rows(chunk) == P::chunk ? Layout::full : Layout::landed) + slot);
    return l;
}

// All but T. A chunk that is not whole ends `full` for its part at once: its bytes are waited for
// at `landed`.
KKT_DEVICE void load_inputs(const Maps &maps, const Load &l, u64 *full) {
    mbarrier_expect(l.barrier, Layout::copied_bytes);
    if (l.barrier != full)
        mbarrier_arrive(full);
#pragma unroll
    for (int panel = 0; panel < KeyTile::panels; ++panel)
#pragma unroll
        for (int token = 0; token < P::chunk; token += P::box_rows) {
            const int column = l.head_k * P::dk + panel * 64;
            u8 *k = l.stage + panel * KeyTile::panel_bytes + P::place(token) * KeyTile::row_bytes;
            tile_load(k + Layout::k_at, maps.k, column, l.row + token, l.barrier);
            tile_load(k + Layout::q_at, maps.q, column, l.row + token, l.barrier);
        }
#pragma unroll
    for (int group = 0; group < P::groups; ++group)
        tile_load(l.stage + Layout::v_at + group * ValueTile::bytes, maps.v,
                  l.column_v + group * 64, l.row, l.barrier);
}

KKT_DEVICE void load_t(const Maps &maps, const Load &l) {
    if constexpr (!P::fused)
#pragma unroll
        for (int token = 0; token < P::chunk; token += P::box_rows)
            tile_load(l.stage + Layout::t_at + P::place(token) * SquareTile::row_bytes, maps.t,
                      l.column_t, l.row + token, l.barrier);
}

// One thread asks for the tiles of all chunks as their places become free. T alone comes from the
// kernel before, so that the first stages' other tiles are on their way before it waits for that.
//
// Where a sequence's last chunk is not whole its tiles report to `landed`: the gate warp clears the
// rows that belong to the next sequence before it hands the stage on.
KKT_DEVICE void load_role(const Problem &p, const Maps &maps, const Shared &shared) {
    Unit u = find_unit(p, blockIdx.x);
    const int ahead = u.chunks < P::stages ? u.chunks : P::stages;
    for (int chunk = 0; chunk < ahead; ++chunk)
        load_inputs(maps, make_load(u, chunk, shared, chunk), shared.barrier(Layout::full + chunk));
    wait_for_kernels_before();
    Stages ring = Stages::start();
    int first = ahead; // chunk whose inputs have not been asked for
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x, first = 0) {
        u = find_unit(p, index);
#pragma unroll 1
        for (int chunk = 0; chunk < u.chunks; ++chunk) {
            const Load l = make_load(u, chunk, shared, ring.slot);
            if (chunk >= first) {
                mbarrier_wait(shared.barrier(Layout::empty + ring.slot), ring.parity ^ 1);
                load_inputs(maps, l, shared.barrier(Layout::full + ring.slot));
            }
            load_t(maps, l);
            ring.advance();
        }
    }
}

// ---- gates ----

// A lane's tokens: `each` in a row, for as many lanes as the chunk needs.
struct GateTokens {
    static constexpr int each = P::chunk > kWarp ? P::chunk / kWarp : 1;
    float g[each], beta[each];
};

// `at`: of the lane's first token in the tensors of gates; the chunk has `rows` tokens.
KKT_DEVICE void fetch_gates(const Problem &p, i64 at, int rows, int lane, GateTokens &t) {
#pragma unroll
    for (int e = 0; e < GateTokens::each; ++e, at += p.heads_v) {
        const bool valid = lane * GateTokens::each + e < rows;
        t.g[e] = P::gated && valid ? __ldg(p.g + at) : 0.0f;
        t.beta[e] = (P::fused || !P::t_beta) && valid ? __ldg(p.beta + at) : 0.0f;
    }
}

// Inclusive sums G of the chunk in base 2, in place of g; returns the last.
KKT_DEVICE float sum_gates(GateTokens &t, int lane) {
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < GateTokens::each; ++e)
        t.g[e] = sum += fmaxf(t.g[e] * kLog2E, kGateFloor);
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? before : 0.0f;
    }
    const float before = __shfl_up_sync(0xffffffffu, sum, 1);
#pragma unroll
    for (int e = 0; e < GateTokens::each; ++e)
        t.g[e] += lane > 0 ? before : 0.0f;
    return __shfl_sync(0xffffffffu, sum, kWarp - 1);
}

KKT_DEVICE void write_gates(float *tables, const GateTokens &t, float last, float scale, int lane) {
#pragma unroll
    for (int e = 0; e < GateTokens::each; ++e) {
        const int token = lane * GateTokens::each + e;
        if (token < P::chunk) {
            float *column = tables + GateLayout::at(token);
            const float decay = exp2_approx(t.g[e]);
            column[GateLayout::decay_at] = P::t_beta ? decay : t.beta[e] * decay;
            column[GateLayout::rest_at] = exp2_approx(last - t.g[e]);
            column[GateLayout::exponent_at] = t.g[e];
            if (Layout::own_output)
                column[GateLayout::out_at] = scale * decay;
            if (P::fused || !P::t_beta)
                column[GateLayout::beta_at] = t.beta[e];
            if (P::fused)
                tables[GateLayout::row_beta_at + token] = t.beta[e];
            tables[GateLayout::row_at + token] = t.g[e];
        }
    }
    if (lane == 0)
        tables[GateLayout::total_at] = exp2_approx(last);
}

// Clears the tokens from `rows` on in a tile.
template <typename Tile, bool PLACED> KKT_DEVICE void clear_rows(u8 *tile, int rows, int lane) {
#pragma unroll 1
    for (int n = rows * Tile::units + lane; n < P::chunk * Tile::units; n += kWarp) {
        const int token = n / Tile::units;
        const int row = PLACED ? P::place(token) : token;
        *(uint4 *)(tile + Tile::at(row, n % Tile::units)) = make_uint4(0, 0, 0, 0);
    }
}

// Past a sequence's end: with K, V and T zero the tokens add nothing to the state, and what else
// comes of them stays in rows of o that are not stored.
KKT_DEVICE void clear_tail(u8 *stage, int rows, int lane) {
    clear_rows<KeyTile, true>(stage + Layout::k_at, rows, lane);
    if (!P::fused)
        clear_rows<SquareTile, true>(stage + Layout::t_at, rows, lane);
#pragma unroll
    for (int group = 0; group < P::groups; ++group)
        clear_rows<ValueTile, false>(stage + Layout::v_at + group * ValueTile::bytes, rows, lane);
    async_proxy_fence();
}

// A warp keeps one chunk's gates in flight and hands on full stages with their tables.
KKT_DEVICE void gate_role(const Problem &p, const Shared &shared, int lane) {
    Stages ring = Stages::start();
    u32 landed = 0; // parities, a bit a stage
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x) {
        const Unit u = find_unit(p, index);
        i64 at = (u.first + lane * GateTokens::each) * p.heads_v + u.head_v;
        GateTokens next;
        fetch_gates(p, at, u.rows(0), lane, next);
#pragma unroll 1
        for (int chunk = 0; chunk < u.chunks; ++chunk) {
            GateTokens t = next;
            const float last = sum_gates(t, lane);
            at += P::chunk * p.heads_v;
            if (chunk + 1 < u.chunks)
                fetch_gates(p, at, u.rows(chunk + 1), lane, next);
            mbarrier_wait(shared.barrier(Layout::empty + ring.slot), ring.parity ^ 1);
            write_gates(shared.gates(ring.slot), t, last, p.scale, lane);
            const int rows = u.rows(chunk);
            if (rows < P::chunk) {
                mbarrier_wait(shared.barrier(Layout::landed + ring.slot), landed >> ring.slot & 1);
                landed ^= 1u << ring.slot;
                clear_tail(shared.stage(ring.slot), rows, lane);
            }
            mbarrier_arrive(shared.barrier(Layout::full + ring.slot));
            ring.advance();
        }
    }
}

// ---- stores ----

// Rows of a tile that is not whole, 16 bytes a lane at a time.
KKT_DEVICE void store_rows(const Problem &p, const u8 *tile, i64 row, int column, int rows,
                           int lane) {
#pragma unroll 1
    for (int n = lane; n < rows * ValueTile::units; n += kWarp) {
        const int unit = n % ValueTile::units;
        u16 *out = p.o + (row + n / ValueTile::units) * p.heads_v * P::dv + column + unit * 8;
        *(uint4 *)out = *(const uint4 *)(tile + ValueTile::at(n / ValueTile::units, unit));
    }
}

// A warp stores o of PANELS neighbouring panels of 64 columns, the first being `panel`. Of the
// state warpgroups' own output it lets what they hand on first in a unit go by.
template <int PANELS>
KKT_DEVICE void store_role(const Problem &p, const Maps &maps, const Shared &shared, int panel,
                           int lane) {
    Ring<2> ring = Ring<2>::start();
#pragma unroll 1
    for (int index = blockIdx.x; index < p.units; index += gridDim.x) {
        const Unit u = find_unit(p, index);
        const int first = Layout::own_output && u.chunks > 0 ? -1 : 0;
#pragma unroll 1
        for (int chunk = first; chunk < u.chunks; ++chunk, ring.advance()) {
            const int rows = chunk < 0 ? 0 : u.rows(chunk);
            const i64 row = u.first + chunk * P::chunk;
            mbarrier_wait(shared.barrier(Layout::o_full + 2 * panel + ring.slot), ring.parity);
            async_proxy_fence();
#pragma unroll
            for (int n = 0; n < PANELS; ++n) {
                const int column = u.head_v * P::dv + u.column + (panel + n) * 64;
                const u8 *tile = Layout::own_output
                                     ? shared.o(panel, ring.slot)
                                     : shared.value(ring.slot) + n * ValueTile::bytes;
                if (rows < P::chunk)
                    store_rows(p, tile, row, column, rows, lane);
                else if (lane == 0)
                    tile_store(maps.o, column, (int)row, tile);
            }
            if (lane == 0)
                tile_store_wait_read();
            mbarrier_arrive(shared.barrier(Layout::o_empty + 2 * panel + ring.slot));
        }
    }
}

KKT_DEVICE void service_role(const Problem &p, const Maps &maps, const Shared &shared, int warp,
                             int lane) {
    if (warp == 0) {
        if (lane == 0)
            load_role(p, maps, shared);
    } else if (warp == 3) {
        gate_role(p, shared, lane);
    } else if (!Layout::own_output) {
        if (warp == 1)
            store_role<P::groups>(p, maps, shared, 0, lane);
    } else if (warp <= P::groups) {
        store_role<1>(p, maps, shared, warp - 1, lane);
    }
}
