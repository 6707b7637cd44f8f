#include "kernels/gemv/space.h"

#include <math.h>
#include <stdio.h>

#include "base/integer.h"

static const char *const x_names[] = {"global", "shared"};
static const char *const keep_names[] = {"cached", "stream", "stream_wide"};
static const char *const reduce_names[] = {"end", "step"};

const kkt_param kkt_gemv_params[KKT_GEMV_SPLIT_PARAMS] = {
    [KKT_GEMV_ROWS_PER_BLOCK] = {.name = "rows_per_block",
                                 .macro = "KKT_ROWS_PER_BLOCK",
                                 .help = "elements of y that a block computes",
                                 .count = 10,
                                 .values = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
                                 .fallback = 2},
    [KKT_GEMV_ROW_THREADS] = {.name = "row_threads",
                              .macro = "KKT_ROW_THREADS",
                              .help = "threads that share the sum of a row",
                              .count = 7,
                              .values = {1, 8, 32, 64, 128, 256, 512},
                              .fallback = 128},
    [KKT_GEMV_THREADS] = {.name = "threads",
                          .macro = "KKT_THREADS",
                          .help = "threads of a block",
                          .count = 4,
                          .values = {64, 128, 256, 512},
                          .fallback = 128},
    [KKT_GEMV_VEC] = {.name = "vec",
                      .macro = "KKT_VEC",
                      .help = "elements of A that one load brings",
                      .count = 4,
                      .values = {1, 2, 4, 8},
                      .fallback = 8},
    [KKT_GEMV_UNROLL] = {.name = "unroll",
                         .macro = "KKT_UNROLL",
                         .help = "loads of each of its rows that a thread has in flight",
                         .count = 5,
                         .values = {1, 2, 4, 8, 16},
                         .fallback = 4},
    [KKT_GEMV_X_PLACE] = {.name = "x",
                          .macro = "KKT_X",
                          .help = "where threads read x from: global (by way of L1) or shared",
                          .count = 2,
                          .values = {KKT_GEMV_X_GLOBAL, KKT_GEMV_X_SHARED},
                          .names = x_names,
                          .fallback = KKT_GEMV_X_GLOBAL},
    [KKT_GEMV_KEEP] = {.name = "keep",
                       .macro = "KKT_KEEP",
                       .help = "what loads of A leave in the caches: cached (L1 too), stream (not "
                               "in L1), stream_wide (the same, 256 bytes at a time to L2)",
                       .count = 3,
                       .values = {KKT_GEMV_CACHED, KKT_GEMV_STREAM, KKT_GEMV_STREAM_WIDE},
                       .names = keep_names,
                       .fallback = KKT_GEMV_STREAM},
    [KKT_GEMV_REDUCE] = {.name = "reduce",
                         .macro = "KKT_REDUCE",
                         .help = "when the threads of a row add up: at its end, or at each step",
                         .count = 2,
                         .values = {KKT_GEMV_REDUCE_END, KKT_GEMV_REDUCE_STEP},
                         .names = reduce_names,
                         .fallback = KKT_GEMV_REDUCE_END},
    [KKT_GEMV_MIN_BLOCKS] = {.name = "min_blocks",
                             .macro = "KKT_MIN_BLOCKS",
                             .help = "blocks of an SM that the compiler must leave registers for; "
                                     "0: its choice",
                             .count = 4,
                             .values = {0, 2, 4, 8},
                             .fallback = 0},
    [KKT_GEMV_SPLIT_K] = {.name = "split_k",
                          .macro = "KKT_SPLIT_K",
                          .help = "blocks that share the sum of a row, by way of HBM",
                          .count = 6,
                          .values = {2, 4, 8, 16, 32, 64},
                          .fallback = 4},
};

const char *const kkt_gemv_sources[] = {
    "gemv/gemv.cu",         "device/convert.cuh",  "device/elements.cuh", "device/types.cuh",
    "gemv/column_sums.cuh", "gemv/parameters.cuh", "gemv/row_sums.cuh",   NULL,
};

/* What L1 looks up at once, and what it brings from L2 at the least. */
enum { LINE_BYTES = 128, SECTOR_BYTES = 32 };

/* Rows that a thread sums at once. */
static int64_t rows_each(const kkt_values *config) {
    return config->v[KKT_GEMV_ROWS_PER_BLOCK] * config->v[KKT_GEMV_ROW_THREADS] /
           config->v[KKT_GEMV_THREADS];
}

/* Stored rows so far apart begin alike: at the same element of a load's vector. */
static int64_t alike(const kkt_values *problem, const kkt_values *config) {
    const int64_t lda = kkt_gemv_lda(problem);
    int64_t apart = config->v[KKT_GEMV_VEC];
    while (apart > 1 && lda * (apart / 2) % config->v[KKT_GEMV_VEC] == 0)
        apart /= 2;
    return apart;
}

static bool is_transposed(const kkt_values *problem) {
    return problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_T;
}

static bool rows_fit(const kkt_values *problem, const kkt_values *config, char *reason,
                     size_t size) {
    const int64_t *c = config->v;
    const long long rows = c[KKT_GEMV_ROWS_PER_BLOCK], threads = c[KKT_GEMV_THREADS];
    const long long share = c[KKT_GEMV_ROW_THREADS];
    if (share > threads) {
        kkt_reason(reason, size, "row_threads %lld is above threads %lld", share, threads);
        return false;
    }
    if (rows * share % threads != 0) {
        kkt_reason(reason, size, "%lld rows leave some of %lld threads, %lld a row, without work",
                   rows, threads, share);
        return false;
    }
    const long long each = rows * share / threads, vec = c[KKT_GEMV_VEC];
    if (is_transposed(problem) && each != vec) {
        kkt_reason(
            reason, size,
            "layout t: a thread has %lld rows, but vec is %lld; rows_per_block must be vec x "
            "threads / row_threads, %lld",
            each, vec, vec * threads / share);
        return false;
    }
    if (is_transposed(problem) && rows * 2 < SECTOR_BYTES && rows < problem->v[KKT_GEMV_M]) {
        kkt_reason(reason, size,
                   "layout t: %lld columns of a block are less than a sector of %d bytes", rows,
                   SECTOR_BYTES);
        return false;
    }
    if (!is_transposed(problem) && each > 4) {
        kkt_reason(reason, size, "%lld rows of a thread at once are more than 4", each);
        return false;
    }
    if (!is_transposed(problem) && each * c[KKT_GEMV_UNROLL] > 16) {
        kkt_reason(reason, size, "%lld loads of a thread in flight are more than 16",
                   each * (long long)c[KKT_GEMV_UNROLL]);
        return false;
    }
    return true;
}

bool kkt_gemv_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size) {
    const int64_t *c = config->v;
    const long long most = (long long)arch->max_warps_per_sm * 32;
    if (arch->major < 8) {
        kkt_reason(reason, size, "%s does not convert pairs to 16 bits: sm80 or later does",
                   arch->name);
        return false;
    }
    if (!rows_fit(problem, config, reason, size))
        return false;
    if (is_transposed(problem) && alike(problem, config) > 1) {
        kkt_reason(reason, size, "layout t: vec %lld does not divide lda %lld",
                   (long long)c[KKT_GEMV_VEC], (long long)kkt_gemv_lda(problem));
        return false;
    }
    if (c[KKT_GEMV_REDUCE] == KKT_GEMV_REDUCE_STEP &&
        (is_transposed(problem) || c[KKT_GEMV_ROW_THREADS] > 32 || c[KKT_GEMV_ROW_THREADS] == 1)) {
        kkt_reason(reason, size, "reduce=step is for rows of 2 to 32 threads of layout n");
        return false;
    }
    if (c[KKT_GEMV_MIN_BLOCKS] * c[KKT_GEMV_THREADS] > most) {
        snprintf(
            reason, size, "min_blocks %lld of %lld threads are more than an SM of %s takes, %lld",
            (long long)c[KKT_GEMV_MIN_BLOCKS], (long long)c[KKT_GEMV_THREADS], arch->name, most);
        return false;
    }
    return true;
}

/* Floats that threads hand each other in shared memory: warps of a row, or, in layout t, threads
 * that share a column. */
static int64_t partials(const kkt_values *problem, const kkt_values *config) {
    const int64_t share = config->v[KKT_GEMV_ROW_THREADS];
    if (is_transposed(problem))
        return share > 1 ? share * config->v[KKT_GEMV_ROWS_PER_BLOCK] : 0;
    return share > 32 ? config->v[KKT_GEMV_THREADS] / 32 * rows_each(config) : 0;
}

static void add_table(kkt_footprint *fp, const char *name, int64_t each) {
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, name, fp->threads, each, 4);
}

/* With x in shared memory a loop over single elements waits for nothing but A: the compiler unrolls
 * it as far as it likes. */
#define UNROLLED_REGISTERS 78

/* Registers that the compiler takes where nothing holds it back: least squares of the relative
 * error over 106 configurations (sm_90a, NVRTC 13.0), all within 28 %. `a` and `factors` are the
 * words of A and x in flight. Loops over one or two vectors it unrolls further by itself. Where x
 * does not begin with the rows, its elements are picked up one by one. */
static double expected_registers(const kkt_values *problem, const kkt_values *config, double a,
                                 double factors) {
    const int64_t *c = config->v;
    const double unroll = (double)c[KKT_GEMV_UNROLL], vec = (double)c[KKT_GEMV_VEC];
    if (is_transposed(problem))
        return 26.4 + 1.25 * a + 1.74 * unroll + 1.02 * vec;
    const bool naive = c[KKT_GEMV_ROW_THREADS] == 1 && c[KKT_GEMV_VEC] == 1;
    const bool shifted = alike(problem, config) > 1;
    const bool picked = shifted && c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_GLOBAL;
    if (!picked && c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_SHARED && unroll * vec == 1)
        return UNROLLED_REGISTERS;
    const bool short_loop =
        !shifted && c[KKT_GEMV_VEC] == 8 && rows_each(config) * c[KKT_GEMV_UNROLL] <= 2;
    return 23.5 + 0.52 * a + 1.87 * factors + 7.17 * (double)rows_each(config) +
           (picked ? 0.47 / 2 * unroll * vec : 0) + (short_loop ? 17.8 : 0) - (naive ? 18 : 0);
}

static void add_registers(const kkt_values *problem, const kkt_values *config, kkt_footprint *out) {
    const int64_t *c = config->v;
    const int64_t words = kkt_divide_up(c[KKT_GEMV_VEC], 2), each = rows_each(config);
    const bool transposed = is_transposed(problem);
    const int64_t a = c[KKT_GEMV_UNROLL] * words * (transposed ? 1 : each);
    const int64_t factors = c[KKT_GEMV_UNROLL] * (transposed ? 1 : words);
    const int64_t sums = transposed ? c[KKT_GEMV_VEC] : each;
    const bool picked =
        !transposed && alike(problem, config) > 1 && c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_GLOBAL;
    add_table(out, "a", a);
    add_table(out, "factors", factors);
    add_table(out, "sums", sums);
    kkt_role *role = kkt_footprint_role(out, "all", out->threads);
    const double tables = (double)(a + factors + sums);
    role->extra_registers = expected_registers(problem, config, (double)a, (double)factors) -
                            tables - kkt_style_get(out->style)->register_overhead;
    role->least_registers = 12 + tables + (picked ? (double)factors : 0);
}

static void add_buffers(const kkt_values *problem, const kkt_values *config, int64_t span,
                        kkt_footprint *out) {
    const int64_t shared = partials(problem, config);
    if (shared > 0)
        kkt_footprint_buffer(out, KKT_PLACE_SHARED, "partials", 1, shared, 4);
    if (config->v[KKT_GEMV_X_PLACE] == KKT_GEMV_X_SHARED)
        kkt_footprint_buffer(out, KKT_PLACE_SHARED, "x", 1, span, 2);
    add_registers(problem, config, out);
}

/* Copies a thread that bring x to shared memory: 16 bytes each, or an element where rows do not
 * begin alike. */
static double x_copies(const kkt_values *problem, const kkt_values *config, int64_t span) {
    const bool shifted = !is_transposed(problem) && alike(problem, config) > 1;
    return (double)kkt_divide_up(span, config->v[KKT_GEMV_THREADS] * (shifted ? 1 : 8));
}

/* Loads and conversions of A and of what of x meets them, products, loop and addresses. */
static void add_work(const kkt_values *problem, const kkt_values *config, double elements,
                     int64_t span, kkt_footprint *out) {
    const int64_t *c = config->v;
    const double vec = (double)c[KKT_GEMV_VEC], each = (double)rows_each(config);
    const double loads = elements / vec / 32; /* of warps */
    const double warps = (double)out->blocks * out->threads / 32;
    const double steps = loads / (double)c[KKT_GEMV_UNROLL];
    const bool transposed = is_transposed(problem);
    const bool shifted = !transposed && alike(problem, config) > 1;
    const bool shared = c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_SHARED;
    const double x_loads = transposed ? 1 : shifted && !shared ? 2 * vec : 1;
    const double x_values = transposed ? 1 : vec;
    out->fp32_flop = 2 * elements;
    /* Per step of a warp and per warp: counted in the binaries of a dozen configurations. */
    const double rows = transposed ? 1 : each;
    out->instructions = loads * (1 + 2 * vec) + loads / rows * (x_loads + x_values) +
                        steps / rows * (9 + 2 * rows) + warps * (25 + 40 * rows);
    if (c[KKT_GEMV_REDUCE] == KKT_GEMV_REDUCE_STEP)
        out->instructions += steps * 10;
    if (shared)
        out->instructions +=
            (double)out->blocks * x_copies(problem, config, span) * (double)out->threads / 32 * 6;
}

/* What comes to the SMs by way of L2: A, and x for every block, or once for those that share an
 * L1. A load that takes less than a sector of a row leaves the rest to L1, or to the next load. */
static void add_traffic(const kkt_values *problem, const kkt_values *config, double elements,
                        int64_t span, kkt_footprint *out) {
    const int64_t *c = config->v;
    const double k_bytes = 2 * (double)span;
    const double taken = 2 * (double)(c[KKT_GEMV_VEC] * c[KKT_GEMV_ROW_THREADS]);
    const bool kept = c[KKT_GEMV_KEEP] == KKT_GEMV_CACHED || is_transposed(problem);
    const double waste = taken < SECTOR_BYTES && !kept ? SECTOR_BYTES / taken : 1;
    const double neighbours = out->threads < 2048 ? 2048.0 / out->threads : 1;
    const bool shared = c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_SHARED;
    /* Lines of 128 bytes that a warp's load touches, each a pass of the pipe that L1 shares with
     * shared memory. */
    const int64_t beside =
        is_transposed(problem) ? out->threads / c[KKT_GEMV_ROW_THREADS] : c[KKT_GEMV_ROW_THREADS];
    const int64_t together = beside < 32 ? beside : 32;
    const int64_t lines = 32 / together * kkt_divide_up(together * c[KKT_GEMV_VEC] * 2, LINE_BYTES);
    out->global_wavefronts = elements / (double)c[KKT_GEMV_VEC] / 32 * (double)lines;
    /* Of layout t the neighbouring blocks read the neighbouring bytes at the same time. */
    const double run = 2 * (double)(beside * c[KKT_GEMV_VEC] * c[KKT_GEMV_UNROLL]);
    out->run_bytes = is_transposed(problem) ? 0 : run < LINE_BYTES ? LINE_BYTES : run;
    out->l2_read_bytes =
        2 * elements * waste + (double)out->blocks * k_bytes / (shared ? 1 : neighbours);
    if (shared)
        out->smem_wavefronts =
            (double)out->blocks * k_bytes / 128 + 2 * elements / (double)rows_each(config) / 128;
    out->smem_wavefronts += (double)(out->blocks * partials(problem, config)) * 4 / 128 * 2;
}

void kkt_gemv_footprint(kkt_style_id style, const kkt_values *problem, const kkt_values *config,
                        int64_t splits, int64_t span, int sum_bytes, kkt_footprint *out) {
    const int64_t *c = config->v;
    const int64_t m = problem->v[KKT_GEMV_M], k = problem->v[KKT_GEMV_K];
    const bool transposed = is_transposed(problem);
    const int64_t apart = transposed ? 1 : alike(problem, config);
    const double elements = (double)m * (double)k;
    /* What a thread, and all threads of a row, take at once of what is summed up. */
    const int64_t once = c[KKT_GEMV_UNROLL] * (transposed ? 1 : c[KKT_GEMV_VEC]);
    const double taken = (double)(once * (transposed ? 16 : c[KKT_GEMV_ROW_THREADS]));
    *out = (kkt_footprint){.style = style,
                           .tokens = m,
                           .blocks = kkt_divide_up(m, c[KKT_GEMV_ROWS_PER_BLOCK] * apart) * apart *
                                     splits,
                           .chunks_per_block = kkt_divide_up(span, once * c[KKT_GEMV_ROW_THREADS]),
                           .threads = (int)c[KKT_GEMV_THREADS],
                           .cluster = 1,
                           .barriers = 1,
                           .min_blocks = (int)c[KKT_GEMV_MIN_BLOCKS],
                           .launches = 1};
    add_buffers(problem, config, span, out);
    out->hbm_read_bytes = 2 * (elements + (double)k);
    out->hbm_write_bytes = (double)(sum_bytes * m * splits);
    add_work(problem, config, elements, span, out);
    add_traffic(problem, config, elements, span, out);
    /* Where x goes to shared memory first, its copies come before all steps, four at a time. */
    const double before =
        c[KKT_GEMV_X_PLACE] == KKT_GEMV_X_SHARED
            ? ceil(x_copies(problem, config, span) / 4) / (double)out->chunks_per_block
            : 0;
    /* Steps that take less than a sector find most of theirs in L1, and the compiler takes several
     * short ones together. */
    const double sector = SECTOR_BYTES / 2.0; /* in elements */
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, (taken < sector ? taken / sector : 1) + before,
                       0);
    kkt_footprint_step(out, KKT_STEP_COUPLING, once < 8 ? (double)once / 8 : 1, (double)once);
    if (c[KKT_GEMV_REDUCE] == KKT_GEMV_REDUCE_STEP)
        kkt_footprint_step(out, KKT_STEP_COUPLING, 5, 0);
}

void kkt_gemv_defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_text *out) {
    (void)arch;
    kkt_text_printf(out, "KKT_ALIKE=%lld\nKKT_PARTIALS_BYTES=%lld\n",
                    is_transposed(problem) ? 1 : (long long)alike(problem, config),
                    4 * (long long)partials(problem, config));
}

kkt_launch kkt_gemv_launch(const char *entry, const kkt_values *problem, const kkt_values *config,
                           const kkt_footprint *footprint, int64_t splits, int sums) {
    return (kkt_launch){
        .entry = entry,
        .grid = {(uint32_t)(footprint->blocks / splits), (uint32_t)splits, 1},
        .block = {(uint32_t)config->v[KKT_GEMV_THREADS], 1, 1},
        .dynamic_smem_bytes = kkt_footprint_smem_bytes(footprint),
        .carveout_percent = -1,
        .arg_count = 6,
        .args = {{.kind = KKT_ARG_TENSOR, .tensor = KKT_GEMV_A},
                 {.kind = KKT_ARG_TENSOR, .tensor = KKT_GEMV_X},
                 {.kind = KKT_ARG_TENSOR, .tensor = sums},
                 {.kind = KKT_ARG_I32, .integer = problem->v[KKT_GEMV_M]},
                 {.kind = KKT_ARG_I32, .integer = problem->v[KKT_GEMV_K]},
                 {.kind = KKT_ARG_I64, .integer = kkt_gemv_lda(problem)}},
    };
}
