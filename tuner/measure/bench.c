#include "tuner/measure/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tuner/worker/stream.h"

void kkt_bench_close(kkt_bench *bench) {
    kkt_reference_cache_close(bench->references);
    kkt_host_tensors_free(&bench->inputs);
    free(bench->inputs_key);
    for (int i = 0; i < KKT_TENSORS_MAX; i++) {
        free(bench->host_outputs[i]);
    }
    for (int i = 0; i < KKT_BENCH_STANDARDS; i++) {
        free(bench->standards[i].key);
    }
    kkt_gpu_close(&bench->gpu);
    memset(bench, 0, sizeof *bench);
}

/* They may be several times the size of the others, so the next problem does not keep the room. */
static void drop_chunk_inputs(kkt_bench *bench) {
    bench->inputs_chunk = 0;
    for (int i = 0; i < KKT_BENCH_CHUNKS; i++) {
        kkt_chunk_inputs *at = &bench->chunk_inputs[i];
        if (at->slab.base != 0) {
            bench->gpu.driver.memory_free(at->slab.base);
        }
        *at = (kkt_chunk_inputs){0};
    }
}

kkt_status kkt_bench_inputs(kkt_bench *bench, const kkt_measure_request *request, kkt_error *err) {
    const kkt_kernel *kernel = request->kernel;
    kkt_text key = {0};
    kkt_text_printf(&key, "%s %" PRIu64 " ", kernel->name, request->policy->seed);
    kkt_params_format(&kernel->problem, request->problem, &key);
    if (bench->inputs_key != NULL && strcmp(bench->inputs_key, kkt_text_get(&key)) == 0) {
        kkt_text_free(&key);
        return KKT_OK;
    }
    kkt_host_tensors_free(&bench->inputs);
    free(bench->inputs_key);
    bench->inputs_key = NULL;
    bench->uploaded = false;
    bench->common = 0;
    drop_chunk_inputs(bench);
    kkt_status status = kernel->make_inputs(request->problem, kkt_timing_case(kernel),
                                            request->policy->seed, &bench->inputs, err);
    if (status == KKT_OK) {
        bench->inputs_key = strdup(kkt_text_get(&key));
        for (int i = 0; i < bench->inputs.count; i++) {
            bench->common |= (uint64_t)(bench->inputs.t[i].data != NULL) << i;
        }
    }
    kkt_text_free(&key);
    return status;
}

/* The host's inputs, of which only those that depend on the chunk, or only the others, have data.
 * The data stays the bench's. */
static kkt_host_tensors inputs_view(const kkt_bench *bench, bool of_chunk) {
    kkt_host_tensors view = bench->inputs;
    for (int i = 0; i < view.count; i++) {
        if (((bench->common >> i) & 1) == of_chunk) {
            view.t[i].data = NULL;
        }
    }
    return view;
}

/* Where the inputs of a chunk are kept, or could be. There are as many places as chunks. */
static kkt_chunk_inputs *chunk_place(kkt_bench *bench, int64_t chunk) {
    kkt_chunk_inputs *free_place = NULL;
    for (int i = 0; i < KKT_BENCH_CHUNKS; i++) {
        kkt_chunk_inputs *at = &bench->chunk_inputs[i];
        if (at->chunk == chunk) {
            return at;
        }
        if (at->chunk == 0 && free_place == NULL) {
            free_place = at;
        }
    }
    return free_place;
}

/* Makes the inputs that depend on the chunk on the host, where the reference reads them, and on the
 * GPU, and adds them to `bound`. */
static CUresult bind_chunk_inputs(kkt_bench *bench, const kkt_measure_request *request,
                                  kkt_bindings *bound) {
    const kkt_kernel *kernel = request->kernel;
    const int64_t chunk =
        kkt_params_get(&request->variant->params, request->config, kernel->chunk_param);
    if (bench->inputs_chunk != chunk) {
        bench->inputs_chunk = 0;
        if (kernel->make_chunk_inputs(request->problem, request->config, kkt_timing_case(kernel),
                                      request->policy->seed, &bench->inputs, NULL) != KKT_OK) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        bench->inputs_chunk = chunk;
    }
    kkt_chunk_inputs *place = chunk_place(bench, chunk);
    if (place->chunk != chunk) {
        const kkt_host_tensors view = inputs_view(bench, true);
        kkt_bind_list(request, request->problem, &place->bound);
        CUresult result = kkt_bind_inputs(&bench->gpu, &place->slab, &view, &place->bound);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        place->chunk = chunk;
    }
    for (int i = 0; i < bound->count; i++) {
        if (place->bound.t[i].data != 0) {
            bound->t[i] = place->bound.t[i];
        }
    }
    return CUDA_SUCCESS;
}

CUresult kkt_bench_upload(kkt_bench *bench, const kkt_measure_request *request) {
    if (bench->uploaded) {
        return CUDA_SUCCESS;
    }
    const kkt_host_tensors view = inputs_view(bench, false);
    kkt_bind_list(request, request->problem, &bench->bound);
    CUresult result = kkt_bind_inputs(&bench->gpu, &bench->input_slab, &view, &bench->bound);
    bench->uploaded = result == CUDA_SUCCESS;
    return result;
}

/* Binds the full problem: inputs in place once, outputs in two sets that are used in turn. */
static CUresult bind_full(kkt_bench *bench, const kkt_measure_request *request,
                          kkt_bindings sets[KKT_BENCH_SETS]) {
    kkt_gpu *gpu = &bench->gpu;
    CUresult uploaded = kkt_bench_upload(bench, request);
    if (uploaded != CUDA_SUCCESS) {
        return uploaded;
    }
    kkt_bindings bound = bench->bound;
    if (request->kernel->make_chunk_inputs != NULL) {
        CUresult result = bind_chunk_inputs(bench, request, &bound);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    for (int set = 0; set < KKT_BENCH_SETS; set++) {
        kkt_bind_list(request, request->problem, &sets[set]);
        for (int i = 0; i < sets[set].count; i++) {
            if (sets[set].t[i].tensor.role == KKT_TENSOR_INPUT) {
                sets[set].t[i].data = bound.t[i].data;
            }
        }
        CUresult result = kkt_bind_outputs(gpu, &bench->output_slabs[set], &sets[set]);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

void kkt_bench_stamp(kkt_measure_result *result) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(result->date, sizeof result->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

kkt_status kkt_bench_lost(const kkt_bench *bench, const kkt_measure_result *result,
                          kkt_error *err) {
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                    "GPU %d can no longer be used (%s); check it with nvidia-smi, then run again: "
                    "finished results are kept",
                    bench->gpu.info.index, result->reason);
}

/* Loads and prepares the plan of the full problem. False: the result says why. */
static bool load(kkt_bench *bench, const kkt_measure_request *request, kkt_program *program,
                 kkt_measure_result *result) {
    CUresult status = kkt_program_load(&bench->gpu, request->cubin, program);
    return !kkt_bench_failed(bench, result, "loading the cubin", status);
}

static bool prepare_full(kkt_bench *bench, const kkt_measure_request *request, kkt_program *program,
                         kkt_bindings sets[KKT_BENCH_SETS], kkt_measure_result *result) {
    char what[160];
    CUresult status = bind_full(bench, request, sets);
    if (kkt_bench_failed(bench, result, "device memory of the full problem", status)) {
        return false;
    }
    status =
        kkt_program_prepare(&bench->gpu, program, request, request->problem, what, sizeof what);
    return !kkt_bench_failed(bench, result, what, status);
}

bool kkt_bench_prepare(kkt_bench *bench, const kkt_measure_request *request, kkt_program *program,
                       kkt_bindings sets[KKT_BENCH_SETS], kkt_measure_result *result) {
    return load(bench, request, program, result) &&
           prepare_full(bench, request, program, sets, result);
}

static kkt_status measure(kkt_bench *bench, const kkt_measure_request *request,
                          kkt_program *program, kkt_measure_result *result, kkt_error *err) {
    kkt_bindings sets[KKT_BENCH_SETS];
    kkt_timed timed;
    bool passed = false;
    if (!load(bench, request, program, result)) {
        return KKT_OK;
    }
    kkt_status status = kkt_check_small(bench, request, program, result, &passed, err);
    if (status != KKT_OK || !passed || !prepare_full(bench, request, program, sets, result)) {
        return status;
    }
    status = kkt_check_full(bench, request, program, sets, kkt_full_tolerance(request), result,
                            &passed, err);
    if (status != KKT_OK || !passed) {
        return status;
    }
    if (kkt_timed_open(bench, program, sets, request->policy, result, &timed)) {
        while (!timed.done) {
            kkt_timed_sample(bench, &timed);
        }
        if (request->policy->energy_each) {
            kkt_timed_energy(bench, &timed);
        }
    }
    kkt_timed_close(bench, &timed);
    return KKT_OK;
}

kkt_status kkt_bench_measure(kkt_bench *bench, const kkt_measure_request *request,
                             kkt_measure_result *result, kkt_error *err) {
    kkt_program program = {0};
    kkt_bench_stamp(result);
    kkt_status status = measure(bench, request, &program, result, err);
    if (!bench->replace && !bench->lost) {
        kkt_program_unload(&bench->gpu, &program);
    }
    if (status == KKT_OK && bench->lost) {
        status = kkt_bench_lost(bench, result, err);
    }
    return status;
}

/* ---- finalists ---- */

typedef struct finalist {
    kkt_program program;
    kkt_timed timed;
    bool running;
} finalist;

static kkt_status open_finalist(kkt_bench *bench, const kkt_measure_request *request,
                                finalist *entry, kkt_measure_result *result, kkt_error *err) {
    kkt_bindings sets[KKT_BENCH_SETS];
    bool passed = false;
    kkt_bench_stamp(result);
    if (!load(bench, request, &entry->program, result) ||
        !prepare_full(bench, request, &entry->program, sets, result)) {
        return KKT_OK;
    }
    kkt_status status = kkt_check_full(bench, request, &entry->program, sets,
                                       kkt_full_tolerance(request), result, &passed, err);
    if (status == KKT_OK && passed) {
        entry->running =
            kkt_timed_open(bench, &entry->program, sets, request->policy, result, &entry->timed);
    }
    return status;
}

/* The slabs must not move once graphs hold their addresses: the widest candidate goes first. */
static CUresult reserve_widest(kkt_bench *bench, const kkt_measure_request *requests,
                               size_t count) {
    size_t widest = 0;
    for (size_t i = 0; i < count; i++) {
        kkt_bindings list;
        kkt_bind_list(&requests[i], requests[i].problem, &list);
        size_t need = kkt_bind_outputs_need(&list);
        widest = need > widest ? need : widest;
    }
    CUresult result = CUDA_SUCCESS;
    for (int set = 0; set < KKT_BENCH_SETS && result == CUDA_SUCCESS; set++) {
        result = kkt_slab_reserve(&bench->gpu, &bench->output_slabs[set], widest);
    }
    return result;
}

/* xorshift64* (Vigna 2016): enough for an order. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static void shuffle(size_t *order, size_t count, uint64_t *state) {
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)(next_random(state) >> 33) % i;
        size_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

/* Whether samples were kept although the GPU was slowed down. */
static bool slowed_down(const finalist *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (entries[i].timed.throttle != 0) {
            return true;
        }
    }
    return false;
}

/* Whether a finalist is sampled in this round: until its interval is narrow and, on a GPU that is
 * slowed down, for as long as the others are, so that it is slow for all of them alike. */
static bool takes_part(const finalist *entry, bool slow) {
    const kkt_timed *timed = &entry->timed;
    const bool room = entry->running && !timed->broken &&
                      timed->result->run.sample_count < timed->policy->max_samples &&
                      timed->seconds < timed->policy->sample_seconds;
    return entry->running && (!timed->done || (slow && room));
}

static void sample_in_turn(kkt_bench *bench, finalist *entries, size_t *order, size_t count,
                           uint64_t seed) {
    uint64_t state = seed * 2 + 1;
    bool any = true;
    while (any && !bench->replace) {
        const bool slow = slowed_down(entries, count);
        any = false;
        for (size_t i = 0; i < count; i++) {
            any = any || (entries[i].running && !entries[i].timed.done);
        }
        shuffle(order, count, &state);
        for (size_t i = 0; any && i < count && !bench->replace; i++) {
            finalist *entry = &entries[order[i]];
            if (takes_part(entry, slow)) {
                kkt_timed_sample(bench, &entry->timed);
            }
        }
    }
}

/* After a lost context only the culprit keeps its result: what else was sampled is asked again. */
static void forget_unfinished(kkt_measure_result *result) {
    if (result->run.outcome == KKT_OUTCOME_PREDICTED) {
        free(result->samples);
        result->samples = NULL;
        result->run.sample_count = 0;
        kkt_measure_result_bind(result);
    }
}

kkt_status kkt_bench_retime(kkt_bench *bench, const kkt_measure_request *requests, size_t count,
                            kkt_measure_result *results, kkt_error *err) {
    finalist *entries = calloc(count + 1, sizeof *entries);
    size_t *order = calloc(count + 1, sizeof *order);
    kkt_status status = KKT_OK;
    if (entries == NULL || order == NULL) {
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for %zu finalists", count);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    CUresult reserved = reserve_widest(bench, requests, count);
    for (size_t i = 0; i < count && status == KKT_OK && !bench->replace; i++) {
        if (!kkt_bench_failed(bench, &results[i], "device memory", reserved)) {
            status = open_finalist(bench, &requests[i], &entries[i], &results[i], err);
        }
    }
    if (status == KKT_OK && count > 0) {
        sample_in_turn(bench, entries, order, count, requests[0].policy->seed);
    }
    for (size_t i = 0; i < count; i++) {
        if (bench->replace || status != KKT_OK) {
            forget_unfinished(&results[i]);
        } else if (entries[i].timed.result != NULL) {
            kkt_timed_energy(bench, &entries[i].timed);
            kkt_timed_close(bench, &entries[i].timed);
        }
        if (!bench->replace && !bench->lost) {
            kkt_program_unload(&bench->gpu, &entries[i].program);
        }
        if (status == KKT_OK && bench->lost && results[i].reason[0] != '\0') {
            status = kkt_bench_lost(bench, &results[i], err);
        }
    }
done:
    free(entries);
    free(order);
    return status;
}

/* ---- the caller's own data ---- */

kkt_status kkt_bench_run(kkt_bench *bench, const kkt_measure_request *request,
                         kkt_host_tensors *tensors, kkt_measure_result *result, kkt_error *err) {
    kkt_program program = {0};
    kkt_bench_stamp(result);
    if (load(bench, request, &program, result)) {
        kkt_outcome outcome =
            kkt_bench_once(bench, request, &program, request->problem, tensors, result);
        result->run.outcome = outcome;
    }
    if (!bench->replace && !bench->lost) {
        kkt_program_unload(&bench->gpu, &program);
    }
    return bench->lost ? kkt_bench_lost(bench, result, err) : KKT_OK;
}
