/* A pipeline on the GPU: the launches of its kernels as one plan over one list of tensors. The list
 * begins as the whole kernel's, so that regions and outputs mean the same; what passes between the
 * members follows. */
#include <stdio.h>
#include <string.h>

#include "tuner/measure/bench.h"

typedef struct chain {
    kkt_bench *bench;
    const kkt_chain_request *request;
    kkt_measure_result *result; /* says why it is not to be */
    kkt_program program;
    kkt_bindings list;
    bool written[KKT_TENSORS_MAX]; /* tensors of the list that a member before has written */
    double tolerance;              /* of the members, added up */
} chain;

static int find_tensor(const kkt_bindings *list, const char *name) {
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->t[i].tensor.name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static int add_tensor(chain *c, const kkt_device_tensor *tensor) {
    if (c->list.count == KKT_TENSORS_MAX) {
        kkt_measure_result_set(c->result, KKT_OUTCOME_REJECTED,
                               "the pipeline has more than %d tensors", KKT_TENSORS_MAX);
        return -1;
    }
    c->list.t[c->list.count] = *tensor;
    return c->list.count++;
}

/* Where a member's tensor is in the list; -1: the result says why it cannot be. Workspace is each
 * member's own. */
static int place_of(chain *c, const char *member, const kkt_device_tensor *tensor) {
    const kkt_tensor *t = &tensor->tensor;
    if (t->role == KKT_TENSOR_WORKSPACE) {
        return add_tensor(c, tensor);
    }
    int at = find_tensor(&c->list, t->name);
    if (at >= 0 &&
        (c->list.t[at].bytes != tensor->bytes || c->list.t[at].tensor.dtype != t->dtype)) {
        kkt_measure_result_set(c->result, KKT_OUTCOME_REJECTED,
                               "%s of %s has %zu bytes; elsewhere in the pipeline it has %zu",
                               t->name, member, tensor->bytes, c->list.t[at].bytes);
        return -1;
    }
    if (t->role == KKT_TENSOR_OUTPUT) {
        kkt_device_tensor passed = *tensor;
        passed.tensor.role = KKT_TENSOR_WORKSPACE; /* it is no result of the pipeline */
        at = at >= 0 ? at : add_tensor(c, &passed);
        if (at >= 0) {
            c->written[at] = true;
        }
        return at;
    }
    if (at < 0 && t->optional) {
        return add_tensor(c, tensor); /* and absent: it stays unbound */
    }
    if (at < 0 || (c->list.t[at].tensor.role != KKT_TENSOR_INPUT && !c->written[at])) {
        kkt_measure_result_set(c->result, KKT_OUTCOME_REJECTED,
                               "%s reads %s, which no kernel before it writes", member, t->name);
        return -1;
    }
    return at;
}

/* Appends a member's launches, their tensors renumbered. */
static bool append_member(chain *c, const kkt_measure_request *member) {
    kkt_bindings own;
    kkt_plan plan = {0};
    int places[KKT_TENSORS_MAX];
    char what[160];
    kkt_bind_list(member->kernel, member->problem, member->config, &own);
    for (int i = 0; i < own.count; i++) {
        places[i] = place_of(c, member->kernel->name, &own.t[i]);
        if (places[i] < 0) {
            return false;
        }
    }
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
    CUresult status = kkt_bench_upload(c->bench, whole);
    if (kkt_bench_failed(c->bench, c->result, "device memory of the inputs", status)) {
        return false;
    }
    kkt_bind_list(whole->kernel, whole->problem, whole->config, &c->list);
    for (int i = 0; i < c->list.count; i++) {
        if (c->list.t[i].tensor.role == KKT_TENSOR_WORKSPACE) {
            c->list.t[i].bytes = 0; /* of the whole kernel, which does not run */
        }
    }
    for (size_t m = 0; m < c->request->count; m++) {
        if (!append_member(c, &c->request->members[m])) {
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
