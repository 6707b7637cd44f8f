/* Which configuration to use for a problem, and how it was found. */
#ifndef KKT_REPORTS_LOOKUP_H
#define KKT_REPORTS_LOOKUP_H

#include "kernels/kernel.h"
#include "reports/view.h"

typedef enum kkt_lookup_tier {
    KKT_LOOKUP_EXACT,   /* measured, replayed, stale or compiled for exactly this problem */
    KKT_LOOKUP_NEAREST, /* measured for another problem; the configuration applies here, too */
    KKT_LOOKUP_MODEL,   /* what the model likes best for this problem */
    KKT_LOOKUP_DEFAULT  /* the kernel's own defaults: the model finds nothing that can launch */
} kkt_lookup_tier;
const char *kkt_lookup_tier_name(kkt_lookup_tier tier); /* "exact", ... */

typedef struct kkt_lookup {
    kkt_lookup_tier tier;
    double distance;          /* 0 for exact and model; see kkt_lookup_distance */
    const kkt_device *device; /* the one `entry` is of: another one's result may be the nearest */
    kkt_entry entry; /* `problem` is the one the entry was found for, and its are time, interval,
                        error and energy. Launch, registers and prediction are those of the problem
                        asked; ties that do not apply to it are left out. */
    /* A result that was passed over; NULL: none was. Either a nearer one, since its style is slower
     * where both styles are measured (`slower`, `faster`: on one problem, the nearest such), or one
     * whose style is expected to be slower here by KKT_LOOKUP_STYLE or more; both are then NULL,
     * and `passed_us` is what it is predicted to take on the problem asked. */
    const kkt_entry *passed, *slower, *faster;
    double passed_distance, passed_us;
    const struct kkt_failures
        *failures; /* known on the device asked; of the views; NULL: none are */
} kkt_lookup;

/* What a problem key counts for in the distance of two problems. The exported header uses the same
 * rules, so that both find the same neighbour. */
typedef struct kkt_lookup_rule {
    int halves; /* twice the weight of |log2(a/b)|: 2 for tokens, heads and others, 1 for batch and
                   sequences, 8 for what is compiled in */
    bool compiled; /* compiled into a kernel, or a choice and not a size: dk, dv, dtype, the gate */
} kkt_lookup_rule;
kkt_lookup_rule kkt_lookup_rule_of(const kkt_param *param);

/* Keys whose quotient decides what applies (heads_per_block divides heads_v / heads_k). The header,
 * which cannot ask a kernel, gives no row out whose quotient differs. Ends with NULL. */
typedef struct kkt_lookup_quotient {
    const char *above, *below;
} kkt_lookup_quotient;
extern const kkt_lookup_quotient kkt_lookup_quotients[];

/* The sum over the problem's keys of |log2(a/b)| times the key's weight; a different gate adds 4;
 * another data type (any key whose values are names) is infinitely far. */
double kkt_lookup_distance(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b);

/* Distance added where such a quotient differs: what fits one ratio of heads is a poor guide for
 * another, however alike the sizes are. */
#define KKT_LOOKUP_QUOTIENT 4.0
/* Distance added for a result of another device of the same architecture: every problem of the
 * device itself that is closer comes first. */
#define KKT_LOOKUP_OTHER_DEVICE 8.0
/* Beyond this the model is asked instead. */
#define KKT_LOOKUP_FAR 16.0
/* Where the best configuration of a neighbour cannot be used, its next best ones are tried, as long
 * as they take at most this multiple of the best one's time. */
#define KKT_LOOKUP_POOR 1.5
/* A neighbour's configuration whose prediction for the problem asked is above this multiple of the
 * model's best is shown with that one beside it. */
#define KKT_LOOKUP_SLOW 1.1
/* A neighbour's style is not handed out where another style is expected to be faster by this
 * factor. Expected is what the model says of its choice for each style, times what the style's
 * nearest measurement is off its own prediction. */
#define KKT_LOOKUP_STYLE 1.3
/* The same where no problem shows that other style to be as fast, where both are measured: the
 * model may be wrong about either. */
#define KKT_LOOKUP_STYLE_UNSEEN 2.0

/* Looks in `views` (the first is the device's own; `count` may be 0: the model alone): for a result
 * of the problem asked, else for the nearest one of each style. Of these the nearest is taken,
 * unless a style whose nearest result is farther is known to be faster: at the nearest problem
 * where both are measured, with configurations that can be used for the problem asked, and still by
 * what the model says of these here. Where the model says that yet another style is much faster
 * (KKT_LOOKUP_STYLE), that style's nearest result or the model's own choice is taken. A view of a
 * database offers all its results, one of an export the best alone. `chunk` 0:
 * the chunk size that stands for the problem that is found (kkt_view_chunk), else
 * KKT_DEFAULT_CHUNK, where the kernel has it. Strings of the entry live in the views or in `arena`.
 * KKT_ERR_INPUT: an impossible problem, or a chunk the kernel does not have. */
kkt_status kkt_lookup_find(const kkt_view *views, size_t count, const kkt_kernel *kernel,
                           const kkt_values *problem, int64_t chunk, const kkt_arch *arch,
                           const kkt_device *device, kkt_arena *arena, kkt_lookup *out,
                           kkt_error *err);

/* Where `found` is a neighbour's configuration that the model finds slower than its own best one
 * for the problem by more than KKT_LOOKUP_SLOW: true, and that one in `out`. The neighbour was
 * measured and the model may be wrong; the two are to be timed against each other. */
bool kkt_lookup_model_pick(const kkt_lookup *found, const kkt_kernel *kernel,
                           const kkt_values *problem, const kkt_arch *arch,
                           const kkt_device *device, kkt_arena *arena, kkt_entry *out);

/* The chunk size to look for: the one asked, the one that stands for the kernel's first problem in
 * the views, or the kernel's own default; 0 where it has none. KKT_ERR_INPUT: not one of its. */
kkt_status kkt_lookup_chunk(const kkt_view *views, size_t count, const kkt_kernel *kernel,
                            int64_t asked, int64_t *out, kkt_error *err);

/* The views of all devices of an architecture, `device` first; returns their number. */
kkt_status kkt_lookup_views(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                            const kkt_device *device, const char *kernel, kkt_arena *arena,
                            kkt_view **views, size_t *count, kkt_error *err);

/* Where no device is named: puts the first view that has measurements at the front, and returns its
 * device; without any, that of the first. `count` is not 0. */
const kkt_device *kkt_lookup_own_device(kkt_view *views, size_t count);

/* Reads an export (kkttune.config/1) back as a view: hostile input. The device of the view is the
 * one it names. KKT_ERR_INPUT names the file and the member that does not fit. */
kkt_status kkt_view_read(const char *path, kkt_arena *arena, kkt_view *out, kkt_error *err);
/* The same from memory; `name` is for errors. */
kkt_status kkt_view_parse(const char *text, size_t length, const char *name, kkt_arena *arena,
                          kkt_view *out, kkt_error *err);

#endif
