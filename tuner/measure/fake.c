/* A GPU made of arithmetic: the model's time with a seeded bias a candidate and seeded noise a
 * sample, and faults on request. What a candidate gets depends on the seed, its identity and the
 * sample's number, never on when it is asked; so everything above can be tested without a GPU. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/version.h"
#include "tuner/measure/backends.h"
#include "tuner/measure/chain_fit.h"
#include "tuner/measure/fake_count.h"

#define BIAS 0.15        /* the model is off by at most this share */
#define IDLE_W 250.0     /* power while a candidate runs: from here ... */
#define BUSY_W 400.0     /* ... to so much more */
#define NOISE 0.01       /* a sample is above the candidate's time by at most this share */
#define GAP 0.02         /* what launches in order cost beside their sum at most, as a share */
#define OVERLAP 0.05     /* what overlapped ones save at most */
#define HIT_ONE_IN 10    /* candidates that a fault hits */
#define FAULTS_MAX 16    /* kinds that can be listed in one run */
#define OPTION_BYTES 256 /* of the options' text */
#define SLEEP_MOST_US 10000000

typedef struct fault_kind {
    const char *name;
    kkt_outcome outcome;
    const char *reason;
} fault_kind;

static const fault_kind FAULTS[] = {
    {"illegal_address", KKT_OUTCOME_LAUNCH_FAILED,
     "CUDA_ERROR_ILLEGAL_ADDRESS: the kernel accessed memory outside its buffers (injected)"},
    {"hang", KKT_OUTCOME_TIMED_OUT, "no answer within the candidate's time limit (injected)"},
    {"abort", KKT_OUTCOME_CRASHED, "the worker process ended by signal 6 (injected)"},
    {"wrong", KKT_OUTCOME_WRONG_RESULT,
     "the relative Frobenius error is above the tolerance (injected)"},
    {"race", KKT_OUTCOME_RACY, "two runs on the same inputs differ (injected)"},
    {"too_much_smem", KKT_OUTCOME_REJECTED,
     "more dynamic shared memory than a block can have (injected)"},
};
#define FAULT_COUNT (sizeof FAULTS / sizeof FAULTS[0])

struct kkt_backend {
    kkt_backend_info info;
    uint64_t seed;
    const kkt_fake_trouble *trouble; /* with counters; NULL: counting works */
    unsigned sleep_us; /* what a candidate takes at least: for tests that interrupt a run */
    bool crowded;      /* times are marked as disturbed by another process */
    int tell;          /* a descriptor that gets 'm' for each measurement, 'r' for each of
                          finalists, 'p' for each pipeline; 0: none */
    size_t fault_count;
    const fault_kind *faults[FAULTS_MAX];
    /* The first candidates asked: each listed kind hits one of them, so that a small run meets
     * every fault that was asked for. */
    size_t first_count;
    uint64_t first[FAULTS_MAX];
};

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3); /* FNV-1a */
    }
    return kkt_random_mix(hash);
}

static uint64_t candidate_hash(uint64_t seed, const kkt_measure_request *request) {
    kkt_text text = {0};
    kkt_text_printf(&text, "%s|%s|%s|%s|", request->kernel->name,
                    kkt_style_get(request->variant->style)->name, request->arch->name,
                    request->device->name);
    kkt_params_format(&request->kernel->problem, request->problem, &text);
    kkt_text_add(&text, "|");
    kkt_params_format(&request->variant->params, request->config, &text);
    uint64_t hash = hash_text(kkt_random_mix(seed), kkt_text_get(&text));
    kkt_text_free(&text);
    return hash;
}

static kkt_status add_fault(kkt_backend *backend, const char *name, kkt_error *err) {
    bool all = strcmp(name, "all") == 0;
    bool known = all;
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        if (!all && strcmp(FAULTS[i].name, name) != 0) {
            continue;
        }
        known = true;
        if (backend->fault_count == FAULTS_MAX) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "more than %d faults for the fake backend",
                            FAULTS_MAX);
        }
        backend->faults[backend->fault_count++] = &FAULTS[i];
    }
    if (known) {
        return KKT_OK;
    }
    kkt_text list = {0};
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        kkt_text_printf(&list, "%s, ", FAULTS[i].name);
    }
    kkt_status status =
        kkt_fail(err, KKT_ERR_INPUT, 0, "unknown fault '%s' for the fake backend; known: %sall",
                 name, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

static kkt_status parse_option(kkt_backend *backend, char *piece, bool *seeded, kkt_error *err) {
    char *value = strchr(piece, '=');
    if (value == NULL) {
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "fake backend option '%s' has no value; write seed=N or fault=KIND", piece);
    }
    *value++ = '\0';
    if (strcmp(piece, "seed") == 0) {
        int64_t seed = 0;
        if (*seeded) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "fake backend option seed is given twice");
        }
        if (!kkt_parse_i64(value, 0, INT64_MAX, &seed)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "fake backend seed '%s' is not an integer of 0 or more", value);
        }
        *seeded = true;
        backend->seed = (uint64_t)seed;
        return KKT_OK;
    }
    if (strcmp(piece, "fault") == 0) {
        char *rest = value;
        char *name = NULL;
        while ((name = strsep(&rest, "+")) != NULL) {
            kkt_status status = add_fault(backend, name, err);
            if (status != KKT_OK) {
                return status;
            }
        }
        return KKT_OK;
    }
    if (strcmp(piece, "sleep_us") == 0) {
        int64_t sleep_us = 0;
        if (!kkt_parse_i64(value, 0, SLEEP_MOST_US, &sleep_us)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "fake backend sleep_us '%s' is not in 0 to %d",
                            value, SLEEP_MOST_US);
        }
        backend->sleep_us = (unsigned)sleep_us;
        return KKT_OK;
    }
    if (strcmp(piece, "tell") == 0) {
        int64_t tell = 0;
        if (!kkt_parse_i64(value, 3, 1023, &tell) || fcntl((int)tell, F_GETFD) == -1) {
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "fake backend tell '%s' is no open descriptor from 3 up", value);
        }
        backend->tell = (int)tell;
        return KKT_OK;
    }
    if (strcmp(piece, "crowd") == 0) {
        int64_t crowd = 0;
        if (!kkt_parse_i64(value, 0, 1, &crowd)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "fake backend crowd '%s' is neither 0 nor 1",
                            value);
        }
        backend->crowded = crowd != 0;
        return KKT_OK;
    }
    if (strcmp(piece, "counters") == 0) {
        return kkt_fake_trouble_parse(value, &backend->trouble, err);
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "unknown fake backend option '%s'; known: seed, fault, sleep_us, crowd, tell, "
                    "counters",
                    piece);
}

static kkt_status parse_options(kkt_backend *backend, const char *text, kkt_error *err) {
    char copy[OPTION_BYTES];
    if (text == NULL || text[0] == '\0') {
        return KKT_OK;
    }
    if (strlen(text) >= sizeof copy) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "fake backend options are longer than %d characters",
                        OPTION_BYTES - 1);
    }
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    char *piece = NULL;
    bool seeded = false;
    while ((piece = strsep(&rest, ",")) != NULL) {
        kkt_status status = parse_option(backend, piece, &seeded, err);
        if (status != KKT_OK) {
            return status;
        }
    }
    return KKT_OK;
}

static kkt_status fake_open(const kkt_backend_options *options, kkt_backend **out, kkt_error *err) {
    *out = NULL;
    kkt_backend *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for the fake backend");
    }
    backend->info.major = -1;
    backend->info.minor = -1;
    kkt_status status = parse_options(backend, options->fake, err);
    if (status != KKT_OK) {
        free(backend);
        return status;
    }
    snprintf(backend->info.note, sizeof backend->info.note,
             "times are made up from the model (fake backend, seed %llu)",
             (unsigned long long)backend->seed);
    *out = backend;
    return KKT_OK;
}

static void fake_close(kkt_backend *backend) {
    free(backend);
}

static const kkt_backend_info *fake_info(const kkt_backend *backend) {
    return &backend->info;
}

static const fault_kind *fault_of(kkt_backend *backend, uint64_t hash) {
    if (backend->fault_count == 0) {
        return NULL;
    }
    for (size_t i = 0; i < backend->first_count; i++) {
        if (backend->first[i] == hash) {
            return backend->faults[i];
        }
    }
    if (backend->first_count < backend->fault_count) {
        backend->first[backend->first_count] = hash;
        return backend->faults[backend->first_count++];
    }
    uint64_t draw = kkt_random_mix(hash ^ UINT64_C(0xfa017));
    return draw % HIT_ONE_IN == 0 ? backend->faults[draw / HIT_ONE_IN % backend->fault_count]
                                  : NULL;
}

static void fake_error_figures(const kkt_measure_request *request, uint64_t hash, bool wrong,
                               kkt_run_record *run) {
    int timing_case = 0;
    for (size_t i = 0; i < request->kernel->case_count; i++) {
        timing_case = request->kernel->cases[i].timing ? (int)i : timing_case;
    }
    run->tolerance =
        request->variant->tolerance != NULL
            ? request->variant->tolerance(request->problem, request->config, timing_case)
            : KKT_UNKNOWN_REAL;
    double share =
        wrong ? 100.0 : 0.2 + 0.3 * kkt_random_unit(kkt_random_mix(hash ^ UINT64_C(0xe44)));
    run->rel_fro = share * run->tolerance;
}

/* A result without figures yet. */
static void begin(const kkt_backend *backend, const kkt_policy *policy, kkt_measure_result *out) {
    kkt_measure_result_init(out, policy);
    out->run.gpu = "fake";
    out->run.driver = "none";
    out->run.tool_version = KKT_VERSION;
    /* A fixed date: the same seed must give the same bytes. */
    snprintf(out->date, sizeof out->date, "1970-01-01T00:00:00Z");
    usleep(backend->sleep_us);
}

/* What a candidate takes: nothing runs faster than the model's lower bound; the noise only adds. */
static double base_us(const kkt_measure_request *request, uint64_t hash) {
    double bias = 1.0 + BIAS * (2.0 * kkt_random_unit(kkt_random_mix(hash)) - 1.0);
    return fmax(request->prediction->predicted_us * bias, request->prediction->lower_bound_us);
}

/* Samples around `base`, as many as the policy asks for. */
static kkt_status sample(const kkt_backend *backend, const kkt_policy *policy, uint64_t hash,
                         double base, kkt_measure_result *out, kkt_error *err) {
    size_t most = policy->max_samples > 0 ? (size_t)policy->max_samples : 1;
    out->samples = calloc(most, sizeof *out->samples);
    if (out->samples == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for %zu samples", most);
    }
    size_t count = 0;
    do {
        double noise = NOISE * kkt_random_unit(kkt_random_mix(hash + 1 + count));
        out->samples[count++] = (float)(base * (1.0 + noise));
    } while (count < most && !kkt_policy_satisfied(policy, out->samples, count));
    out->run.sample_count = (int64_t)count;
    out->run.throttled = 0;
    if (backend->crowded) {
        snprintf(out->disturbed, sizeof out->disturbed, "1 other process uses the GPU (made up)");
    }
    kkt_measure_result_times(out, policy);
    return KKT_OK;
}

static kkt_status make_up(kkt_backend *backend, const kkt_measure_request *request, bool energy,
                          kkt_measure_result *out, kkt_error *err) {
    const kkt_policy *policy = request->policy;
    begin(backend, policy, out);
    uint64_t hash = candidate_hash(backend->seed, request);
    /* Faults are a candidate's: a library's call is none, and stays what others are held against.
     */
    const fault_kind *fault = request->variant->library ? NULL : fault_of(backend, hash);
    if (fault != NULL) {
        fake_error_figures(request, hash, fault->outcome == KKT_OUTCOME_WRONG_RESULT, &out->run);
        if (fault->outcome != KKT_OUTCOME_WRONG_RESULT) {
            out->run.rel_fro = KKT_UNKNOWN_REAL;
        }
        kkt_measure_result_set(out, fault->outcome, "%s", fault->reason);
        return KKT_OK;
    }
    fake_error_figures(request, hash, false, &out->run);
    kkt_status status = sample(backend, policy, hash, base_us(request, hash), out, err);
    if (status == KKT_OK && policy->energy_seconds > 0.0 && (energy || policy->energy_each)) {
        double watts = IDLE_W + BUSY_W * kkt_random_unit(kkt_random_mix(hash ^ UINT64_C(0xe7e)));
        out->run.energy_mj = out->run.time_us * watts * 1e-3;
    }
    return status;
}

/* Says that a measurement was made, before anyone can have stored it. */
static void tell(const kkt_backend *backend, char kind) {
    if (backend->tell > 0 && write(backend->tell, &kind, 1) != 1) {
        return; /* whoever wanted to know is gone */
    }
}

static kkt_status fake_measure(kkt_backend *backend, const kkt_measure_request *request,
                               kkt_measure_result *out, kkt_error *err) {
    kkt_status status = make_up(backend, request, false, out, err);
    tell(backend, 'm');
    return status;
}

static kkt_status fake_retime(kkt_backend *backend, const kkt_measure_request *requests,
                              size_t count, kkt_measure_result *out, kkt_error *err) {
    for (size_t i = 0; i < count; i++) {
        kkt_status status = make_up(backend, &requests[i], true, &out[i], err);
        tell(backend, 'r');
        if (status != KKT_OK) {
            for (size_t j = 0; j < i; j++) {
                kkt_measure_result_free(&out[j]);
            }
            return status;
        }
    }
    return KKT_OK;
}

/* The members' times added up; what follows at once saves or costs a little. */
static kkt_status fake_chain(kkt_backend *backend, const kkt_chain_request *request,
                             kkt_measure_result *out, kkt_error *err) {
    const kkt_policy *policy = request->whole.policy;
    uint64_t all = candidate_hash(backend->seed, &request->whole) + (uint64_t)request->order;
    double base = 0.0, share = 0.0, tolerance = 0.0;
    begin(backend, policy, out);
    char reason[200];
    kkt_chain_fit fit;
    if (!kkt_chain_fit_make(request, &fit, reason, sizeof reason)) {
        kkt_measure_result_set(out, KKT_OUTCOME_REJECTED, "%s", reason);
        return KKT_OK;
    }
    for (size_t i = 0; i < request->count; i++) {
        uint64_t hash = candidate_hash(backend->seed, &request->members[i]);
        fake_error_figures(&request->members[i], hash, false, &out->run);
        base += base_us(&request->members[i], hash);
        share = fmax(share, out->run.rel_fro / out->run.tolerance);
        tolerance += out->run.tolerance;
        all = kkt_random_mix(all ^ hash);
    }
    out->run.tolerance = tolerance;
    out->run.rel_fro = share * tolerance;
    const fault_kind *fault = fault_of(backend, all);
    kkt_status status = KKT_OK;
    if (fault != NULL) {
        kkt_measure_result_set(out, fault->outcome, "%s", fault->reason);
    } else {
        double gap = request->order == KKT_OVERLAPPED ? -OVERLAP : GAP;
        status = sample(backend, policy, all,
                        base * (1.0 + gap * kkt_random_unit(kkt_random_mix(all))), out, err);
    }
    tell(backend, 'p');
    return status;
}

static kkt_status fake_count(kkt_backend *backend, const kkt_measure_request *request,
                             kkt_counts *out, kkt_error *err) {
    (void)err;
    kkt_fake_counts(candidate_hash(backend->seed, request), request, backend->trouble, out);
    return KKT_OK;
}

const kkt_backend_type kkt_backend_fake = {
    .name = "fake",
    .needs_cubin = false,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .measure = fake_measure,
    .run = NULL,
    .retime = fake_retime,
    .chain = fake_chain,
    .count = fake_count,
};
