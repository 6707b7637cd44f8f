/* Three ranges a pass, each on an L2 that holds nothing of the candidate's:
 *   kernel   the plan alone: all counters but the bytes written
 *   drained  the plan, then a launch that reads more than the L2 holds: its dirty lines are written
 *   drain    that launch alone, for its own bytes
 * Each is preceded by a flush outside of the range. Flush and drain read different memory, so that
 * the drain finds none of its own in L2, with or without the plan before it. */
#include "tuner/measure/count.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DRAIN_L2S 2.0 /* the drain reads at least this many times the L2 */
/* Of the L2, what a launch's last writes leave dirty where it cannot be drained: a copy on an H200
 * leaves about 24 of 60 MiB. */
#define DIRTY_SHARE 0.4
/* Passes of one configuration beyond those that it announced: something is wrong then. */
#define SPARE_PASSES 4
#define DRAIN_TOLERANCE 0.1 /* the drain should read its memory once, within this share */

enum { RANGE_KERNEL, RANGE_DRAINED, RANGE_DRAIN, RANGE_COUNT };
enum { RANGE_ROOM = 8 }; /* more than are used: the profiler drops what finds no room */
static const char *const RANGES[RANGE_COUNT] = {"kernel", "drained", "drain"};

/* ---- once a process ---- */

static double l2_bytes(const kkt_bench *bench) {
    int bytes = 0;
    bench->gpu.driver.device_attribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
                                       bench->gpu.device);
    return (double)bytes;
}

void kkt_counting_start(kkt_counting *counting, kkt_bench *bench) {
    kkt_error error = {0};
    const char *step = "";
    bool everywhere = false;
    if (counting->started) {
        return;
    }
    counting->started = true;
    if (kkt_cupti_open(&counting->cupti, &error) != KKT_OK) {
        snprintf(counting->unavailable, sizeof counting->unavailable, "%.300s", error.message);
        return;
    }
    int result = kkt_cupti_start(counting->cupti, bench->gpu.info.index, counting->chip,
                                 sizeof counting->chip, &step);
    if (result != 0) {
        kkt_cupti_explain(counting->cupti, result, step, counting->unavailable,
                          sizeof counting->unavailable, &everywhere);
        return;
    }
    if (kkt_cupti_config_open(counting->cupti, counting->chip, &counting->config, &error) !=
        KKT_OK) {
        snprintf(counting->unavailable, sizeof counting->unavailable, "%.300s", error.message);
    }
}

void kkt_counting_close(kkt_counting *counting) {
    if (counting->cupti != NULL) {
        kkt_cupti_config_close(counting->cupti, &counting->config);
    }
    kkt_cupti_close(counting->cupti);
    memset(counting, 0, sizeof *counting);
}

/* ---- one candidate ---- */

typedef struct counted {
    kkt_counting *counting;
    kkt_bench *bench;
    const kkt_measure_request *request;
    kkt_program program;
    kkt_bindings sets[KKT_BENCH_SETS];
    kkt_measure_result result; /* takes the driver's failures */
    kkt_cupti_profiler profiler;
    double values[RANGE_COUNT][KKT_COUNTER_COUNT];
} counted;

/* The flush's kernel on the drain's memory. */
static CUresult drain(counted *c) {
    kkt_gpu *gpu = &c->bench->gpu;
    kkt_slab own = gpu->flush_slab;
    gpu->flush_slab = c->counting->drain;
    CUresult result = kkt_gpu_flush(gpu, (size_t)c->request->policy->flush_bytes);
    c->counting->drain = gpu->flush_slab;
    gpu->flush_slab = own;
    return result;
}

/* Everything once before the profiler looks: code is loaded, memory of flush and drain is there. */
static bool warm_up(counted *c) {
    const kkt_driver *driver = &c->bench->gpu.driver;
    kkt_gpu *gpu = &c->bench->gpu;
    size_t flush_bytes = (size_t)c->request->policy->flush_bytes;
    CUresult status = kkt_program_launch(gpu, &c->program, &c->sets[0], KKT_STEPS_ALL);
    if (status == CUDA_SUCCESS) {
        status = driver->stream_wait(gpu->stream);
    }
    if (kkt_bench_failed(c->bench, &c->result, "a launch before counting", status)) {
        return false;
    }
    status = kkt_gpu_flush(gpu, flush_bytes);
    if (kkt_bench_failed(c->bench, &c->result, "the flush before counting", status)) {
        return false;
    }
    c->counting->drained =
        (double)flush_bytes >= DRAIN_L2S * l2_bytes(c->bench) && drain(c) == CUDA_SUCCESS;
    status = driver->stream_wait(gpu->stream);
    return !kkt_bench_failed(c->bench, &c->result, "the drain before counting", status);
}

static CUresult run_range(counted *c, int range) {
    kkt_gpu *gpu = &c->bench->gpu;
    CUresult status = CUDA_SUCCESS;
    if (range != RANGE_DRAIN) {
        status = kkt_program_launch(gpu, &c->program, &c->sets[0], KKT_STEPS_TIMED);
    }
    if (status == CUDA_SUCCESS && range != RANGE_KERNEL) {
        status = drain(c);
    }
    return status == CUDA_SUCCESS ? gpu->driver.stream_wait(gpu->stream) : status;
}

/* One range of one pass. False: the driver failed, or (`*cupti` not 0) the profiler. */
static bool count_range(counted *c, int range, int *cupti) {
    kkt_gpu *gpu = &c->bench->gpu;
    CUresult status = kkt_program_launch(gpu, &c->program, &c->sets[0], KKT_STEPS_BEFORE);
    if (status == CUDA_SUCCESS) {
        status = kkt_gpu_flush(gpu, (size_t)c->request->policy->flush_bytes);
    }
    if (status == CUDA_SUCCESS) {
        status = gpu->driver.stream_wait(gpu->stream);
    }
    if (kkt_bench_failed(c->bench, &c->result, "the flush while counting", status)) {
        return false;
    }
    *cupti = kkt_cupti_push(&c->profiler, RANGES[range]);
    if (*cupti != 0) {
        return false;
    }
    status = run_range(c, range);
    if (kkt_bench_failed(c->bench, &c->result, "a launch while counting", status)) {
        return false;
    }
    *cupti = kkt_cupti_pop(&c->profiler);
    return *cupti == 0;
}

static bool count_pass(counted *c, bool *all, int *cupti) {
    int ranges = c->counting->drained ? RANGE_COUNT : 1;
    *cupti = kkt_cupti_pass_begin(&c->profiler);
    bool good = *cupti == 0;
    for (int range = 0; range < ranges && good; range++) {
        good = count_range(c, range, cupti);
    }
    if (good) {
        *cupti = kkt_cupti_pass_end(&c->profiler, all);
    }
    return good && *cupti == 0;
}

/* All passes and their results. False as above; neither where passes never end or got lost. */
static bool count_passes(counted *c, int *cupti, const char **lost) {
    bool all = false;
    size_t most = c->counting->config.passes + SPARE_PASSES;
    for (size_t pass = 0; pass < most && !all; pass++) {
        if (!count_pass(c, &all, cupti)) {
            return false;
        }
    }
    if (!all) {
        *lost = "the profiler asks for more passes than it announced";
        return false;
    }
    *cupti = kkt_cupti_decode(&c->profiler);
    if (*cupti == 0 && c->profiler.dropped > 0) {
        *lost = "the profiler dropped a range";
        return false;
    }
    int ranges = c->counting->drained ? RANGE_COUNT : 1;
    for (int range = 0; range < ranges && *cupti == 0; range++) {
        *cupti = kkt_cupti_values(&c->profiler, RANGES[range], (size_t)range, c->values[range]);
    }
    return *cupti == 0;
}

static double output_bytes(const counted *c) {
    double bytes = 0.0;
    for (int i = 0; i < c->sets[0].count; i++) {
        if (c->sets[0].t[i].tensor.role == KKT_TENSOR_OUTPUT) {
            bytes += (double)c->sets[0].t[i].bytes;
        }
    }
    return bytes;
}

/* The three ranges into one set of values. */
static void combine(const counted *c, kkt_counts *out) {
    const int read = KKT_COUNTER_DRAM_READ_BYTES;
    const int write = KKT_COUNTER_DRAM_WRITE_BYTES;
    kkt_counts_set(out, KKT_COUNT_DONE, "%s", "");
    snprintf(out->chip, sizeof out->chip, "%s", c->counting->chip);
    out->passes = (int)c->counting->config.passes;
    memcpy(out->values, c->values[RANGE_KERNEL], sizeof out->values);
    if (!isfinite(out->values[write])) {
        return;
    }
    if (c->counting->drained) {
        double asked = (double)c->request->policy->flush_bytes;
        double got = c->values[RANGE_DRAIN][read];
        out->values[write] =
            fmax(c->values[RANGE_DRAINED][write] - c->values[RANGE_DRAIN][write], 0.0);
        if (fabs(got - asked) > DRAIN_TOLERANCE * asked) {
            snprintf(
                out->note, sizeof out->note,
                "the drain of the L2 read %.4g bytes instead of %.4g: the bytes written may be "
                "too few",
                got, asked);
        }
        return;
    }
    double missing = fmax(output_bytes(c) - out->values[write], 0.0);
    double residue = fmin(DIRTY_SHARE * l2_bytes(c->bench), missing);
    out->values[write] += residue;
    snprintf(out->note, sizeof out->note,
             "the bytes written include %.4g that are taken to be left in L2: it was not drained",
             residue);
}

/* Passes, with the profiler open. */
static void count_profiled(counted *c, kkt_counts *out) {
    int cupti = 0;
    const char *lost = NULL;
    if (count_passes(c, &cupti, &lost)) {
        combine(c, out);
        return;
    }
    if (cupti != 0) {
        char text[sizeof out->note];
        bool everywhere = false;
        kkt_cupti_explain(c->counting->cupti, cupti, c->profiler.step, text, sizeof text,
                          &everywhere);
        kkt_counts_set(out, everywhere ? KKT_COUNT_UNAVAILABLE : KKT_COUNT_FAILED, "%s", text);
    } else {
        kkt_counts_set(out, KKT_COUNT_FAILED, "%s", lost != NULL ? lost : c->result.reason);
    }
    c->bench->replace = true; /* a profiler left inside a pass is in no known state */
}

static void count_loaded(counted *c, kkt_counts *out) {
    if (!warm_up(c)) {
        kkt_counts_set(out, KKT_COUNT_FAILED, "%s", c->result.reason);
        return;
    }
    int result = kkt_cupti_profiler_open(c->counting->cupti, &c->counting->config,
                                         c->bench->gpu.context, RANGE_ROOM, &c->profiler);
    if (result == 0) {
        count_profiled(c, out);
    } else {
        /* Nothing of the candidate has run under the profiler: no other will fare better. */
        bool everywhere = false;
        kkt_cupti_explain(c->counting->cupti, result, c->profiler.step, c->counting->unavailable,
                          sizeof c->counting->unavailable, &everywhere);
        kkt_counts_set(out, KKT_COUNT_UNAVAILABLE, "%s", c->counting->unavailable);
    }
    if (!c->bench->replace) {
        kkt_cupti_profiler_close(&c->profiler); /* else in the middle of a pass: the process ends */
    }
}

void kkt_count(kkt_counting *counting, kkt_bench *bench, const kkt_measure_request *request,
               kkt_counts *out) {
    counted c = {.counting = counting, .bench = bench, .request = request};
    kkt_counting_start(counting, bench);
    if (counting->unavailable[0] != '\0') {
        kkt_counts_set(out, KKT_COUNT_UNAVAILABLE, "%s", counting->unavailable);
        return;
    }
    kkt_measure_result_init(&c.result, request->policy);
    if (kkt_bench_prepare(bench, request, &c.program, c.sets, &c.result)) {
        count_loaded(&c, out);
    } else {
        kkt_counts_set(out, KKT_COUNT_FAILED, "%s", c.result.reason);
    }
    if (!bench->replace && !bench->lost) {
        kkt_program_unload(&bench->gpu, &c.program);
    }
    kkt_measure_result_free(&c.result);
}
