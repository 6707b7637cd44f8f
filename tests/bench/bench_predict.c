/* Predictions a second on one core, the kernels' footprints included: every kernel, style and
 * feasible configuration in turn on an H200.
 *
 *     bench_predict [SECONDS [FLOOR]]
 *
 * prints the rate; with FLOOR it exits 1 where the rate is below it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernel.h"
#include "model/predict.h"
#include "tuner/engine/space.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One feasible configuration. */
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

/* By the space's walk, which leaves out what differs in parameters without effect alone: looking at
 * each of kkt_solve's 1.5e9 combinations takes more than a minute. */
static void collect(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_values *problem,
                    const kkt_arch *arch, const kkt_device *device, candidates *out) {
    kkt_space *space = NULL;
    kkt_error err;
    kkt_point point;
    if (kkt_space_open(kernel, variant, problem, arch, device, NULL, &space, &err) != KKT_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(3);
    }
    while (kkt_space_next(space, NULL, NULL, &point))
        push(out, (candidate){variant, problem, point.config});
    kkt_space_close(space);
}

/* Predicts all candidates over and over for `seconds`; returns the predictions a second. */
static double measure(const candidates *list, const kkt_arch *arch, const kkt_device *device,
                      double seconds) {
    kkt_time_constants constants;
    double sum_us = 0, start = now(), elapsed;
    long predictions = 0;
    kkt_time_defaults(arch, device, &constants);
    do {
        for (size_t i = 0; i < list->count; ++i) {
            const candidate *at = &list->items[i];
            kkt_footprint footprint;
            kkt_prediction prediction;
            at->variant->footprint(at->problem, &at->config, arch, &footprint);
            kkt_predict(&footprint, arch, device, &constants, &prediction);
            sum_us += prediction.predicted_us;
        }
        predictions += (long)list->count;
        elapsed = now() - start;
    } while (elapsed < seconds);
    double rate = (double)predictions / elapsed;
    printf("%.2f million predictions a second on one core (%zu configurations, mean %.1f us)\n",
           rate / 1e6, list->count, sum_us / (double)predictions);
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
            if (kkt_variant_tuned(kernels[k]->variants[v]))
                collect(kernels[k], kernels[k]->variants[v], &problems[k], arch, device, &list);
    }
    double rate = measure(&list, arch, device, seconds);
    free(list.items);
    free(problems);
    if (rate >= floor)
        return 0;
    fprintf(stderr, "below the floor of %.2f million a second\n", floor / 1e6);
    return 1;
}
