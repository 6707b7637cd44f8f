/* `kkttune explain KERNEL`: one configuration; every resource with its headroom, what limits it,
 * what the compiler made of it, and what breaks first where a parameter moves to its next value. */
#include <stdio.h>
#include <string.h>

#include "cli/config_choice.h"
#include "cli/explain.h"

static const kkt_option options[] = {
    KKT_OPTION_ARCH,
    KKT_OPTION_DEVICE,
    {"--style", "NAME", "write style; default the kernel's first (that applies)"},
    {"--problem", "K=V,...", "problem; keys that are left out keep their default"},
    {"--config", "K=V,...",
     "configuration; parameters that are left out keep their default; without it, where the "
     "defaults do not apply to the problem, the model's best"},
    {"--cache", "DIR", "cubin cache; default $XDG_CACHE_HOME/kkttune"},
    KKT_OPTION_JSON,
};

static kkt_status choose_variant(const kkt_args *args, const kkt_kernel *kernel,
                                 const kkt_variant **out, kkt_error *err) {
    const char *name = kkt_args_get(args, "--style");
    *out = kernel->variants[0];
    if (name == NULL)
        return KKT_OK;
    const kkt_style *style = kkt_style_find(name);
    *out = style == NULL ? NULL : kkt_kernel_variant(kernel, style->id);
    if (*out != NULL && (*out)->library != NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "style %s of %s calls %s, and what its kernels take is not known; a report "
                        "sets its times beside the other styles'",
                        name, kernel->name, (*out)->library);
    if (*out != NULL)
        return KKT_OK;
    kkt_text list = {0};
    for (size_t i = 0; i < kernel->variant_count; i++)
        kkt_text_printf(&list, "%s%s", i > 0 ? ", " : "",
                        kkt_style_get(kernel->variants[i]->style)->name);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no style '%.40s'; it has: %s",
                                 kernel->name, name, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

static const char *option_or_none(const kkt_args *args, const char *option) {
    const char *text = kkt_args_get(args, option);
    return text == NULL ? "" : text;
}

/* Where --config names nothing: what applies to the problem. An impossible problem stays what it
 * is, for explain_predict to say so. */
static kkt_status choose_config(const kkt_args *args, explain_query *q, kkt_error *err) {
    char reason[EXPLAIN_REASON];
    kkt_config_choice choice;
    if (!kkt_kernel_problem_valid(q->kernel, &q->problem, reason, sizeof reason))
        return KKT_OK;
    kkt_status status = kkt_config_choose(q->kernel, q->variant, kkt_args_has(args, "--style"),
                                          q->arch, q->device, &q->problem, &choice, err);
    if (status != KKT_OK)
        return status;
    q->variant = choice.variant;
    q->config = choice.config;
    snprintf(q->config_note, sizeof q->config_note, "%s", choice.note);
    return KKT_OK;
}

static kkt_status read_query(const kkt_args *args, explain_query *q, kkt_error *err) {
    char reason[EXPLAIN_REASON];
    uint64_t named = 0;
    kkt_status status;
    if ((status = kkt_kernel_parse(kkt_args_operand(args, 0), &q->kernel, err)) ||
        (status = kkt_args_arch(args, &q->arch, &q->device, err)) ||
        (status = choose_variant(args, q->kernel, &q->variant, err)))
        return status;
    kkt_params_defaults(&q->variant->params, &q->config);
    if ((status = kkt_kernel_problem_parse(q->kernel, kkt_args_get(args, "--problem"), &q->problem,
                                           err)) ||
        (status = kkt_params_parse(&q->variant->params, option_or_none(args, "--config"),
                                   &q->config, &named, err)) ||
        (status = named == 0 ? choose_config(args, q, err) : KKT_OK))
        return status;
    if (!explain_predict(q, &q->problem, &q->config, &q->here, reason))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s", reason);
    return KKT_OK;
}

static kkt_status run(const kkt_args *args, kkt_error *err) {
    explain_query query;
    memset(&query, 0, sizeof query);
    kkt_status status = read_query(args, &query, err);
    if (status == KKT_OK)
        status = explain_compile(&query, kkt_args_get(args, "--cache"), err);
    if (status != KKT_OK)
        return status;
    explain_launches(&query);
    if (!kkt_args_has(args, "--style"))
        explain_faster_style(&query);
    explain_limits(&query);
    explain_moves(&query);
    if (kkt_args_has(args, "--json"))
        explain_print_json(&query);
    else
        explain_print_text(&query);
    return KKT_OK;
}

extern const kkt_command kkt_cmd_explain;
const kkt_command kkt_cmd_explain = {
    .name = "explain",
    .operands = "KERNEL",
    .summary = "one configuration: resources, what limits it, what breaks first",
    .details = "Needs no GPU. Where NVRTC is found, compiled values stand beside the prediction.\n"
               "Times come from constants fitted on an H200; on other devices they serve to rank.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
