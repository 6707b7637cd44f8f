/* Predictions a second on one core, the kernels' footprints included: every kernel, style and
 * configuration in turn on an H200.
 *
 *     bench_predict [SECONDS [FLOOR]]
 *
 * prints the rate; with FLOOR it exits 1 where the rate is below it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernel.h"
#include "model/predict.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The next configuration of a table, as an odometer; false after the last. */
static bool advance(const kkt_param_table *table, size_t digits[KKT_PARAMS_MAX],
                    kkt_values *config) {
    for (size_t i = table->count; i-- > 0;) {
        const kkt_param *param = &table->params[i];
        if (param->count == 0)
            continue; /* a free integer stays at its default */
        digits[i] = digits[i] + 1 == param->count ? 0 : digits[i] + 1;
        config->v[i] = param->values[digits[i]];
        if (digits[i] > 0)
            return true;
    }
    return false;
}

/* One applicable configuration. */
typedef struct candidate {
    const kkt_variant *variant;
    const kkt_values *problem;
    kkt_values config;
} candidate;

typedef struct candidates {
    candidate *items;
    size_t count, capacity;
} candidates;

static void push(candidates *list, candidate item) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        candidate *items = realloc(list->items, list->capacity * sizeof *items);
        if (!items)
            exit(3);
        list->items = items;
    }
    list->items[list->count++] = item;
}

static void collect(const kkt_variant *variant, const kkt_values *problem, const kkt_arch *arch,
                    candidates *out) {
    size_t digits[KKT_PARAMS_MAX] = {0};
    char reason[160];
    kkt_values config;
    kkt_params_defaults(&variant->params, &config);
    for (size_t i = 0; i < variant->params.count; ++i)
        if (variant->params.params[i].count > 0)
            config.v[i] = variant->params.params[i].values[0];
    do {
        if (!variant->applicable ||
            variant->applicable(problem, &config, arch, reason, sizeof reason))
            push(out, (candidate){variant, problem, config});
    } while (advance(&variant->params, digits, &config));
}

/* Predicts all candidates over and over for `seconds`; returns the predictions a second. */
static double measure(const candidates *list, const kkt_arch *arch, const kkt_device *device,
                      double seconds) {
    kkt_time_constants constants;
    double sum_us = 0, start = now(), elapsed;
    long predictions = 0, feasible = 0;
    kkt_time_defaults(arch, device, &constants);
    do {
        for (size_t i = 0; i < list->count; ++i) {
            const candidate *at = &list->items[i];
            kkt_footprint footprint;
            kkt_prediction prediction;
            at->variant->footprint(at->problem, &at->config, arch, &footprint);
            kkt_predict(&footprint, arch, device, &constants, &prediction);
            if (prediction.infeasible == KKT_FEASIBLE) {
                ++feasible;
                sum_us += prediction.predicted_us;
            }
        }
        predictions += (long)list->count;
        elapsed = now() - start;
    } while (elapsed < seconds);
    double rate = (double)predictions / elapsed;
    printf("%.2f million predictions a second on one core (%zu configurations, %.0f %% feasible, "
           "mean %.1f us)\n",
           rate / 1e6, list->count, 100.0 * (double)feasible / (double)predictions,
           sum_us / (double)(feasible ? feasible : 1));
    return rate;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    double floor = argc > 2 ? strtod(argv[2], NULL) : 0;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_device *device = kkt_device_by_full_name("NVIDIA H200");
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    kkt_values *problems = calloc(count ? count : 1, sizeof *problems);
    candidates list = {0};
    if (!problems)
        return 3;
    for (size_t k = 0; k < count; ++k) {
        kkt_params_defaults(&kernels[k]->problem, &problems[k]);
        for (size_t v = 0; v < kernels[k]->variant_count; ++v)
            collect(kernels[k]->variants[v], &problems[k], arch, &list);
    }
    double rate = measure(&list, arch, device, seconds);
    free(list.items);
    free(problems);
    if (rate >= floor)
        return 0;
    fprintf(stderr, "below the floor of %.2f million a second\n", floor / 1e6);
    return 1;
}
