/* The kkt_solve family's descriptor: its problem keys, its parameter space and constraints, and the
 * launch plan. footprint.c describes a configuration to the model. */
#include "kernels/kkt_solve/kkt_solve.h"

#include <stdio.h>

#include "kernels/kkt_solve/space.h"

/* ---- tables ---- */

static const char *const dtype_names[] = {"bf16", "fp16"};

static const kkt_param problem_keys[] = {
    [KKT_SOLVE_BATCH] =
        {.name = "batch", .help = "batch entries", .low = 1, .high = 1024, .fallback = 1},
    [KKT_SOLVE_SEQUENCES] = {.name = "sequences",
                             .help = "sequences packed into the tokens; above 1 needs batch 1",
                             .low = 1,
                             .high = 1 << 24,
                             .fallback = 1},
    [KKT_SOLVE_TOKENS] = {.name = "tokens",
                          .help = "tokens in total, over all batch entries and sequences",
                          .low = 1,
                          .high = 1 << 30,
                          .fallback = 32768},
    [KKT_SOLVE_HEADS_K] =
        {.name = "heads_k", .help = "key heads", .low = 1, .high = 1024, .fallback = 16},
    [KKT_SOLVE_HEADS_V] = {.name = "heads_v",
                           .help = "value heads, a multiple of heads_k",
                           .low = 1,
                           .high = 1024,
                           .fallback = 64},
    [KKT_SOLVE_DK] = {.name = "dk",
                      .help = "key dimension, a multiple of 16",
                      .low = 16,
                      .high = 256,
                      .fallback = 128},
    [KKT_SOLVE_DTYPE] = {.name = "dtype",
                         .help = "type of k and t",
                         .count = 2,
                         .values = {KKT_BF16, KKT_FP16},
                         .names = dtype_names,
                         .fallback = KKT_BF16},
    [KKT_SOLVE_GATED] = {.name = "gated",
                         .help = "1: L carries the decay exp(G_i - G_j)",
                         .count = 2,
                         .values = {0, 1},
                         .fallback = 1},
};

static const char *const inverse_names[] = {"row", "recursive", "flat"};
static const char *const couple_names[] = {"fp32", "tf32"};
static const char *const kload_names[] = {"ldg", "cp_async"};

static const kkt_param params[] = {
    [KKT_SOLVE_CHUNK] = {.name = "chunk",
                         .macro = "KKT_CHUNK",
                         .help = "rows of a chunk",
                         .count = 4,
                         .values = {16, 32, 64, 128},
                         .fallback = 64},
    [KKT_SOLVE_INVERSE] = {.name = "inverse",
                           .macro = "KKT_INVERSE",
                           .help =
                               "substitution of all rows, or of blocks that are then coupled by "
                               "halves (recursive) or block row by block row (flat)",
                           .count = 3,
                           .values = {KKT_INVERSE_ROW, KKT_INVERSE_RECURSIVE, KKT_INVERSE_FLAT},
                           .names = inverse_names,
                           .fallback = KKT_INVERSE_RECURSIVE},
    [KKT_SOLVE_BASE] = {.name = "base",
                        .macro = "KKT_BASE",
                        .help = "rows of a diagonal block that substitution inverts",
                        .count = 3,
                        .values = {8, 16, 32},
                        .fallback = 16},
    [KKT_SOLVE_COUPLE] = {.name = "couple",
                          .macro = "KKT_COUPLE",
                          .help = "couplings on CUDA cores (fp32) or tensor cores (tf32)",
                          .count = 2,
                          .values = {KKT_COUPLE_FP32, KKT_COUPLE_TF32},
                          .names = couple_names,
                          .fallback = KKT_COUPLE_TF32},
    [KKT_SOLVE_THREADS] = {.name = "threads",
                           .macro = "KKT_THREADS",
                           .help = "threads of a block",
                           .count = 4,
                           .values = {32, 64, 128, 256},
                           .fallback = 128},
    [KKT_SOLVE_HEADS_PER_BLOCK] = {.name = "heads_per_block",
                                   .macro = "KKT_HEADS_PER_BLOCK",
                                   .help = "value heads of one key head that share a K K^T",
                                   .count = 5,
                                   .values = {1, 2, 3, 4, 8},
                                   .fallback = 1},
    [KKT_SOLVE_KLOAD] = {.name = "kload",
                         .macro = "KKT_KLOAD",
                         .help = "K through registers (ldg) or asynchronously (cp_async)",
                         .count = 2,
                         .values = {KKT_KLOAD_LDG, KKT_KLOAD_CP_ASYNC},
                         .names = kload_names,
                         .fallback = KKT_KLOAD_CP_ASYNC},
    [KKT_SOLVE_BLOCK_PAD] = {.name = "block_pad",
                             .macro = "KKT_BLOCK_PAD",
                             .help = "rows of padding after each block in shared memory",
                             .count = 2,
                             .values = {0, 1},
                             .fallback = 1},
    [KKT_SOLVE_ROW_STRIDE] = {.name = "row_stride",
                              .macro = "KKT_ROW_STRIDE",
                              .help = "words from row to row of a 16-column block in shared "
                                      "memory; blocks of 8 and 32 get the same padding",
                              .count = 3,
                              .values = {16, 17, 20},
                              .fallback = 16},
    [KKT_SOLVE_TRANSPOSE] = {.name = "transpose",
                             .macro = "KKT_TRANSPOSE",
                             .help = "1: the coupling's intermediate is stored transposed",
                             .count = 2,
                             .values = {0, 1},
                             .fallback = 0},
    [KKT_SOLVE_NEGATE_EARLY] = {.name = "negate_early",
                                .macro = "KKT_NEGATE_EARLY",
                                .help = "1: blocks below the diagonal are stored negated",
                                .count = 2,
                                .values = {0, 1},
                                .fallback = 1},
    [KKT_SOLVE_ASSEMBLE_FUSED] = {.name = "assemble_fused",
                                  .macro = "KKT_ASSEMBLE_FUSED",
                                  .help = "1: T goes out from its blocks; 0: through a dense tile "
                                          "put together in three passes",
                                  .count = 2,
                                  .values = {0, 1},
                                  .fallback = 1},
};

const kkt_param_table kkt_solve_problem_table = {
    .what = "problem key", .params = problem_keys, .count = KKT_SOLVE_PROBLEM_KEYS};
const kkt_param_table kkt_solve_param_table = {
    .what = "parameter", .params = params, .count = KKT_SOLVE_PARAMS};

static const char *const default_problems[] = {
    "tokens=32768,heads_k=16,heads_v=64", "tokens=8192,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=32",  "tokens=32768,heads_k=32,heads_v=32",
    "tokens=32768,heads_k=2,heads_v=8",   NULL,
};

/* The kernel and all it includes. */
static const char *const sources[] = {
    "kkt_solve/kkt_solve.cu",  "device/async_copy.cuh", "device/convert.cuh",
    "device/coupling.cuh",     "device/fragment.cuh",   "device/gate.cuh",
    "device/lower_blocks.cuh", "device/mma_sync.cuh",   "device/substitution.cuh",
    "device/team.cuh",         "device/types.cuh",      NULL,
};

/* ---- constraints ---- */

typedef struct constraint_context {
    const int64_t *p; /* problem */
    const int64_t *c; /* configuration */
    char *reason;
    size_t size;
} constraint_context;

/* Whether parameter `index` has its default value; else says that `why` leaves it no effect. */
static bool is_default(const constraint_context *x, int index, const char *why) {
    const kkt_param *param = &params[index];
    char value[24], fallback[24];
    if (x->c[index] == param->fallback)
        return true;
    snprintf(x->reason, x->size, "%s=%s changes nothing where %s; only %s stands for it",
             param->name, kkt_param_value_text(param, x->c[index], value), why,
             kkt_param_value_text(param, param->fallback, fallback));
    return false;
}

/* Parameters that another parameter leaves without effect do not multiply the space. */
static bool conditional(const constraint_context *x) {
    const int64_t *c = x->c;
    const long long base = c[KKT_SOLVE_BASE], chunk = c[KKT_SOLVE_CHUNK];
    bool row = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_ROW;
    if (row && !is_default(x, KKT_SOLVE_BASE, "inverse is row"))
        return false;
    if (!row && base > chunk) {
        snprintf(x->reason, x->size, "base %lld is above chunk %lld", base, chunk);
        return false;
    }
    if (c[KKT_SOLVE_INVERSE] == KKT_INVERSE_FLAT && base == chunk) {
        snprintf(x->reason, x->size,
                 "base %lld leaves one block of chunk %lld and nothing to couple; "
                 "inverse=recursive stands for it",
                 base, chunk);
        return false;
    }
    if (row || base == chunk) {
        static const int idle[] = {KKT_SOLVE_COUPLE, KKT_SOLVE_BLOCK_PAD, KKT_SOLVE_TRANSPOSE,
                                   KKT_SOLVE_NEGATE_EARLY, KKT_SOLVE_ASSEMBLE_FUSED};
        for (size_t i = 0; i < sizeof idle / sizeof idle[0]; ++i)
            if (!is_default(x, idle[i], "the chunk is one block"))
                return false;
    }
    return c[KKT_SOLVE_COUPLE] == KKT_COUPLE_FP32 ||
           is_default(x, KKT_SOLVE_TRANSPOSE, "couple is tf32");
}

static bool fits(const constraint_context *x) {
    const int64_t *p = x->p, *c = x->c;
    const long long ratio = p[KKT_SOLVE_HEADS_V] / p[KKT_SOLVE_HEADS_K];
    const long long heads = c[KKT_SOLVE_HEADS_PER_BLOCK];
    if (ratio % heads != 0) {
        snprintf(x->reason, x->size, "heads_per_block %lld does not divide heads_v/heads_k = %lld",
                 heads, ratio);
        return false;
    }
    const long long tiles = kkt_solve_tiles_per_warp(c), registers = 8 * tiles;
    if (registers > 255) {
        snprintf(
            x->reason, x->size,
            "chunk %lld at %lld threads keeps %lld tiles of K K^T in each warp: %lld registers "
            "a thread, above 255",
            (long long)c[KKT_SOLVE_CHUNK], (long long)c[KKT_SOLVE_THREADS], tiles, registers);
        return false;
    }
    const long long blocks = kkt_solve_blocks(p, c);
    if (blocks > INT32_MAX) {
        snprintf(x->reason, x->size, "%lld blocks are above the grid's limit of 2147483647",
                 blocks);
        return false;
    }
    return true;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const constraint_context x = {problem->v, config->v, reason, size};
    if (!arch->has_cp_async) {
        snprintf(reason, size, "%s has neither cp.async nor bf16 tensor cores; sm80 or later does",
                 arch->name);
        return false;
    }
    return conditional(&x) && fits(&x);
}

/* ---- compiling and launching ---- */

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint footprint;
    kkt_solve_footprint(problem, config, arch, &footprint);
    kkt_text_printf(out, "KKT_DK=%lld\n", (long long)problem->v[KKT_SOLVE_DK]);
    kkt_text_printf(out, "KKT_DTYPE=%lld\n", (long long)problem->v[KKT_SOLVE_DTYPE]);
    kkt_text_printf(out, "KKT_GATED=%lld\n", (long long)problem->v[KKT_SOLVE_GATED]);
    kkt_text_printf(out, "KKT_SMEM_BYTES=%lld\n", (long long)kkt_footprint_smem_bytes(&footprint));
}

static void add_tensor(kkt_launch *launch, int tensor) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = tensor};
}

static void add_integer(kkt_launch *launch, kkt_arg_kind kind, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = kind, .integer = value};
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t *p = problem->v;
    kkt_footprint footprint;
    kkt_solve_footprint(problem, config, arch, &footprint);
    *out = (kkt_plan){.launch_count = 1};
    kkt_launch *launch = &out->launches[0];
    *launch = (kkt_launch){.entry = "kkt_solve",
                           .grid = {(uint32_t)footprint.blocks, 1, 1},
                           .block = {(uint32_t)footprint.threads, 1, 1},
                           .dynamic_smem_bytes = kkt_footprint_smem_bytes(&footprint),
                           .carveout_percent = -1};
    add_tensor(launch, KKT_SOLVE_TENSOR_K);
    add_tensor(launch, KKT_SOLVE_TENSOR_BETA);
    add_tensor(launch, KKT_SOLVE_TENSOR_G);
    add_tensor(launch, KKT_SOLVE_TENSOR_CU_SEQLENS);
    add_tensor(launch, KKT_SOLVE_TENSOR_T);
    add_integer(launch, KKT_ARG_I64, kkt_solve_length(problem));
    add_integer(launch, KKT_ARG_I32, p[KKT_SOLVE_SEQUENCES]);
    add_integer(launch, KKT_ARG_I32, p[KKT_SOLVE_HEADS_K]);
    add_integer(launch, KKT_ARG_I32, p[KKT_SOLVE_HEADS_V]);
    add_integer(launch, KKT_ARG_I32, 0); /* cu_seqlens holds 32-bit integers */
}

static const kkt_variant variants[] = {
    {.style = KKT_STYLE_MATERIALIZED,
     .params = {.what = "parameter", .params = params, .count = KKT_SOLVE_PARAMS},
     .source = "kkt_solve/kkt_solve.cu",
     .sources = sources,
     .applicable = applicable,
     .footprint = kkt_solve_footprint,
     .defines = defines,
     .plan = plan,
     .tolerance = kkt_solve_tolerance,
     .rounding = kkt_solve_rounding},
};

const kkt_kernel kkt_kernel_kkt_solve = {
    .name = "kkt_solve",
    .summary = "inverse of I + beta K K^T (decayed) of every chunk and value head, written to HBM",
    .problem = {.what = "problem key", .params = problem_keys, .count = KKT_SOLVE_PROBLEM_KEYS},
    .default_problems = default_problems,
    .variants = variants,
    .variant_count = sizeof variants / sizeof variants[0],
    .chunk_param = "chunk",
    .claims = kkt_solve_claims,
    .claim_count = KKT_SOLVE_CLAIM_COUNT,
    .problem_valid = kkt_solve_problem_valid,
    .tensors = kkt_solve_tensors,
    .cases = kkt_solve_cases,
    .case_count = KKT_SOLVE_CASE_COUNT,
    .check_problem = kkt_solve_check_problem,
    .make_inputs = kkt_solve_make_inputs,
    .check_inputs = kkt_solve_check_inputs,
    .part_count = kkt_solve_part_count,
    .part_regions = kkt_solve_part_regions,
    .reference = kkt_solve_reference,
    .score = kkt_solve_score,
    .condition = kkt_solve_condition,
    .from_lower = &kkt_solve_from_lower,
    .advice = kkt_solve_advice,
};
