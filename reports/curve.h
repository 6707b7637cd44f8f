/* Curves of whole pipelines over the chunk size, and the chunk size that each kernel takes from
 * them. */
#ifndef KKT_REPORTS_CURVE_H
#define KKT_REPORTS_CURVE_H

#include "kernels/pipeline.h"
#include "reports/view.h"

/* One timing of a whole pipeline: of several the best, fresh before stale, measured before
 * replayed, then the fastest. */
typedef struct kkt_curve_run {
    kkt_launch_order order;
    double time_us, low_us, high_us;
    int64_t samples;
    double rel_fro, tolerance, energy_mj;
    kkt_provenance provenance;
    const char *stale_reason; /* NULL: no member is stale */
    const char *disturbed, *gpu, *driver, *date;
    const char *configs[KKT_MEMBERS_MAX]; /* "style: k=v,..." of each member */
    size_t form;
    bool noisy;
} kkt_curve_run;

/* A chunk size. The members are the best of their own at it, of the form that was timed end to end,
 * else of the one whose members are the fastest together. */
typedef struct kkt_curve_point {
    int64_t chunk;
    const char *form; /* "t_beta"; "" where there is one form */
    const kkt_entry *members[KKT_MEMBERS_MAX];
    double members_us;          /* their own times added up; NaN: one has none */
    double predicted_us;        /* their predictions added up */
    double hbm_bytes_per_token; /* of all launches, predicted */
    const kkt_curve_run *runs[KKT_LAUNCH_ORDER_COUNT]; /* NULL: not timed so */
    const kkt_curve_run *run;                          /* the faster of them; NULL: neither */
    /* The total: end to end where it was timed, else members_us; NaN: neither. */
    double time_us;
    kkt_provenance provenance; /* of the run, else the weakest of the members */
    const char *stale_reason;  /* NULL: fresh */
    const char *limiter;       /* of the member that takes longest; NULL: unknown */
} kkt_curve_point;

typedef struct kkt_curve {
    const kkt_pipeline *pipeline;
    const char *problem; /* canonical */
    int problem_rank;    /* place among the pipeline's problems; INT_MAX: none of them */
    size_t member_count;
    bool device_code; /* false: some member is known to the model alone */
    size_t count;     /* points, ascending; a chunk size at which a member cannot run has none */
    kkt_curve_point points[KKT_CHOICES_MAX];
    size_t measured; /* points with a time */
    /* The chunk size that is fastest end to end; NULL: too little is measured. A single one of
     * several is no choice. */
    const kkt_curve_point *best;
    bool by_members; /* it was chosen by the members' sums, for not all points were timed as one */
} kkt_curve;

/* The chunk size that stands for a kernel and problem: that of the fastest pipeline that uses it;
 * `curve` NULL: none has chosen, and `chunk` is KKT_DEFAULT_CHUNK. */
typedef struct kkt_standing {
    const char *kernel, *problem;
    int64_t chunk;
    const kkt_curve *curve;
} kkt_standing;

/* Adds curves and standing chunk sizes to a view whose entries are chosen: of the pipelines that
 * use kernel `only`, or of all (NULL). `real`: what the fake backend made up does not count. `db`
 * NULL: the model alone. */
kkt_status kkt_curves_make(kkt_db *db, const kkt_freshness *freshness, const char *only, bool real,
                           kkt_arena *arena, kkt_view *view, kkt_error *err);

/* The standing chunk sizes alone, from the curves of a view (standing.c). */
void kkt_view_add_standing(kkt_view *view, kkt_arena *arena);
/* Never NULL: what the view knows, else KKT_DEFAULT_CHUNK. */
const kkt_standing *kkt_view_chunk(const kkt_view *view, const char *kernel, const char *problem);
/* What a curve's chunk size was chosen by: the total in us, or the members' sum where `by_members`;
 * NaN: the point has none. */
double kkt_curve_figure(const kkt_curve *curve, const kkt_curve_point *point);
/* "measured", ..., or "stale". */
const char *kkt_curve_provenance(const kkt_curve_point *point);
/* The same for a reader: "fake" where a time in it is made up. */
const char *kkt_curve_shown(const kkt_curve_point *point);
/* The chunk size that a curve stands for: the best one's, else KKT_DEFAULT_CHUNK where it has that,
 * else its first. */
int64_t kkt_curve_chunk(const kkt_curve *curve);
/* A curve as JSON, by docs/formats.md (chunk_choice); it has points. */
struct kkt_json;
void kkt_curve_add_json(const kkt_curve *curve, struct kkt_json *array_or_parent, const char *key);
/* One sentence: which chunk size, and by what; or why there is none yet. */
const char *kkt_curve_why(const kkt_curve *curve, kkt_arena *arena);

#endif
