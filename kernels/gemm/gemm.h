/* The family gemm: C = A B for row-major matrices of fp16 or bf16, summed in fp32, rounded once.
 *
 *     a          [m, k], or [k, m] where the layout's first letter is t     dtype
 *     b          [k, n], or [n, k] where its second letter is t             dtype
 *     c          [m, n]                                                     dtype
 *     partials   [split_k, m, n]                                            fp32 workspace
 *     padded     copies of a and b whose rows are not whole 16-byte units   dtype workspace
 *
 * Rows follow one another without a gap, and every tensor begins at a multiple of 16 bytes. Device
 * code reads an operand 16 bytes at a time, so one whose rows are no multiple of 8 elements is
 * first copied to `padded`, with zeros at the end of each row (repack.cuh); every style begins with
 * that launch where it is needed.
 *
 * A write style is a variant in a file of its own. The first parameters of every one are those of
 * the enum below; of a configuration the workspace depends on split_k alone. */
#ifndef KKT_KERNELS_GEMM_H
#define KKT_KERNELS_GEMM_H

#include "kernels/gemm/waves.h"
#include "kernels/kernel.h"

/* Indices of the problem keys in kkt_values.v. */
enum {
    KKT_GEMM_M,
    KKT_GEMM_N,
    KKT_GEMM_K,
    KKT_GEMM_DTYPE, /* KKT_FP16 or KKT_BF16 */
    KKT_GEMM_LAYOUT,
    KKT_GEMM_KEYS
};

enum kkt_gemm_layout { KKT_GEMM_NN, KKT_GEMM_NT, KKT_GEMM_TN, KKT_GEMM_TT };

/* The first parameters of every variant: a block's tile of C, the step along k, and the number of
 * sums that k is split into (1: none). A variant without tiles of its own has zeros here. */
enum { KKT_GEMM_BM, KKT_GEMM_BN, KKT_GEMM_BK, KKT_GEMM_SPLIT_K, KKT_GEMM_COMMON };

/* Indices of the tensors as plans and regions name them. */
enum {
    KKT_GEMM_TENSOR_A,
    KKT_GEMM_TENSOR_B,
    KKT_GEMM_TENSOR_C,
    KKT_GEMM_TENSOR_PARTIALS,
    KKT_GEMM_TENSOR_PADDED,
    KKT_GEMM_TENSORS
};

enum { KKT_GEMM_UNIT = 8 }; /* elements of 16 bytes */

/* An operand as it lies in memory. */
typedef struct kkt_gemm_operand {
    int tensor;            /* KKT_GEMM_TENSOR_A or _B */
    bool along_k;          /* its rows run along k; else its columns do */
    int64_t rows, columns; /* as stored */
    bool padded;           /* its rows are no whole units: it is read from `padded` */
    int64_t stride;        /* elements from row to row where it is read */
    int64_t at;            /* element of `padded` where its copy begins */
} kkt_gemm_operand;

/* ---- problems (problem.c) ---- */

extern const kkt_param kkt_gemm_keys[KKT_GEMM_KEYS];
extern const char *const kkt_gemm_default_problems[]; /* NULL-terminated */

kkt_gemm_operand kkt_gemm_a(const kkt_values *problem);
kkt_gemm_operand kkt_gemm_b(const kkt_values *problem);
bool kkt_gemm_problem_valid(const kkt_values *problem, char *reason, size_t size);
int kkt_gemm_tensors(const kkt_values *problem, const kkt_values *config, kkt_tensor *out);
/* Sizes keep what is compiled in: which of them are whole units. */
bool kkt_gemm_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                            kkt_values *small, int *input_case);

/* ---- inputs (inputs.c) ---- */

enum kkt_gemm_case {
    KKT_GEMM_RANDOM,   /* nearly normal, deviation 1: used for timing */
    KKT_GEMM_INTEGERS, /* -1, 0 and 1: sums are exact */
    KKT_GEMM_LARGE,    /* sums to the edge of the type's range, in fp16 past it */
    KKT_GEMM_ZEROS,    /* a is 0, b as in RANDOM */
    KKT_GEMM_CASES
};

extern const kkt_input_case kkt_gemm_cases[KKT_GEMM_CASES];

kkt_status kkt_gemm_make_inputs(const kkt_values *problem, int input_case, uint64_t seed,
                                kkt_host_tensors *inputs, kkt_error *err);
kkt_status kkt_gemm_check_inputs(const kkt_values *problem, kkt_host_tensors *inputs,
                                 kkt_error *err);

/* ---- reference (reference.c): parts are tiles of c ---- */

enum { KKT_GEMM_PART_ROWS = 32, KKT_GEMM_PART_COLUMNS = 64 };

int64_t kkt_gemm_part_count(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs);
int kkt_gemm_part_regions(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs, int64_t part, kkt_region *out);
kkt_status kkt_gemm_reference(const kkt_values *problem, const kkt_values *config,
                              kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                              kkt_error *err);

/* ---- judging (check.c) ---- */

double kkt_gemm_tolerance(const kkt_values *problem, const kkt_values *config, int input_case);
void kkt_gemm_score(const kkt_values *problem, const kkt_region *region, const double *expected,
                    const double *actual, kkt_score *score);

/* ---- what variants share (launch.c) ---- */

/* Whether the architecture has cp.async and mma.sync of bf16, and the grid room for the tiles. */
bool kkt_gemm_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size);
/* Tiles of C in all. */
int64_t kkt_gemm_tile_count(const kkt_values *problem, const kkt_values *config);
/* Style, blocks (tiles x split_k), threads, steps along k of a block in chunks_per_block, the
 * launches, and the bytes of HBM and L2: a and b as often as the tiles ask for them, c, the copies
 * to `padded`, and partials where there are any. Buffers, steps and work are the variant's. */
void kkt_gemm_footprint(const kkt_values *problem, const kkt_values *config, kkt_style_id style,
                        int64_t threads, kkt_footprint *out);
/* Adds what of a and b is read from HBM again, and takes off what of the partials L2 still has. */
void kkt_gemm_reread(const kkt_gemm_waves *waves, const kkt_arch *arch, kkt_footprint *out);
/* The same for a block a tile, `group` rows of tiles together, and as many blocks at once as the
 * rest of the footprint, which must be complete but for its bytes, lets an SM hold. */
void kkt_gemm_reread_tiles(const kkt_values *problem, const kkt_values *config,
                           const kkt_arch *arch, int64_t group, kkt_footprint *out);
/* -D options of the problem: KKT_DTYPE (0: bf16), KKT_A_ALONG_K, KKT_B_ALONG_K, KKT_C_UNITS (rows
 * of c are whole units), KKT_SMEM_BYTES. */
void kkt_gemm_defines(const kkt_values *problem, const kkt_footprint *footprint, kkt_text *out);
/* Begins a plan: the copies to `padded` where needed. */
void kkt_gemm_plan_begin(const kkt_values *problem, kkt_plan *out);
/* Appends a launch without arguments. */
kkt_launch *kkt_gemm_plan_launch(kkt_plan *plan, const char *entry, int64_t blocks,
                                 int64_t threads);
void kkt_gemm_add_tensor(kkt_launch *launch, int tensor);
void kkt_gemm_add_i32(kkt_launch *launch, int64_t value);
void kkt_gemm_add_i64(kkt_launch *launch, int64_t value);
/* The arguments with which entries that read a and b begin: a, b, padded, element of `padded` where
 * a begins and where b begins (-1: read the tensor itself), m, n, k, the strides of a and b. */
void kkt_gemm_add_operands(kkt_launch *launch, const kkt_values *problem);

/* ---- claims (claims.c) ---- */

enum { KKT_GEMM_CLAIM_COUNT = 22 };
extern const kkt_claim kkt_gemm_claims[KKT_GEMM_CLAIM_COUNT];

/* ---- variants ---- */

extern const kkt_variant kkt_gemm_fragment;
extern const kkt_variant kkt_gemm_pipelined;
extern const kkt_variant kkt_gemm_materialized;
extern const kkt_variant kkt_gemm_warp_specialized;
extern const kkt_variant kkt_gemm_library;

#endif
