/* The fused forward of Gated DeltaNet: q, k, v, beta, g and the incoming state to o and the
 * outgoing state in one kernel; T and the state stay on chip. A block takes one sequence, one
 * value head and block_dv columns of the state, and walks the chunks one after the other.
 *
 * Model-only for now: three write styles with their parameters and footprints, no device code.
 * What differs between the styles is where the C x C tables live:
 *
 *   fragment          Gamma, A and its masked copy in registers (C^2/threads each), the state too
 *   pipelined         operands in a shared ring, one C x C table and the accumulators in registers
 *   warp_specialized  everything in shared memory, double-buffered; four warpgroups by role
 *
 * HBM bytes: docs/model.md, section 6. Chain and work of the inverse: sections 1 and 2. */
#include <stdio.h>

#include "kernels/kernel.h"
#include "model/ledger.h"
#include "model/traffic.h"

#define WARPGROUP 128
#define BASE 16 /* the inverse recurses down to blocks of 16 */
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Indices of the problem keys in kkt_values.v. */
enum {
    BATCH,
    SEQUENCES, /* above 1: batch is 1 and the sequences lie one after the other */
    TOKENS,    /* in total, over batch entries and sequences */
    HEADS_K,
    HEADS_V,
    DK,
    DV,
    DTYPE,
    GATED
};

static const char *const dtype_names[] = {"bf16", "fp16"};

static const kkt_param problem_params[] = {
    [BATCH] = {.name = "batch", .help = "batch entries", .low = 1, .high = 65536, .fallback = 1},
    [SEQUENCES] = {.name = "sequences",
                   .help = "sequences of variable length; above 1 only with batch 1",
                   .low = 1,
                   .high = 65536,
                   .fallback = 1},
    [TOKENS] = {.name = "tokens",
                .help = "tokens in total, over all batch entries and sequences",
                .low = 1,
                .high = 1 << 26,
                .fallback = 32768},
    [HEADS_K] = {.name = "heads_k", .help = "key heads", .low = 1, .high = 1024, .fallback = 16},
    [HEADS_V] = {.name = "heads_v", .help = "value heads", .low = 1, .high = 1024, .fallback = 64},
    [DK] = {.name = "dk", .help = "key dimension", .low = 16, .high = 512, .fallback = 128},
    [DV] = {.name = "dv", .help = "value dimension", .low = 16, .high = 512, .fallback = 128},
    [DTYPE] = {.name = "dtype",
               .help = "of q, k, v and o",
               .count = 2,
               .values = {KKT_BF16, KKT_FP16},
               .names = dtype_names,
               .fallback = KKT_BF16},
    [GATED] =
        {.name = "gated", .help = "with a decay g", .count = 2, .values = {0, 1}, .fallback = 1},
};

/* Indices of the parameters; the styles share the first three. */
enum { CHUNK, BLOCK_DV, THREADS, STAGES };

#define PARAM_CHUNK                                                                                \
    {                                                                                              \
        .name = "chunk", .macro = "KKT_CHUNK", .help = "tokens of a chunk", .count = 4,            \
        .values = {16, 32, 64, 128}, .fallback = 64                                                \
    }
#define PARAM_BLOCK_DV                                                                             \
    {                                                                                              \
        .name = "block_dv", .macro = "KKT_BLOCK_DV", .help = "columns of the state a block holds", \
        .count = 3, .values = {32, 64, 128}, .fallback = 64                                        \
    }

static const kkt_param fragment_params[] = {
    [CHUNK] = PARAM_CHUNK,
    [BLOCK_DV] = PARAM_BLOCK_DV,
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads a block; they share the register tables",
                 .count = 2,
                 .values = {128, 256},
                 .fallback = 128},
};

static const kkt_param pipelined_params[] = {
    [CHUNK] = PARAM_CHUNK,
    [BLOCK_DV] = PARAM_BLOCK_DV,
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads a block; each copies and computes",
                 .count = 2,
                 .values = {128, 256},
                 .fallback = 128},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "slots of the ring of q, k and v",
                .count = 3,
                .values = {2, 3, 4},
                .fallback = 2},
};

static const kkt_param specialized_params[] = {
    [CHUNK] = PARAM_CHUNK,
    [BLOCK_DV] = PARAM_BLOCK_DV,
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "384: a copying and two computing warpgroups; 512: three computing",
                 .count = 2,
                 .values = {384, 512},
                 .fallback = 512},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "copies of q, k, v and T in flight",
                .count = 3,
                .values = {1, 2, 3},
                .fallback = 2},
};

static kkt_attention attention(const kkt_values *problem) {
    const int64_t *p = problem->v;
    return (kkt_attention){.tokens = p[TOKENS],
                           .sequences = p[BATCH] * p[SEQUENCES],
                           .heads_k = p[HEADS_K],
                           .heads_v = p[HEADS_V],
                           .dk = p[DK],
                           .dv = p[DV],
                           .element_bytes = (int)kkt_dtype_bytes((kkt_dtype)p[DTYPE]),
                           .gated = p[GATED] != 0};
}

static bool problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const int64_t *p = problem->v;
    if (p[HEADS_V] % p[HEADS_K] != 0) {
        snprintf(reason, size, "heads_v %lld is no multiple of heads_k %lld", (long long)p[HEADS_V],
                 (long long)p[HEADS_K]);
        return false;
    }
    if (p[SEQUENCES] > 1 && p[BATCH] != 1) {
        snprintf(reason, size, "sequences %lld needs batch 1; it is %lld", (long long)p[SEQUENCES],
                 (long long)p[BATCH]);
        return false;
    }
    if (p[TOKENS] % p[BATCH] != 0) {
        snprintf(reason, size, "tokens %lld (in total) is no multiple of batch %lld",
                 (long long)p[TOKENS], (long long)p[BATCH]);
        return false;
    }
    if (p[DK] % 16 != 0 || p[DV] % 16 != 0) {
        snprintf(reason, size, "dk %lld and dv %lld must be multiples of 16", (long long)p[DK],
                 (long long)p[DV]);
        return false;
    }
    return true;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    int64_t dv = problem->v[DV], block_dv = config->v[BLOCK_DV];
    (void)arch;
    if (dv % block_dv != 0) {
        snprintf(reason, size, "block_dv %lld does not divide dv = %lld", (long long)block_dv,
                 (long long)dv);
        return false;
    }
    return true;
}

static bool applicable_specialized(const kkt_values *problem, const kkt_values *config,
                                   const kkt_arch *arch, char *reason, size_t size) {
    if (!arch->has_cp_async) {
        snprintf(reason, size, "%s has no asynchronous copy for the producer warps", arch->name);
        return false;
    }
    return applicable(problem, config, arch, reason, size);
}

/* Work and traffic are the same in all styles. `products` wait for one another in a chunk: K K^T,
 * K S, T X and the state's update always; Q S and P V' too where the same warps compute o. */
static void common(const kkt_values *problem, const kkt_values *config, kkt_style_id style,
                   int products, kkt_footprint *out) {
    const kkt_attention a = attention(problem);
    const int64_t c = config->v[CHUNK], splits = a.dv / config->v[BLOCK_DV];
    const int64_t chunks = kkt_attention_chunks(&a, c);
    const double levels = (double)kkt_inverse_levels(c, BASE);
    const double inverse = (double)kkt_inverse_fma_recursive(c, BASE);
    const double head_chunks = (double)(chunks * a.heads_v);
    const double in_bytes = (double)a.element_bytes;

    *out = (kkt_footprint){.style = style, .chunk = (int)c, .cluster = 1, .launches = 1};
    out->tokens = a.tokens;
    out->blocks = a.sequences * a.heads_v * splits;
    out->chunks_per_block = (chunks + a.sequences - 1) / a.sequences;
    out->threads = (int)config->v[THREADS];
    out->barriers = 1;

    out->hbm_write_bytes = (double)(a.tokens * a.heads_v * a.dv) * in_bytes +
                           4.0 * (double)(a.dk * a.dv) * (double)(a.sequences * a.heads_v);
    out->hbm_read_bytes = (double)kkt_traffic_forward_bytes(&a) - out->hbm_write_bytes;
    /* Each split of dv reads q and k of its key head again, and beta and, where there is one, g. */
    const double per_token = a.gated ? 8.0 : 4.0;
    out->l2_read_bytes =
        (double)(a.tokens * a.heads_v) *
        ((double)(splits * 2 * a.dk + a.dv) * in_bytes + per_token * (double)splits);
    /* K K^T, Q K^T and the inverse are repeated by each split. */
    out->tensor_flop =
        head_chunks * (double)(4 * c * c * a.dk * splits + 4 * c * c * a.dv + 6 * c * a.dk * a.dv);
    out->fp32_flop = head_chunks * (double)splits * (2 * inverse + 4.0 * (double)(c * c));

    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(out, KKT_STEP_SUBSTITUTION,
                       (double)kkt_inverse_chain_recursive(c, BASE) - 2 * levels, BASE / 2.0);
    kkt_footprint_step(out, KKT_STEP_COUPLING, 2 * levels, BASE);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, products, (double)a.dk);
    kkt_footprint_step(out, KKT_STEP_BARRIER, 3 + levels, 0);
}

static void register_table(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                           int role) {
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, name, rows, columns, 4)->role = role;
}

static void shared(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns, int bytes,
                   int64_t stages) {
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, name, rows, columns, bytes)->stages = (int)stages;
}

/* What one tensor instruction of a warp or warpgroup computes. */
#define MMA_SYNC_FLOP 4096 /* m16n8k16 */
#define WGMMA_FLOP 131072  /* m64n64k16, operands straight from shared memory */

/* Shared-memory passes of 128 bytes: every tile is written once and read by two products. What
 * mma_sync multiplies goes through registers, an instruction a pass; wgmma needs none. */
static void count_instructions(kkt_footprint *fp, bool wgmma) {
    double bytes = 0;
    for (int i = 0; i < fp->buffer_count; ++i)
        if (fp->buffers[i].place == KKT_PLACE_SHARED)
            bytes += (double)kkt_buffer_bytes(&fp->buffers[i]) / fp->buffers[i].stages;
    double passes = bytes / 128 * (double)fp->blocks * (double)fp->chunks_per_block;
    fp->smem_wavefronts = 3 * passes;
    fp->instructions = (wgmma ? 1 : 3) * passes + fp->fp32_flop / 2 / 32 +
                       fp->tensor_flop / (wgmma ? WGMMA_FLOP : MMA_SYNC_FLOP);
}

static void footprint_fragment(const kkt_values *problem, const kkt_values *config,
                               const kkt_arch *arch, kkt_footprint *out) {
    const int64_t c = config->v[CHUNK], dk = problem->v[DK], block_dv = config->v[BLOCK_DV];
    const int element = (int)kkt_dtype_bytes((kkt_dtype)problem->v[DTYPE]);
    (void)arch;
    common(problem, config, KKT_STYLE_FRAGMENT, 6, out);
    kkt_footprint_role(out, "all", out->threads);
    register_table(out, "gamma", c, c, 0);
    register_table(out, "a", c, c, 0);
    register_table(out, "a_mat", c, c, 0);
    register_table(out, "state", dk, block_dv, 0);
    register_table(out, "o", c, block_dv, 0);
    shared(out, "q", c, dk, element, 1);
    shared(out, "k", c, dk, element, 1);
    shared(out, "v", c, block_dv, element, 1);
    shared(out, "x", c, block_dv, element, 1); /* operand of T X, then of the update */
    shared(out, "t", c, c, element, 1);
    shared(out, "gates", 2, c, 4, 1);
    count_instructions(out, false);
}

static void footprint_pipelined(const kkt_values *problem, const kkt_values *config,
                                const kkt_arch *arch, kkt_footprint *out) {
    const int64_t c = config->v[CHUNK], dk = problem->v[DK], block_dv = config->v[BLOCK_DV];
    const int64_t stages = config->v[STAGES];
    const int element = (int)kkt_dtype_bytes((kkt_dtype)problem->v[DTYPE]);
    (void)arch;
    common(problem, config, KKT_STYLE_PIPELINED, 6, out);
    kkt_footprint_role(out, "all", out->threads);
    register_table(out, "a", c, c, 0);
    register_table(out, "state", dk, block_dv, 0);
    register_table(out, "o", c, block_dv, 0);
    shared(out, "q", c, dk, element, stages);
    shared(out, "k", c, dk, element, stages);
    shared(out, "v", c, block_dv, element, stages);
    shared(out, "x", c, block_dv, element, 1);
    shared(out, "t", c, c, element, 1);
    shared(out, "p", c, c, element, 1);
    shared(out, "gates", 2, c, 4, stages);
    count_instructions(out, false);
}

static void footprint_specialized(const kkt_values *problem, const kkt_values *config,
                                  const kkt_arch *arch, kkt_footprint *out) {
    const int64_t c = config->v[CHUNK], dk = problem->v[DK], block_dv = config->v[BLOCK_DV];
    const int64_t stages = config->v[STAGES];
    const int element = (int)kkt_dtype_bytes((kkt_dtype)problem->v[DTYPE]);
    const bool output_role = config->v[THREADS] == 4 * WARPGROUP;
    common(problem, config, KKT_STYLE_WARP_SPECIALIZED, output_role ? 4 : 6, out);
    /* Named barriers: one a full and an empty slot of each stream, and one for the block. */
    out->barriers = 8;
    kkt_footprint_role(out, "state", WARPGROUP)->declared_registers = 160;
    kkt_footprint_role(out, "value", WARPGROUP)->declared_registers = 128;
    if (output_role)
        kkt_footprint_role(out, "output", WARPGROUP)->declared_registers = 128;
    kkt_footprint_role(out, "producer", WARPGROUP)->declared_registers = 32;
    register_table(out, "state", dk, block_dv, 0);
    register_table(out, "x", c, block_dv, 1);
    register_table(out, "o", c, block_dv, output_role ? 2 : 1);
    /* The tile list of the article's layout; q, k, v and the T tile a are streamed. */
    shared(out, "q", c, dk, element, stages);
    shared(out, "k", c, dk, element, stages);
    shared(out, "v", c, block_dv, element, stages);
    shared(out, "o_tile", c, block_dv, element, 1);
    shared(out, "h", c, block_dv, element, 1);
    shared(out, "vd", c, block_dv, element, 1);
    shared(out, "vn", c, block_dv, element, 1);
    shared(out, "a", c, c, element, stages);
    shared(out, "p", c, c, element, 1);
    shared(out, "gates_and_barriers", 1, 1024, 1, 1);
    count_instructions(out, arch->has_wgmma != 0);
}

static const kkt_variant fragment = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {"parameter", fragment_params, COUNT(fragment_params)},
    .applicable = applicable,
    .footprint = footprint_fragment,
};

static const kkt_variant pipelined = {
    .style = KKT_STYLE_PIPELINED,
    .params = {"parameter", pipelined_params, COUNT(pipelined_params)},
    .applicable = applicable_specialized,
    .footprint = footprint_pipelined,
};

static const kkt_variant warp_specialized = {
    .style = KKT_STYLE_WARP_SPECIALIZED,
    .params = {"parameter", specialized_params, COUNT(specialized_params)},
    .applicable = applicable_specialized,
    .footprint = footprint_specialized,
};

static const kkt_variant *const variants[] = {&fragment, &pipelined, &warp_specialized};

static const char *const default_problems[] = {
    "tokens=32768,heads_k=16,heads_v=64", "tokens=8192,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=32",  "tokens=32768,heads_k=32,heads_v=32",
    "tokens=32768,heads_k=2,heads_v=8",   NULL,
};

extern const kkt_kernel kkt_kernel_gdn_fwd;
const kkt_kernel kkt_kernel_gdn_fwd = {
    .name = "gdn_fwd",
    .summary = "fused Gated DeltaNet forward (model only)",
    .problem = {"problem key", problem_params, COUNT(problem_params)},
    .default_problems = default_problems,
    .variants = variants,
    .variant_count = COUNT(variants),
    .chunk_param = "chunk",
    .problem_valid = problem_valid,
};
