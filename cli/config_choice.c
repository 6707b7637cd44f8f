#include "cli/config_choice.h"

#include <stdio.h>

#include "base/text.h"
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

/* Fails with `reason`; where a style was named, with those that have a configuration for this. */
static kkt_status fail_choice(const kkt_kernel *kernel, const kkt_variant *variant,
                              bool style_given, const kkt_arch *arch, const kkt_device *device,
                              const kkt_values *problem, const char *reason, kkt_error *err) {
    kkt_text list = {0};
    kkt_values config;
    for (size_t v = 0; v < kernel->variant_count && style_given; v++)
        if (kernel->variants[v] != variant && kkt_variant_tuned(kernel->variants[v]) &&
            best_of(kernel, kernel->variants[v], arch, device, problem, &config))
            kkt_text_printf(&list, "%s%s", list.length > 0 ? ", " : "; styles that apply: ",
                            kkt_style_get(kernel->variants[v]->style)->name);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0,
                                 "no configuration%s%s applies to this problem; the default one "
                                 "does not: %s%s",
                                 style_given ? " of style " : "",
                                 style_given ? kkt_style_get(variant->style)->name : "", reason,
                                 kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
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
        return fail_choice(kernel, variant, style_given, arch, device, problem, reason, err);
    snprintf(out->note, sizeof out->note,
             "the model's best configuration; the default one does not apply: %s", reason);
    return KKT_OK;
}
