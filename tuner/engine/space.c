#include "tuner/engine/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_EVERY = 4096 }; /* configurations; a few milliseconds of them */

/* A parameter that walks pass by, but for its fallback, where another's value gives it no effect.
 */
typedef struct dependent {
    size_t at, on;
    uint64_t values;        /* of `on`, bit v: it has an effect there */
    int64_t fallback_index; /* the number of its values where the fallback is none of them */
} dependent;

struct kkt_space {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_time_constants constants;
    kkt_values fixed;    /* what every configuration starts from */
    kkt_values defaults; /* with the fixed values among them */
    uint64_t fixed_mask;
    int64_t raw_size;
    int64_t
        radix[KKT_PARAMS_MAX]; /* values of a parameter that are walked through; 1: it is held */
    int64_t stride[KKT_PARAMS_MAX];       /* what one step of it adds to the ordinal */
    dependent dependents[KKT_PARAMS_MAX]; /* in the table's order, the slowest first */
    size_t dependent_count;
    bool (*go_on)(void *context);
    void *go_on_context;
    int64_t until_asked;
    bool cut; /* the walk ended before the end */
    /* Where the walk stands: the configuration it looks at next. */
    int64_t at; /* its ordinal; raw_size: the end */
    kkt_values current;
    int64_t index[KKT_PARAMS_MAX]; /* of each value */
};

static void add_dependent(kkt_space *space, size_t at) {
    const kkt_param *param = &space->variant->params.params[at];
    int64_t fallback = 0;
    while (fallback < space->radix[at] && param->values[fallback] != param->fallback) {
        fallback++;
    }
    space->dependents[space->dependent_count++] =
        (dependent){at, (size_t)param->depends_on - 1, param->depends_values, fallback};
}

kkt_status kkt_space_open(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_arch *arch, const kkt_device *device,
                          const char *fixed, kkt_space **out, kkt_error *err) {
    kkt_space *space = calloc(1, sizeof *space);
    if (!space) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory");
    }
    space->kernel = kernel;
    space->variant = variant;
    space->problem = *problem;
    space->arch = arch;
    space->device = device;
    kkt_time_defaults(arch, device, &space->constants);
    kkt_params_defaults(&variant->params, &space->fixed);
    kkt_status status = kkt_params_parse(&variant->params, fixed ? fixed : "", &space->fixed,
                                         &space->fixed_mask, err);
    if (status != KKT_OK) {
        free(space);
        return status;
    }
    space->defaults = space->fixed;
    space->raw_size = 1;
    for (size_t i = variant->params.count; i-- > 0;) {
        const kkt_param *param = &variant->params.params[i];
        bool held = (space->fixed_mask >> i) & 1;
        space->radix[i] = held ? 1 : (int64_t)param->count;
        space->stride[i] = space->raw_size;
        space->raw_size *= space->radix[i];
        space->fixed.v[i] = held ? space->fixed.v[i] : param->values[0];
    }
    for (size_t i = 0; i < variant->params.count; i++) {
        if (variant->params.params[i].depends_on > 0 && space->radix[i] > 1) {
            add_dependent(space, i);
        }
    }
    kkt_space_rewind(space);
    *out = space;
    return KKT_OK;
}

void kkt_space_close(kkt_space *space) {
    free(space);
}

void kkt_space_decode(const kkt_space *space, int64_t ordinal, kkt_values *config) {
    *config = space->fixed;
    for (size_t i = 0; i < space->variant->params.count; i++) {
        if (space->radix[i] > 1) {
            int64_t index = ordinal / space->stride[i] % space->radix[i];
            config->v[i] = space->variant->params.params[i].values[index];
        }
    }
}

static void set_digit(kkt_space *space, size_t i, int64_t index) {
    space->at += (index - space->index[i]) * space->stride[i];
    space->index[i] = index;
    space->current.v[i] = space->variant->params.params[i].values[index];
}

/* The next configuration that differs in the first `count` parameters, the others at their first
 * values; after the last one the end. */
static void step(kkt_space *space, size_t count) {
    for (size_t i = count; i < space->variant->params.count; i++) {
        if (space->index[i] > 0) {
            set_digit(space, i, 0);
        }
    }
    for (size_t i = count; i-- > 0;) {
        if (space->index[i] + 1 < space->radix[i]) {
            set_digit(space, i, space->index[i] + 1);
            return;
        }
        if (space->index[i] > 0) {
            set_digit(space, i, 0);
        }
    }
    space->at = space->raw_size;
}

/* Passes by what differs from another configuration in nothing but a parameter without effect;
 * false where this one does not. */
static bool pass_by(kkt_space *space) {
    for (size_t d = 0; d < space->dependent_count; d++) {
        const dependent *one = &space->dependents[d];
        const int64_t index = space->index[one->at];
        if (index == one->fallback_index || ((one->values >> space->current.v[one->on]) & 1)) {
            continue;
        }
        if (index > one->fallback_index || one->fallback_index == space->radix[one->at]) {
            step(space, one->at);
            return true;
        }
        for (size_t i = one->at + 1; i < space->variant->params.count; i++) {
            if (space->index[i] > 0) {
                set_digit(space, i, 0);
            }
        }
        set_digit(space, one->at, one->fallback_index);
        return true;
    }
    return false;
}

static bool fill_point(const kkt_space *space, const kkt_values *config, kkt_point *out,
                       char *reason, size_t size) {
    if (!space->variant->applicable(&space->problem, config, space->arch, reason, size)) {
        return false;
    }
    kkt_footprint footprint;
    memset(&footprint, 0, sizeof footprint);
    space->variant->footprint(&space->problem, config, space->arch, &footprint);
    out->config = *config;
    kkt_predict(&footprint, space->arch, space->device, &space->constants, &out->prediction);
    if (out->prediction.infeasible != KKT_FEASIBLE) {
        if (size > 0) {
            kkt_prediction_reason(&footprint, space->arch, space->device, &out->prediction, reason,
                                  size);
        }
        return false;
    }
    /* Strategies take logarithms of what is kept as a float. */
    float kept = (float)out->prediction.predicted_us;
    if (!isfinite(kept) || kept <= 0) {
        kkt_reason(reason, size, "the model predicts %g us, which is no time",
                   out->prediction.predicted_us);
        return false;
    }
    return true;
}

static bool may_go_on(kkt_space *space) {
    if (!space->go_on || --space->until_asked > 0) {
        return true;
    }
    space->until_asked = ASK_EVERY;
    space->cut = !space->go_on(space->go_on_context);
    return !space->cut;
}

bool kkt_space_next(kkt_space *space, kkt_space_rejected rejected, void *context, kkt_point *out) {
    char reason[240] = "";
    const size_t size = rejected ? sizeof reason : 0; /* nobody asks: none is formatted */
    while (space->at < space->raw_size && !space->cut && may_go_on(space)) {
        if (pass_by(space)) {
            continue;
        }
        out->ordinal = space->at;
        const bool good = fill_point(space, &space->current, out, reason, size);
        if (!good && rejected) {
            rejected(context, &space->current, reason);
        }
        step(space, space->variant->params.count);
        if (good) {
            return true;
        }
    }
    return false;
}

void kkt_space_why_empty(const kkt_space *space, char *reason, size_t size) {
    kkt_point point;
    if (fill_point(space, &space->defaults, &point, reason, size)) {
        reason[0] = '\0';
    }
}

void kkt_space_rewind(kkt_space *space) {
    space->at = 0;
    space->current = space->fixed;
    memset(space->index, 0, sizeof space->index);
    space->cut = false;
    space->until_asked = 0;
}

void kkt_space_limit(kkt_space *space, bool (*go_on)(void *context), void *context) {
    space->go_on = go_on;
    space->go_on_context = context;
}

bool kkt_space_cut(const kkt_space *space) {
    return space->cut;
}

/* Index of the first parameter whose value is outside the space; the count where there is none. */
static size_t ordinal_of(const kkt_space *space, const kkt_values *config, int64_t *out) {
    *out = 0;
    for (size_t i = 0; i < space->variant->params.count; i++) {
        const kkt_param *param = &space->variant->params.params[i];
        bool fixed = (space->fixed_mask >> i) & 1;
        size_t at = 0;
        while (!fixed && at < param->count && param->values[at] != config->v[i]) {
            at++;
        }
        if (fixed ? config->v[i] != space->fixed.v[i] : at == param->count) {
            return i;
        }
        *out += (int64_t)at * space->stride[i];
    }
    return space->variant->params.count;
}

bool kkt_space_ordinal(const kkt_space *space, const kkt_values *config, int64_t *out) {
    return ordinal_of(space, config, out) == space->variant->params.count;
}

bool kkt_space_point(const kkt_space *space, const kkt_values *config, kkt_point *out, char *reason,
                     size_t size) {
    size_t outside = ordinal_of(space, config, &out->ordinal);
    if (outside < space->variant->params.count) {
        snprintf(reason, size, "%s is outside the space",
                 space->variant->params.params[outside].name);
        return false;
    }
    return fill_point(space, config, out, reason, size);
}

const kkt_kernel *kkt_space_kernel(const kkt_space *space) {
    return space->kernel;
}

const kkt_variant *kkt_space_variant(const kkt_space *space) {
    return space->variant;
}

int64_t kkt_space_raw_size(const kkt_space *space) {
    return space->raw_size;
}
