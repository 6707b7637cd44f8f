/* The space of a variant on a problem: lazy enumeration, constraints and predictions. A point is
 * named by its ordinal, the mixed-radix number of its value indices, so that a strategy can keep
 * a million of them in a few megabytes. */
#ifndef KKT_TUNER_SPACE_H
#define KKT_TUNER_SPACE_H

#include "kernels/kernel.h"
#include "model/predict.h"

typedef struct kkt_space kkt_space;

typedef struct kkt_point {
    int64_t ordinal;
    kkt_values config;
    kkt_prediction prediction;
} kkt_point;

/* Parameters named in `fixed` ("chunk=64,inverse=row"; NULL: none) keep their value. */
kkt_status kkt_space_open(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_arch *arch, const kkt_device *device,
                          const char *fixed, kkt_space **out, kkt_error *err);
void kkt_space_close(kkt_space *space);

/* Every applicable and feasible point once; false at the end. `rejected`, where not NULL, is
 * called for each complete configuration that is turned down, with the reason; not for those that
 * differ from others in nothing but parameters without effect (kkt_param.depends_on). */
typedef void (*kkt_space_rejected)(void *context, const kkt_values *config, const char *reason);
bool kkt_space_next(kkt_space *space, kkt_space_rejected rejected, void *context, kkt_point *out);
/* Why a space has no point: what turns down the defaults, with the fixed values among them. They
 * fit each other, so that this is the problem or the architecture, where most configurations may be
 * turned down for standing beside others that are the same. "" where they are not turned down. */
void kkt_space_why_empty(const kkt_space *space, char *reason, size_t size);
void kkt_space_rewind(kkt_space *space);
/* Has walks end early where `go_on` says so: it is asked every few thousand configurations, turned
 * down or not. NULL: never. */
void kkt_space_limit(kkt_space *space, bool (*go_on)(void *context), void *context);
/* Whether a walk since the last rewind ended so. */
bool kkt_space_cut(const kkt_space *space);
/* The point of one configuration; false with the reason where it is turned down; `size` 0: without
 * one. */
bool kkt_space_point(const kkt_space *space, const kkt_values *config, kkt_point *out, char *reason,
                     size_t size);
/* Its ordinal alone, whether or not it is turned down; false where a value is outside the space. */
bool kkt_space_ordinal(const kkt_space *space, const kkt_values *config, int64_t *out);
void kkt_space_decode(const kkt_space *space, int64_t ordinal, kkt_values *config);
const kkt_kernel *kkt_space_kernel(const kkt_space *space);
const kkt_variant *kkt_space_variant(const kkt_space *space);
int64_t kkt_space_raw_size(const kkt_space *space); /* the product of all value counts */

#endif
