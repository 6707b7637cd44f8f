/* What `kkttune model` is asked: values by option, with defaults, and the rows of the kernels'
 * footprints that both outputs (JSON, tables) show. */
#ifndef KKT_CLI_MODEL_QUERY_H
#define KKT_CLI_MODEL_QUERY_H

#include "cli/command.h"
#include "kernels/kernel.h"
#include "model/layout.h"
#include "model/predict.h"
#include "model/traffic.h"

#define KKT_MODEL_LIST 32
#define KKT_MODEL_PROBLEMS 8
#define KKT_MODEL_KERNELS 16

typedef struct kkt_int_list {
    int64_t values[KKT_MODEL_LIST];
    size_t count;
    bool given; /* by option; else the defaults */
} kkt_int_list;

typedef struct kkt_model_query {
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_int_list chunks, bases, block_dvs, threads;
    int64_t dk, dv;
    kkt_dtype dtype;
    /* The problems of the HBM table: the one asked for, else the default ones; the first is also
     * what the styles are predicted on. */
    size_t problem_count;
    kkt_attention problems[KKT_MODEL_PROBLEMS];
    /* The first problem in each kernel's own keys, in the order of kkt_kernels. */
    kkt_values kernel_problem[KKT_MODEL_KERNELS];
    bool kernel_usable[KKT_MODEL_KERNELS]; /* false: the kernel cannot take the problem */
    char kernel_reason[KKT_MODEL_KERNELS][160];
} kkt_model_query;

/* KKT_ERR_INPUT names the option and the value. */
kkt_status kkt_model_query_read(const kkt_args *args, kkt_model_query *out, kkt_error *err);

/* One kernel and style at one chunk (and asked threads or block_dv), the other parameters at the
 * best prediction; where nothing can be launched, at the configuration that needs least. */
typedef struct kkt_style_row {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    char name[80]; /* "gdn_fwd_fragment": the layout's name */
    int64_t chunk;
    int64_t block_dv; /* 0 where the variant has no such parameter */
    int stages;       /* 1 where the variant has no such parameter */
    kkt_values config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    /* Why there is no such configuration: a value that no table lists, or constraints that none
     * passes. "": there is one. Else `config` holds the defaults but for what was asked for (the
     * bits of `asked`), and footprint and prediction are empty. */
    char missing[320];
    uint64_t asked;
} kkt_style_row;

/* Calls `visit` for every row in order, for those too that have no configuration. */
void kkt_model_styles(const kkt_model_query *query,
                      void (*visit)(void *context, const kkt_style_row *row), void *context);

/* Calls `visit` for the published layouts at the chunks and block_dv asked for, and then for those
 * of the style rows (at the block_dv asked for, 64 by default). */
void kkt_model_layouts(const kkt_model_query *query,
                       void (*visit)(void *context, const kkt_layout *layout), void *context);

/* The chunks of a table: those asked for, else the first `defaults` of 16, 32, 64, 128, 256. */
size_t kkt_model_chunks(const kkt_model_query *query, size_t defaults, const int64_t **out);

void kkt_model_print_json(const kkt_model_query *query);
void kkt_model_print_text(const kkt_model_query *query);

#endif
