#include "tuner/engine/data_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/engine/gate.h"

#define FP32_ROUNDING 0x1p-24

double kkt_path_rounding(const kkt_variant *variant, const kkt_values *config, uint64_t given) {
    if (!variant->rounding)
        return FP32_ROUNDING;
    double rounding = variant->rounding(config);
    for (size_t p = 0; p < variant->params.count; p++) {
        const kkt_param *param = &variant->params.params[p];
        for (size_t v = 0; v < param->count && !(given >> p & 1); v++) {
            kkt_values other = *config;
            other.v[p] = param->values[v];
            rounding = fmin(rounding, variant->rounding(&other));
        }
    }
    return rounding;
}

/* Conditioning explains errors up to cond x rounding; that is allowed for, but never beyond what
 * the hardest of the kernel's own input cases is allowed. Past it, an error says nothing. */
void kkt_data_check_judge(kkt_data_check *check, double base_tolerance, double largest_tolerance,
                          double rounding) {
    const kkt_score *score = &check->score;
    const double explained = isnan(check->cond_estimate) ? 0.0 : check->cond_estimate * rounding;
    check->rounding = rounding;
    check->tolerance = fmax(base_tolerance, fmin(explained, largest_tolerance));
    const bool right = kkt_score_right(score, check->tolerance, NULL, 0);
    const bool unbounded = !isfinite(score->growth) || check->excess > 1.0 + 1e-6;
    if (unbounded || (explained > largest_tolerance && !(check->compared && right)))
        check->verdict = "ill_conditioned";
    else
        check->verdict = right ? "ok" : "wrong_result";
}

/* Tolerance of the case that is timed (plain inputs), and the largest of all cases. */
static void tolerances(const kkt_data_check_request *request, double *base, double *largest) {
    *base = *largest = 0.0;
    /* A style that only the model knows claims no precision. */
    for (size_t i = 0; request->variant->tolerance && i < request->kernel->case_count; i++) {
        const double t = request->variant->tolerance(request->problem, request->config, (int)i);
        *largest = fmax(*largest, t);
        if (request->kernel->cases[i].timing)
            *base = t;
    }
}

static void store_regions(const kkt_host_tensors *store, const kkt_region *regions, int count,
                          const double *values) {
    for (int r = 0; r < count; r++) {
        const kkt_region *region = &regions[r];
        const kkt_host_tensor *host = &store->t[region->tensor];
        for (int64_t i = 0; i < region->rows; i++)
            for (int64_t j = 0; j < region->columns; j++)
                kkt_dtype_store(host->tensor.dtype, host->data,
                                (size_t)(kkt_region_row(region, i) + j), *values++);
    }
}

static double largest_value(const double *values, int64_t count) {
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(values[i]) <= largest))
            largest = isnan(values[i]) ? INFINITY : fabs(values[i]);
    return largest;
}

static kkt_status check_part(const kkt_data_check_request *request, int64_t part, bool condition,
                             kkt_data_check *out, kkt_error *err) {
    const kkt_kernel *kernel = request->kernel;
    kkt_region regions[KKT_REGIONS_MAX];
    const int count =
        kernel->part_regions(request->problem, request->config, request->inputs, part, regions);
    const int64_t size = kkt_regions_size(regions, count);
    if (size == 0)
        return KKT_OK;
    double *values = calloc((size_t)size, sizeof *values);
    if (!values)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the reference");
    kkt_status status = kernel->reference(request->problem, request->config, request->inputs, part,
                                          values, (size_t)size, err);
    if (status == KKT_OK && request->store)
        store_regions(request->store, regions, count, values);
    if (status == KKT_OK)
        status = kkt_gate_score_part(kernel, request->problem, request->actual, regions, count,
                                     values, &out->score, err);
    if (status == KKT_OK && condition && kernel->condition) {
        double cond = NAN, bound = INFINITY;
        kernel->condition(request->problem, request->config, request->inputs, part, values, &cond,
                          &bound);
        if (!(cond <= out->cond_estimate)) /* the first one too, which meets NaN */
            out->cond_estimate = cond;
        out->growth_bound = fmax(out->growth_bound, bound);
        out->excess = fmax(out->excess, largest_value(values, size) / bound);
    }
    free(values);
    return status;
}

/* Conditions of at most this many parts are estimated; each costs as much as the part itself. */
enum { CONDITION_PARTS = 2048 };

kkt_status kkt_data_check_run(const kkt_data_check_request *request, kkt_data_check *out,
                              kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->compared = request->actual != request->store;
    out->cond_estimate = NAN;
    out->parts = request->kernel->part_count(request->problem, request->config, request->inputs);
    const bool all = request->max_parts <= 0 || request->max_parts >= out->parts;
    out->parts_checked = all ? out->parts : request->max_parts;
    const int64_t every = out->parts_checked / CONDITION_PARTS + 1;
    kkt_status status = KKT_OK;
    for (int64_t i = 0; i < out->parts_checked && status == KKT_OK; i++) {
        const int64_t part = kkt_gate_part(i, out->parts_checked, out->parts);
        status = check_part(request, part, i % every == 0, out, err);
        if (request->progress && (i % 256 == 255 || i + 1 == out->parts_checked))
            request->progress(request->context, i + 1, out->parts_checked);
    }
    if (out->growth_bound <= 0.0) /* of no part */
        out->growth_bound = INFINITY;
    double base, largest;
    tolerances(request, &base, &largest);
    kkt_data_check_judge(
        out, base, largest,
        kkt_path_rounding(request->variant, request->config, request->config_given));
    if (status == KKT_OK && strcmp(out->verdict, "ill_conditioned") == 0 && request->kernel->advice)
        request->kernel->advice(request->problem, request->inputs, out->advice, sizeof out->advice);
    return status;
}
