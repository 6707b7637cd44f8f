/* What stands around the configuration that is explained: the launches it is made of, and a style
 * that the model would rather take. */
#include <math.h>
#include <string.h>

#include "cli/explain.h"
#include "reports/lookup.h"
#include "reports/modelled.h"

void explain_launches(explain_query *q) {
    kkt_tensor tensors[KKT_TENSORS_MAX];
    if (q->variant->plan == NULL || q->here.prediction.infeasible != KKT_FEASIBLE)
        return;
    q->variant->plan(&q->problem, &q->config, q->arch, &q->plan);
    const int own = kkt_variant_tensors(q->kernel, NULL, &q->problem, &q->config, tensors);
    const int all = kkt_variant_tensors(q->kernel, q->variant, &q->problem, &q->config, tensors);
    for (int i = own; i < all; i++)
        q->workspace_bytes += kkt_tensor_bytes(&tensors[i]);
}

void explain_faster_style(explain_query *q) {
    const int index = q->kernel->chunk_param == NULL
                          ? -1
                          : kkt_params_find(&q->variant->params, q->kernel->chunk_param);
    double least = q->here.prediction.infeasible != KKT_FEASIBLE
                       ? (double)INFINITY
                       : q->here.prediction.predicted_us / KKT_LOOKUP_SLOW;
    explain_query other = *q;
    for (size_t v = 0; v < q->kernel->variant_count; v++) {
        char reason[EXPLAIN_REASON];
        other.variant = q->kernel->variants[v];
        if (other.variant == q->variant || !kkt_variant_tuned(other.variant) ||
            !kkt_modelled_best(q->kernel, other.variant, q->arch, q->device, &q->problem,
                               index < 0 ? 0 : q->config.v[index], &other.config) ||
            !explain_predict(&other, &q->problem, &other.config, &other.here, reason) ||
            other.here.prediction.spills || !(other.here.prediction.predicted_us < least))
            continue;
        least = other.here.prediction.predicted_us;
        q->faster = other.variant;
        q->faster_config = other.config;
        q->faster_us = least;
    }
}
