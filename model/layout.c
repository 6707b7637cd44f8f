#include "model/layout.h"

#include <stdlib.h>
#include <string.h>

#include "model/occupancy.h"

static void add(kkt_layout *layout, const char *name, int64_t bytes) {
    if (layout->part_count >= KKT_LAYOUT_PARTS)
        abort(); /* a layout of this file is longer than the array: a bug */
    layout->parts[layout->part_count++] = (kkt_layout_part){.name = name, .bytes = bytes};
    layout->total += bytes;
}

/* ---- the article's warp-specialized fused forward: 512 threads, everything of size C x something
 * in shared memory; gates and barriers are given as about 1 KB whatever C ---- */

static bool always(const kkt_layout_query *query) {
    (void)query;
    return true;
}

static void seed_warp_specialized(const kkt_layout_query *q, kkt_layout *out) {
    const int64_t e = q->element_bytes, stages = q->buffers;
    const int64_t keys = q->chunk * q->dk * e, values = q->chunk * q->block_dv * e;
    const int64_t square = q->chunk * q->chunk * e;
    out->threads = 512;
    add(out, "q", stages * keys);
    add(out, "k", stages * keys);
    add(out, "v", stages * values);
    add(out, "o", values);
    add(out, "h", values);
    add(out, "vd", values);
    add(out, "vn", values);
    add(out, "a", stages * square);
    add(out, "p", square);
    add(out, "gates_and_barriers", 1024);
}

/* ---- FlashQLA 0.1.2's fused forward: as above, but the state tile h is dk x block_dv. Built for
 * C = 64 on Hopper and C = 32 on parts with 100 KB. Its gate tables were not itemised by those who
 * measured the totals (within 1.5 KiB): g and beta in two stages, two fp32 tables of exponentials
 * and the barriers come to the observed remainder. ---- */

static bool flashqla_fwd_applies(const kkt_layout_query *query) {
    return query->buffers == 2;
}

static void flashqla_fwd(const kkt_layout_query *q, kkt_layout *out) {
    const int64_t e = q->element_bytes, stages = 2;
    const int64_t keys = q->chunk * q->dk * e, values = q->chunk * q->block_dv * e;
    const int64_t square = q->chunk * q->chunk * e;
    out->threads = 512;
    add(out, "q", stages * keys);
    add(out, "k", stages * keys);
    add(out, "v", stages * values);
    add(out, "o", values);
    add(out, "h", q->dk * q->block_dv * e);
    add(out, "vd", values);
    add(out, "vn", values);
    add(out, "a", stages * square);
    add(out, "p", square);
    add(out, "gates_and_barriers", (stages * 2 + 2) * q->chunk * 4 + 128);
}

/* ---- FlashQLA's kkt_solve: one K tile, beta, one C x C fp32 table, the diagonal 16 x 16 blocks
 * and the couplings of each level; blocks of 16 have one row of padding, wider ones none ---- */

static bool kkt_solve_applies(const kkt_layout_query *query) {
    int64_t blocks = query->chunk / 16;
    return query->buffers == 1 && query->chunk % 16 == 0 && blocks > 0 &&
           (blocks & (blocks - 1)) == 0;
}

static void flashqla_kkt_solve(const kkt_layout_query *q, kkt_layout *out) {
    const int64_t padded_block = 17 * 16 * 4;
    out->threads = 128;
    add(out, "k", q->chunk * q->dk * q->element_bytes);
    add(out, "beta", q->chunk * 4);
    add(out, "a", q->chunk * q->chunk * 4);
    add(out, "diagonal_16", q->chunk / 16 * padded_block);
    if (q->chunk > 16)
        add(out, "coupling_16", q->chunk / 32 * padded_block);
    int64_t wider = 0;
    for (int64_t half = 32; half < q->chunk; half *= 2)
        wider += q->chunk / (2 * half) * half * half * 4;
    if (wider > 0)
        add(out, "coupling_wider", wider);
}

static const int one_or_two[] = {1, 2, 0};
static const int two[] = {2, 0};
static const int one[] = {1, 0};

static const kkt_layout_source sources[] = {
    {
        .name = "seed_warp_specialized",
        .summary = "warp-specialized fused forward as the article lays it out",
        .buffers = one_or_two,
        .applies = always,
        .fill = seed_warp_specialized,
    },
    {
        .name = "flashqla_fwd",
        .summary = "FlashQLA 0.1.2 fused forward (C = 64 on Hopper, C = 32 on sm_12x)",
        .buffers = two,
        .applies = flashqla_fwd_applies,
        .fill = flashqla_fwd,
    },
    {
        .name = "flashqla_kkt_solve",
        .summary = "FlashQLA kkt_solve (the article's listing at C = 32)",
        .buffers = one,
        .applies = kkt_solve_applies,
        .fill = flashqla_kkt_solve,
    },
};

const kkt_layout_source *kkt_layouts(size_t *count) {
    *count = sizeof sources / sizeof sources[0];
    return sources;
}

const kkt_layout_source *kkt_layout_find(const char *name) {
    for (size_t i = 0; name && i < sizeof sources / sizeof sources[0]; ++i)
        if (strcmp(sources[i].name, name) == 0)
            return &sources[i];
    return NULL;
}

bool kkt_layout_compute(const kkt_layout_source *source, const kkt_layout_query *query,
                        kkt_layout *out) {
    if (!source->applies(query))
        return false;
    *out = (kkt_layout){.name = source->name,
                        .chunk = query->chunk,
                        .block_dv = query->block_dv,
                        .buffers = query->buffers};
    source->fill(query, out);
    return true;
}

void kkt_layout_from_footprint(const char *name, const kkt_footprint *footprint, int64_t block_dv,
                               int buffers, kkt_layout *out) {
    *out = (kkt_layout){.name = name,
                        .chunk = footprint->chunk,
                        .block_dv = block_dv,
                        .buffers = buffers,
                        .threads = footprint->threads};
    for (int i = 0; i < footprint->buffer_count; ++i) {
        const kkt_buffer *buffer = &footprint->buffers[i];
        if (buffer->place != KKT_PLACE_SHARED)
            continue;
        add(out, buffer->name, buffer->overlays ? 0 : (kkt_buffer_bytes(buffer) + 15) / 16 * 16);
        if (buffer->overlays)
            out->parts[out->part_count - 1].reuses = footprint->buffers[buffer->overlays - 1].name;
    }
    if (footprint->static_smem_bytes > 0)
        add(out, "static", footprint->static_smem_bytes);
}

int kkt_layout_blocks_per_sm(const kkt_layout *layout, const kkt_arch *arch) {
    kkt_occupancy_request request = {.threads = 32, .registers = 1, .dynamic_smem = layout->total};
    kkt_occupancy occupancy;
    kkt_occupancy_compute(arch, &request, &occupancy);
    return occupancy.limits[KKT_LIMIT_SHARED_MEMORY];
}
