/* A pipeline on the GPU: the launches of its kernels as one plan over one list of tensors. */
#include <stdio.h>

#include "tuner/measure/bench.h"
#include "tuner/measure/chain_fit.h"

typedef struct chain {
    kkt_bench *bench;
    const kkt_chain_request *request;
    kkt_measure_result *result; /* says why it is not to be */
    kkt_program program;
    kkt_bindings list;
    kkt_chain_fit fit;
    double tolerance; /* of the members, added up */
} chain;

/* Appends a member's launches, their tensors renumbered. */
static bool append_member(chain *c, const kkt_measure_request *member, const int *places) {
    kkt_plan plan = {0};
    char what[160];
    CUresult status = kkt_program_load(&c->bench->gpu, member->cubin, &c->program);
    if (kkt_bench_failed(c->bench, c->result, "loading the cubin", status)) {
        return false;
    }
    member->variant->plan(member->problem, member->config, member->arch, &plan);
    for (int l = 0; l < plan.launch_count; l++) {
        for (int a = 0; a < plan.launches[l].arg_count; a++) {
            kkt_arg *arg = &plan.launches[l].args[a];
            if (arg->kind == KKT_ARG_TENSOR || arg->kind == KKT_ARG_TENSOR_MAP) {
                arg->tensor = places[arg->tensor];
            }
        }
    }
    c->tolerance += kkt_full_tolerance(member);
    status = kkt_program_append(&c->bench->gpu, &c->program, &plan, what, sizeof what);
    return !kkt_bench_failed(c->bench, c->result, what, status);
}

/* Inputs where the bench has them, everything else in two sets. */
static bool bind(chain *c, kkt_bindings sets[KKT_BENCH_SETS]) {
    kkt_bench *bench = c->bench;
    CUresult status = CUDA_SUCCESS;
    for (int i = 0; i < bench->bound.count; i++) {
        c->list.t[i].data = bench->bound.t[i].data; /* of the outputs there is none yet */
    }
    for (int set = 0; set < KKT_BENCH_SETS && status == CUDA_SUCCESS; set++) {
        sets[set] = c->list;
        status = kkt_bind_outputs(&bench->gpu, &bench->output_slabs[set], &sets[set]);
    }
    return !kkt_bench_failed(bench, c->result, "device memory of the pipeline", status);
}

static bool prepare(chain *c, kkt_bindings sets[KKT_BENCH_SETS]) {
    const kkt_measure_request *whole = &c->request->whole;
    char reason[200];
    if (!kkt_chain_fit_make(c->request, &c->fit, reason, sizeof reason)) {
        kkt_measure_result_set(c->result, KKT_OUTCOME_REJECTED, "%s", reason);
        return false;
    }
    CUresult status = kkt_bench_upload(c->bench, whole);
    if (kkt_bench_failed(c->bench, c->result, "device memory of the inputs", status)) {
        return false;
    }
    c->list.count = c->fit.count;
    for (int i = 0; i < c->fit.count; i++) {
        c->list.t[i].tensor = c->fit.tensors[i];
        c->list.t[i].bytes = c->fit.bytes[i];
    }
    for (size_t m = 0; m < c->request->count; m++) {
        if (!append_member(c, &c->request->members[m], c->fit.places[m])) {
            return false;
        }
    }
    c->program.overlapped = c->request->order == KKT_OVERLAPPED;
    return bind(c, sets);
}

static kkt_status check_and_time(chain *c, kkt_error *err) {
    kkt_bench *bench = c->bench;
    const kkt_measure_request *whole = &c->request->whole;
    kkt_bindings sets[KKT_BENCH_SETS];
    kkt_timed timed;
    bool passed = false;
    if (!prepare(c, sets)) {
        return KKT_OK;
    }
    kkt_status status =
        kkt_check_full(bench, whole, &c->program, sets, c->tolerance, c->result, &passed, err);
    if (status != KKT_OK || !passed) {
        return status;
    }
    if (kkt_timed_open(bench, &c->program, sets, whole->policy, c->result, &timed)) {
        while (!timed.done) {
            kkt_timed_sample(bench, &timed);
        }
        if (whole->policy->energy_each) {
            kkt_timed_energy(bench, &timed);
        }
    }
    kkt_timed_close(bench, &timed);
    return KKT_OK;
}

kkt_status kkt_bench_chain(kkt_bench *bench, const kkt_chain_request *request,
                           kkt_measure_result *result, kkt_error *err) {
    chain c = {.bench = bench, .request = request, .result = result};
    kkt_bench_stamp(result);
    kkt_status status = check_and_time(&c, err);
    if (!bench->replace && !bench->lost) {
        kkt_program_unload(&bench->gpu, &c.program);
    }
    if (status == KKT_OK && bench->lost) {
        status = kkt_bench_lost(bench, result, err);
    }
    return status;
}
