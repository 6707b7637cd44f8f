/* Scoring results against the reference. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "tuner/engine/gate.h"

/* ---- scoring a part ---- */

double kkt_score_rel_fro(const kkt_score *score) {
    if (score->not_finite > 0)
        return INFINITY;
    double worst = 0.0;
    for (int i = 0; i < KKT_TENSORS_MAX; i++) {
        const double error = score->error_sq[i], reference = score->reference_sq[i];
        if (error > 0.0)
            worst = fmax(worst, reference > 0.0 ? sqrt(error / reference) : INFINITY);
    }
    return worst;
}

bool kkt_score_right(const kkt_score *score, double tolerance, char *finding, size_t size) {
    const double rel_fro = kkt_score_rel_fro(score);
    char unused[1];
    if (!finding) {
        finding = unused;
        size = sizeof unused;
    }
    if (score->not_finite)
        snprintf(finding, size,
                 "%" PRId64 " of %" PRId64 " elements are not finite or were never written",
                 score->not_finite, score->elements);
    else if (score->inexact)
        snprintf(finding, size, "%" PRId64 " of %" PRId64 " elements that must be exact are not",
                 score->inexact, score->elements);
    else if (!(rel_fro <= tolerance))
        snprintf(finding, size, "relative error %.2e is above the tolerance %.1e", rel_fro,
                 tolerance);
    else
        return true;
    return false;
}

static void score_elementwise(const kkt_region *region, const double *expected,
                              const double *actual, kkt_score *score) {
    for (int64_t i = 0; i < region->rows * region->columns; i++) {
        const kkt_misfit misfit = kkt_region_misfit(region, i / region->columns,
                                                    i % region->columns, actual[i], expected[i]);
        score->elements++;
        score->growth = fmax(score->growth, fabs(expected[i]));
        if (!isfinite(actual[i])) {
            if (isfinite(expected[i]) && score->not_finite++ == 0)
                score->first_not_finite = misfit;
        } else if (isfinite(expected[i])) {
            kkt_score_error(score, &misfit, fabs(misfit.right), 0);
        }
    }
}

static int64_t region_size(const kkt_region *region) {
    return region->rows * region->columns;
}

int64_t kkt_regions_size(const kkt_region *regions, int count) {
    int64_t size = 0;
    for (int r = 0; r < count; r++)
        size += region_size(&regions[r]);
    return size;
}

static kkt_status load_region(const kkt_host_tensors *tensors, const kkt_region *region,
                              double *out, kkt_error *err) {
    const kkt_host_tensor *host = &tensors->t[region->tensor];
    if (!host->data)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "the result has no tensor %s", host->tensor.name);
    const int64_t last = kkt_region_row(region, region->rows - 1) + region->columns;
    if (last > kkt_tensor_elements(&host->tensor))
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "tensor %s has %" PRId64 " elements, a part of the result ends at %" PRId64,
                        host->tensor.name, kkt_tensor_elements(&host->tensor), last);
    for (int64_t i = 0; i < region->rows; i++)
        for (int64_t j = 0; j < region->columns; j++)
            out[i * region->columns + j] = kkt_dtype_load(host->tensor.dtype, host->data,
                                                          (size_t)(kkt_region_row(region, i) + j));
    return KKT_OK;
}

kkt_status kkt_gate_score_part(const kkt_kernel *kernel, const kkt_values *problem,
                               const kkt_host_tensors *tensors, const kkt_region *regions,
                               int count, const double *expected, kkt_score *score,
                               kkt_error *err) {
    double *actual = calloc((size_t)kkt_regions_size(regions, count) + 1, sizeof *actual);
    if (!actual)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the result");
    kkt_status status = KKT_OK;
    for (int r = 0; r < count && status == KKT_OK; r++) {
        status = load_region(tensors, &regions[r], actual, err);
        if (status == KKT_OK && kernel->score)
            kernel->score(problem, &regions[r], expected, actual, score);
        else if (status == KKT_OK)
            score_elementwise(&regions[r], expected, actual, score);
        expected += region_size(&regions[r]);
    }
    free(actual);
    return status;
}

/* In double: i x parts may pass 2^63. */
int64_t kkt_gate_part(int64_t i, int64_t checked, int64_t parts) {
    if (checked >= parts || checked < 2)
        return i;
    return (int64_t)((double)i * (double)(parts - 1) / (double)(checked - 1) + 0.5);
}

/* ---- many parts ---- */

/* Parts that are computed and scored at the same time. */
enum { BATCH = 64 };

/* A part that is looked at. */
typedef struct scored_part {
    int64_t part;
    kkt_score score;
    kkt_status status;
    kkt_error err;
} scored_part;

typedef struct batch {
    const kkt_kernel *kernel;
    const kkt_values *problem, *config;
    const kkt_host_tensors *tensors;
    scored_part parts[BATCH];
} batch;

static void score_part(void *context, int64_t index) {
    batch *b = context;
    scored_part *p = &b->parts[index];
    kkt_host_tensors tensors = *b->tensors; /* with a cursor of its own */
    kkt_region regions[KKT_REGIONS_MAX];
    const int count = b->kernel->part_regions(b->problem, b->config, &tensors, p->part, regions);
    if (count == 0)
        return;
    const int64_t size = kkt_regions_size(regions, count);
    double *values = calloc((size_t)size + 1, sizeof *values);
    if (!values) {
        p->status = kkt_fail(&p->err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the reference");
        return;
    }
    p->status = b->kernel->reference(b->problem, b->config, &tensors, p->part, values, (size_t)size,
                                     &p->err);
    if (p->status == KKT_OK)
        p->status = kkt_gate_score_part(b->kernel, b->problem, &tensors, regions, count, values,
                                        &p->score, &p->err);
    free(values);
}

static void add_score(const kkt_score *part, kkt_score *sum) {
    for (int i = 0; i < KKT_TENSORS_MAX; i++) {
        sum->error_sq[i] += part->error_sq[i];
        sum->reference_sq[i] += part->reference_sq[i];
    }
    if (sum->inexact == 0)
        sum->first_inexact = part->first_inexact;
    if (sum->not_finite == 0)
        sum->first_not_finite = part->first_not_finite;
    if (part->max_abs > sum->max_abs)
        sum->worst = part->worst;
    sum->max_abs = fmax(sum->max_abs, part->max_abs);
    sum->growth = fmax(sum->growth, part->growth);
    sum->inexact += part->inexact;
    sum->not_finite += part->not_finite;
    sum->elements += part->elements;
}

kkt_status kkt_gate_score(const kkt_kernel *kernel, const kkt_values *problem,
                          const kkt_values *config, kkt_host_tensors *tensors, int64_t max_parts,
                          kkt_score *score, kkt_error *err) {
    const int64_t parts = kernel->part_count(problem, config, tensors);
    const int64_t checked = max_parts > 0 && max_parts < parts ? max_parts : parts;
    kkt_status status = KKT_OK;
    memset(score, 0, sizeof *score);
    for (int64_t first = 0; first < checked && status == KKT_OK; first += BATCH) {
        batch b = {.kernel = kernel, .problem = problem, .config = config, .tensors = tensors};
        const int64_t count = checked - first < BATCH ? checked - first : BATCH;
        for (int64_t i = 0; i < count; i++)
            b.parts[i].part = kkt_gate_part(first + i, checked, parts);
        kkt_parallel_for(count, score_part, &b);
        for (int64_t i = 0; i < count && status == KKT_OK; i++) {
            status = b.parts[i].status;
            if (status == KKT_OK)
                add_score(&b.parts[i].score, score);
            else if (err)
                *err = b.parts[i].err;
        }
    }
    return status;
}
