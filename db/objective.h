/* What makes one result better than another. */
#ifndef KKT_DB_OBJECTIVE_H
#define KKT_DB_OBJECTIVE_H

#include "base/error.h"

typedef enum kkt_objective {
    KKT_OBJECTIVE_TIME,
    KKT_OBJECTIVE_ENERGY, /* of one launch */
    KKT_OBJECTIVE_ERROR,  /* relative Frobenius error */
    KKT_OBJECTIVE_COUNT
} kkt_objective;

const char *kkt_objective_name(kkt_objective objective); /* "time" */
/* KKT_ERR_INPUT lists what exists. */
kkt_status kkt_objective_parse(const char *name, kkt_objective *out, kkt_error *err);
/* The figure that is to be small; NaN where it is unknown. */
double kkt_objective_cost(kkt_objective objective, double time_us, double energy_mj,
                          double rel_fro);

#endif
