/* kkt_solve by library calls, for comparison: cuBLAS forms K K^T of every chunk and key head
 * (cublasGemmBatchedEx, fp32 results) and solves L T = I for every chunk and value head
 * (cublasStrsmBatched, fp32); kernels of library.cu turn the one into the other and write T.
 *
 * Two things are timed, by the parameter `routine`:
 *     gemm_gate_trsm  all of it: K K^T, L and the identity, the solution, T in its own type
 *     trsm            the solution alone: L and the identity are made before each timed run, T is
 *                     written behind it; both outside of the time
 * The addresses of the matrices, which batched calls take as arrays, are made outside of the time
 * in either: whoever keeps the buffers makes them once. */
#include <stdio.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"
#include "kernels/library.h"

/* KKT_SOLVE_CHUNK stays the first parameter: the family's functions read no other one. */
enum { ROUTINE = KKT_SOLVE_CHUNK + 1, PARAMS };

enum routine { GEMM_GATE_TRSM, TRSM };

/* Workspace, after the family's tensors. */
enum {
    TAIL = KKT_SOLVE_TENSORS,
    PRODUCTS,
    LOWER,
    SOLVED,
    ADDRESSES_K,
    ADDRESSES_PRODUCTS,
    ADDRESSES_LOWER,
    ADDRESSES_SOLVED,
    TENSORS
};

enum { THREADS = 128 }; /* of a block of library.cu */

/* L^T may be the left factor of the equation or the right one, for the same T. By the time of the
 * solution on an H200 (cuBLAS 13.1.0; T 32768, 16 and 64 heads) the right one is the faster up to
 * this chunk size (396 against 402 us at 16, 1089 against 1099 at 32), the left one above it (3198
 * against 3279 us at 64, 7100 against 7301 at 128). */
enum { LAST_RIGHT = 32 };

static const char *const routine_names[] = {"gemm_gate_trsm", "trsm"};

static const kkt_param params[] = {
    [KKT_SOLVE_CHUNK] = {.name = "chunk",
                         .macro = "KKT_CHUNK",
                         .help = "rows of a chunk",
                         .count = 4,
                         .values = {16, 32, 64, 128},
                         .fallback = 64},
    [ROUTINE] = {.name = "routine",
                 .help =
                     "what is timed: all from K to T (gemm_gate_trsm), or the solution alone of "
                     "matrices made outside of the time (trsm)",
                 .count = 2,
                 .values = {GEMM_GATE_TRSM, TRSM},
                 .names = routine_names,
                 .fallback = GEMM_GATE_TRSM},
};

static const char *const sources[] = {"kkt_solve/library.cu", "device/convert.cuh",
                                      "device/types.cuh", NULL};
static const char *const routines[] = {"cublasGemmBatchedEx", "cublasStrsmBatched", NULL};

/* ---- sizes ---- */

static int64_t slots_of(const kkt_values *problem, int64_t chunk) {
    const int64_t length = kkt_solve_length(problem), sequences = problem->v[KKT_SOLVE_SEQUENCES];
    return sequences > 1 ? length / chunk + sequences
                         : problem->v[KKT_SOLVE_BATCH] * ((length + chunk - 1) / chunk);
}

/* Whether a product may want rows past the end of K. */
static bool has_tail(const kkt_values *problem, int64_t chunk) {
    return problem->v[KKT_SOLVE_SEQUENCES] > 1 || kkt_solve_length(problem) % chunk != 0;
}

static kkt_tensor matrices(const char *name, kkt_dtype dtype, int64_t count, int64_t side) {
    return (kkt_tensor){.name = name,
                        .role = KKT_TENSOR_WORKSPACE,
                        .dtype = dtype,
                        .rank = 3,
                        .dims = {count, side, side}};
}

static int workspace(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    const int64_t *v = problem->v, chunk = config->v[KKT_SOLVE_CHUNK];
    const int64_t slots = slots_of(problem, chunk);
    const int64_t products = slots * v[KKT_SOLVE_HEADS_K], results = slots * v[KKT_SOLVE_HEADS_V];
    kkt_tensor *own = out - KKT_SOLVE_TENSORS; /* indexed as plans do */
    own[TAIL] = (kkt_tensor){.name = "tail",
                             .role = KKT_TENSOR_WORKSPACE,
                             .dtype = (kkt_dtype)v[KKT_SOLVE_DTYPE],
                             .rank = 3,
                             .dims = {2 * chunk, v[KKT_SOLVE_HEADS_K], v[KKT_SOLVE_DK]}};
    own[PRODUCTS] = matrices("products", KKT_FP32, products, chunk);
    own[LOWER] = matrices("lower", KKT_FP32, results, chunk);
    own[SOLVED] = matrices("solved", KKT_FP32, results, chunk);
    own[ADDRESSES_K] = matrices("addresses_k", KKT_I64, products, 1);
    own[ADDRESSES_PRODUCTS] = matrices("addresses_products", KKT_I64, products, 1);
    own[ADDRESSES_LOWER] = matrices("addresses_lower", KKT_I64, results, 1);
    own[ADDRESSES_SOLVED] = matrices("addresses_solved", KKT_I64, results, 1);
    return TENSORS - KKT_SOLVE_TENSORS;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const int64_t batch =
        slots_of(problem, config->v[KKT_SOLVE_CHUNK]) * problem->v[KKT_SOLVE_HEADS_V];
    if (!kkt_call_applicable(problem, config, arch, reason, size))
        return false;
    if (batch > INT32_MAX) {
        kkt_reason(reason, size, "%lld triangles; a batch has %d at most", (long long)batch,
                   INT32_MAX);
        return false;
    }
    return true;
}

/* ---- the model's view ---- */

/* What passes through HBM: every step reads and writes its matrices whole. The library's kernels
 * are its own, so that no registers or shared memory are told of them. */
static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const int64_t *v = problem->v, chunk = config->v[KKT_SOLVE_CHUNK];
    const int64_t slots = slots_of(problem, chunk);
    const bool all = config->v[ROUTINE] == GEMM_GATE_TRSM;
    const double square = (double)(chunk * chunk), bytes = 4 * square;
    const double products = (double)(slots * v[KKT_SOLVE_HEADS_K]);
    const double results = (double)(slots * v[KKT_SOLVE_HEADS_V]);
    const double tokens = (double)v[KKT_SOLVE_TOKENS];
    (void)arch;
    memset(out, 0, sizeof *out);
    out->style = KKT_STYLE_LIBRARY;
    out->chunk = (int)chunk;
    out->tokens = v[KKT_SOLVE_TOKENS];
    out->blocks = slots * v[KKT_SOLVE_HEADS_V];
    out->chunks_per_block = 1;
    out->threads = THREADS;
    out->cluster = 1;
    out->launches = all ? 4 : 1;
    kkt_footprint_role(out, "all", THREADS);
    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    /* L and the identity are read, T written. */
    out->hbm_read_bytes = 2 * results * bytes;
    out->hbm_write_bytes = results * bytes;
    out->fp32_flop = results * square * (double)chunk / 3;
    if (all) {
        const double scalars = tokens * (double)v[KKT_SOLVE_HEADS_V] * 4;
        const double keys = tokens * (double)(v[KKT_SOLVE_HEADS_K] * v[KKT_SOLVE_DK]) * 2;
        out->hbm_read_bytes += keys + products * bytes + 2 * scalars + results * bytes;
        out->hbm_write_bytes += products * bytes + 2 * results * bytes +
                                tokens * (double)(v[KKT_SOLVE_HEADS_V] * chunk) * 2;
        out->tensor_flop = 2 * products * square * (double)v[KKT_SOLVE_DK];
    }
    out->l2_read_bytes = out->hbm_read_bytes;
}

/* ---- compiling and launching ---- */

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    (void)config;
    (void)arch;
    kkt_text_printf(out, "KKT_DTYPE=%lld\n", (long long)problem->v[KKT_SOLVE_DTYPE]);
    kkt_text_printf(out, "KKT_GATED=%lld\n", (long long)problem->v[KKT_SOLVE_GATED]);
    kkt_text_printf(out, "KKT_T_FORM=%lld\n", (long long)problem->v[KKT_SOLVE_T_FORM]);
}

/* The next step: a kernel of library.cu over `blocks` blocks. */
static kkt_launch *add_kernel(kkt_plan *plan, const char *entry, int64_t blocks, bool timed) {
    kkt_launch *launch = &plan->launches[plan->launch_count++];
    *launch = (kkt_launch){.entry = entry,
                           .untimed = !timed,
                           .grid = {(uint32_t)blocks, 1, 1},
                           .block = {THREADS, 1, 1},
                           .carveout_percent = -1};
    return launch;
}

/* Tensors, then 32-bit integers; both lists end with END. */
enum { END = -1 };

static void add_args(kkt_launch *launch, const int *tensors, const int64_t *integers) {
    for (; *tensors != END; tensors++)
        launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = *tensors};
    for (; *integers != END; integers++)
        launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_I32, .integer = *integers};
}

static void add_addresses(const kkt_values *problem, int64_t slots, kkt_plan *out) {
    const int64_t *v = problem->v;
    const int64_t blocks = (slots * v[KKT_SOLVE_HEADS_V] + THREADS - 1) / THREADS;
    add_args(add_kernel(out, "library_addresses", blocks, false),
             (const int[]){KKT_SOLVE_TENSOR_K, TAIL, KKT_SOLVE_TENSOR_CU_SEQLENS, PRODUCTS, LOWER,
                           SOLVED, ADDRESSES_K, ADDRESSES_PRODUCTS, ADDRESSES_LOWER,
                           ADDRESSES_SOLVED, END},
             (const int64_t[]){kkt_solve_length(problem), v[KKT_SOLVE_SEQUENCES],
                               v[KKT_SOLVE_TOKENS], v[KKT_SOLVE_HEADS_K], v[KKT_SOLVE_HEADS_V],
                               v[KKT_SOLVE_DK], slots, END});
}

/* From K to L and the identity. */
static void add_triangles(const kkt_values *problem, int64_t chunk, bool timed, kkt_plan *out) {
    const int64_t *v = problem->v, slots = slots_of(problem, chunk), per_block = THREADS / chunk;
    const int64_t columns = v[KKT_SOLVE_HEADS_K] * v[KKT_SOLVE_DK];
    if (has_tail(problem, chunk))
        add_args(add_kernel(out, "library_tail", 2 * chunk, timed),
                 (const int[]){KKT_SOLVE_TENSOR_K, TAIL, END},
                 (const int64_t[]){v[KKT_SOLVE_TOKENS], columns, END});
    kkt_call_gemm(out, "cublasGemmBatchedEx",
                  &(kkt_gemm_call){.transpose_a = true, /* a chunk's rows are columns to BLAS */
                                   .m = chunk,
                                   .n = chunk,
                                   .k = v[KKT_SOLVE_DK],
                                   .lda = columns,
                                   .ldb = columns,
                                   .ldc = chunk,
                                   .dtype = (kkt_dtype)v[KKT_SOLVE_DTYPE],
                                   .result = KKT_FP32,
                                   .a = ADDRESSES_K,
                                   .b = ADDRESSES_K,
                                   .c = ADDRESSES_PRODUCTS,
                                   .batch = slots * v[KKT_SOLVE_HEADS_K]});
    out->launches[out->launch_count - 1].untimed = !timed;
    const int64_t matrices_v = slots * v[KKT_SOLVE_HEADS_V];
    add_args(add_kernel(out, "library_gate", (matrices_v + per_block - 1) / per_block, timed),
             (const int[]){KKT_SOLVE_TENSOR_BETA, KKT_SOLVE_TENSOR_G, KKT_SOLVE_TENSOR_CU_SEQLENS,
                           PRODUCTS, LOWER, SOLVED, END},
             (const int64_t[]){kkt_solve_length(problem), v[KKT_SOLVE_SEQUENCES],
                               v[KKT_SOLVE_HEADS_K], v[KKT_SOLVE_HEADS_V], slots, END});
}

/* BLAS, whose matrices are column-major, sees L^T, an upper triangle, where L is stored, and what
 * it leaves of the identity is (L^T)^-1 = T^T to it, T as it is stored: from L^T X = I (left) as
 * from X L^T = I (right). The diagonal, which counts as 1, is not looked at. */
static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const int64_t *v = problem->v, chunk = config->v[KKT_SOLVE_CHUNK];
    const int64_t slots = slots_of(problem, chunk);
    const bool all = config->v[ROUTINE] == GEMM_GATE_TRSM;
    (void)arch;
    *out = (kkt_plan){0};
    add_addresses(problem, slots, out);
    add_triangles(problem, chunk, all, out);
    kkt_call_trsm(out, &(kkt_trsm_call){.right = chunk <= LAST_RIGHT,
                                        .n = chunk,
                                        .lda = chunk,
                                        .ldb = chunk,
                                        .batch = slots * v[KKT_SOLVE_HEADS_V],
                                        .a = ADDRESSES_LOWER,
                                        .b = ADDRESSES_SOLVED});
    add_args(add_kernel(out, "library_write", slots * v[KKT_SOLVE_HEADS_V], all),
             (const int[]){KKT_SOLVE_TENSOR_BETA, KKT_SOLVE_TENSOR_CU_SEQLENS, SOLVED,
                           KKT_SOLVE_TENSOR_T, END},
             (const int64_t[]){kkt_solve_length(problem), v[KKT_SOLVE_SEQUENCES],
                               v[KKT_SOLVE_HEADS_V], END});
}

/* K K^T is summed and L solved in fp32: what a path with fp32 couplings may get wrong. */
static double tolerance(const kkt_values *problem, const kkt_values *config, int input_case) {
    kkt_values like = {{0}};
    like.v[KKT_SOLVE_CHUNK] = config->v[KKT_SOLVE_CHUNK];
    like.v[KKT_SOLVE_COUPLE] = KKT_COUPLE_FP32;
    return kkt_solve_tolerance(problem, &like, input_case);
}

const kkt_variant kkt_solve_library = {
    .style = KKT_STYLE_LIBRARY,
    .params = {.what = "parameter", .params = params, .count = PARAMS},
    .source = "kkt_solve/library.cu",
    .sources = sources,
    .library = KKT_CUBLAS,
    .routines = routines,
    .applicable = applicable,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .workspace = workspace,
    .tolerance = tolerance,
};
