#include "cli/config_choice.h"

#include <stdio.h>

#include "reports/modelled.h"

/* The model's best of one variant, at the default chunk size where one applies at it. */
static bool best_of(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_arch *arch,
                    const kkt_device *device, const kkt_values *problem, kkt_values *out) {
    const int chunk =
        kernel->chunk_param == NULL ? -1 : kkt_params_find(&variant->params, kernel->chunk_param);
    return (chunk >= 0 && kkt_modelled_best(kernel, variant, arch, device, problem,
                                            variant->params.params[chunk].fallback, out)) ||
           kkt_modelled_best(kernel, variant, arch, device, problem, 0, out);
}

kkt_status kkt_config_choose(const kkt_kernel *kernel, const kkt_variant *variant, bool style_given,
                             const kkt_arch *arch, const kkt_device *device,
                             const kkt_values *problem, kkt_config_choice *out, kkt_error *err) {
    char reason[320] = "";
    *out = (kkt_config_choice){.variant = variant};
    kkt_params_defaults(&variant->params, &out->config);
    if (variant->applicable(problem, &out->config, arch, reason, sizeof reason))
        return KKT_OK;
    bool found = best_of(kernel, variant, arch, device, problem, &out->config);
    for (size_t v = 0; v < kernel->variant_count && !found && !style_given; v++) {
        out->variant = kernel->variants[v];
        found = kkt_variant_tuned(out->variant) &&
                best_of(kernel, out->variant, arch, device, problem, &out->config);
    }
    if (!found)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "no configuration applies to this problem; the default one does not: %s",
                        reason);
    snprintf(out->note, sizeof out->note,
             "the model's best configuration; the default one does not apply: %s", reason);
    return KKT_OK;
}
