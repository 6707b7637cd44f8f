/* gemv with a row's sum shared by several blocks: their parts of it go through HBM. */
#include "kernels/gemv/space.h"

#include <stdio.h>

#include "base/integer.h"

enum {
    SUM_THREADS = 256, /* of a block of gemv_sum: kSumThreads in split_k.cu */
    UNIT = 8           /* a stretch of k begins where the widest load may */
};

static int64_t span_of(const kkt_values *problem, const kkt_values *config) {
    return kkt_divide_up(kkt_divide_up(problem->v[KKT_GEMV_K], config->v[KKT_GEMV_SPLIT_K]), UNIT) *
           UNIT;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const long long k = problem->v[KKT_GEMV_K], splits = config->v[KKT_GEMV_SPLIT_K];
    if ((splits - 1) * span_of(problem, config) >= k) {
        kkt_reason(reason, size, "split_k %lld leaves some of its blocks nothing of k = %lld",
                   splits, k);
        return false;
    }
    return kkt_gemv_applicable(problem, config, arch, reason, size);
}

/* The second launch's share: it reads what the first one wrote, with few and short blocks. */
static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t splits = config->v[KKT_GEMV_SPLIT_K];
    const double m = (double)problem->v[KKT_GEMV_M], part_bytes = 4 * m * (double)splits;
    (void)arch;
    kkt_gemv_footprint(KKT_STYLE_MATERIALIZED, problem, config, splits, span_of(problem, config), 4,
                       out);
    out->launches = 2;
    out->hbm_read_bytes += part_bytes;
    out->l2_read_bytes += part_bytes;
    out->hbm_write_bytes += 2 * m;
    out->fp32_flop += m * (double)splits;
    out->instructions += m / 32 * (2 * (double)splits + 20);
    kkt_footprint_buffer(out, KKT_PLACE_HBM, "partials", splits, problem->v[KKT_GEMV_M], 4);
}

static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t m = problem->v[KKT_GEMV_M];
    kkt_footprint fp;
    footprint(problem, config, arch, &fp);
    *out = (kkt_plan){.launch_count = 2};
    kkt_launch *parts = &out->launches[0], *sum = &out->launches[1];
    *parts = kkt_gemv_launch("gemv_partial", problem, config, &fp, config->v[KKT_GEMV_SPLIT_K],
                             KKT_GEMV_PARTIALS);
    parts->args[parts->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_I32, .integer = span_of(problem, config)};
    *sum = (kkt_launch){.entry = "gemv_sum",
                        .grid = {(uint32_t)kkt_divide_up(m, SUM_THREADS), 1, 1},
                        .block = {SUM_THREADS, 1, 1},
                        .carveout_percent = -1,
                        .arg_count = 3,
                        .args = {{.kind = KKT_ARG_TENSOR, .tensor = KKT_GEMV_PARTIALS},
                                 {.kind = KKT_ARG_TENSOR, .tensor = KKT_GEMV_Y},
                                 {.kind = KKT_ARG_I32, .integer = m}}};
}

static const char *const sources[] = {
    "gemv/split_k.cu",      "device/convert.cuh",  "device/elements.cuh", "device/types.cuh",
    "gemv/column_sums.cuh", "gemv/parameters.cuh", "gemv/row_sums.cuh",   NULL,
};

const kkt_variant kkt_gemv_materialized = {
    .style = KKT_STYLE_MATERIALIZED,
    .params = {"parameter", kkt_gemv_params, KKT_GEMV_SPLIT_PARAMS},
    .source = "gemv/split_k.cu",
    .sources = sources,
    .applicable = applicable,
    .footprint = footprint,
    .defines = kkt_gemv_defines,
    .plan = plan,
    .tolerance = kkt_gemv_tolerance,
};
