#include "db/objective.h"

#include <math.h>
#include <string.h>

static const char *const names[KKT_OBJECTIVE_COUNT] = {
    [KKT_OBJECTIVE_TIME] = "time",
    [KKT_OBJECTIVE_ENERGY] = "energy",
    [KKT_OBJECTIVE_ERROR] = "error",
};

const char *kkt_objective_name(kkt_objective objective) {
    return names[objective];
}

kkt_status kkt_objective_parse(const char *name, kkt_objective *out, kkt_error *err) {
    for (int i = 0; i < KKT_OBJECTIVE_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (kkt_objective)i;
            return KKT_OK;
        }
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown objective '%.60s'; known: time, energy, error",
                    name);
}

double kkt_objective_cost(kkt_objective objective, double time_us, double energy_mj,
                          double rel_fro) {
    switch (objective) {
    case KKT_OBJECTIVE_TIME:
        return time_us;
    case KKT_OBJECTIVE_ENERGY:
        return energy_mj;
    case KKT_OBJECTIVE_ERROR:
        return rel_fro;
    case KKT_OBJECTIVE_COUNT:
        break;
    }
    return (double)NAN;
}
