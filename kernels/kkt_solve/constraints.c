/* Which configurations of kkt_solve make sense. Parameters that another leaves without effect have
 * their default there, so that they do not multiply the space. */
#include <stdio.h>
#include <string.h>

#include "kernels/kkt_solve/space.h"

#define WARP 32

typedef struct constraint_context {
    const int64_t *p; /* problem */
    const int64_t *c; /* configuration */
    const kkt_arch *arch;
    char *reason;
    size_t size;
} constraint_context;

/* Whether parameter `index` has the value that stands for all; else says that `why` leaves it no
 * effect. */
static bool is_value(const constraint_context *x, int index, int64_t wanted, const char *why) {
    const kkt_param *param = &kkt_solve_params[index];
    char value[24], other[24];
    if (x->c[index] == wanted)
        return true;
    kkt_reason(x->reason, x->size, "%s=%s changes nothing where %s; only %s stands for it",
               param->name, kkt_param_value_text(param, x->c[index], value), why,
               kkt_param_value_text(param, wanted, other));
    return false;
}

static bool is_default(const constraint_context *x, int index, const char *why) {
    return is_value(x, index, kkt_solve_params[index].fallback, why);
}

static bool all_default(const constraint_context *x, const int *indices, size_t count,
                        const char *why) {
    for (size_t i = 0; i < count; ++i)
        if (!is_default(x, indices[i], why))
            return false;
    return true;
}

static bool base_fits(const constraint_context *x) {
    const long long base = x->c[KKT_SOLVE_BASE], chunk = x->c[KKT_SOLVE_CHUNK];
    if (base <= chunk)
        return true;
    kkt_reason(x->reason, x->size,
               "base=%lld is above chunk=%lld: a base of at most the chunk fits", base, chunk);
    return false;
}

/* What shares a chunk's tiles among enough threads for `check` to hold: "threads=64 shares them",
 * or "threads=128,warps_per_head=4 ..."; the fewest first. */
static void say_sharing(const constraint_context *x, bool (*check)(const constraint_context *x),
                        char *out, size_t size) {
    const kkt_param *threads = &kkt_solve_params[KKT_SOLVE_THREADS],
                    *team = &kkt_solve_params[KKT_SOLVE_WARPS_PER_HEAD];
    int64_t c[KKT_SOLVE_PARAMS];
    const constraint_context other = {.p = x->p, .c = c, .arch = x->arch};
    out[0] = '\0';
    if (x->size == 0)
        return; /* nobody asks why */
    memcpy(c, x->c, sizeof c);
    for (size_t t = 0; t < threads->count; t++) {
        c[KKT_SOLVE_THREADS] = threads->values[t];
        c[KKT_SOLVE_WARPS_PER_HEAD] = x->c[KKT_SOLVE_WARPS_PER_HEAD];
        if (check(&other)) {
            snprintf(out, size, "threads=%lld shares them", (long long)threads->values[t]);
            return;
        }
        for (size_t w = 0; w < team->count; w++) {
            c[KKT_SOLVE_WARPS_PER_HEAD] = team->values[w];
            if (check(&other)) {
                snprintf(out, size, "threads=%lld,warps_per_head=%lld shares them",
                         (long long)threads->values[t], (long long)team->values[w]);
                return;
            }
        }
    }
    snprintf(out, size, "no number of threads shares them well enough");
}

/* ---- couplings through shared memory ---- */

static bool tiles_fit_threads(const constraint_context *x) {
    return x->c[KKT_SOLVE_WARPS_PER_HEAD] == kkt_solve_params[KKT_SOLVE_WARPS_PER_HEAD].fallback &&
           8 * kkt_solve_tiles_per_warp(x->c) <= 255;
}

static bool shared_memory(const constraint_context *x) {
    static const int others[] = {
        KKT_SOLVE_MMA,
        KKT_SOLVE_STORE,
        KKT_SOLVE_SHARE,
        KKT_SOLVE_WARPS_PER_HEAD,
        KKT_SOLVE_CHUNKS_PER_BLOCK,
        KKT_SOLVE_MIN_BLOCKS,
        KKT_SOLVE_CARVEOUT,
        KKT_SOLVE_PERSISTENT,
    };
    static const int idle[] = {KKT_SOLVE_BLOCK_PAD, KKT_SOLVE_TRANSPOSE, KKT_SOLVE_NEGATE_EARLY,
                               KKT_SOLVE_ASSEMBLE_FUSED};
    const int64_t *c = x->c;
    const long long base = c[KKT_SOLVE_BASE], chunk = c[KKT_SOLVE_CHUNK];
    const bool row = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_ROW;
    if (!all_default(x, others, sizeof others / sizeof others[0],
                     "couplings go through shared memory"))
        return false;
    if (c[KKT_SOLVE_COUPLE] == KKT_COUPLE_TF32 &&
        !is_default(x, KKT_SOLVE_TRANSPOSE, "couple is tf32"))
        return false;
    if (c[KKT_SOLVE_INVERSE] == KKT_INVERSE_NEUMANN) {
        kkt_reason(x->reason, x->size,
                   "inverse=neumann keeps blocks in registers: couple is fp16 or bf16x3 there");
        return false;
    }
    if (c[KKT_SOLVE_KLOAD] == KKT_KLOAD_TMA) {
        kkt_reason(x->reason, x->size,
                   "kload=tma writes swizzled tiles, which only couplings in registers read");
        return false;
    }
    if (row && !is_default(x, KKT_SOLVE_BASE, "inverse is row"))
        return false;
    if (!row && !base_fits(x))
        return false;
    if (c[KKT_SOLVE_INVERSE] == KKT_INVERSE_FLAT && base == chunk) {
        kkt_reason(x->reason, x->size,
                   "base=%lld leaves one block of chunk=%lld and nothing to couple; "
                   "inverse=recursive stands for it",
                   base, chunk);
        return false;
    }
    if ((row || base == chunk) &&
        !(is_value(x, KKT_SOLVE_COUPLE, KKT_COUPLE_TF32, "the chunk is one block") &&
          all_default(x, idle, sizeof idle / sizeof idle[0], "the chunk is one block")))
        return false;
    const long long tiles = kkt_solve_tiles_per_warp(c), registers = 8 * tiles;
    if (registers > 255) {
        char sharing[64];
        say_sharing(x, tiles_fit_threads, sharing, sizeof sharing);
        kkt_reason(
            x->reason, x->size,
            "chunk=%lld at threads=%lld keeps %lld tiles of K K^T in each warp, %lld registers "
            "a thread, above 255: %s",
            chunk, (long long)c[KKT_SOLVE_THREADS], tiles, registers, sharing);
        return false;
    }
    return true;
}

/* ---- couplings in registers ---- */

static bool register_inverse(const constraint_context *x) {
    const int64_t *c = x->c;
    const int64_t inverse = c[KKT_SOLVE_INVERSE], base = c[KKT_SOLVE_BASE];
    if (inverse == KKT_INVERSE_ROW || inverse == KKT_INVERSE_FLAT) {
        kkt_reason(x->reason, x->size,
                   "couplings in registers go by halves: inverse is recursive or neumann there");
        return false;
    }
    if (inverse == KKT_INVERSE_NEUMANN)
        return is_default(x, KKT_SOLVE_BASE, "inverse is neumann");
    if (base > 16) {
        kkt_reason(x->reason, x->size, "couplings in registers take base=8 or 16, not %lld",
                   (long long)base);
        return false;
    }
    if (c[KKT_SOLVE_CHUNK] == 16 && c[KKT_SOLVE_COUPLE] == KKT_COUPLE_FP16) {
        kkt_reason(x->reason, x->size,
                   "couple=fp16 saves nothing at chunk=16, where it would round T's small elements "
                   "away; bf16x3 stands for it");
        return false;
    }
    return base_fits(x);
}

static bool span_fits(const constraint_context *x) {
    const long long span = kkt_solve_span(x->c), dk = x->p[KKT_SOLVE_DK];
    if (dk % 64 != 0) {
        kkt_reason(
            x->reason, x->size,
            "dk=%lld is no multiple of 64, the width of a swizzled panel of K; couple=fp32 or "
            "tf32 takes it",
            dk);
        return false;
    }
    if (x->c[KKT_SOLVE_CHUNKS_PER_BLOCK] > 1 && span > 64) {
        kkt_reason(x->reason, x->size,
                   "chunks_per_block=%lld of chunk=%lld are above 64 rows: fewer chunks fit",
                   (long long)x->c[KKT_SOLVE_CHUNKS_PER_BLOCK], (long long)x->c[KKT_SOLVE_CHUNK]);
        return false;
    }
    if (x->c[KKT_SOLVE_STORE] == KKT_STORE_TMA_HALVES &&
        (x->c[KKT_SOLVE_CHUNKS_PER_BLOCK] > 1 || span < 32)) {
        kkt_reason(
            x->reason, x->size,
            "store=tma_halves takes chunks_per_block=1 and chunk=32 or more, not %lld of %lld",
            (long long)x->c[KKT_SOLVE_CHUNKS_PER_BLOCK], (long long)x->c[KKT_SOLVE_CHUNK]);
        return false;
    }
    return true;
}

static bool instructions_exist(const constraint_context *x) {
    const int64_t *c = x->c;
    if (kkt_solve_uses_tensor_maps(c) && !x->arch->has_tma) {
        kkt_reason(x->reason, x->size, "%s has no TMA (tensor maps): sm90 or later does",
                   x->arch->name);
        return false;
    }
    if (c[KKT_SOLVE_MMA] != KKT_MMA_WGMMA)
        return true;
    if (!x->arch->has_wgmma) {
        kkt_reason(x->reason, x->size, "%s has no wgmma: sm90 alone does", x->arch->name);
        return false;
    }
    const long long span = kkt_solve_span(c);
    if (c[KKT_SOLVE_THREADS] != 128 || (span != 64 && span != 128)) {
        kkt_reason(x->reason, x->size,
                   "mma=wgmma takes 64 or 128 rows and threads=128, not %lld and %lld", span,
                   (long long)c[KKT_SOLVE_THREADS]);
        return false;
    }
    if (c[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD) {
        kkt_reason(x->reason, x->size,
                   "mma=wgmma is the work of four warps, and share=value_head gives each its own");
        return false;
    }
    return true;
}

/* A warp that forms a K K^T of its own takes that one head. */
static bool share_fits(const constraint_context *x) {
    const long long warps = x->c[KKT_SOLVE_THREADS] / WARP, heads = x->c[KKT_SOLVE_HEADS_PER_BLOCK];
    if (x->c[KKT_SOLVE_SHARE] == KKT_SHARE_KEY_HEAD)
        return true;
    if (heads == 1) {
        kkt_reason(x->reason, x->size,
                   "share=value_head is the same as key_head at one head a block; key_head stands "
                   "for it");
        return false;
    }
    if (warps != heads) {
        snprintf(
            x->reason, x->size,
            "share=value_head takes a warp for each of heads_per_block=%lld: threads=%lld, not "
            "%lld",
            heads, heads * WARP, warps * WARP);
        return false;
    }
    return true;
}

/* Two warps take a half each of a chunk, whose quarters go out as tiles. */
static bool team_fits(const constraint_context *x) {
    const int64_t *c = x->c;
    const char *why = NULL;
    if (c[KKT_SOLVE_WARPS_PER_HEAD] == 1)
        return true;
    if (c[KKT_SOLVE_CHUNK] < 64 || c[KKT_SOLVE_CHUNKS_PER_BLOCK] > 1)
        why = "one chunk of 64 or 128 rows a block: halves of less are one substitution";
    else if (c[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD)
        why = "share=key_head: there a warp has its own K K^T";
    else if (c[KKT_SOLVE_STORE] != KKT_STORE_STAGED && c[KKT_SOLVE_STORE] != KKT_STORE_TMA_HALVES)
        why = "store staged or tma_halves: it has the quarters of T";
    else if (c[KKT_SOLVE_THREADS] < 64)
        why = "64 threads or more";
    if (!why)
        return true;
    kkt_reason(x->reason, x->size, "warps_per_head=2 takes %s", why);
    return false;
}

/* A warp or a team takes a head; others would only load and multiply. A power of two of them is let
 * stand, and the four that wgmma needs. */
static bool warps_have_work(const constraint_context *x) {
    const int64_t *c = x->c;
    const int64_t warps = c[KKT_SOLVE_THREADS] / WARP, heads = c[KKT_SOLVE_HEADS_PER_BLOCK];
    const int64_t team = c[KKT_SOLVE_WARPS_PER_HEAD];
    if (warps < 2 * team * heads || c[KKT_SOLVE_MMA] == KKT_MMA_WGMMA)
        return true;
    kkt_reason(x->reason, x->size,
               "threads=%lld is %lld warps for heads_per_block=%lld, and warps_per_head=%lld: "
               "threads=%lld or heads_per_block=%lld gives each its work",
               (long long)c[KKT_SOLVE_THREADS], (long long)warps, (long long)heads, (long long)team,
               (long long)(heads * team * WARP), (long long)(warps / team));
    return false;
}

static bool registers_left(const constraint_context *x) {
    const long long blocks = x->c[KKT_SOLVE_MIN_BLOCKS], threads = x->c[KKT_SOLVE_THREADS];
    if (blocks == 0)
        return true;
    const long long left = x->arch->registers_per_sm / (blocks * threads) / 8 * 8;
    if (x->c[KKT_SOLVE_MMA] == KKT_MMA_WGMMA && kkt_solve_span(x->c) > 64 && left < 128) {
        snprintf(
            x->reason, x->size,
            "min_blocks=%lld of threads=%lld leave %lld registers a thread: wgmma of %lld rows "
            "takes 96 at once, so fewer blocks fit",
            blocks, threads, left, (long long)kkt_solve_span(x->c));
        return false;
    }
    if (left >= 64 && left < 255)
        return true;
    kkt_reason(x->reason, x->size,
               "min_blocks=%lld of threads=%lld leave %lld registers a thread: %s", blocks, threads,
               left,
               left < 64 ? "fragments take more, so fewer blocks fit"
                         : "that is no limit, and min_blocks=0 stands for it");
    return false;
}

/* The grid is min_blocks an SM, and they must all be resident. */
static bool persistent_fits(const constraint_context *x) {
    if (!x->c[KKT_SOLVE_PERSISTENT])
        return true;
    const long long blocks = x->c[KKT_SOLVE_MIN_BLOCKS];
    if (blocks == 0) {
        kkt_reason(x->reason, x->size,
                   "persistent=1 launches min_blocks an SM: min_blocks=0 does not say how many");
        return false;
    }
    kkt_footprint footprint = {0};
    kkt_solve_footprint_registers(x->p, x->c, &footprint);
    const long long bytes =
        (long long)kkt_footprint_smem_bytes(&footprint) + x->arch->smem_reserved_bytes;
    const long long most = x->arch->smem_per_sm_bytes / bytes;
    if (blocks <= most)
        return true;
    kkt_reason(
        x->reason, x->size,
        "persistent=1 has all its blocks resident: %lld bytes of shared memory each let %lld "
        "in, not min_blocks=%lld",
        bytes, most, blocks);
    return false;
}

#define TILES_PER_WARP_MAX 20 /* of mma.sync: 160 registers a thread */

/* All but the number of tiles that a warp keeps. */
static bool in_registers_but_tiles(const constraint_context *x) {
    static const int others[] = {KKT_SOLVE_BLOCK_PAD, KKT_SOLVE_ROW_STRIDE, KKT_SOLVE_TRANSPOSE,
                                 KKT_SOLVE_NEGATE_EARLY, KKT_SOLVE_ASSEMBLE_FUSED};
    if (!register_inverse(x) || !span_fits(x) || !instructions_exist(x) || !share_fits(x) ||
        !team_fits(x) || !warps_have_work(x) || !registers_left(x) || !persistent_fits(x) ||
        !all_default(x, others, sizeof others / sizeof others[0], "couplings stay in registers"))
        return false;
    return true;
}

static bool tiles_fit_registers(const constraint_context *x) {
    return x->c[KKT_SOLVE_MMA] != KKT_MMA_SYNC ||
           kkt_solve_tiles_per_warp(x->c) <= TILES_PER_WARP_MAX;
}

static bool tiles_shared(const constraint_context *x) {
    return tiles_fit_registers(x) && in_registers_but_tiles(x);
}

static bool in_registers(const constraint_context *x) {
    if (!in_registers_but_tiles(x))
        return false;
    if (tiles_fit_registers(x))
        return true;
    char sharing[64];
    say_sharing(x, tiles_shared, sharing, sizeof sharing);
    kkt_reason(x->reason, x->size,
               "chunk=%lld at threads=%lld keeps %lld tiles of K K^T in each warp, more than %d "
               "registers a thread: %s",
               (long long)x->c[KKT_SOLVE_CHUNK], (long long)x->c[KKT_SOLVE_THREADS],
               (long long)kkt_solve_tiles_per_warp(x->c), 8 * TILES_PER_WARP_MAX, sharing);
    return false;
}

/* ---- both ---- */

static bool fits(const constraint_context *x) {
    const long long ratio = x->p[KKT_SOLVE_HEADS_V] / x->p[KKT_SOLVE_HEADS_K];
    const long long heads = x->c[KKT_SOLVE_HEADS_PER_BLOCK];
    const bool own = x->c[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD;
    if (own && x->p[KKT_SOLVE_HEADS_V] % heads != 0) {
        kkt_reason(x->reason, x->size,
                   "heads_per_block=%lld does not divide heads_v = %lld: a divisor fits", heads,
                   (long long)x->p[KKT_SOLVE_HEADS_V]);
        return false;
    }
    if (!own && ratio % heads != 0) {
        kkt_reason(x->reason, x->size,
                   "heads_per_block=%lld does not divide heads_v/heads_k = %lld: a divisor fits",
                   heads, ratio);
        return false;
    }
    const long long blocks = kkt_solve_units(x->p, x->c);
    if (blocks > INT32_MAX) {
        kkt_reason(x->reason, x->size, "%lld blocks are above the grid's limit of 2147483647",
                   blocks);
        return false;
    }
    return true;
}

bool kkt_solve_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                          char *reason, size_t size) {
    const constraint_context x = {problem->v, config->v, arch, reason, size};
    if (!arch->has_cp_async) {
        kkt_reason(reason, size,
                   "%s has neither cp.async nor bf16 tensor cores; sm80 or later does", arch->name);
        return false;
    }
    return (kkt_solve_in_registers(config->v) ? in_registers(&x) : shared_memory(&x)) && fits(&x);
}
