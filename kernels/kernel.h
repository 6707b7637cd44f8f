/* What a kernel family is to the rest of the program: a const descriptor of data and functions.
 * Families are listed once, in registry.c; the tuner, the database and the reports know no kernel
 * by name. docs/adding-a-kernel.md walks through one. */
#ifndef KKT_KERNELS_KERNEL_H
#define KKT_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/params.h"
#include "base/text.h"
#include "kernels/claim.h"
#include "model/arch.h"
#include "model/footprint.h"

#define KKT_TENSOR_DIMS 4
#define KKT_TENSORS_MAX 24 /* of a kernel, or of all kernels of a pipeline */
#define KKT_LAUNCHES_MAX 8
#define KKT_ARGS_MAX 24

typedef enum kkt_tensor_role {
    KKT_TENSOR_INPUT,
    KKT_TENSOR_OUTPUT,
    KKT_TENSOR_WORKSPACE
} kkt_tensor_role;

/* One tensor of a problem, row-major, last index fastest. `name` is also the .npy file's name. */
typedef struct kkt_tensor {
    const char *name;
    kkt_tensor_role role;
    kkt_dtype dtype;
    int rank;
    int64_t dims[KKT_TENSOR_DIMS];
    bool optional; /* may be left out of a user's folder (cu_seqlens, h0) */
} kkt_tensor;

int64_t kkt_tensor_elements(const kkt_tensor *tensor);
int64_t kkt_tensor_bytes(const kkt_tensor *tensor);
/* "g[0,5,3]" for element `index`. */
void kkt_tensor_element_name(const kkt_tensor *tensor, int64_t index, char *out, size_t size);

/* A tensor's values on the host. `data` NULL: an optional input that is absent. */
typedef struct kkt_host_tensor {
    kkt_tensor tensor;
    void *data; /* malloc'ed by whoever filled it; freed by kkt_host_tensors_free */
} kkt_host_tensor;

/* Where a family found a part last, so that parts asked for in order need no search; its own, and
 * void (all zero) once an input's values change. */
typedef struct kkt_part_cursor {
    const void *data; /* of the tensor that was searched; NULL: nowhere yet */
    int64_t chunk, total, sequence, before;
} kkt_part_cursor;

typedef struct kkt_host_tensors {
    int count;
    kkt_host_tensor t[KKT_TENSORS_MAX];
    kkt_part_cursor cursor;
} kkt_host_tensors;

kkt_host_tensor *kkt_host_tensor_find(kkt_host_tensors *tensors, const char *name); /* or NULL */
void kkt_host_tensors_free(kkt_host_tensors *tensors);

/* ---- launch plan: everything a backend needs to run a configuration ---- */

typedef enum kkt_arg_kind {
    KKT_ARG_TENSOR,
    KKT_ARG_I32,
    KKT_ARG_I64,
    KKT_ARG_F32,
    KKT_ARG_TENSOR_MAP
} kkt_arg_kind;

/* A 2-D or 3-D tiled tensor map (TMA descriptor), encoded by the backend on the device pointer. */
typedef struct kkt_tensor_map {
    int rank;
    int64_t first;            /* element of the tensor where the map begins */
    int64_t dims[5];          /* elements, innermost first */
    int64_t strides_bytes[5]; /* of dims 1.. (index 0 is unused) */
    int box[5];
    int swizzle_bytes;   /* 0, 32, 64 or 128 */
    int promotion_bytes; /* loads fetch L2 lines of 64, 128 or 256 bytes; 0: the sectors alone */
} kkt_tensor_map;

typedef struct kkt_arg {
    kkt_arg_kind kind;
    int tensor;      /* TENSOR, TENSOR_MAP: index in the tensor list; an absent optional tensor
                        is passed as a null pointer */
    int64_t integer; /* I32, I64 */
    double real;     /* F32 */
    kkt_tensor_map map;
} kkt_arg;

/* A step of a plan: a kernel of the variant's source or, where `library` is set, a library's
 * routine that the host calls on the plan's stream; of such a call entry, arguments and `untimed`
 * alone mean something. kernels/library.h makes the calls. */
typedef struct kkt_launch {
    const char *library; /* "cublas"; NULL: a kernel */
    const char *entry;   /* the extern "C" name of the __global__ function, or of the routine */
    bool untimed;        /* before the first timed step: prepares each timed run; behind the last:
                            finishes the result for the check. Neither is in the time. */
    uint32_t grid[3], block[3], cluster[3]; /* cluster 0,0,0: none */
    int64_t dynamic_smem_bytes;
    int carveout_percent; /* preferred shared-memory carve-out; -1: the driver's choice */
    bool waits;           /* its device code waits for the launch before it (griddepcontrol.wait)
                             before it touches what another kernel writes or reads, so that in a
                             pipeline it may be launched while that one ends */
    int arg_count;
    kkt_arg args[KKT_ARGS_MAX];
} kkt_launch;

typedef struct kkt_plan {
    int launch_count;
    kkt_launch launches[KKT_LAUNCHES_MAX];
} kkt_plan;

/* ---- correctness ---- */

/* How inputs are made; each case is a row of the family's table. */
typedef struct kkt_input_case {
    const char *name;    /* "random", "correlated", "duplicates", ... */
    const char *summary; /* one line */
    bool timing;         /* the case whose inputs are used for timing (exactly one) */
} kkt_input_case;

/* A piece of one output that can be checked on its own: `rows` x `columns` elements of tensor
 * `tensor` starting at element `offset`, rows `row_stride` elements apart. Where `group_rows` is
 * not 0, rows come in groups of so many, `group_stride` elements apart. */
typedef struct kkt_region {
    int tensor;
    int64_t offset, rows, columns, row_stride;
    int64_t group_rows, group_stride;
} kkt_region;

#define KKT_REGIONS_MAX 3

/* The element at which a row of a region begins. */
static inline int64_t kkt_region_row(const kkt_region *region, int64_t row) {
    const int64_t group = region->group_rows > 0 ? row / region->group_rows : 0;
    return region->offset + group * region->group_stride +
           (row - group * region->group_rows) * region->row_stride;
}

/* An element that is not what it should be. */
typedef struct kkt_misfit {
    int tensor;
    int64_t at; /* in the tensor's order */
    double given, right;
} kkt_misfit;

/* Element (row, column) of a region. */
kkt_misfit kkt_region_misfit(const kkt_region *region, int64_t row, int64_t column, double given,
                             double right);

/* Accumulated over regions; a tensor's relative Frobenius error is sqrt(error_sq / reference_sq),
 * and the result's is that of its worst tensor. The reference's square is that of its elements'
 * sizes: where the type can resolve them, their values. */
typedef struct kkt_score {
    double error_sq[KKT_TENSORS_MAX], reference_sq[KKT_TENSORS_MAX];
    double max_abs;     /* largest absolute error */
    double growth;      /* largest absolute value of the reference result */
    int64_t inexact;    /* elements that had to be exact (unit diagonal, zeros) and were not */
    int64_t not_finite; /* elements that are NaN or infinite where the reference is finite */
    int64_t elements;
    /* The first of `inexact` and of `not_finite`, and that of `max_abs`; nothing where there is
     * none. */
    kkt_misfit first_inexact, first_not_finite, worst;
} kkt_score;

/* What an error of an element is measured against: |value|, but at least what a path whose operands
 * are of `type` (KKT_FP16 or KKT_BF16) can tell apart.
 *
 * Rounding x to b bits is off by u |x| at most, u = 2^-b. Below the smallest normal number m the
 * spacing no longer shrinks: there it is off by u m, however small x is, and by |x| itself where x
 * becomes 0. Either is u max(|x|, min(m, |x| / u)), and that last factor is this size: a tolerance
 * in units of u asks the same of small elements as of others, and no more than the type has. m is
 * 2^-14 and u 2^-11 in fp16, 2^-126 and 2^-8 in bf16. */
double kkt_resolved_size(kkt_dtype type, double value);

/* Adds the error of an element that is finite, and whose reference is; `size` is that against which
 * it is measured. An error of up to `unavoidable` counts as none in the sum, because no value of
 * the element's type is nearer. */
void kkt_score_error(kkt_score *score, const kkt_misfit *misfit, double size, double unavoidable);

typedef struct kkt_kernel kkt_kernel;

/* One write style of a family: its parameters and its device code. */
typedef struct kkt_variant {
    kkt_style_id style;
    kkt_param_table params;
    const char *source;         /* "kkt_solve/kkt_solve.cu": the file given to NVRTC. NULL without
                                   `library`: there is no device code yet; the model predicts the
                                   variant, and the tuner skips it. `sources`, `defines`, `plan`
                                   and `tolerance` may then be NULL too. */
    const char *const *sources; /* that file and all project headers it includes, NULL-terminated,
                                   relative to kernels/: what kernel_hash covers */
    /* The library whose routines the plan calls ("cublas"); NULL: none. `source` is NULL where the
     * plan has no kernel of its own beside them. Such a variant is a baseline (style library): it
     * is verified and timed like any other, and never chosen, exported or run in a pipeline. */
    const char *library;
    const char *const *routines; /* those that its plans call, NULL-terminated: kernel_hash covers
                                    their names */
    int calls_revision; /* of what `plan` asks of them (which operands, layout, type): raised by one
                           with each change of that, which makes earlier times stale; 0 at first */
    /* Whether a configuration makes sense at all on this problem and architecture. False with
     * one line in `reason` (kkt_reason; `size` 0: nobody asks, and it may be NULL)
     * ("heads_per_block 4 does not divide Hv/Hk = 2"). Constraints only prune: everything they let
     * pass must run right or be infeasible by the model. */
    bool (*applicable)(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size);
    /* What of that hangs on a problem's sizes beyond what is compiled in and the quotients of
     * heads, for the exported header, whose look-up cannot call it: C conditions over the problem's
     * keys and the parameters of `kkt_row`, NULL-terminated ("heads_v % kkt_row->heads_per_block ==
     * 0"). NULL: nothing, or the kernel's sizes_decide. */
    const char *const *row_needs;
    void (*footprint)(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out);
    /* -D options beyond the parameters' own macros, space for one each in `out` as
     * "NAME=value\n": what of the problem is compiled in (dk, dtype), shared-memory bytes. */
    void (*defines)(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out);
    void (*plan)(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out);
    /* Workspace of this variant beyond the family's tensors, whose indices follow theirs; returns
     * its number. NULL: none. */
    int (*workspace)(const kkt_values *problem, const kkt_values *config, kkt_tensor *out);
    /* Relative Frobenius tolerance of this configuration's precision path on an input case. */
    double (*tolerance)(const kkt_values *problem, const kkt_values *config, int input_case);
    /* Unit roundoff of that path's arithmetic: how far ill-conditioned inputs may move a result.
     * NULL: fp32's. */
    double (*rounding)(const kkt_values *config);
} kkt_variant;

/* A family whose result is, part by part, a function of one strictly lower triangular matrix: a
 * user may then give the matrices themselves, [...,n,n] in a file of this name. */
typedef struct kkt_from_lower {
    const char *tensor; /* "l" */
    const char *result; /* "t" */
    int input_case;     /* whose tolerance applies */
    /* n x n, dense, row-major; `result` must not overlap `l`. */
    void (*solve)(const double *l, int n, double *result);
    double (*condition)(const double *l, const double *result, int n);
} kkt_from_lower;

/* A family of which no variant has device code is model-only: everything from `tensors` on may be
 * NULL (0 for counts). */
struct kkt_kernel {
    const char *name;                    /* "kkt_solve" */
    const char *summary;                 /* one line */
    kkt_param_table problem;             /* its problem keys with defaults */
    const char *const *default_problems; /* canonical or partial "k=v,..." texts, NULL-terminated;
                                            the first is the default problem */
    const kkt_variant *const *variants;  /* one a write style */
    size_t variant_count;
    const char *chunk_param; /* "chunk": entries are kept for each of its values; NULL: none */
    /* What applies, or how it is launched, hangs on the problem's sizes (whether n is a multiple of
     * 8 decides how rows are stored). Who cannot ask `applicable`, such as a user of the exported
     * header, is then given nothing of another problem. */
    bool sizes_decide;
    const kkt_claim *claims; /* what is said of its parameters; NULL: nothing */
    size_t claim_count;

    /* One line in `reason` where a problem is impossible ("heads_v 6 is no multiple of 4"). NULL:
     * every problem whose keys are in range is possible. Call it through kkt_kernel_problem_valid.
     */
    bool (*problem_valid)(const kkt_values *problem, char *reason, size_t size);
    /* Where two texts mean one problem (lda as long as a row, and 0), makes the values those of
     * one of them. NULL: all differ. kkt_kernel_problem_parse calls it. */
    void (*problem_canonical)(kkt_values *problem);
    /* The tensors of a problem; output shapes may depend on the chunk of `config`. */
    int (*tensors)(const kkt_values *problem, const kkt_values *config, kkt_tensor *out);
    const kkt_input_case *cases;
    size_t case_count;
    /* Small problems on which every candidate is checked: index from 0; false when there are no
     * more. Derived from the problem at hand (same dtype, dk, head ratio, gate), with tails,
     * empty sequences and the input case to use. */
    bool (*check_problem)(const kkt_values *problem, const kkt_values *config, int index,
                          kkt_values *small, int *input_case);
    /* Fills the input tensors (allocates their data). The same seed gives the same bytes. */
    kkt_status (*make_inputs)(const kkt_values *problem, int input_case, uint64_t seed,
                              kkt_host_tensors *inputs, kkt_error *err);
    /* Fills the input tensors that depend on the chunk as well (T, states of chunks) and that
     * make_inputs therefore left without data: frees what they hold and makes them for `config`
     * from the other inputs. `inputs` has all the tensors in their order. NULL: there are none. */
    kkt_status (*make_chunk_inputs)(const kkt_values *problem, const kkt_values *config,
                                    int input_case, uint64_t seed, kkt_host_tensors *inputs,
                                    kkt_error *err);
    /* Rejects inputs the mathematics excludes (g > 0), naming tensor, element and remedy. */
    kkt_status (*check_inputs)(const kkt_values *problem, kkt_host_tensors *inputs, kkt_error *err);
    /* The result falls into parts that depend on the inputs alone and can be computed one by
     * one (a chunk of a head, a head of a sequence). */
    int64_t (*part_count)(const kkt_values *problem, const kkt_values *config,
                          kkt_host_tensors *inputs);
    /* The regions of a part; returns their number (0: an empty part). */
    int (*part_regions)(const kkt_values *problem, const kkt_values *config,
                        kkt_host_tensors *inputs, int64_t part, kkt_region *out);
    /* The part in double precision: rows x columns values a region, dense, one after the other
     * in `out` (`size` doubles). */
    kkt_status (*reference)(const kkt_values *problem, const kkt_values *config,
                            kkt_host_tensors *inputs, int64_t part, double *out, size_t size,
                            kkt_error *err);
    /* Compares a region's values (as doubles, dense) with the reference and adds to the score.
     * NULL: plain elementwise comparison. */
    void (*score)(const kkt_values *problem, const kkt_region *region, const double *expected,
                  const double *actual, kkt_score *score);
    /* Condition of a user's inputs: growth and an estimate of the condition number of part
     * `part`; used by `run` to answer `ill_conditioned`. A bound that does not hold for these
     * inputs is infinite. NULL where it does not apply. */
    void (*condition)(const kkt_values *problem, const kkt_values *config, kkt_host_tensors *inputs,
                      int64_t part, const double *reference, double *cond_estimate,
                      double *growth_bound);
    const kkt_from_lower *from_lower; /* NULL: the inputs alone */
    /* One line on ill-conditioned inputs: what in them does it, where, and the remedy. NULL where
     * `condition` is. */
    void (*advice)(const kkt_values *problem, const kkt_host_tensors *inputs, char *out,
                   size_t size);
};

/* The list. */
const kkt_kernel *const *kkt_kernels(size_t *count);
/* A problem's text ("k=v,...", NULL as ""), the keys it leaves out at their defaults, as canonical
 * values. KKT_ERR_INPUT names the key; whether it is possible is for kkt_kernel_problem_valid. */
kkt_status kkt_kernel_problem_parse(const kkt_kernel *kernel, const char *text, kkt_values *out,
                                    kkt_error *err);
/* Whether a problem is possible at all; false with one line in `reason`. */
bool kkt_kernel_problem_valid(const kkt_kernel *kernel, const kkt_values *problem, char *reason,
                              size_t size);
/* By name; KKT_ERR_INPUT lists what exists. */
kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err);
const kkt_variant *kkt_kernel_variant(const kkt_kernel *kernel, kkt_style_id style); /* or NULL */
/* Whether a variant can be run: it has device code, or calls a library. */
bool kkt_variant_runs(const kkt_variant *variant);
/* Whether a variant is for choosing: it has device code and calls no library. */
bool kkt_variant_tuned(const kkt_variant *variant);
/* All tensors of a plan: the family's, then the variant's workspace. `variant` may be NULL; `out`
 * has room for KKT_TENSORS_MAX. Returns their number. */
int kkt_variant_tensors(const kkt_kernel *kernel, const kkt_variant *variant,
                        const kkt_values *problem, const kkt_values *config, kkt_tensor *out);

/* A device source by its path relative to kernels/ ("device/fragment.cuh"), embedded at build
 * time. NULL where there is none. The bytes are NUL-terminated; length excludes the NUL. */
const char *kkt_device_source(const char *path, size_t *length);
/* SHA-256 (hex) over the bytes of the variant's `sources`, one after the other in that order, and
 * the names of the library's routines, where it calls some, with the revision of how. */
void kkt_variant_hash(const kkt_variant *variant, char out[65]);
/* All -D options of a configuration: parameters' macros in table order, then `defines`; lines
 * "NAME=value\n" appended to `out`. */
void kkt_variant_defines(const kkt_kernel *kernel, const kkt_variant *variant,
                         const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         kkt_text *out);

#endif
