#include "tuner/measure/chain_fit.h"

#include <stdio.h>
#include <string.h>

typedef struct fitting {
    kkt_chain_fit *fit;
    bool written[KKT_TENSORS_MAX]; /* by a member before */
    char *reason;
    size_t size;
} fitting;

static int list_tensors(const kkt_measure_request *request, kkt_tensor out[KKT_TENSORS_MAX]) {
    return kkt_variant_tensors(request->kernel, request->variant, request->problem, request->config,
                               out);
}

static int find_tensor(const kkt_chain_fit *fit, const char *name) {
    for (int i = 0; i < fit->count; i++) {
        if (strcmp(fit->tensors[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static int add_tensor(fitting *f, const kkt_tensor *tensor) {
    kkt_chain_fit *fit = f->fit;
    if (fit->count == KKT_TENSORS_MAX) {
        snprintf(f->reason, f->size, "the pipeline has more than %d tensors", KKT_TENSORS_MAX);
        return -1;
    }
    fit->tensors[fit->count] = *tensor;
    fit->bytes[fit->count] = (size_t)kkt_tensor_bytes(tensor);
    return fit->count++;
}

/* Where a member's tensor is in the list; -1: the reason says why it cannot be. Workspace is each
 * member's own. */
static int place_of(fitting *f, const char *member, const kkt_tensor *t) {
    kkt_chain_fit *fit = f->fit;
    if (t->role == KKT_TENSOR_WORKSPACE) {
        return add_tensor(f, t);
    }
    int at = find_tensor(fit, t->name);
    size_t bytes = (size_t)kkt_tensor_bytes(t);
    if (at >= 0 && (fit->bytes[at] != bytes || fit->tensors[at].dtype != t->dtype)) {
        snprintf(f->reason, f->size,
                 "%s of %s has %zu bytes of %s; elsewhere in the pipeline it has %zu of %s",
                 t->name, member, bytes, kkt_dtype_name(t->dtype), fit->bytes[at],
                 kkt_dtype_name(fit->tensors[at].dtype));
        return -1;
    }
    if (t->role == KKT_TENSOR_OUTPUT) {
        kkt_tensor passed = *t;
        passed.role = KKT_TENSOR_WORKSPACE; /* it is no result of the pipeline */
        at = at >= 0 ? at : add_tensor(f, &passed);
        if (at >= 0) {
            f->written[at] = true;
        }
        return at;
    }
    if (at < 0 && t->optional) {
        return add_tensor(f, t); /* and absent: it stays unbound */
    }
    if (at < 0 || (fit->tensors[at].role != KKT_TENSOR_INPUT && !f->written[at])) {
        snprintf(f->reason, f->size, "%s reads %s, which no kernel before it writes", member,
                 t->name);
        return -1;
    }
    return at;
}

bool kkt_chain_fit_make(const kkt_chain_request *request, kkt_chain_fit *out, char *reason,
                        size_t size) {
    fitting f = {.fit = out, .reason = reason, .size = size};
    kkt_tensor own[KKT_TENSORS_MAX];
    memset(out, 0, sizeof *out);
    out->count = list_tensors(&request->whole, out->tensors);
    for (int i = 0; i < out->count; i++) {
        bool unused = out->tensors[i].role == KKT_TENSOR_WORKSPACE;
        out->bytes[i] = unused ? 0 : (size_t)kkt_tensor_bytes(&out->tensors[i]);
    }
    for (size_t m = 0; m < request->count; m++) {
        int count = list_tensors(&request->members[m], own);
        for (int i = 0; i < count; i++) {
            out->places[m][i] = place_of(&f, request->members[m].kernel->name, &own[i]);
            if (out->places[m][i] < 0) {
                return false;
            }
        }
    }
    return true;
}
