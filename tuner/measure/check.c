/* The correctness gate on the GPU: small problems through engine/gate.h, then the full one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/measure/bench.h"

bool kkt_bench_failed(kkt_bench *bench, kkt_measure_result *result, const char *what,
                      CUresult status) {
    if (status == CUDA_SUCCESS) {
        return false;
    }
    char text[256];
    kkt_driver_error_text(&bench->gpu.driver, status, text, sizeof text);
    if (bench->gpu.library_error[0] != '\0') { /* it says more */
        snprintf(text, sizeof text, "%s", bench->gpu.library_error);
        bench->gpu.library_error[0] = '\0';
    }
    kkt_measure_result_set(result, KKT_OUTCOME_LAUNCH_FAILED, "%s: %s", what, text);
    bench->replace = bench->replace || kkt_driver_context_lost(status);
    bench->lost = bench->lost || kkt_driver_device_lost(status);
    return true;
}

/* ---- small problems ---- */

typedef struct small_run {
    kkt_bench *bench;
    const kkt_measure_request *request;
    kkt_program *program;
    kkt_measure_result *result; /* takes the driver's failures */
} small_run;

/* Copies the outputs to the tensors of the same names; allocates where there is no memory yet. */
static CUresult download_outputs(kkt_gpu *gpu, const kkt_bindings *bindings,
                                 kkt_host_tensors *tensors) {
    for (int i = 0; i < bindings->count; i++) {
        const kkt_device_tensor *from = &bindings->t[i];
        kkt_host_tensor *to = kkt_host_tensor_find(tensors, from->tensor.name);
        if (from->tensor.role != KKT_TENSOR_OUTPUT || to == NULL || from->bytes == 0) {
            continue;
        }
        if (to->data == NULL) {
            to->data = malloc(from->bytes);
        }
        CUresult result = to->data == NULL
                              ? CUDA_ERROR_OUT_OF_MEMORY
                              : gpu->driver.copy_to_host(to->data, from->data, from->bytes);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* Poisons, runs the prepared plan once and waits. */
static CUresult run_once(kkt_gpu *gpu, const kkt_program *program, const kkt_slab *outputs,
                         const kkt_bindings *bindings) {
    CUresult result = kkt_poison(gpu, outputs);
    if (result == CUDA_SUCCESS) {
        result = kkt_program_launch(gpu, program, bindings, KKT_STEPS_ALL);
    }
    CUresult waited = gpu->driver.stream_wait(gpu->stream);
    return result != CUDA_SUCCESS ? result : waited;
}

kkt_outcome kkt_bench_once(kkt_bench *bench, const kkt_measure_request *request,
                           kkt_program *program, const kkt_values *problem,
                           kkt_host_tensors *tensors, kkt_measure_result *result) {
    kkt_gpu *gpu = &bench->gpu;
    kkt_bindings bindings;
    char what[160];
    int damaged = -1;
    kkt_bind_list(request, problem, &bindings);
    CUresult status = kkt_bind_inputs(gpu, &bench->small_input_slab, tensors, &bindings);
    if (status == CUDA_SUCCESS) {
        status = kkt_bind_outputs(gpu, &bench->small_output_slab, &bindings);
    }
    if (kkt_bench_failed(bench, result, "device memory", status)) {
        return KKT_OUTCOME_LAUNCH_FAILED;
    }
    status = kkt_program_prepare(gpu, program, request, problem, what, sizeof what);
    if (kkt_bench_failed(bench, result, what, status)) {
        return KKT_OUTCOME_LAUNCH_FAILED;
    }
    status = run_once(gpu, program, &bench->small_output_slab, &bindings);
    if (status == CUDA_SUCCESS) {
        status = kkt_check_guards(gpu, &bindings, &damaged);
    }
    if (status == CUDA_SUCCESS) {
        status = download_outputs(gpu, &bindings, tensors);
    }
    if (kkt_bench_failed(bench, result, "launch", status)) {
        return KKT_OUTCOME_LAUNCH_FAILED;
    }
    if (damaged >= 0) {
        kkt_measure_result_set(result, KKT_OUTCOME_WRONG_RESULT, "memory beside %s was written to",
                               bindings.t[damaged].tensor.name);
        return KKT_OUTCOME_WRONG_RESULT;
    }
    return KKT_OUTCOME_OK;
}

static kkt_outcome gate_runner(void *context, const kkt_values *problem, kkt_host_tensors *tensors,
                               char *reason, size_t size) {
    const small_run *run = context;
    kkt_outcome outcome =
        kkt_bench_once(run->bench, run->request, run->program, problem, tensors, run->result);
    if (outcome != KKT_OUTCOME_OK) {
        snprintf(reason, size, "%s", run->result->reason);
    }
    return outcome;
}

kkt_status kkt_check_small(kkt_bench *bench, const kkt_measure_request *request,
                           kkt_program *program, kkt_measure_result *result, bool *passed,
                           kkt_error *err) {
    kkt_verdict verdict = {0};
    small_run run = {bench, request, program, result};
    *passed = false;
    if (bench->references == NULL) {
        bench->references = kkt_reference_cache_open();
    }
    kkt_status status =
        kkt_gate_check(request->kernel, request->variant, request->problem, request->config,
                       request->policy->seed, gate_runner, &run, bench->references, &verdict, err);
    if (status != KKT_OK) {
        return status;
    }
    result->run.rel_fro = verdict.rel_fro;
    result->run.max_abs = verdict.max_abs;
    result->run.growth = verdict.growth;
    result->run.tolerance = verdict.tolerance;
    *passed = verdict.outcome == KKT_OUTCOME_OK;
    if (!*passed) {
        kkt_measure_result_set(result, verdict.outcome, "%s", verdict.reason);
    }
    return KKT_OK;
}

/* ---- the full problem ---- */

/* Every output of both sets: written, finite, and the same bits. */
static bool scan_outputs(kkt_bench *bench, const kkt_bindings sets[KKT_BENCH_SETS],
                         kkt_measure_result *result) {
    for (int i = 0; i < sets[0].count; i++) {
        const kkt_tensor *tensor = &sets[0].t[i].tensor;
        if (tensor->role != KKT_TENSOR_OUTPUT) {
            continue;
        }
        kkt_scan_result found[KKT_BENCH_SETS];
        for (int set = 0; set < KKT_BENCH_SETS; set++) {
            CUresult status = kkt_gpu_scan(&bench->gpu, sets[set].t[i].data, tensor, &found[set]);
            if (kkt_bench_failed(bench, result, "scan of the outputs", status)) {
                return false;
            }
            if (found[set].not_finite > 0 || found[set].unwritten > 0) {
                kkt_measure_result_set(result, KKT_OUTCOME_WRONG_RESULT,
                                       "full problem: %llu elements of %s were never written, %llu "
                                       "are not finite",
                                       found[set].unwritten, tensor->name, found[set].not_finite);
                return false;
            }
        }
        if (found[0].hash != found[1].hash) {
            kkt_measure_result_set(result, KKT_OUTCOME_RACY,
                                   "full problem: two runs on the same inputs give different %s",
                                   tensor->name);
            return false;
        }
    }
    return true;
}

static bool guards_intact(kkt_bench *bench, const kkt_bindings sets[KKT_BENCH_SETS],
                          kkt_measure_result *result) {
    for (int set = 0; set < KKT_BENCH_SETS; set++) {
        int damaged = -1;
        CUresult status = kkt_check_guards(&bench->gpu, &sets[set], &damaged);
        if (kkt_bench_failed(bench, result, "guard zones", status)) {
            return false;
        }
        if (damaged >= 0) {
            kkt_measure_result_set(result, KKT_OUTCOME_WRONG_RESULT,
                                   "full problem: memory beside %s was written to",
                                   sets[set].t[damaged].tensor.name);
            return false;
        }
    }
    return true;
}

/* The inputs, and the first set's outputs copied to host memory that the bench keeps. */
static bool collect(kkt_bench *bench, const kkt_bindings *set, kkt_measure_result *result,
                    kkt_host_tensors *out) {
    memset(out, 0, sizeof *out);
    out->count = set->count;
    for (int i = 0; i < set->count; i++) {
        const kkt_device_tensor *from = &set->t[i];
        kkt_host_tensor *to = &out->t[i];
        to->tensor = from->tensor;
        if (from->tensor.role == KKT_TENSOR_INPUT) {
            const kkt_host_tensor *input = kkt_host_tensor_find(&bench->inputs, from->tensor.name);
            to->data = input != NULL ? input->data : NULL;
            continue;
        }
        if (from->tensor.role != KKT_TENSOR_OUTPUT) {
            continue;
        }
        if (bench->host_output_bytes[i] < from->bytes) {
            free(bench->host_outputs[i]);
            bench->host_outputs[i] = malloc(from->bytes);
            bench->host_output_bytes[i] = bench->host_outputs[i] != NULL ? from->bytes : 0;
        }
        to->data = bench->host_outputs[i];
    }
    return !kkt_bench_failed(bench, result, "copy of the outputs",
                             download_outputs(&bench->gpu, set, out));
}

int kkt_timing_case(const kkt_kernel *kernel) {
    for (size_t i = 0; i < kernel->case_count; i++) {
        if (kernel->cases[i].timing) {
            return (int)i;
        }
    }
    return 0;
}

bool kkt_check_judge(const kkt_score *score, double tolerance, const char *where,
                     kkt_measure_result *result) {
    kkt_run_record *run = &result->run;
    double rel_fro = kkt_score_rel_fro(score);
    bool tighter = !(rel_fro * run->tolerance <= run->rel_fro * tolerance);
    if (tighter) {
        run->rel_fro = rel_fro;
        run->max_abs = score->max_abs;
        run->growth = score->growth;
        run->tolerance = tolerance;
    }
    char finding[160];
    if (!kkt_score_right(score, tolerance, finding, sizeof finding)) {
        kkt_measure_result_set(result, KKT_OUTCOME_WRONG_RESULT, "%s: %s", where, finding);
        return false;
    }
    return true;
}

double kkt_full_tolerance(const kkt_measure_request *request) {
    return request->variant->tolerance(request->problem, request->config,
                                       kkt_timing_case(request->kernel));
}

kkt_status kkt_check_full(kkt_bench *bench, const kkt_measure_request *request,
                          kkt_program *program, const kkt_bindings sets[KKT_BENCH_SETS],
                          double tolerance, kkt_measure_result *result, bool *passed,
                          kkt_error *err) {
    kkt_host_tensors tensors;
    kkt_score score = {0};
    *passed = false;
    for (int set = 0; set < KKT_BENCH_SETS; set++) {
        CUresult status = run_once(&bench->gpu, program, &bench->output_slabs[set], &sets[set]);
        if (kkt_bench_failed(bench, result, "full problem", status)) {
            return KKT_OK;
        }
    }
    if (!scan_outputs(bench, sets, result) || !guards_intact(bench, sets, result) ||
        !collect(bench, &sets[0], result, &tensors)) {
        return KKT_OK;
    }
    kkt_status status = kkt_gate_score(request->kernel, request->problem, request->config, &tensors,
                                       request->policy->large_parts, &score, err);
    if (status != KKT_OK) {
        return status;
    }
    *passed = kkt_check_judge(&score, tolerance, "full problem", result);
    return *passed ? kkt_check_standard(bench, request, &sets[0], &tensors, tolerance, result,
                                        passed, err)
                   : KKT_OK;
}
