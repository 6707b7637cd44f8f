#include "cli/data_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "tuner/engine/gate.h"

double kkt_path_rounding(const kkt_param_table *params, const kkt_values *config, uint64_t given) {
    const int at = kkt_params_find(params, "couple");
    char buffer[24];
    const bool tf32 =
        at >= 0 && (given >> at & 1) &&
        strcmp(kkt_param_value_text(&params->params[at], config->v[at], buffer), "tf32") == 0;
    return tf32 ? 0x1p-11 : 0x1p-24;
}

/* Conditioning explains errors up to cond x rounding; that is allowed for, but never beyond what
 * the hardest of the kernel's own input cases is allowed. Past it, an error says nothing. */
void kkt_data_check_judge(kkt_data_check *check, double base_tolerance, double largest_tolerance,
                          double rounding) {
    const kkt_score *score = &check->score;
    const double explained = isnan(check->cond_estimate) ? 0.0 : check->cond_estimate * rounding;
    check->tolerance = fmax(base_tolerance, fmin(explained, largest_tolerance));
    const bool right =
        !score->not_finite && !score->inexact && kkt_score_rel_fro(score) <= check->tolerance;
    const bool unbounded = !isfinite(score->growth) || check->excess > 1.0 + 1e-6;
    if (unbounded || (explained > largest_tolerance && !(check->compared && right)))
        check->verdict = "ill_conditioned";
    else
        check->verdict = right ? "ok" : "wrong_result";
}

/* Tolerance of the case that is timed (plain inputs), and the largest of all cases. */
static void tolerances(const kkt_data_check_request *request, double *base, double *largest) {
    *base = *largest = 0.0;
    for (size_t i = 0; i < request->kernel->case_count; i++) {
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
                                (size_t)(region->offset + i * region->row_stride + j), *values++);
    }
}

static int64_t regions_size(const kkt_region *regions, int count) {
    int64_t size = 0;
    for (int r = 0; r < count; r++)
        size += regions[r].rows * regions[r].columns;
    return size;
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
    const int64_t size = regions_size(regions, count);
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
        out->growth_bound = isfinite(out->growth_bound) ? fmax(out->growth_bound, bound) : bound;
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
    out->growth_bound = INFINITY;
    out->parts = request->kernel->part_count(request->problem, request->config, request->inputs);
    const bool all = request->max_parts <= 0 || request->max_parts >= out->parts;
    out->parts_checked = all ? out->parts : request->max_parts;
    const int64_t every = out->parts_checked / CONDITION_PARTS + 1;
    kkt_progress progress;
    kkt_progress_open(&progress);
    kkt_status status = KKT_OK;
    for (int64_t i = 0; i < out->parts_checked && status == KKT_OK; i++) {
        const int64_t part = all || out->parts_checked < 2
                                 ? i
                                 : (int64_t)((double)i * (double)(out->parts - 1) /
                                                 (double)(out->parts_checked - 1) +
                                             0.5);
        status = check_part(request, part, i % every == 0, out, err);
        if (out->parts_checked > CONDITION_PARTS && (i % 256 == 255 || i + 1 == out->parts_checked))
            kkt_progress_show(&progress, "reference", i + 1, out->parts_checked, "");
    }
    kkt_progress_close(&progress);
    double base, largest;
    tolerances(request, &base, &largest);
    kkt_data_check_judge(
        out, base, largest,
        kkt_path_rounding(&request->variant->params, request->config, request->config_given));
    return status;
}

kkt_json *kkt_data_check_json(const kkt_data_check *check, const char *kernel, const char *problem,
                              const char *config) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.check/1");
    kkt_json_add_string(root, "kernel", kernel);
    if (problem)
        kkt_json_add_string(root, "problem", problem);
    if (config)
        kkt_json_add_string(root, "config", config);
    kkt_json_add_string(root, "verdict", check->verdict);
    kkt_json_add_real(root, "rel_fro", kkt_score_rel_fro(&check->score));
    kkt_json_add_real(root, "max_abs", check->score.max_abs);
    kkt_json_add_real(root, "tolerance", check->tolerance);
    kkt_json_add_real(root, "growth", check->score.growth);
    kkt_json_add_real(root, "growth_bound", check->growth_bound);
    kkt_json_add_real(root, "cond_estimate", check->cond_estimate);
    kkt_json_add_bool(root, "compared", check->compared);
    kkt_json_add_int(root, "elements", check->score.elements);
    kkt_json_add_int(root, "inexact", check->score.inexact);
    kkt_json_add_int(root, "not_finite", check->score.not_finite);
    kkt_json_add_int(root, "parts", check->parts);
    kkt_json_add_int(root, "parts_checked", check->parts_checked);
    return root;
}

void kkt_data_check_print(const kkt_data_check *check) {
    const kkt_score *score = &check->score;
    printf("verdict        %s\n", check->verdict);
    printf("rel_fro        %.3e (tolerance %.1e)\n", kkt_score_rel_fro(score), check->tolerance);
    printf("max_abs        %.3e\n", score->max_abs);
    printf("growth         %.4g", score->growth);
    if (isfinite(check->growth_bound))
        printf(" (at most %.4g where 0 <= beta |k|^2 <= 2)", check->growth_bound);
    printf("\ncond_estimate  %.3g\n", check->cond_estimate);
    if (score->inexact)
        printf("inexact        %" PRId64 " of %" PRId64 " elements\n", score->inexact,
               score->elements);
    if (score->not_finite)
        printf("not_finite     %" PRId64 " of %" PRId64 " elements\n", score->not_finite,
               score->elements);
    if (check->parts_checked < check->parts)
        printf("checked        %" PRId64 " of %" PRId64 " chunks and heads\n", check->parts_checked,
               check->parts);
}

kkt_status kkt_data_check_status(const kkt_data_check *check, const char *what, kkt_error *err) {
    if (!check->compared || strcmp(check->verdict, "wrong_result") != 0)
        return KKT_OK;
    const kkt_score *score = &check->score;
    if (score->not_finite || score->inexact)
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "%s is wrong: %" PRId64 " elements are not finite, %" PRId64
                        " that must be exactly 0 or 1 are not",
                        what, score->not_finite, score->inexact);
    return kkt_fail(err, KKT_ERR_MISSING, 0,
                    "%s is wrong: relative error %.2e is above the tolerance %.1e", what,
                    kkt_score_rel_fro(score), check->tolerance);
}
