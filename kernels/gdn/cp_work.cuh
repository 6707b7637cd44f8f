// Where the segments of the context-parallel gdn_fwd_t lie, and what a block has to do with them. A
// sequence is cut in SEGMENTS stretches of whole chunks, as even as chunks allow but for the first,
// which has FIRST_EIGHTHS eighths of another's; with few chunks some have no tokens. One launch
// after the other (gdn_fwd_t_context_parallel.cu):
//
//     gdn_fwd_t_first    the first segment, o and all, from h0                      ws_block.cuh
//                        of each other but the last: the state that it adds, from   cp_pass.cuh
//                        0, and M, which leads through it: S behind is M S + added
//     gdn_fwd_t_starts   what the others start from, segment by segment             cp_starts.cuh
//     gdn_fwd_t_rest     the other segments, o and all                              ws_block.cuh
//
// Between them, in workspace:
//
//     starts   [sequences x (SEGMENTS - 1), heads_v, DK, DV]    S before each segment but the
//     first;
//                                                               until gdn_fwd_t_starts what the one
//                                                               before it adds
//     steps    [sequences x (SEGMENTS - 2), heads_v, DK, DK]    M of those but first and last
#pragma once

#include "device/types.cuh"
#include "gdn/ws_parameters.cuh"

// A unit of work of ws_block.cuh is a segment here: what ws_work.cuh says of units has other names.
#define find_unit find_sequence
#define count_chunks count_sequence_chunks
#include "gdn/ws_work.cuh"
#undef find_unit
#undef count_chunks

struct C {
    static constexpr int segments = KKT_SEGMENTS;
    static constexpr int first_eighths = KKT_FIRST_EIGHTHS;
    static constexpr int pass_stages = KKT_PASS_STAGES;

    static constexpr int later = segments - 1;          // that start from what others leave
    static constexpr int inner = segments - 2;          // that have an M
    static constexpr int pass_groups = 2;               // state warpgroups of a block of the pass
    static constexpr int groups = (P::dk + P::dv) / 64; // that a segment of the pass takes
    static constexpr int pass_blocks = divide_up(groups, pass_groups);
    static constexpr int pass_state_registers = 232;
    static constexpr int pass_service_registers = 40;

    static_assert(segments >= 3, "a first one, one to pass over, and a last one");
    static_assert(P::block_dv == 64, "the pass has the state of ws_state.cuh");
    static_assert(P::threads == (pass_groups + 1) * P::warpgroup, "one launch has both");
    static_assert(pass_groups * pass_state_registers + pass_service_registers <=
                      (pass_groups + 1) * P::launch_registers,
                  "what warpgroups ask for is there");
};

struct Passed {
    float *starts, *steps;
};

KKT_DEVICE i64 start_offset(int sequence, int segment, int head, int heads) {
    return (((i64)sequence * C::later + segment - 1) * heads + head) * P::dk * P::dv;
}

KKT_DEVICE i64 step_offset(int sequence, int segment, int head, int heads) {
    return (((i64)sequence * C::inner + segment - 1) * heads + head) * P::dk * P::dk;
}

// First chunk of a segment of a sequence of so many.
KKT_DEVICE int segment_chunk(int chunks, int segment) {
    constexpr int whole = C::first_eighths + 8 * C::later;
    const int before = segment > 0 ? C::first_eighths + 8 * (segment - 1) : 0;
    return segment == C::segments ? chunks : (int)((i64)chunks * before / whole);
}

// A segment as a unit of work. `column` and `state` are for who asked to fill in.
KKT_DEVICE Unit find_segment(const Problem &p, int sequence, int segment, int head) {
    i64 first = sequence * p.tokens;
    int tokens = (int)p.tokens;
    if (p.cu_seqlens) {
        first = sequence_start(p, sequence);
        tokens = (int)(sequence_start(p, sequence + 1) - first);
    }
    const int chunks = divide_up(tokens, P::chunk);
    const int begin = segment_chunk(chunks, segment);
    Unit u;
    u.chunks = segment_chunk(chunks, segment + 1) - begin;
    u.first = first + (i64)begin * P::chunk;
    u.tokens = min(u.chunks * P::chunk, tokens - begin * P::chunk);
    u.head_v = head;
    u.head_k = head / (p.heads_v / p.heads_k);
    u.column = 0;
    u.state = 0;
    return u;
}

// What a unit of work is in the two launches that compute o.
struct Place {
    int sequence, segment, head, column;
};

// The first launch has more blocks than such units, those of the pass.
KKT_DEVICE Place find_place(const Problem &p, int index) {
    constexpr int splits = P::dv / P::block_dv;
    const int head = index / splits;
    const int place = head / p.heads_v;
    const bool first = gridDim.x > p.units;
    Place at;
    at.sequence = first ? place : place / C::later;
    at.segment = first ? 0 : 1 + place % C::later;
    at.head = head % p.heads_v;
    at.column = index % splits * P::block_dv;
    return at;
}

// For ws_block.cuh. A block has one unit, and its Problem's h0 and ht are those of the unit's head.
KKT_DEVICE Unit find_unit(const Problem &p, int index) {
    const Place at = find_place(p, index);
    Unit u = find_segment(p, at.sequence, at.segment, at.head);
    u.column = at.column;
    u.state = at.column;
    return u;
}

KKT_DEVICE int count_chunks(const Problem &p) {
    return find_unit(p, blockIdx.x).chunks;
}
