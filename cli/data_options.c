#include "cli/data_options.h"

#include "base/file.h"

static kkt_status read_folders(const kkt_args *args, bool need_out, kkt_data_options *out,
                               kkt_error *err) {
    out->in = kkt_args_get(args, "--in");
    out->out = kkt_args_get(args, "--out");
    if (!out->in)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "option --in DIR is needed: the inputs' folder");
    if (!out->out && !need_out)
        return KKT_OK;
    if (!out->out)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "option --out DIR is needed: the result's folder");
    return kkt_folder_check_writable(out->out, err); /* made when there is something to write */
}

/* The asked style, or the first that has device code; where none has, the first. */
static kkt_status choose_variant(const kkt_args *args, const kkt_kernel *kernel,
                                 const kkt_variant **out, kkt_error *err) {
    const char *name = kkt_args_get(args, "--style");
    *out = kernel->variants[0];
    if (!name) {
        for (size_t v = 0; v < kernel->variant_count; v++) {
            if (kkt_variant_tuned(kernel->variants[v])) {
                *out = kernel->variants[v];
                break;
            }
        }
        return KKT_OK;
    }
    const kkt_style *style = kkt_style_find(name);
    const kkt_variant *found = style ? kkt_kernel_variant(kernel, style->id) : NULL;
    if (!found)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no style '%.40s'", kernel->name, name);
    *out = found;
    return KKT_OK;
}

kkt_status kkt_data_options_read(const kkt_args *args, bool device_code, kkt_data_options *out,
                                 kkt_error *err) {
    const kkt_variant *variant = NULL;
    kkt_status status = kkt_kernel_parse(kkt_args_operand(args, 0), &out->kernel, err);
    if (status == KKT_OK)
        status = choose_variant(args, out->kernel, &variant, err);
    if (status != KKT_OK)
        return status;
    out->variant = variant;
    if (device_code && !kkt_variant_runs(variant))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "kernel %s has no device code yet: the model alone knows it",
                        out->kernel->name);
    if (!out->kernel->reference)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "kernel %s has no reference", out->kernel->name);
    const char *config = kkt_args_get(args, "--config");
    kkt_params_defaults(&variant->params, &out->config);
    status = kkt_params_parse(&variant->params, config ? config : "", &out->config,
                              &out->config_given, err);
    return status == KKT_OK ? read_folders(args, device_code, out, err) : status;
}
