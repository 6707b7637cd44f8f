#include "tuner/engine/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_EVERY = 4096 }; /* configurations; a few milliseconds of them */

struct kkt_space {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_time_constants constants;
    kkt_values fixed; /* what every configuration starts from */
    uint64_t fixed_mask;
    int64_t raw_size;
    int64_t
        radix[KKT_PARAMS_MAX]; /* values of a parameter that are walked through; 1: it is held */
    int64_t stride[KKT_PARAMS_MAX]; /* what one step of it adds to the ordinal */
    int64_t next;
    bool (*go_on)(void *context);
    void *go_on_context;
    int64_t until_asked;
    bool cut; /* the walk ended before the end */
    /* Where the walk stands: mostly one step further than before. */
    int64_t at; /* -1: nowhere */
    kkt_values current;
    uint8_t index[KKT_PARAMS_MAX];
};

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
    space->raw_size = 1;
    space->at = -1;
    for (size_t i = variant->params.count; i-- > 0;) {
        const kkt_param *param = &variant->params.params[i];
        bool held = (space->fixed_mask >> i) & 1;
        space->radix[i] = held ? 1 : (int64_t)param->count;
        space->stride[i] = space->raw_size;
        space->raw_size *= space->radix[i];
        space->fixed.v[i] = held ? space->fixed.v[i] : param->values[0];
    }
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

/* Brings `current` to an ordinal. */
static void move_to(kkt_space *space, int64_t ordinal) {
    const kkt_param *params = space->variant->params.params;
    if (space->at < 0 || ordinal != space->at + 1) {
        kkt_space_decode(space, ordinal, &space->current);
        for (size_t i = 0; i < space->variant->params.count; i++) {
            space->index[i] = (uint8_t)(ordinal / space->stride[i] % space->radix[i]);
        }
    } else {
        for (size_t i = space->variant->params.count; i-- > 0;) {
            if (space->radix[i] == 1) {
                continue;
            }
            bool wraps = space->index[i] + 1 == space->radix[i];
            space->index[i] = wraps ? 0 : (uint8_t)(space->index[i] + 1);
            space->current.v[i] = params[i].values[space->index[i]];
            if (!wraps) {
                break;
            }
        }
    }
    space->at = ordinal;
}

/* The next ordinal that differs in more than what `config` gives no effect: `ordinal` itself, or
 * past all that share the most significant parameter without effect. */
static int64_t next_distinct(const kkt_space *space, const kkt_values *config, int64_t ordinal) {
    const kkt_param_table *table = &space->variant->params;
    for (size_t i = 0; i < table->count; i++) {
        const kkt_param *param = &table->params[i];
        if (param->depends_on > 0 && space->radix[i] > 1 && config->v[i] != param->fallback &&
            !((param->depends_values >> config->v[param->depends_on - 1]) & 1)) {
            return (ordinal / space->stride[i] + 1) * space->stride[i];
        }
    }
    return ordinal;
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
    while (space->next < space->raw_size && !space->cut && may_go_on(space)) {
        out->ordinal = space->next;
        move_to(space, out->ordinal);
        space->next = next_distinct(space, &space->current, out->ordinal);
        if (space->next != out->ordinal) {
            continue;
        }
        space->next++;
        if (fill_point(space, &space->current, out, reason, size)) {
            return true;
        }
        if (rejected) {
            rejected(context, &space->current, reason);
        }
    }
    return false;
}

void kkt_space_rewind(kkt_space *space) {
    space->next = 0;
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
