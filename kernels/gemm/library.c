/* gemm by library calls, for comparison: cuBLAS (`cublasGemmEx`, the library's choice of kernel)
 * and cuBLASLt (`cublasLtMatmul`) with one of its heuristics' first answers. Both sum in fp32 and
 * read a and b as they are stored. */
#include <string.h>

#include "base/integer.h"
#include "kernels/gemm/gemm.h"
#include "kernels/library.h"

/* The family's functions read no parameter but split_k, which has no place here and stays 0. */
enum { ROUTINE, CHOICE, PARAMS };
_Static_assert((int)PARAMS <= (int)KKT_GEMM_SPLIT_K, "split_k is 0 in this style");

enum routine { GEMM_EX, LT_MATMUL };

static const char *const routine_names[] = {"gemm_ex", "lt_matmul"};

static const kkt_param params[] = {
    [ROUTINE] = {.name = "routine",
                 .help = "cublasGemmEx, or cublasLtMatmul with an answer of its heuristics",
                 .count = 2,
                 .values = {GEMM_EX, LT_MATMUL},
                 .names = routine_names,
                 .fallback = GEMM_EX},
    [CHOICE] = {.name = "choice",
                .help = "which answer of the heuristics, by their own order; the last where a "
                        "problem has fewer",
                .count = 4,
                .values = {0, 1, 2, 3},
                .fallback = 0,
                .depends_on = 1 + ROUTINE,
                .depends_values = 1 << LT_MATMUL},
};

static const char *const routines[] = {"cublasGemmEx", "cublasLtMatmul", NULL};

enum { TILE = 128 }; /* rows and columns of c that a block is taken to compute */

/* The least that any kernel does: a, b and c once through HBM, all products on tensor cores. What
 * the library's kernels take of registers and shared memory is theirs to know. */
static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const double m = (double)problem->v[KKT_GEMM_M], n = (double)problem->v[KKT_GEMM_N];
    const double k = (double)problem->v[KKT_GEMM_K];
    (void)config;
    (void)arch;
    memset(out, 0, sizeof *out);
    out->style = KKT_STYLE_LIBRARY;
    out->tokens = problem->v[KKT_GEMM_M];
    out->blocks =
        kkt_divide_up(problem->v[KKT_GEMM_M], TILE) * kkt_divide_up(problem->v[KKT_GEMM_N], TILE);
    out->chunks_per_block = 1;
    out->threads = TILE;
    out->cluster = 1;
    out->launches = 1;
    kkt_footprint_role(out, "all", out->threads);
    out->hbm_read_bytes = out->l2_read_bytes = 2 * (m * k + k * n);
    out->hbm_write_bytes = 2 * m * n;
    out->tensor_flop = 2 * m * n * k;
}

/* Column-major, the library sees c^T = b^T a^T in the same memory: the factors are swapped, and one
 * is transposed where the layout says so. */
static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const kkt_gemm_operand a = kkt_gemm_a(problem), b = kkt_gemm_b(problem);
    const kkt_dtype dtype = (kkt_dtype)problem->v[KKT_GEMM_DTYPE];
    (void)arch;
    *out = (kkt_plan){0};
    kkt_call_gemm(out, routines[config->v[ROUTINE]],
                  &(kkt_gemm_call){.transpose_a = b.along_k,
                                   .transpose_b = !a.along_k,
                                   .m = problem->v[KKT_GEMM_N],
                                   .n = problem->v[KKT_GEMM_M],
                                   .k = problem->v[KKT_GEMM_K],
                                   .lda = b.columns,
                                   .ldb = a.columns,
                                   .ldc = problem->v[KKT_GEMM_N],
                                   .dtype = dtype,
                                   .result = dtype,
                                   .a = KKT_GEMM_TENSOR_B,
                                   .b = KKT_GEMM_TENSOR_A,
                                   .c = KKT_GEMM_TENSOR_C,
                                   .choice = config->v[CHOICE]});
}

const kkt_variant kkt_gemm_library = {
    .style = KKT_STYLE_LIBRARY,
    .params = {"parameter", params, PARAMS},
    .library = KKT_CUBLAS,
    .routines = routines,
    .applicable = kkt_call_applicable,
    .footprint = footprint,
    .plan = plan,
    .tolerance = kkt_gemm_tolerance,
};
