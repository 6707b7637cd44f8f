/* Energy of a launch: power while the plan runs back to back, times the time of one launch then.
 *
 * The device's energy counter moves on in steps of a tenth of a second or so. So the GPU is kept
 * busy, the host reads the counter about once a millisecond, and the power follows from the first
 * and the last step that it saw: the length of a step does not matter. */
#include <math.h>
#include <time.h>

#include "tuner/measure/bench.h"
#include "tuner/worker/stream.h"

#define PILOT_LAUNCHES 8     /* tell how long a launch takes without a flush */
#define QUEUE_SECONDS 0.03   /* of work is kept in the stream, so that it never runs dry */
#define QUEUE_SHARE 0.9      /* of the pilot's time is trusted: clocks may rise */
#define SETTLE_SECONDS 0.1   /* until the power is that of the plan */
#define POLL_SECONDS 0.001   /* between two looks at the counter */
#define SHORTEST_SECONDS 0.1 /* between the two steps, or there is no result */

/* What the counter was seen to do. */
typedef struct meter {
    double first_s, last_s, first_mj, last_mj; /* the steps */
    double value_mj;                           /* as last read */
} meter;

/* Reads the counter; a value above the last one is a step. */
static void poll(meter *m, const kkt_nvml *nvml, double now) {
    double value = kkt_nvml_energy_mj(nvml);
    if (isnan(value)) {
        return;
    }
    if (!isnan(m->value_mj) && value > m->value_mj) {
        if (isnan(m->first_s)) {
            m->first_s = now;
            m->first_mj = value;
        }
        m->last_s = now;
        m->last_mj = value;
    }
    m->value_mj = value;
}

static CUresult launch(kkt_bench *bench, kkt_timed *timed) {
    CUgraphExec graph = timed->graphs[timed->launches++ % KKT_BENCH_SETS];
    return bench->gpu.driver.graph_launch(graph, bench->gpu.stream);
}

/* Seconds of one launch, back to back. */
static CUresult pilot(kkt_bench *bench, kkt_timed *timed, size_t count, double *out) {
    const kkt_driver *driver = &bench->gpu.driver;
    float milliseconds = 0.0F;
    CUresult result = driver->event_record(bench->events[0], bench->gpu.stream);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = launch(bench, timed);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->event_record(bench->events[1], bench->gpu.stream);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->stream_wait(bench->gpu.stream);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->event_elapsed(&milliseconds, bench->events[0], bench->events[1]);
    }
    *out = (double)milliseconds * 1e-3 / (double)count;
    return result;
}

static void wait_a_little(void) {
    struct timespec pause = {.tv_nsec = 200000};
    nanosleep(&pause, NULL);
}

/* Keeps the stream filled for `seconds`; `*each_s` becomes the time of one launch. */
static CUresult keep_busy(kkt_bench *bench, kkt_timed *timed, double seconds, meter *m,
                          double *each_s) {
    const kkt_driver *driver = &bench->gpu.driver;
    double pace = fmax(*each_s * QUEUE_SHARE, 1e-7);
    double started = kkt_clock_seconds();
    double polled = started;
    double now = started;
    int64_t launches = 0;
    float milliseconds = 0.0F;
    CUresult result = driver->event_record(bench->events[0], bench->gpu.stream);
    while (result == CUDA_SUCCESS && now - started < SETTLE_SECONDS + seconds) {
        if ((double)launches * pace - (now - started) < QUEUE_SECONDS) {
            result = launch(bench, timed);
            launches++;
        } else {
            wait_a_little();
        }
        now = kkt_clock_seconds();
        if (now - polled >= POLL_SECONDS && now - started >= SETTLE_SECONDS) {
            poll(m, bench->gpu.nvml, now);
            polled = now;
        }
    }
    if (result == CUDA_SUCCESS) {
        result = driver->event_record(bench->events[1], bench->gpu.stream);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->stream_wait(bench->gpu.stream);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->event_elapsed(&milliseconds, bench->events[0], bench->events[1]);
    }
    *each_s = (double)milliseconds * 1e-3 / fmax((double)launches, 1.0);
    return result;
}

void kkt_timed_energy(kkt_bench *bench, kkt_timed *timed) {
    kkt_measure_result *result = timed->result;
    double seconds = timed->policy->energy_seconds;
    bool sampled = result->run.outcome == KKT_OUTCOME_PREDICTED && result->run.sample_count > 0;
    /* Back to back there is no room for what each run needs prepared. */
    if (!sampled || timed->before[0] != NULL || !(seconds > 0.0) ||
        isnan(kkt_nvml_energy_mj(bench->gpu.nvml))) {
        return;
    }
    meter m = {.first_s = (double)NAN, .value_mj = (double)NAN};
    double each_s = 0.0;
    size_t count = (double)result->samples[0] > 1e5 ? 1 : PILOT_LAUNCHES;
    CUresult status = pilot(bench, timed, count, &each_s);
    if (status == CUDA_SUCCESS) {
        status = keep_busy(bench, timed, seconds, &m, &each_s);
    }
    if (kkt_bench_failed(bench, result, "launches back to back", status)) {
        return;
    }
    double span = m.last_s - m.first_s;
    if (span >= SHORTEST_SECONDS && each_s > 0.0) {
        result->run.energy_mj = (m.last_mj - m.first_mj) / span * each_s;
    }
}
