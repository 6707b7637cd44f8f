/* What `kkttune explain` computes and prints. */
#ifndef KKT_CLI_EXPLAIN_H
#define KKT_CLI_EXPLAIN_H

#include "cli/command.h"
#include "kernels/kernel.h"
#include "model/predict.h"
#include "tuner/compile/compile.h"

enum { EXPLAIN_REASON = 320, EXPLAIN_MOVES = 2 * KKT_PARAMS_MAX + 8 };

/* A footprint and what the model says of it. */
typedef struct explain_point {
    kkt_footprint footprint;
    kkt_prediction prediction;
    char reason[EXPLAIN_REASON];
} explain_point;

/* One limit of the number of blocks on an SM. */
typedef struct explain_limit {
    const char *unit;  /* "registers per thread" */
    int blocks_per_sm; /* that it alone would allow */
    int64_t used;      /* by one block or thread, in `unit` */
    int64_t headroom;  /* how much more before a block is lost; -1: no amount does that */
} explain_limit;

typedef enum explain_verdict {
    EXPLAIN_INFEASIBLE, /* worst first: the order they are printed in */
    EXPLAIN_SPILLS,
    EXPLAIN_FEWER_BLOCKS,
    EXPLAIN_OTHER_LIMITER,
    EXPLAIN_SAME,
    EXPLAIN_MORE_BLOCKS,
    EXPLAIN_REJECTED /* a constraint of the kernel */
} explain_verdict;

/* A parameter or problem key moved to a neighbouring value, all else kept. */
typedef struct explain_move {
    const kkt_param *param;
    bool of_problem;
    int64_t from, to;
    explain_verdict verdict;
    kkt_prediction prediction; /* not of REJECTED */
    char reason[EXPLAIN_REASON];
} explain_move;

typedef struct explain_query {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_values problem, config;
    char config_note[400]; /* why it is not the default one, though none was given; else "" */
    explain_point here;
    bool compiled;
    kkt_cubin_info info;           /* where compiled */
    kkt_occupancy compiled_blocks; /* occupancy with the compiled figures */
    double compile_ms;
    char compiler[32];
    char compile_note[EXPLAIN_REASON]; /* why it is not compiled */
    explain_limit limits[KKT_OCCUPANCY_LIMITS];
    kkt_plan plan;           /* launch_count 0: it cannot launch, or has no device code */
    int64_t workspace_bytes; /* of the style, beside the kernel's tensors */
    /* Where no style was named: the one that the model would rather take at this chunk size, by
     * more than KKT_LOOKUP_SLOW, with its configuration; NULL: none. */
    const kkt_variant *faster;
    kkt_values faster_config;
    double faster_us;
    int move_count;
    explain_move moves[EXPLAIN_MOVES];
} explain_query;

/* False with the reason where the problem or the configuration is turned down. */
bool explain_predict(const explain_query *q, const kkt_values *problem, const kkt_values *config,
                     explain_point *out, char reason[EXPLAIN_REASON]);
kkt_status explain_compile(explain_query *q, const char *cache, kkt_error *err);
void explain_launches(explain_query *q);
void explain_faster_style(explain_query *q);
void explain_limits(explain_query *q);
void explain_moves(explain_query *q);
const char *explain_verdict_name(explain_verdict verdict); /* "fewer_blocks" */
void explain_print_json(const explain_query *q);
void explain_print_text(const explain_query *q);

#endif
