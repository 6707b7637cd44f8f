/* The kkt_solve family's descriptor: its problem keys, its parameters and the launch plan.
 * constraints.c says which configurations make sense, footprint*.c describe one to the model.
 * docs/kkt-solve.md is a tour of all files. */
#include "kernels/kkt_solve/kkt_solve.h"

#include "kernels/kkt_solve/space.h"

/* ---- tables ---- */

static const char *const dtype_names[] = {"bf16", "fp16"};

static const char *const t_form_names[] = {"t", "t_beta"};

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
    [KKT_SOLVE_T_FORM] = {.name = "t_form",
                          .help = "what is written: T, or T diag(beta), column j times beta_j "
                                  "(t_beta)",
                          .count = 2,
                          .values = {KKT_T_PLAIN, KKT_T_BETA},
                          .names = t_form_names,
                          .fallback = KKT_T_PLAIN},
};

static const char *const inverse_names[] = {"row", "recursive", "flat", "neumann"};
static const char *const couple_names[] = {"fp32", "tf32", "fp16", "bf16x3"};
static const char *const kload_names[] = {"ldg", "cp_async", "tma"};
static const char *const mma_names[] = {"mma_sync", "wgmma"};
static const char *const share_names[] = {"key_head", "value_head"};
static const char *const store_names[] = {"direct", "staged", "tma", "tma_halves"};

/* Parameters of one way through the kernel alone. */
#define IN_SHARED_MEMORY                                                                           \
    .depends_on = 1 + KKT_SOLVE_COUPLE,                                                            \
    .depends_values = 1 << KKT_COUPLE_FP32 | 1 << KKT_COUPLE_TF32
#define IN_REGISTERS                                                                               \
    .depends_on = 1 + KKT_SOLVE_COUPLE,                                                            \
    .depends_values = 1 << KKT_COUPLE_FP16 | 1 << KKT_COUPLE_BF16X3

const kkt_param kkt_solve_params[KKT_SOLVE_PARAMS] = {
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
                               "halves (recursive) or block row by block row (flat); neumann: "
                               "by halves, blocks from doubled powers on tensor cores",
                           .count = 4,
                           .values = {KKT_INVERSE_ROW, KKT_INVERSE_RECURSIVE, KKT_INVERSE_FLAT,
                                      KKT_INVERSE_NEUMANN},
                           .names = inverse_names,
                           .fallback = KKT_INVERSE_RECURSIVE},
    [KKT_SOLVE_BASE] = {.name = "base",
                        .macro = "KKT_BASE",
                        .help = "rows of a diagonal block that substitution inverts",
                        .count = 3,
                        .values = {8, 16, 32},
                        .fallback = 16,
                        .depends_on = 1 + KKT_SOLVE_INVERSE,
                        .depends_values = 1 << KKT_INVERSE_RECURSIVE | 1 << KKT_INVERSE_FLAT},
    [KKT_SOLVE_COUPLE] = {.name = "couple",
                          .macro = "KKT_COUPLE",
                          .help = "couplings through shared memory on CUDA cores (fp32) or tensor "
                                  "cores (tf32), or in registers on tensor cores (fp16; bf16x3: "
                                  "about fp32)",
                          .count = 4,
                          .values = {KKT_COUPLE_FP32, KKT_COUPLE_TF32, KKT_COUPLE_FP16,
                                     KKT_COUPLE_BF16X3},
                          .names = couple_names,
                          .fallback = KKT_COUPLE_BF16X3},
    [KKT_SOLVE_THREADS] = {.name = "threads",
                           .macro = "KKT_THREADS",
                           .help = "threads of a block",
                           .count = 4,
                           .values = {32, 64, 128, 256},
                           .fallback = 32},
    [KKT_SOLVE_HEADS_PER_BLOCK] = {.name = "heads_per_block",
                                   .macro = "KKT_HEADS_PER_BLOCK",
                                   .help = "value heads of a block",
                                   .count = 5,
                                   .values = {1, 2, 3, 4, 8},
                                   .fallback = 1},
    [KKT_SOLVE_KLOAD] = {.name = "kload",
                         .macro = "KKT_KLOAD",
                         .help = "K through registers (ldg) or asynchronously, by pieces "
                                 "(cp_async) or as a tile (tma)",
                         .count = 3,
                         .values = {KKT_KLOAD_LDG, KKT_KLOAD_CP_ASYNC, KKT_KLOAD_TMA},
                         .names = kload_names,
                         .fallback = KKT_KLOAD_CP_ASYNC},
    [KKT_SOLVE_BLOCK_PAD] = {.name = "block_pad",
                             .macro = "KKT_BLOCK_PAD",
                             .help = "rows of padding after each block in shared memory",
                             .count = 2,
                             .values = {0, 1},
                             .fallback = 1,
                             IN_SHARED_MEMORY},
    [KKT_SOLVE_ROW_STRIDE] = {.name = "row_stride",
                              .macro = "KKT_ROW_STRIDE",
                              .help = "words from row to row of a 16-column block in shared "
                                      "memory; blocks of 8 and 32 get the same padding",
                              .count = 3,
                              .values = {16, 17, 20},
                              .fallback = 16,
                              IN_SHARED_MEMORY},
    [KKT_SOLVE_TRANSPOSE] = {.name = "transpose",
                             .macro = "KKT_TRANSPOSE",
                             .help = "1: the coupling's intermediate is stored transposed",
                             .count = 2,
                             .values = {0, 1},
                             .fallback = 0,
                             .depends_on = 1 + KKT_SOLVE_COUPLE,
                             .depends_values = 1 << KKT_COUPLE_FP32},
    [KKT_SOLVE_NEGATE_EARLY] = {.name = "negate_early",
                                .macro = "KKT_NEGATE_EARLY",
                                .help = "1: blocks below the diagonal are stored negated",
                                .count = 2,
                                .values = {0, 1},
                                .fallback = 1,
                                IN_SHARED_MEMORY},
    [KKT_SOLVE_ASSEMBLE_FUSED] = {.name = "assemble_fused",
                                  .macro = "KKT_ASSEMBLE_FUSED",
                                  .help = "1: T goes out from its blocks; 0: through a dense tile "
                                          "put together in three passes",
                                  .count = 2,
                                  .values = {0, 1},
                                  .fallback = 1,
                                  IN_SHARED_MEMORY},

    [KKT_SOLVE_MMA] = {.name = "mma",
                       .macro = "KKT_MMA",
                       .help = "K K^T by one warp's tensor-core instructions or a warpgroup's",
                       .count = 2,
                       .values = {KKT_MMA_SYNC, KKT_MMA_WGMMA},
                       .names = mma_names,
                       .fallback = KKT_MMA_SYNC,
                       IN_REGISTERS},
    [KKT_SOLVE_STORE] = {.name = "store",
                         .macro = "KKT_STORE",
                         .help = "T from fragments (direct), from a tile in 16-byte pieces "
                                 "(staged), or as one tile or two (tma, tma_halves)",
                         .count = 4,
                         .values = {KKT_STORE_DIRECT, KKT_STORE_STAGED, KKT_STORE_TMA,
                                    KKT_STORE_TMA_HALVES},
                         .names = store_names,
                         .fallback = KKT_STORE_STAGED,
                         IN_REGISTERS},
    [KKT_SOLVE_SHARE] = {.name = "share",
                         .macro = "KKT_SHARE",
                         .help = "what forms a K K^T: a block for all its value heads, of one key "
                                 "head (key_head), or a warp for its own (value_head)",
                         .count = 2,
                         .values = {KKT_SHARE_KEY_HEAD, KKT_SHARE_VALUE_HEAD},
                         .names = share_names,
                         .fallback = KKT_SHARE_KEY_HEAD,
                         IN_REGISTERS},
    [KKT_SOLVE_WARPS_PER_HEAD] = {.name = "warps_per_head",
                                  .macro = "KKT_WARPS_PER_HEAD",
                                  .help = "warps that invert a head's chunk: 2 take a diagonal "
                                          "half each and couple them together",
                                  .count = 2,
                                  .values = {1, 2},
                                  .fallback = 1,
                                  IN_REGISTERS},
    [KKT_SOLVE_CHUNKS_PER_BLOCK] =
        {.name = "chunks_per_block",
         .macro = "KKT_CHUNKS_PER_BLOCK",
         .help = "neighbouring chunks of a sequence that a block takes at once, 64 rows at most",
         .count = 3,
         .values = {1, 2, 4},
         .fallback = 1,
         IN_REGISTERS},
    [KKT_SOLVE_MIN_BLOCKS] =
        {.name = "min_blocks",
         .macro = "KKT_MIN_BLOCKS",
         .help = "blocks on an SM that the compiler must leave registers for; 0: any",
         .count = 7,
         .values = {0, 3, 4, 5, 8, 12, 16},
         .fallback = 0,
         IN_REGISTERS},
    [KKT_SOLVE_CARVEOUT] = {.name = "carveout",
                            .macro = "KKT_CARVEOUT",
                            .help = "percent of shared memory that the SM is asked to set aside, "
                                    "the rest is L1; 0: the driver's choice",
                            .count = 2,
                            .values = {0, 100},
                            .fallback = 0,
                            IN_REGISTERS},
    [KKT_SOLVE_PERSISTENT] =
        {.name = "persistent",
         .macro = "KKT_PERSISTENT",
         .help = "1: as many blocks as run at once, each takes chunk after chunk and has the next "
                 "one's K loaded meanwhile",
         .count = 2,
         .values = {0, 1},
         .fallback = 0,
         IN_REGISTERS},
};

const kkt_param_table kkt_solve_problem_table = {
    .what = "problem key", .params = problem_keys, .count = KKT_SOLVE_PROBLEM_KEYS};
const kkt_param_table kkt_solve_param_table = {
    .what = "parameter", .params = kkt_solve_params, .count = KKT_SOLVE_PARAMS};

static const char *const default_problems[] = {
    "tokens=32768,heads_k=16,heads_v=64", "tokens=8192,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=32",  "tokens=32768,heads_k=32,heads_v=32",
    "tokens=32768,heads_k=2,heads_v=8",   NULL,
};

/* The kernel and all it includes. */
static const char *const sources[] = {
    "kkt_solve/kkt_solve.cu",
    "device/async_copy.cuh",
    "device/convert.cuh",
    "device/coupling.cuh",
    "device/fragment.cuh",
    "device/gate.cuh",
    "device/lower_blocks.cuh",
    "device/mma_sync.cuh",
    "device/substitution.cuh",
    "device/team.cuh",
    "device/types.cuh",
    "device/block_inverse.cuh",
    "device/gate_factors.cuh",
    "device/matrix_move.cuh",
    "device/mbarrier.cuh",
    "device/register_blocks.cuh",
    "device/swizzle.cuh",
    "device/tensor_map.cuh",
    "device/wgmma.cuh",
    "kkt_solve/parameters.cuh",
    "kkt_solve/register_inverse.cuh",
    "kkt_solve/register_layout.cuh",
    "kkt_solve/register_load.cuh",
    "kkt_solve/register_output.cuh",
    "kkt_solve/register_path.cuh",
    "kkt_solve/register_product.cuh",
    "kkt_solve/register_team.cuh",
    "kkt_solve/register_warp.cuh",
    "kkt_solve/shared_path.cuh",
    "kkt_solve/work.cuh",
    NULL,
};

/* ---- compiling and launching ---- */

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    kkt_footprint footprint;
    kkt_solve_footprint(problem, config, arch, &footprint);
    kkt_text_printf(out, "KKT_DK=%lld\n", (long long)problem->v[KKT_SOLVE_DK]);
    kkt_text_printf(out, "KKT_DTYPE=%lld\n", (long long)problem->v[KKT_SOLVE_DTYPE]);
    kkt_text_printf(out, "KKT_GATED=%lld\n", (long long)problem->v[KKT_SOLVE_GATED]);
    kkt_text_printf(out, "KKT_T_FORM=%lld\n", (long long)problem->v[KKT_SOLVE_T_FORM]);
    kkt_text_printf(out, "KKT_SMEM_BYTES=%lld\n", (long long)kkt_footprint_smem_bytes(&footprint));
}

static void add_tensor(kkt_launch *launch, int tensor) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = tensor};
}

static void add_integer(kkt_launch *launch, kkt_arg_kind kind, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = kind, .integer = value};
}

enum { GRID_ROWS = 32768 }; /* of the grid's y, below its limit of 65,535 */

/* K as a matrix of all key heads' columns; a box is a panel of 64 columns of a span. */
static kkt_tensor_map k_map(const int64_t *p, const int64_t *c) {
    const int64_t columns = p[KKT_SOLVE_HEADS_K] * p[KKT_SOLVE_DK];
    return (kkt_tensor_map){.rank = 2,
                            .dims = {columns, p[KKT_SOLVE_TOKENS]},
                            .strides_bytes = {0, columns * 2},
                            .box = {64, (int)kkt_solve_span(c)},
                            .swizzle_bytes = 128,
                            .promotion_bytes = 256}; /* a key head's panels are neighbours */
}

/* T likewise; a box is what one store writes: the span, half of it or a quarter of a chunk, at most
 * 64 columns wide. */
static kkt_tensor_map t_map(const int64_t *p, const int64_t *c) {
    const int64_t chunk = c[KKT_SOLVE_CHUNK], columns = p[KKT_SOLVE_HEADS_V] * chunk;
    const int halves = c[KKT_SOLVE_STORE] == KKT_STORE_TMA_HALVES ? 2 : 1;
    const int columns_of_store = (int)(chunk / c[KKT_SOLVE_WARPS_PER_HEAD]);
    const int width = columns_of_store < 64 ? columns_of_store : 64;
    return (kkt_tensor_map){.rank = 2,
                            .dims = {columns, p[KKT_SOLVE_TOKENS]},
                            .strides_bytes = {0, columns * 2},
                            .box = {width, (int)kkt_solve_span(c) / halves},
                            .swizzle_bytes = width * 2};
}

static void add_map(kkt_launch *launch, int tensor, kkt_tensor_map map) {
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_TENSOR_MAP, .tensor = tensor, .map = map};
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t *p = problem->v;
    kkt_footprint footprint;
    kkt_solve_footprint(problem, config, arch, &footprint);
    const int64_t slots = kkt_solve_slots(p, config->v);
    const int64_t carveout = config->v[KKT_SOLVE_CARVEOUT];
    const int64_t rows = slots < GRID_ROWS ? slots : GRID_ROWS;
    *out = (kkt_plan){.launch_count = 1};
    kkt_launch *launch = &out->launches[0];
    *launch = (kkt_launch){.entry = "kkt_solve",
                           .grid = {(uint32_t)(footprint.blocks / slots), (uint32_t)rows,
                                    (uint32_t)((slots + rows - 1) / rows)},
                           .block = {(uint32_t)footprint.threads, 1, 1},
                           .dynamic_smem_bytes = kkt_footprint_smem_bytes(&footprint),
                           .carveout_percent = carveout > 0 ? (int)carveout : -1};
    if (config->v[KKT_SOLVE_PERSISTENT]) {
        launch->grid[0] = (uint32_t)footprint.blocks;
        launch->grid[1] = launch->grid[2] = 1;
    }
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
    const int64_t ratio = p[KKT_SOLVE_HEADS_V] / p[KKT_SOLVE_HEADS_K];
    add_integer(launch, KKT_ARG_I32, /* blocks or, where each has its own, heads a key head */
                config->v[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD
                    ? ratio
                    : ratio / config->v[KKT_SOLVE_HEADS_PER_BLOCK]);
    add_integer(launch, KKT_ARG_I32, slots);
    if (kkt_solve_uses_tensor_maps(config->v)) {
        add_map(launch, KKT_SOLVE_TENSOR_K, k_map(p, config->v));
        add_map(launch, KKT_SOLVE_TENSOR_T, t_map(p, config->v));
    }
}

/* Of a row with the quotient of heads asked for, whether blocks share a key head or not. */
static const char *const row_needs[] = {"heads_v % kkt_row->heads_per_block == 0", NULL};

static const kkt_variant materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {.what = "parameter", .params = kkt_solve_params, .count = KKT_SOLVE_PARAMS},
    .source = "kkt_solve/kkt_solve.cu",
    .sources = sources,
    .applicable = kkt_solve_applicable,
    .row_needs = row_needs,
    .footprint = kkt_solve_footprint,
    .defines = defines,
    .plan = plan,
    .tolerance = kkt_solve_tolerance,
    .rounding = kkt_solve_rounding,
};

extern const kkt_variant kkt_solve_library; /* library.c */

static const kkt_variant *const variants[] = {&materialized, &kkt_solve_library};

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
    .cases = kkt_cases,
    .case_count = KKT_CASE_COUNT,
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
