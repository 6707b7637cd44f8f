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

typedef struct tally {
    long predictions, feasible;
    double sum_us; /* so that no prediction can be optimised away */
} tally;

static void predict_variant(const kkt_kernel *kernel, const kkt_variant *variant,
                            const kkt_arch *arch, const kkt_device *device, double until,
                            tally *out) {
    kkt_time_constants constants;
    kkt_values problem, config;
    size_t digits[KKT_PARAMS_MAX] = {0};
    char reason[160];
    kkt_time_defaults(arch, device, &constants);
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    for (size_t i = 0; i < variant->params.count; ++i)
        if (variant->params.params[i].count > 0)
            config.v[i] = variant->params.params[i].values[0];
    do {
        kkt_footprint footprint;
        kkt_prediction prediction;
        if (variant->applicable &&
            !variant->applicable(&problem, &config, arch, reason, sizeof reason))
            continue;
        variant->footprint(&problem, &config, arch, &footprint);
        kkt_predict(&footprint, arch, device, &constants, &prediction);
        ++out->predictions;
        out->feasible += prediction.infeasible == KKT_FEASIBLE;
        out->sum_us += prediction.infeasible == KKT_FEASIBLE ? prediction.predicted_us : 0;
        if (out->predictions % 4096 == 0 && now() > until)
            return;
    } while (advance(&variant->params, digits, &config));
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    double floor = argc > 2 ? strtod(argv[2], NULL) : 0;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_device *device = kkt_device_by_full_name("NVIDIA H200");
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    tally total = {0};
    double start = now();
    while (now() < start + seconds)
        for (size_t k = 0; k < count; ++k)
            for (size_t v = 0; v < kernels[k]->variant_count; ++v)
                predict_variant(kernels[k], &kernels[k]->variants[v], arch, device, start + seconds,
                                &total);
    double rate = (double)total.predictions / (now() - start);
    printf("%.2f million predictions a second on one core (%ld, %ld feasible, mean %.1f us)\n",
           rate / 1e6, total.predictions, total.feasible,
           total.sum_us / (double)(total.feasible ? total.feasible : 1));
    if (rate >= floor)
        return 0;
    fprintf(stderr, "below the floor of %.2f million a second\n", floor / 1e6);
    return 1;
}
