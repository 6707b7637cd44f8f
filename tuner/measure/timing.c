/* Timing: events around one graph launch of the plan, the L2 emptied by reading before each and
 * nothing subtracted; batches until the median's interval is narrow enough. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tuner/measure/bench.h"
#include "tuner/worker/stream.h"

#define WARM_SHARE 0.02   /* warm once two medians in a row agree within this share */
#define WARM_BATCHES 20   /* or after this many batches */
#define BATCH_SECONDS 0.1 /* of a batch: slow candidates are looked at more often */
#define DROPPED_MOST 5    /* batches repeated because the GPU was slowed down, then they count */
#define DROPPED_ALL 50   /* of all candidates: a GPU that is always slowed down is taken as it is */
#define COOL_SECONDS 0.2 /* pause after a dropped batch */

static CUresult make_events(kkt_bench *bench) {
    for (size_t i = 0; i < 2 * KKT_BENCH_BATCH; i++) {
        if (bench->events[i] == NULL) {
            CUresult result = bench->gpu.driver.event_create(&bench->events[i], CU_EVENT_DEFAULT);
            if (result != CUDA_SUCCESS) {
                return result;
            }
        }
    }
    return CUDA_SUCCESS;
}

/* Takes `count` samples (at most a batch). The host runs ahead of the flush, so that the launch is
 * already queued when it ends: no host time is in the samples. */
static CUresult take_samples(kkt_bench *bench, kkt_timed *timed, size_t count, float *samples_us) {
    const kkt_driver *driver = &bench->gpu.driver;
    CUstream stream = bench->gpu.stream;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        size_t set = timed->launches++ % KKT_BENCH_SETS;
        CUgraphExec graph = timed->graphs[set];
        if (timed->before[set] != NULL) {
            result = driver->graph_launch(timed->before[set], stream);
        }
        if (result == CUDA_SUCCESS) {
            result = kkt_gpu_flush(&bench->gpu, (size_t)timed->policy->flush_bytes);
        }
        if (result == CUDA_SUCCESS) {
            result = driver->event_record(bench->events[2 * i], stream);
        }
        if (result == CUDA_SUCCESS) {
            result = driver->graph_launch(graph, stream);
        }
        if (result == CUDA_SUCCESS) {
            result = driver->event_record(bench->events[2 * i + 1], stream);
        }
    }
    if (result == CUDA_SUCCESS) {
        result = driver->stream_wait(stream);
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        float milliseconds = 0.0F;
        result =
            driver->event_elapsed(&milliseconds, bench->events[2 * i], bench->events[2 * i + 1]);
        samples_us[i] = milliseconds * 1e3F;
    }
    return result;
}

static size_t batch_size(double sample_us) {
    double fit = BATCH_SECONDS * 1e6 / fmax(sample_us, 1.0);
    return fit >= KKT_BENCH_BATCH ? KKT_BENCH_BATCH : fit < 1.0 ? 1 : (size_t)fit;
}

static CUresult warm_up(kkt_bench *bench, kkt_timed *timed) {
    float samples[KKT_BENCH_BATCH];
    double last = 0.0;
    int launches = 0;
    CUresult result = take_samples(bench, timed, 1, samples);
    double started = kkt_clock_seconds();
    for (int batch = 0; batch < WARM_BATCHES && result == CUDA_SUCCESS; batch++) {
        size_t count = batch_size((double)samples[0]);
        result = take_samples(bench, timed, count, samples);
        launches += (int)count;
        kkt_median median;
        kkt_median_of(samples, count, &median);
        bool steady = fabs(median.median - last) <= WARM_SHARE * median.median;
        last = median.median;
        if ((steady && launches >= timed->policy->warmup_launches) ||
            kkt_clock_seconds() - started > timed->policy->sample_seconds) {
            break;
        }
    }
    return result;
}

bool kkt_timed_open(kkt_bench *bench, const kkt_program *program,
                    const kkt_bindings sets[KKT_BENCH_SETS], const kkt_policy *policy,
                    kkt_measure_result *result, kkt_timed *out) {
    *out = (kkt_timed){.policy = policy, .result = result};
    result->samples = calloc((size_t)policy->max_samples, sizeof *result->samples);
    if (result->samples == NULL) {
        kkt_measure_result_set(result, KKT_OUTCOME_CRASHED, "out of host memory for %d samples",
                               policy->max_samples);
        return false;
    }
    kkt_measure_result_bind(result);
    if (kkt_bench_failed(bench, result, "timing events", make_events(bench))) {
        return false;
    }
    for (int i = 0; i < KKT_BENCH_SETS; i++) {
        CUresult status =
            kkt_program_graph(&bench->gpu, program, &sets[i], KKT_STEPS_TIMED, &out->graphs[i]);
        if (status == CUDA_SUCCESS && kkt_program_prepares(program)) {
            status = kkt_program_graph(&bench->gpu, program, &sets[i], KKT_STEPS_BEFORE,
                                       &out->before[i]);
        }
        if (kkt_bench_failed(bench, result, "graph of the plan", status)) {
            return false;
        }
    }
    return !kkt_bench_failed(bench, result, "warm-up", warm_up(bench, out));
}

static void pause_seconds(double seconds) {
    struct timespec pause = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&pause, NULL);
}

void kkt_timed_sample(kkt_bench *bench, kkt_timed *timed) {
    float samples[KKT_BENCH_BATCH];
    kkt_measure_result *result = timed->result;
    kkt_run_record *run = &result->run;
    size_t kept = (size_t)run->sample_count;
    size_t room = (size_t)timed->policy->max_samples - kept;
    size_t count = kept > 0 ? batch_size((double)result->samples[kept - 1]) : 1;
    count = count < room ? count : room;
    kkt_gpu_state state;
    double started = kkt_clock_seconds();
    CUresult status = take_samples(bench, timed, count, samples);
    if (kkt_bench_failed(bench, result, "timing", status)) {
        timed->done = timed->broken = true;
        return;
    }
    kkt_nvml_state(bench->gpu.nvml, &state);
    if (state.throttle != 0 && timed->dropped < DROPPED_MOST && bench->dropped < DROPPED_ALL) {
        timed->dropped++;
        bench->dropped++;
        pause_seconds(COOL_SECONDS);
        return;
    }
    memcpy(result->samples + kept, samples, count * sizeof *samples);
    run->sample_count += (int64_t)count;
    timed->throttle |= state.throttle;
    timed->throttled += state.throttle != 0 ? (int64_t)count : 0;
    timed->seconds += kkt_clock_seconds() - started;
    run->sm_clock_mhz = state.sm_clock_mhz;
    run->memory_clock_mhz = state.memory_clock_mhz;
    run->temperature_c = state.temperature_c;
    run->power_w = state.power_w;
    timed->done = run->sample_count >= timed->policy->max_samples ||
                  timed->seconds >= timed->policy->sample_seconds ||
                  kkt_policy_satisfied(timed->policy, result->samples, kept + count);
}

static void note_others(const kkt_bench *bench, kkt_measure_result *result) {
    int others = kkt_gpu_others(&bench->gpu);
    if (others > 0) {
        snprintf(result->disturbed, sizeof result->disturbed, "%d other process%s the GPU", others,
                 others == 1 ? " uses" : "es use");
    }
}

void kkt_timed_close(kkt_bench *bench, kkt_timed *timed) {
    kkt_measure_result *result = timed->result;
    for (int i = 0; i < KKT_BENCH_SETS; i++) {
        CUgraphExec *const both[] = {&timed->graphs[i], &timed->before[i]};
        for (size_t g = 0; g < sizeof both / sizeof *both; g++) {
            if (*both[g] != NULL && !bench->replace) {
                bench->gpu.driver.graph_exec_destroy(*both[g]);
            }
            *both[g] = NULL;
        }
    }
    if (result->run.outcome == KKT_OUTCOME_PREDICTED && result->run.sample_count > 0) {
        kkt_throttle_text(timed->throttle, result->throttle, sizeof result->throttle);
        result->run.throttled = timed->throttled;
        note_others(bench, result);
        kkt_measure_result_times(result, timed->policy);
    }
}
