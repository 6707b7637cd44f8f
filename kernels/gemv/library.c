/* gemv by library calls, for comparison: as a product with a matrix of one column (`cublasGemmEx`,
 * the way of torch.mv), and as what it is (`cublasHSHgemvStridedBatched` in fp16,
 * `cublasTSTgemvStridedBatched` in bf16, with a batch of one). Both sum in fp32. */
#include <string.h>

#include "kernels/gemv/gemv.h"
#include "kernels/gemv/space.h"
#include "kernels/library.h"

/* The family's functions read no parameter but split_k, which has no place here and stays 0. */
enum { ROUTINE, PARAMS };
_Static_assert((int)PARAMS <= (int)KKT_GEMV_SPLIT_K, "split_k is 0 in this style");

enum routine { GEMM_EX, GEMV };

static const char *const routine_names[] = {"gemm_ex", "gemv"};

static const kkt_param params[] = {
    [ROUTINE] = {.name = "routine",
                 .help = "cublasGemmEx with one column, or cuBLAS's gemv of 16-bit types",
                 .count = 2,
                 .values = {GEMM_EX, GEMV},
                 .names = routine_names,
                 .fallback = GEMM_EX},
};

static const char *const routines[] = {"cublasGemmEx", "cublasHSHgemvStridedBatched",
                                       "cublasTSTgemvStridedBatched", NULL};

/* The least that any kernel does: A and x read once, y written. */
static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const double m = (double)problem->v[KKT_GEMV_M], k = (double)problem->v[KKT_GEMV_K];
    (void)config;
    (void)arch;
    memset(out, 0, sizeof *out);
    out->style = KKT_STYLE_LIBRARY;
    out->tokens = problem->v[KKT_GEMV_M];
    out->blocks = problem->v[KKT_GEMV_M]; /* taken to have a row each */
    out->chunks_per_block = 1;
    out->threads = 128;
    out->cluster = 1;
    out->launches = 1;
    kkt_footprint_role(out, "all", out->threads);
    out->hbm_read_bytes = out->l2_read_bytes = 2 * (m * k + k);
    out->hbm_write_bytes = 2 * m;
    out->fp32_flop = 2 * m * k;
}

/* Column-major, the library sees the transpose of what is stored: k x m of layout n, which it then
 * has to transpose, m x k of layout t. */
static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t m = problem->v[KKT_GEMV_M], k = problem->v[KKT_GEMV_K];
    const int64_t lda = kkt_gemv_lda(problem);
    const bool transpose = problem->v[KKT_GEMV_LAYOUT] == KKT_GEMV_N;
    const kkt_dtype dtype = (kkt_dtype)problem->v[KKT_GEMV_DTYPE];
    (void)arch;
    *out = (kkt_plan){0};
    if (config->v[ROUTINE] == GEMV)
        kkt_call_gemv(out, &(kkt_gemv_call){.transpose = transpose,
                                            .m = transpose ? k : m,
                                            .n = transpose ? m : k,
                                            .lda = lda,
                                            .dtype = dtype,
                                            .a = KKT_GEMV_A,
                                            .x = KKT_GEMV_X,
                                            .y = KKT_GEMV_Y});
    else
        kkt_call_gemm(out, "cublasGemmEx",
                      &(kkt_gemm_call){.transpose_a = transpose,
                                       .m = m,
                                       .n = 1,
                                       .k = k,
                                       .lda = lda,
                                       .ldb = k,
                                       .ldc = m,
                                       .dtype = dtype,
                                       .result = dtype,
                                       .a = KKT_GEMV_A,
                                       .b = KKT_GEMV_X,
                                       .c = KKT_GEMV_Y});
}

const kkt_variant kkt_gemv_library = {
    .style = KKT_STYLE_LIBRARY,
    .params = {"parameter", params, PARAMS},
    .library = KKT_CUBLAS,
    .routines = routines,
    .applicable = kkt_call_applicable,
    .footprint = footprint,
    .plan = plan,
    .tolerance = kkt_gemv_tolerance,
};
