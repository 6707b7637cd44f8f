/* One configuration of kkt_solve as the model sees it, with couplings through shared memory; those
 * in registers are in footprint_registers.c. The buffers in shared memory are those of the plan at
 * the top of shared_path.cuh, in the same order; the kernel asserts that their total is the same.
 * Counts are of what the code executes, padding and masked work included. */
#include "kernels/kkt_solve/wavefronts.h"

#include "model/ledger.h"
#include "model/traffic.h"

#define WARP 32
#define SUB 8 /* rows and columns of a sub-block */

/* A configuration's derived sizes. */
typedef struct sizes {
    int64_t chunk, dk, threads, warps, heads;
    bool gated, tf32, row, recursive;
    int64_t block;      /* rows of a diagonal block: the base, or the chunk for inverse=row */
    int64_t side;       /* blocks a side */
    int64_t block_rows; /* with padding */
    int64_t row_words;  /* with padding */
    int64_t blocks;     /* on and below the diagonal */
    int64_t team_warps, teams;
    int64_t subs; /* sub-blocks a side of the chunk */
} sizes;

static sizes sizes_of(const int64_t *p, const int64_t *c) {
    sizes s = {.chunk = c[KKT_SOLVE_CHUNK],
               .dk = p[KKT_SOLVE_DK],
               .threads = c[KKT_SOLVE_THREADS],
               .heads = c[KKT_SOLVE_HEADS_PER_BLOCK],
               .gated = p[KKT_SOLVE_GATED] != 0,
               .tf32 = c[KKT_SOLVE_COUPLE] == KKT_COUPLE_TF32,
               .row = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_ROW,
               .recursive = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_RECURSIVE};
    s.warps = s.threads / WARP;
    s.block = s.row ? s.chunk : c[KKT_SOLVE_BASE];
    s.side = s.chunk / s.block;
    s.block_rows = s.block + (s.side > 1 ? c[KKT_SOLVE_BLOCK_PAD] : 0);
    s.row_words = s.block + c[KKT_SOLVE_ROW_STRIDE] - 16;
    s.blocks = s.side * (s.side + 1) / 2;
    s.team_warps = s.warps > s.heads ? s.warps / s.heads : 1;
    s.teams = s.warps / s.team_warps < s.heads ? s.warps / s.team_warps : s.heads;
    s.subs = s.chunk / SUB;
    return s;
}

int64_t kkt_solve_tiles(const int64_t *config) {
    const int64_t side = config[KKT_SOLVE_CHUNK] / 16;
    return config[KKT_SOLVE_CHUNKS_PER_BLOCK] * side * (side + 1) / 2;
}

int64_t kkt_solve_tiles_per_warp(const int64_t *config) {
    const int64_t warps = kkt_solve_area_warps(config);
    return (kkt_solve_tiles(config) + warps - 1) / warps;
}

int64_t kkt_solve_slots(const int64_t *problem, const int64_t *config) {
    const int64_t tokens = problem[KKT_SOLVE_TOKENS] / problem[KKT_SOLVE_BATCH],
                  span = kkt_solve_span(config);
    const int64_t sequences = problem[KKT_SOLVE_SEQUENCES];
    if (sequences > 1)
        return tokens / span + sequences;
    return problem[KKT_SOLVE_BATCH] * ((tokens + span - 1) / span);
}

int64_t kkt_solve_units(const int64_t *problem, const int64_t *config) {
    return kkt_solve_slots(problem, config) * problem[KKT_SOLVE_HEADS_V] /
           config[KKT_SOLVE_HEADS_PER_BLOCK];
}

int64_t kkt_solve_blocks(const int64_t *problem, const int64_t *config, const kkt_arch *arch) {
    const int64_t units = kkt_solve_units(problem, config);
    if (!config[KKT_SOLVE_PERSISTENT])
        return units;
    const int64_t sms = (int64_t)kkt_device_first(arch)->sm_count.value;
    const int64_t resident = sms * config[KKT_SOLVE_MIN_BLOCKS];
    return units < resident ? units : resident;
}

/* ---- buffers ---- */

static void shared_memory(const sizes *s, bool fused, kkt_footprint *fp) {
    const int64_t k_bytes = s->chunk * (s->dk + SUB) * 2;
    const int64_t lower_rows = s->heads * s->blocks * s->block_rows;
    const bool lower_larger = lower_rows * s->row_words * 4 > k_bytes;
    /* Whichever is larger owns the space: K is dead when the triangles are written. */
    for (int n = 0; n < 2; ++n) {
        if ((n == 0) == lower_larger)
            kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "lower", lower_rows, s->row_words, 4);
        else
            kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "tile", s->chunk, s->dk + SUB, 2);
    }
    fp->buffers[fp->buffer_count - 1].overlays = fp->buffer_count - 1;
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "beta", s->heads, s->chunk, 4);
    if (s->gated) {
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "sum", s->heads, s->chunk, 4);
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "row", s->heads, s->chunk, 4);
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "column", s->heads, s->chunk, 4);
    }
    if (!fused)
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "dense", s->teams * s->chunk, s->chunk + SUB, 2);
}

/* The larger of the two tables that live at different times: the tiles of K K^T, and the columns
 * that a lane substitutes at once. */
static void registers(const sizes *s, int64_t tiles_per_warp, kkt_footprint *fp) {
    const int64_t columns = (s->chunk + s->team_warps * WARP - 1) / (s->team_warps * WARP);
    const int64_t chains = columns > 1 && s->block < 32 ? 2 : 1;
    const int64_t x = s->block > WARP ? columns : chains * s->block;
    const int64_t tiles = 8 * tiles_per_warp;
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, tiles >= x ? "k_kt" : "x", s->threads,
                         tiles >= x ? tiles : x, 4);
    kkt_role *role = kkt_footprint_role(fp, "all", (int)s->threads);
    /* Operands in flight of the unrolled couplings; a middle of what the compiler takes for sm_90a
     * over the space (its own choices vary by a third). */
    role->extra_registers = s->side > 1 ? 24 : 0;
}

static void hbm_buffers(const sizes *s, const int64_t *p, kkt_footprint *fp) {
    const int64_t tokens = p[KKT_SOLVE_TOKENS];
    kkt_footprint_buffer(fp, KKT_PLACE_HBM, "k", tokens, p[KKT_SOLVE_HEADS_K] * s->dk, 2);
    kkt_footprint_buffer(fp, KKT_PLACE_HBM, "beta", tokens, p[KKT_SOLVE_HEADS_V], 4);
    if (s->gated)
        kkt_footprint_buffer(fp, KKT_PLACE_HBM, "g", tokens, p[KKT_SOLVE_HEADS_V], 4);
    kkt_footprint_buffer(fp, KKT_PLACE_HBM, "t", tokens, p[KKT_SOLVE_HEADS_V] * s->chunk, 2);
}

/* ---- work ---- */

/* Products of one coupling, in steps of 16 x 8 x 8: a triangle of `side` sub-blocks times `across`
 * sub-blocks, two rows of the triangle at a time. */
static int64_t product_steps(int64_t side, int64_t across) {
    int64_t steps = 0;
    for (int64_t i = 0; i < side; i += 2)
        steps += i + 2 < side ? i + 2 : side;
    return steps * across;
}

/* Steps of all couplings of one head. */
static int64_t coupling_steps(const sizes *s) {
    const int64_t block = s->block / SUB;
    int64_t steps = 0;
    if (s->recursive)
        for (int64_t size = block; size < s->subs; size *= 2)
            steps += s->subs / (2 * size) * 2 * product_steps(size, size);
    else
        for (int64_t row = block; row < s->subs; row += block)
            steps += product_steps(block, row) + product_steps(row, block);
    return steps;
}

static int64_t coupling_depth(const sizes *s) {
    if (s->recursive)
        return 2 * kkt_inverse_levels(s->chunk, s->block);
    return 2 * (s->side - 1);
}

static void work(const sizes *s, int64_t tiles, kkt_footprint *fp) {
    const double blocks = (double)fp->blocks, heads = (double)s->heads;
    const double pairs = (double)(s->chunk * s->block * (s->block - 1)) / 2; /* columns x FMA */
    const double elements = 256.0 * (double)tiles;
    const double steps = s->side > 1 ? (double)coupling_steps(s) : 0;
    const double units = (double)(s->chunk * s->subs) / WARP; /* 16-byte stores, warps */
    const double k_units = (double)(s->chunk * s->dk) / 8 / WARP;

    fp->tensor_flop = blocks * 2 * elements * (double)s->dk;
    fp->fp32_flop = blocks * heads * 2 * (pairs + elements);
    if (s->tf32)
        fp->tf32_flop = blocks * heads * steps * 2048;
    else
        fp->fp32_flop += blocks * heads * steps * 2048;

    const double mma_pairs = (double)(tiles * s->dk) / 16;
    /* Warp instructions, a little below what the same counters gave (4098 a head): about 250 a
     * warp for finding its work, 12 a row of 32 gated elements, 18 a tensor-core step. */
    const double step_instructions = s->tf32 ? 18 : 60;
    const double start = 250.0 * (double)s->warps;
    fp->instructions =
        blocks * (start + k_units * 8 + mma_pairs * 8 +
                  heads * (elements / WARP * (s->gated ? 12 : 8) + pairs / WARP * 1.8 +
                           steps * step_instructions + units * 20));
}

static void chain(const sizes *s, kkt_footprint *fp) {
    kkt_footprint_step(fp, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(fp, KKT_STEP_BARRIER, 3 + (s->side > 1 ? (double)(coupling_depth(s)) : 0),
                       0);
    kkt_footprint_step(fp, KKT_STEP_SUBSTITUTION, (double)(s->block - 1), (double)s->block / 2);
    if (s->side > 1)
        kkt_footprint_step(fp, s->tf32 ? KKT_STEP_MMA : KKT_STEP_COUPLING,
                           (double)coupling_depth(s), s->tf32 ? 0 : (double)s->block);
    kkt_footprint_step(fp, KKT_STEP_STORE, 1, 0);
}

static void through_shared_memory(const sizes *s, const int64_t *c, kkt_footprint *fp) {
    /* Barrier 0, and a named one a team where a team is neither a warp nor the block. */
    fp->barriers = 1;
    if (s->team_warps > 1 && s->team_warps < s->warps)
        fp->barriers += (int)(s->warps / s->team_warps);
    shared_memory(s, c[KKT_SOLVE_ASSEMBLE_FUSED] != 0, fp);
    registers(s, kkt_solve_tiles_per_warp(c), fp);
    work(s, kkt_solve_tiles(c), fp);
    chain(s, fp);
}

/* Blocks that come and go do so in order, and the rows of T that neighbours write to a token lie
 * side by side in one page of memory at one time. Blocks that stay keep in step for some turns,
 * then drift apart, and each one's run of bytes counts alone: model/time.c says what a short run
 * costs. The four turns are a guess; pairs that differ in `persistent` alone gain with four turns
 * and lose with eleven and sixteen. */
#define TURNS_IN_STEP 4.0

static double run_of_turns(const int64_t *c, const kkt_footprint *fp) {
    const double turns = (double)fp->chunks_per_block;
    const double run = 2.0 * (double)(c[KKT_SOLVE_HEADS_PER_BLOCK] * c[KKT_SOLVE_CHUNK]);
    const double written = fp->hbm_write_bytes / (fp->hbm_read_bytes + fp->hbm_write_bytes);
    return turns > TURNS_IN_STEP ? run / (written * (1 - TURNS_IN_STEP / turns)) : 0;
}

/* Lines of beta and g that the threads of the register path load, each a token's. Their tensors'
 * rows of 64 heads lie two lines apart, and such loads take twice as long as with 32 heads: as if
 * they shared every second place. */
static double gate_lines(const int64_t *p, const int64_t *c, int64_t units) {
    const double lines_apart = (double)p[KKT_SOLVE_HEADS_V] * 4 / 128;
    const double tensors = p[KKT_SOLVE_GATED] ? 2 : 1;
    return (double)(units * kkt_solve_span(c)) * tensors * lines_apart;
}

void kkt_solve_footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         kkt_footprint *out) {
    const int64_t *p = problem->v, *c = config->v;
    const sizes s = sizes_of(p, c);
    const kkt_attention attention = {.tokens = p[KKT_SOLVE_TOKENS],
                                     .sequences = p[KKT_SOLVE_BATCH] * p[KKT_SOLVE_SEQUENCES],
                                     .heads_k = p[KKT_SOLVE_HEADS_K],
                                     .heads_v = p[KKT_SOLVE_HEADS_V],
                                     .dk = s.dk,
                                     .dv = s.dk, /* plays no part in the solver's bytes */
                                     .element_bytes = 2,
                                     .gated = s.gated};
    const int64_t units = kkt_solve_units(p, c);
    *out = (kkt_footprint){.style = KKT_STYLE_MATERIALIZED,
                           .chunk = (int)s.chunk,
                           .tokens = attention.tokens,
                           .blocks = units, /* until all work is counted */
                           .chunks_per_block = 1,
                           .threads = (int)s.threads,
                           .cluster = 1,
                           .launches = 1};
    hbm_buffers(&s, p, out);
    const double total = (double)kkt_traffic_solve_bytes(&attention, s.chunk);
    out->hbm_write_bytes = 2.0 * (double)(attention.tokens * attention.heads_v * s.chunk);
    out->hbm_read_bytes = total - out->hbm_write_bytes;
    /* Every group of heads that shares a K K^T reads its key head's K again. */
    const int64_t groups =
        attention.heads_v / (c[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD ? 1 : s.heads);
    const int64_t row_bytes = groups * 2 * s.dk + attention.heads_v * (s.gated ? 8 : 4);
    out->l2_read_bytes = (double)(attention.tokens * row_bytes);
    if (kkt_solve_in_registers(c)) {
        kkt_solve_footprint_registers(p, c, out);
        out->l1_lines = gate_lines(p, c, units);
        out->carveout_percent = (int)c[KKT_SOLVE_CARVEOUT];
    } else {
        through_shared_memory(&s, c, out);
    }
    kkt_solve_wavefronts wavefronts;
    kkt_solve_count_wavefronts(p, c, &wavefronts);
    out->smem_wavefronts = (double)units * kkt_solve_total_wavefronts(&wavefronts);
    out->blocks = kkt_solve_blocks(p, c, arch);
    out->chunks_per_block = (units + out->blocks - 1) / out->blocks;
    out->all_chunks = (double)units;
    if (c[KKT_SOLVE_PERSISTENT])
        out->run_bytes = run_of_turns(c, out);
}
