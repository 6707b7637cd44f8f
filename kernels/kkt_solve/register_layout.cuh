// Shared memory of the register path, and where the blocks of K K^T lie in it.
//
// A block has one area, or, where each value head has its own key head, one a warp. An area holds K
// first, and what comes after K K^T in its place:
//
//     K, SPAN x DK in swizzled panels           several heads            one head and chunk
//     +------------------------+      +---------------------------+   +---------------------+
//     | panel 0: columns 0..63 |      | region of warp or team 0  |   | K K^T, then T's     |
//     | SPAN rows of 128 bytes |  ->  |           ...             |   |   (second) half     |
//     +------------------------+      | region of the last        |   +---------------------+
//     | panel 1: 64..127       |      +---------------------------+   | scratch, then T's   |
//     |          ...           |      | K K^T, in fragments       |   |   first half        |
//     +------------------------+      +---------------------------+   +---------------------+
//
// Persistent blocks keep K's tile apart from what is drawn on the right: the next unit's K arrives
// in it meanwhile.
//
// A region of one warp holds scratch (block_inverse.cuh) and then the tile of T over it, in two
// halves one behind the other where they are stored one by one; a block of several chunks keeps
// scratch behind the tile. Where K is no larger than all second halves, first halves are kept apart
// from what else lies over the regions:
//
//     +-----------------------+-----------------------+
//     | second halves of all, | first halves of all   |
//     | K and scratch         |                       |
//     +-----------------------+-----------------------+
//
// A region of a team of two warps, each of which inverts a diagonal half:
//
//     +-----------------------------+-----------------------------+-------------------------+
//     | scratch of warp 0, then T's | scratch of warp 1, then T's | operands of both halves,|
//     |  upper left, then its lower |  lower right quarter        | a column of M for each  |
//     |  left quarter               |                             | warp                    |
//     +-----------------------------+-----------------------------+-------------------------+
//
// with one quarter of zeros behind K K^T, which all teams of the block send for T's upper right.
// Behind the areas come the heads' factors (gate_factors.cuh) and, where K is loaded by TMA, the
// barriers. footprint_registers.c lists the same buffers.
#pragma once

#include "device/block_inverse.cuh"
#include "device/gate_factors.cuh"
#include "device/register_blocks.cuh"
#include "device/swizzle.cuh"
#include "device/team.cuh"
#include "device/types.cuh"
#include "kkt_solve/parameters.cuh"

using Block = Operand<P::parts>;
using Quarter = SubOperand<P::parts>;
using KTile = SwizzledTile<P::span, P::dk>;

// K K^T as blocks of 16 x 16 on and below the diagonal of the chunks. What one warp inverts is a
// triangle of them: a chunk, or half of one. Triangle by triangle and row by row, then the square
// that couples the two halves of a team:
//
//     chunk of 64,     0                      a team of two:    0
//     one warp:        1  2                                     1  2
//                      3  4  5                                  6  7  3
//                      6  7  8  9                               8  9  4  5
struct Tiles {
    static constexpr int chunk_side = P::chunk / 16;
    static constexpr int side = chunk_side / P::team; // of a triangle
    static constexpr int a_triangle = side * (side + 1) / 2;
    static constexpr int a_chunk = chunk_side * (chunk_side + 1) / 2;
    static constexpr int chunks = P::span / P::chunk;
    static constexpr int count = chunks * a_chunk;

    // In fp32; of a diagonal block the upper right quarter is left out.
    static constexpr int block_bytes = 1024;
    static constexpr int saved_bytes = 256;
    static constexpr int triangle_bytes = a_triangle * block_bytes - side * saved_bytes;
    static constexpr int square_at = chunks * P::team * triangle_bytes;
    static constexpr int bytes = round_up(count * block_bytes - P::span / 16 * saved_bytes, 1024);

    // Byte offset of the block at strips (i, j), both of one chunk.
    KKT_DEVICE int at(int i, int j) {
        const int triangle = i / side;
        if (P::team == 2 && triangle > j / side)
            return square_at + (i % side * side + j) * block_bytes;
        const int row = i % side;
        return triangle * triangle_bytes + (row * (row + 1) / 2 + j % side) * block_bytes -
               row * saved_bytes;
    }
};

// Strips that one warp inverts.
constexpr int kStrips = P::team == 1 ? P::span / 16 : Tiles::side;

using Factors = GateFactors<P::span, P::gated>;
using Scratch = BlockScratch<kStrips, P::block, P::parts>;
using HeadTeam = Team<P::team, P::warps>;

// Operands of the diagonal halves of a team, as both warps read them, and a column of M for each:
// 16 bytes a lane and part.
struct Exchange {
    static constexpr int block_bytes = P::parts * kWarp * 16;
    static constexpr int half_bytes = Tiles::a_triangle * block_bytes;
    static constexpr int bytes = P::team == 1 ? 0 : 2 * half_bytes + 2 * Tiles::side * block_bytes;
};

struct Layout {
    static constexpr bool halves = P::store == kTmaHalves;
    static constexpr bool alone =
        (P::heads == 1 || P::a_key_head_each) && Tiles::chunks == 1 && P::team == 1;
    static constexpr int out_rows = halves || P::team == 2 ? P::span / 2 : P::span;
    static constexpr int out_columns = P::team == 2 ? P::chunk / 2 : P::chunk;
    using OutTile = SwizzledTile<out_rows, out_columns>;
    // Large halves, and those of persistent blocks, take turns in one place: the second waits until
    // the first is on its way.
    static constexpr bool in_turn = halves && (P::chunk > 64 || P::persistent);
    static constexpr int out_bytes =
        P::store == kDirect ? 0 : (halves && !in_turn ? 2 : 1) * OutTile::bytes;
    static constexpr int scratch_bytes = P::inverse == kNeumann ? 0 : Scratch::bytes;

    // Warps of an area, and its regions.
    static constexpr int area_warps = P::a_key_head_each ? 1 : P::warps;
    static constexpr int areas = P::warps / area_warps;
    static constexpr int area_teams = area_warps / P::team;
    static constexpr int area_heads = P::heads / areas;
    static constexpr int regions = area_teams < area_heads ? area_teams : area_heads;

    // Whether first halves lie behind all second ones, where neither K nor scratch is over them:
    // their zeros are written while K is on its way, and they are sent before scratch was read.
    static constexpr bool apart = halves && !in_turn && !alone && P::team == 1 &&
                                  scratch_bytes <= OutTile::bytes &&
                                  KTile::bytes <= regions * OutTile::bytes;

    // Within a region of one warp.
    static constexpr int scratch_at = alone ? Tiles::bytes : Tiles::chunks > 1 ? out_bytes : 0;
    static constexpr int first_out_at = alone && halves ? Tiles::bytes : 0;
    static constexpr int second_out_at = in_turn ? first_out_at : alone ? 0 : OutTile::bytes;
    // Within a region of a team.
    static constexpr int quarter_bytes = round_up(larger(scratch_bytes, OutTile::bytes), 1024);
    static constexpr int exchange_at = 2 * quarter_bytes;

    static constexpr int region_bytes =
        P::team == 2
            ? round_up(exchange_at + Exchange::bytes, 1024)
            : round_up(larger(scratch_at + scratch_bytes,
                              larger(out_bytes, halves ? first_out_at + OutTile::bytes : 0)),
                       1024);

    // What a warp has, from the first region on.
    KKT_DEVICE int first_out(int region) {
        return apart ? (regions + region) * OutTile::bytes : region * region_bytes + first_out_at;
    }
    KKT_DEVICE int second_out(int region) {
        return apart ? region * OutTile::bytes : region * region_bytes + second_out_at;
    }
    KKT_DEVICE int scratch(int region) {
        return apart ? region * OutTile::bytes : region * region_bytes + scratch_at;
    }

    // Within an area.
    static constexpr int k_kt_at = alone ? 0 : regions * region_bytes;
    static constexpr int zeros_at = k_kt_at + Tiles::bytes;
    static constexpr int zeros_bytes = P::team == 2 && halves ? OutTile::bytes : 0;
    static constexpr int work_bytes = alone ? region_bytes : zeros_at + zeros_bytes;
    static constexpr int work_at = P::persistent ? KTile::bytes : 0;
    static constexpr int area_bytes = larger(KTile::bytes, work_at + work_bytes);
    // K K^T is written where K is read.
    static constexpr bool over_k = !P::persistent && k_kt_at < KTile::bytes;

    static constexpr int factors_at = areas * area_bytes;
    static constexpr int barriers_at = factors_at + P::heads * Factors::words * 4;
    static constexpr int bytes = barriers_at + (P::kload == kTmaLoad ? round_up(8 * areas, 16) : 0);
};

static_assert(Layout::bytes == KKT_SMEM_BYTES, "the host's footprint and this layout differ");
static_assert(P::dk % 64 == 0, "K lies in panels of 64 columns");
static_assert(P::mma != kWgmma ||
                  ((P::span == 64 || P::span == 128) && P::threads == 128 && Layout::areas == 1),
              "wgmma takes 64 or 128 rows and one warpgroup");
static_assert(!Layout::halves || (Tiles::chunks == 1 && P::chunk >= 32),
              "halves of one chunk, in strips of 16 rows");
static_assert(!P::a_key_head_each || (P::warps == P::heads && P::team == 1),
              "a warp that has its own key head takes one value head");
static_assert(P::team == 1 || (P::team == 2 && P::chunk >= 64 && Tiles::chunks == 1 &&
                               (P::store == kStaged || P::store == kTmaHalves)),
              "a team has two warps, and a chunk whose quarters are tiles");

// One area, as the warps that share it see it.
struct Area {
    u8 *tile;     // K
    u8 *work;     // regions and K K^T, over the tile or behind it
    u64 *arrived; // barrier of its tile of K
    int warp;     // of this warp among them
    int lane;

    KKT_DEVICE Area make(u8 *shared, int warp, int lane) {
        const int index = Layout::areas == 1 ? 0 : warp;
        u8 *first = shared + index * Layout::area_bytes;
        return {first, first + Layout::work_at, (u64 *)(shared + Layout::barriers_at) + index,
                Layout::areas == 1 ? warp : 0, lane};
    }

    // Orders shared memory among the area's warps.
    KKT_DEVICE void sync() {
        if (Layout::areas == 1)
            __syncthreads();
        else
            __syncwarp();
    }

    // The same where each warp comes to it on a way of its own: a barrier that counts threads.
    KKT_DEVICE void sync_apart() {
        if (Layout::area_warps == 1)
            __syncwarp();
        else
            asm volatile("barrier.sync %0, %1;" ::"n"(P::team == 1 ? 1 : HeadTeam::count + 1),
                         "n"(P::threads)
                         : "memory");
    }

    // Among the area's. Of the block's own number the compiler knows that it is no less than 0.
    __device__ __forceinline__ int thread() const {
        return Layout::area_warps == 1 ? lane : (int)threadIdx.x;
    }
};
