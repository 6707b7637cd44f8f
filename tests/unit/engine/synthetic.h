/* A small made-up kernel: a space whose times are known in closed form. */
#ifndef KKT_TEST_SYNTHETIC_H
#define KKT_TEST_SYNTHETIC_H

#include <stdio.h>

#include "kernels/kernel.h"

enum { P_CHUNK, P_THREADS, P_STAGES, P_SWIZZLE, P_ORDER, P_PAD };

static const kkt_param synthetic_params[] = {
    {.name = "chunk", .count = 4, .values = {16, 32, 64, 128}, .fallback = 64},
    {.name = "threads", .count = 5, .values = {32, 64, 128, 256, 512}, .fallback = 128},
    {.name = "stages", .count = 6, .values = {1, 2, 3, 4, 5, 6}, .fallback = 2},
    {.name = "swizzle", .count = 4, .values = {0, 1, 2, 3}, .fallback = 0},
    {.name = "order", .count = 5, .values = {0, 1, 2, 3, 4}, .fallback = 0},
    {.name = "pad", .count = 2, .values = {0, 1}, .fallback = 0},
};

static const kkt_param synthetic_problem[] = {
    {.name = "tokens", .low = 1, .high = 1 << 30, .fallback = 4096},
};

static bool synthetic_applicable(const kkt_values *problem, const kkt_values *config,
                                 const kkt_arch *arch, char *reason, size_t size) {
    (void)problem;
    (void)arch;
    if (config->v[P_PAD] == 1 && config->v[P_SWIZZLE] != 0) {
        snprintf(reason, size, "pad 1 is for swizzle 0 only");
        return false;
    }
    return true;
}

/* Shared memory grows with chunk x stages: some configurations do not fit in a block. */
static void synthetic_footprint(const kkt_values *problem, const kkt_values *config,
                                const kkt_arch *arch, kkt_footprint *out) {
    (void)arch;
    out->style = KKT_STYLE_PIPELINED;
    out->chunk = (int)config->v[P_CHUNK];
    out->tokens = problem->v[0];
    out->blocks = problem->v[0] / config->v[P_CHUNK];
    out->chunks_per_block = 1;
    out->threads = (int)config->v[P_THREADS];
    out->cluster = 1;
    out->launches = 1;
    kkt_footprint_role(out, "all", out->threads);
    kkt_buffer *ring =
        kkt_footprint_buffer(out, KKT_PLACE_SHARED, "ring", config->v[P_CHUNK], 256, 2);
    ring->stages = (int)config->v[P_STAGES];
    out->hbm_read_bytes = (double)problem->v[0] * 256;
    out->hbm_write_bytes = (double)problem->v[0] * 2 * (double)config->v[P_CHUNK];
    out->instructions = (double)out->blocks * 1000;
}

static const char *const synthetic_problems[] = {"tokens=4096", NULL};

static const kkt_variant synthetic_variant = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", synthetic_params, sizeof synthetic_params / sizeof *synthetic_params},
    .source = "none.cu",
    .applicable = synthetic_applicable,
    .footprint = synthetic_footprint,
};
static const kkt_variant *const synthetic_variants[] = {&synthetic_variant};

static const kkt_kernel synthetic_kernel = {
    .name = "synthetic",
    .problem = {"problem key", synthetic_problem, 1},
    .default_problems = synthetic_problems,
    .variants = synthetic_variants,
    .variant_count = 1,
    .chunk_param = "chunk",
};

#endif
