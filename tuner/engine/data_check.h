/* Judging a result on a user's own data: error against the reference, growth and conditioning of
 * the inputs, and one word for both. Used by `reference` and `run`. */
#ifndef KKT_TUNER_DATA_CHECK_H
#define KKT_TUNER_DATA_CHECK_H

#include "kernels/kernel.h"

typedef struct kkt_data_check {
    kkt_score score;
    double cond_estimate; /* largest of the parts looked at; NaN: unknown */
    double growth_bound;  /* what the mathematics allows; infinite: no bound */
    double excess;        /* largest growth / growth_bound of a part */
    double tolerance;     /* relative Frobenius error allowed */
    double rounding;      /* unit roundoff of the path that was judged */
    int64_t parts, parts_checked;
    bool compared;       /* a result of someone else's was judged, not the reference's own */
    const char *verdict; /* "ok", "wrong_result" or "ill_conditioned" */
    char advice[320];    /* ill-conditioned: the cause and the remedy; else "" */
} kkt_data_check;

typedef struct kkt_data_check_request {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_values *problem, *config;
    uint64_t config_given;    /* bits of the parameters the user named */
    kkt_host_tensors *inputs; /* all tensors in the kernel's order */
    /* In the kernel's order, outputs alone looked at: what is judged, and where the reference is
     * stored (NULL: nowhere). The two may be the same. */
    kkt_host_tensors *actual, *store;
    int64_t max_parts; /* parts checked, spread over all; 0: every one */
    /* Called now and then with the parts that are done; NULL: never. */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} kkt_data_check_request;

/* Computes, stores and compares. The kernel must have a reference. */
kkt_status kkt_data_check_run(const kkt_data_check_request *request, kkt_data_check *out,
                              kkt_error *err);
/* Sets tolerance, rounding and verdict from score, cond_estimate, excess and compared. `rounding`:
 * of the precision path's arithmetic, relative. */
void kkt_data_check_judge(kkt_data_check *check, double base_tolerance, double largest_tolerance,
                          double rounding);
/* The unit roundoff of a configuration's path. What `given` (bits of parameters) leaves open is
 * taken at its most exact: a user who names no path is held to none. */
double kkt_path_rounding(const kkt_variant *variant, const kkt_values *config, uint64_t given);

#endif
