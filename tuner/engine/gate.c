#include "tuner/engine/gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

/* ---- references, computed once for all candidates ---- */

typedef struct reference {
    char *key;
    kkt_host_tensors inputs;
    double *expected; /* all parts, one after the other */
} reference;

struct kkt_reference_cache {
    reference **entries;
    size_t count, capacity;
};

static void reference_free(reference *entry) {
    if (!entry)
        return;
    free(entry->key);
    free(entry->expected);
    kkt_host_tensors_free(&entry->inputs);
    free(entry);
}

kkt_reference_cache *kkt_reference_cache_open(void) {
    return calloc(1, sizeof(kkt_reference_cache));
}

void kkt_reference_cache_close(kkt_reference_cache *cache) {
    if (!cache)
        return;
    for (size_t i = 0; i < cache->count; i++)
        reference_free(cache->entries[i]);
    free(cache->entries);
    free(cache);
}

/* Everything the expected values depend on: of a configuration the chunk alone. */
static char *reference_key(const kkt_kernel *kernel, const kkt_variant *variant,
                           const kkt_values *problem, const kkt_values *config, int input_case,
                           uint64_t seed) {
    kkt_text key = {0};
    const int64_t chunk =
        kernel->chunk_param ? kkt_params_get(&variant->params, config, kernel->chunk_param) : 0;
    kkt_text_printf(&key, "%s case=%d seed=%" PRIu64 " chunk=%" PRId64 " ", kernel->name,
                    input_case, seed, chunk);
    kkt_params_format(&kernel->problem, problem, &key);
    return key.data;
}

/* The tensors of a problem in the kernel's order, with the inputs moved in from `made`. */
static void arrange(const kkt_kernel *kernel, const kkt_values *problem, const kkt_values *config,
                    kkt_host_tensors *made, kkt_host_tensors *out) {
    kkt_tensor shapes[KKT_TENSORS_MAX];
    memset(out, 0, sizeof *out);
    out->count = kernel->tensors(problem, config, shapes);
    for (int i = 0; i < out->count; i++) {
        out->t[i].tensor = shapes[i];
        kkt_host_tensor *from = kkt_host_tensor_find(made, shapes[i].name);
        if (from && shapes[i].role == KKT_TENSOR_INPUT) {
            out->t[i].data = from->data;
            from->data = NULL;
        }
    }
}

/* One part of a reference that is computed whole. */
typedef struct whole_reference {
    const kkt_kernel *kernel;
    const kkt_values *problem, *config;
    const kkt_host_tensors *inputs;
    const int64_t *offsets; /* of each part in `expected`, and the total behind them */
    double *expected;
    kkt_status *statuses;
    kkt_error *errors;
} whole_reference;

static void compute_part(void *context, int64_t part) {
    const whole_reference *w = context;
    const int64_t at = w->offsets[part], size = w->offsets[part + 1] - at;
    kkt_host_tensors inputs = *w->inputs; /* with a cursor of its own */
    if (size > 0)
        w->statuses[part] = w->kernel->reference(w->problem, w->config, &inputs, part,
                                                 w->expected + at, (size_t)size, &w->errors[part]);
}

static kkt_status reference_compute(const kkt_kernel *kernel, const kkt_values *problem,
                                    const kkt_values *config, reference *entry, kkt_error *err) {
    const int64_t parts = kernel->part_count(problem, config, &entry->inputs);
    int64_t *offsets = calloc((size_t)parts + 1, sizeof *offsets);
    kkt_status *statuses = calloc((size_t)parts + 1, sizeof *statuses), status = KKT_OK;
    kkt_error *errors = calloc((size_t)parts + 1, sizeof *errors);
    for (int64_t part = 0; offsets && part < parts; part++) {
        kkt_region regions[KKT_REGIONS_MAX];
        const int count = kernel->part_regions(problem, config, &entry->inputs, part, regions);
        offsets[part + 1] = offsets[part] + kkt_regions_size(regions, count);
    }
    if (offsets)
        entry->expected = calloc((size_t)offsets[parts] + 1, sizeof *entry->expected);
    if (entry->expected && statuses && errors) {
        whole_reference whole = {kernel,  problem,         config,   &entry->inputs,
                                 offsets, entry->expected, statuses, errors};
        kkt_parallel_for(parts, compute_part, &whole);
        for (int64_t part = 0; part < parts && status == KKT_OK; part++) {
            status = statuses[part];
            if (status != KKT_OK && err)
                *err = errors[part];
        }
    } else {
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the reference");
    }
    free(offsets);
    free(statuses);
    free(errors);
    return status;
}

static kkt_status cache_add(kkt_reference_cache *cache, reference *entry, kkt_error *err) {
    if (cache->count == cache->capacity) {
        const size_t capacity = cache->capacity ? cache->capacity * 2 : 16;
        reference **grown = realloc(cache->entries, capacity * sizeof *grown);
        if (!grown)
            return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the references");
        cache->entries = grown;
        cache->capacity = capacity;
    }
    cache->entries[cache->count++] = entry;
    return KKT_OK;
}

static kkt_status reference_make(const kkt_kernel *kernel, const kkt_values *problem,
                                 const kkt_values *config, int input_case, uint64_t seed,
                                 reference *out, kkt_error *err) {
    kkt_host_tensors inputs = {0};
    kkt_status status = kernel->make_inputs(problem, input_case, seed, &inputs, err);
    if (status == KKT_OK) {
        arrange(kernel, problem, config, &inputs, &out->inputs);
        if (kernel->make_chunk_inputs)
            status =
                kernel->make_chunk_inputs(problem, config, input_case, seed, &out->inputs, err);
    }
    if (status == KKT_OK) {
        status = reference_compute(kernel, problem, config, out, err);
    }
    kkt_host_tensors_free(&inputs);
    return status;
}

static kkt_status reference_get(kkt_reference_cache *cache, const kkt_kernel *kernel,
                                const kkt_variant *variant, const kkt_values *problem,
                                const kkt_values *config, int input_case, uint64_t seed,
                                const reference **out, kkt_error *err) {
    char *key = reference_key(kernel, variant, problem, config, input_case, seed);
    for (size_t i = 0; i < cache->count; i++) {
        if (strcmp(cache->entries[i]->key, key) == 0) {
            free(key);
            *out = cache->entries[i];
            return KKT_OK;
        }
    }
    reference *made = calloc(1, sizeof *made);
    if (!made) {
        free(key);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the references");
    }
    made->key = key;
    kkt_status status = reference_make(kernel, problem, config, input_case, seed, made, err);
    if (status == KKT_OK)
        status = cache_add(cache, made, err);
    if (status != KKT_OK) {
        reference_free(made);
        return status;
    }
    *out = made;
    return KKT_OK;
}

/* ---- the gate ---- */

typedef struct check {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_values *config;
    kkt_gate_runner runner;
    void *context;
    kkt_values problem;
    int input_case;
    const reference *expected;
} check;

/* A copy of the inputs, and outputs in which every byte is 0xFF: a NaN in each floating type. */
static bool copy_tensors(const kkt_host_tensors *from, kkt_host_tensors *out) {
    *out = *from;
    bool ok = true;
    for (int i = 0; i < out->count; i++) {
        kkt_host_tensor *host = &out->t[i];
        const size_t bytes = (size_t)kkt_tensor_bytes(&host->tensor);
        const bool input = host->tensor.role == KKT_TENSOR_INPUT;
        if (input && !host->data)
            continue;
        host->data = malloc(bytes + 1);
        if (!host->data)
            ok = false;
        else if (input)
            memcpy(host->data, from->t[i].data, bytes);
        else
            memset(host->data, 0xff, bytes);
    }
    return ok;
}

static bool same_outputs(const kkt_host_tensors *a, const kkt_host_tensors *b, char *reason,
                         size_t size) {
    for (int i = 0; i < a->count; i++) {
        const kkt_tensor *tensor = &a->t[i].tensor;
        if (tensor->role != KKT_TENSOR_OUTPUT)
            continue;
        const unsigned char *x = a->t[i].data, *y = b->t[i].data;
        const int64_t bytes = kkt_tensor_bytes(tensor);
        for (int64_t at = 0; at < bytes; at++) {
            if (x[at] != y[at]) {
                snprintf(reason, size, "two runs differ from element %" PRId64 " of %s on",
                         at / (int64_t)kkt_dtype_bytes(tensor->dtype), tensor->name);
                return false;
            }
        }
    }
    return true;
}

static kkt_status score_cached(const check *c, const kkt_host_tensors *outputs, kkt_score *score,
                               kkt_error *err) {
    kkt_host_tensors inputs = c->expected->inputs;
    const int64_t parts = c->kernel->part_count(&c->problem, c->config, &inputs);
    const double *at = c->expected->expected;
    kkt_status status = KKT_OK;
    memset(score, 0, sizeof *score);
    for (int64_t part = 0; part < parts && status == KKT_OK; part++) {
        kkt_region regions[KKT_REGIONS_MAX];
        const int count = c->kernel->part_regions(&c->problem, c->config, &inputs, part, regions);
        status =
            kkt_gate_score_part(c->kernel, &c->problem, outputs, regions, count, at, score, err);
        at += kkt_regions_size(regions, count);
    }
    return status;
}

static void describe(const check *c, kkt_outcome outcome, const char *finding, kkt_verdict *out) {
    kkt_text problem = {0};
    kkt_params_format(&c->kernel->problem, &c->problem, &problem);
    out->outcome = outcome;
    snprintf(out->reason, sizeof out->reason, "%s inputs: %s (%s)",
             c->kernel->cases[c->input_case].name, finding, kkt_text_get(&problem));
    kkt_text_free(&problem);
}

/* Judges a score; the figures of the check with the least headroom stay in the verdict. */
static void judge(const check *c, const kkt_score *score, double tolerance, kkt_verdict *out) {
    const double rel_fro = kkt_score_rel_fro(score);
    const bool first = out->tolerance == 0.0;
    char finding[160];
    const bool wrong = !kkt_score_right(score, tolerance, finding, sizeof finding);
    if (first || wrong || rel_fro * out->tolerance > out->rel_fro * tolerance) {
        out->rel_fro = rel_fro;
        out->max_abs = score->max_abs;
        out->growth = score->growth;
        out->tolerance = tolerance;
    }
    if (wrong)
        describe(c, KKT_OUTCOME_WRONG_RESULT, finding, out);
}

/* One check problem: two runs, compared with each other, then with the reference. */
static kkt_status run_check(const check *c, kkt_verdict *out, kkt_error *err) {
    kkt_host_tensors runs[2] = {{0}, {0}};
    char reason[200] = "";
    kkt_status status = KKT_OK;
    for (int i = 0; i < 2 && out->outcome == KKT_OUTCOME_OK; i++) {
        if (!copy_tensors(&c->expected->inputs, &runs[i])) {
            status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for a check problem");
            goto done;
        }
        const kkt_outcome outcome =
            c->runner(c->context, &c->problem, &runs[i], reason, sizeof reason);
        if (outcome != KKT_OUTCOME_OK)
            describe(c, outcome, reason[0] ? reason : "it did not run", out);
    }
    if (out->outcome != KKT_OUTCOME_OK)
        goto done;
    if (!same_outputs(&runs[0], &runs[1], reason, sizeof reason)) {
        describe(c, KKT_OUTCOME_RACY, reason, out);
        goto done;
    }
    kkt_score score;
    status = score_cached(c, &runs[0], &score, err);
    if (status == KKT_OK)
        judge(c, &score, c->variant->tolerance(&c->problem, c->config, c->input_case), out);
done:
    kkt_host_tensors_free(&runs[0]);
    kkt_host_tensors_free(&runs[1]);
    return status;
}

kkt_status kkt_gate_check(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *config, uint64_t seed,
                          kkt_gate_runner runner, void *context, kkt_reference_cache *cache,
                          kkt_verdict *out, kkt_error *err) {
    check c = {
        .kernel = kernel,
        .variant = variant,
        .config = config,
        .runner = runner,
        .context = context,
    };
    kkt_reference_cache *own = cache ? NULL : kkt_reference_cache_open();
    kkt_status status = KKT_OK;
    memset(out, 0, sizeof *out);
    out->outcome = KKT_OUTCOME_OK;
    if (!cache && !own)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the references");
    int index = 0;
    while (status == KKT_OK && out->outcome == KKT_OUTCOME_OK &&
           kernel->check_problem(problem, config, index, &c.problem, &c.input_case)) {
        status = reference_get(cache ? cache : own, kernel, variant, &c.problem, config,
                               c.input_case, seed + (uint64_t)index, &c.expected, err);
        if (status == KKT_OK)
            status = run_check(&c, out, err);
        index++;
    }
    if (status == KKT_OK && index == 0)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "kernel %s has no check problems", kernel->name);
    kkt_reference_cache_close(own);
    return status;
}
