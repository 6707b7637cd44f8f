/* What to say: one query layer from the database (and the model) to the exports and reports, so
 * that JSON, header, Markdown and HTML never disagree. */
#ifndef KKT_REPORTS_VIEW_H
#define KKT_REPORTS_VIEW_H

#include "base/arena.h"
#include "db/objective.h"
#include "db/store.h"
#include "model/arch.h"

/* The chunk size that stands for a kernel (macros of the header, look-up without a chunk) until
 * a pipeline that shares it has chosen one end to end (curve.h). */
#define KKT_DEFAULT_CHUNK 64

/* How far clocks drift between timings that were not taken in turns, as a share of the time. */
#define KKT_TIMED_APART_DRIFT 0.01

/* One exported entry: the best configuration of a kernel, style, problem and chunk. All strings
 * live in the view's arena. */
typedef struct kkt_entry {
    const char *kernel, *style, *problem, *config;
    int64_t chunk;        /* 0: the kernel has none */
    int departures;       /* parameters that are not at their default */
    int problem_rank;     /* place among the kernel's default problems; INT_MAX: none of them */
    bool in_turns;        /* timed by an ablation, in turns with what it is compared with */
    bool noisy;           /* timed, but its interval stayed wide: ranks below every other time */
    bool best_of_problem; /* the best over all chunks of its kernel and problem */
    bool model_only;      /* the kernel has no device code yet: in reports, never exported */
    int64_t candidate_id;
    kkt_provenance provenance;
    const char *stale_reason; /* NULL: fresh */
    int threads;
    int64_t smem_bytes; /* dynamic, of the launch */
    int registers;      /* compiled where known, else predicted */
    int registers_predicted;
    int64_t smem_predicted;
    int64_t spill_bytes;
    double time_us, low_us, high_us; /* NaN without measurement */
    int64_t samples;
    bool calibrated; /* the prediction's constants were measured on the device */
    double predicted_us, lower_bound_us, hbm_bytes, hbm_bytes_per_token;
    double hbm_bytes_counted;  /* by hardware counters; NaN: not counted */
    const char *counters_note; /* why, or what is to be known of the count; NULL: nothing */
    double chain_steps;
    int blocks_per_sm;
    const char *limiter;
    const char *reason; /* the prediction's sentence */
    double rel_fro, max_abs, tolerance;
    double energy_mj;        /* of one launch; NaN: not measured */
    const char *disturbed;   /* what else used the GPU; NULL: nothing was noticed */
    kkt_objective objective; /* what the view goes by */
    const char *kernel_hash; /* of the build; the present source's where there is none */
    const char *gpu, *driver, *date;
    const char *const *ties; /* configurations within noise, canonical texts, sorted;
                                NULL-terminated, the entry itself not among them */
    size_t tie_count;
} kkt_entry;

/* A measured call of a library (style library), to set what was tuned beside it. Such results are
 * no entries: there is nothing in them to choose or to ship. */
typedef struct kkt_baseline {
    kkt_entry entry;
    const kkt_entry *tuned; /* the fastest measured entry of its kernel, problem and chunk; NULL */
    double ratio;           /* the library's time over that one's; NaN where there is none */
    bool together;          /* both were measured on one day, GPU and driver */
} kkt_baseline;

/* Candidates that are no result, by cause, over all problems. Reasons that differ in their numbers
 * alone are one group; `reason`, `problem` and `example` are then those of the first. A stored row
 * may stand for many configurations ("... (720 configurations)"): they are counted. */
typedef struct kkt_reject_group {
    const char *kernel, *style, *problem, *outcome, *reason;
    int64_t count;
    const char *example; /* one configuration */
} kkt_reject_group;

typedef struct kkt_view {
    const kkt_arch *arch;
    const kkt_device *device;
    size_t entry_count;
    kkt_entry *entries; /* sorted: kernel, style, problem (default problem first), chunk */
    size_t row_count;   /* all results and what the model adds, not the best alone; 0 in a view that
                           was read from an export */
    const kkt_entry *rows; /* sorted as entries, then the best first; without ties */
    size_t reject_count;
    kkt_reject_group *rejects; /* sorted: kernel, style, failures before rejections, outcome, most
                                  frequent first */
    size_t baseline_count;
    const kkt_baseline *baselines; /* by kernel, problem (default first), chunk, then time */
    bool made_up;                  /* what counts as measured is the fake backend's */
    int64_t candidates, measured, replayed, compiled, stale;
    kkt_objective objective;
    size_t curve_count;
    const struct kkt_curve *curves; /* of whole pipelines: by pipeline in their own order, then
                                       problem (default first); of the pipelines whose kernels are
                                       all known. None in a view that was read from an export. */
    size_t standing_count;
    const struct kkt_standing *standing; /* see kkt_view_chunk */
    const struct kkt_failures
        *failures; /* failures.h; NULL in a view that was read from an export */
    size_t pareto_count;
    const kkt_entry **pareto; /* see kkt_view_add_pareto; none until then */
} kkt_view;

/* Builds the view of an architecture and device (`kernel` NULL: all; `db` NULL: the model alone).
 * The best entry: measured or replayed before noisy before compiled before predicted, and within
 * each fresh before stale, so that an edited kernel keeps its old result, marked stale, until a new
 * one is measured; then the smallest median (without one: no spills, then the smallest prediction),
 * then the lower end of the interval, then the fewest parameters off their default, then the
 * configuration's text. By energy or by error that figure comes before the median, and what lacks
 * it comes last. The same database always gives the same winner. Results of the same rank whose
 * intervals overlap the winner's are its ties. Kernel, style, problem (the defaults and those of
 * the database) and chunk without any result get the configuration that the model likes best
 * among what has not failed; none where nothing of the style could be built. */
kkt_status kkt_view_make(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                         const kkt_device *device, const char *kernel, kkt_arena *arena,
                         kkt_view *out, kkt_error *err);

/* The same with another objective than time. */
kkt_status kkt_view_make_by(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                            const kkt_device *device, const char *kernel, kkt_objective objective,
                            kkt_arena *arena, kkt_view *out, kkt_error *err);
/* Lists, for each kernel and problem over all its styles and chunk sizes, the fresh measured rows
 * that no other one of them beats or equals in time, energy and error while being better in one;
 * of equal ones the first by kkt_entry_compare. An energy that was not measured counts as the
 * largest. Sorted: kernel, problem, time. */
void kkt_view_add_pareto(kkt_view *view, kkt_arena *arena);
/* Whether the objective makes no difference between two measured entries: intervals of time that
 * overlap, energies within 2 % (what the device's counter repeats), or equal errors. */
bool kkt_entry_tied(const kkt_entry *a, const kkt_entry *b);

/* Entries of equal rank are comparable with each other; a higher one always wins. */
typedef enum kkt_rank {
    KKT_RANK_PREDICTED,
    KKT_RANK_STALE_COMPILED,
    KKT_RANK_COMPILED,
    KKT_RANK_NOISY,
    KKT_RANK_STALE_MEASURED,
    KKT_RANK_MEASURED
} kkt_rank;
kkt_rank kkt_entry_rank(const kkt_entry *entry);
bool kkt_entry_measured(const kkt_entry *entry); /* it has a time */
/* Whether `a` is measured to be better than `b` by their objective: both have times of one rank,
 * for a stale or noisy time says nothing against a fresh one, and they are not tied. Other than
 * kkt_entry_compare, which puts a fresh result before a stale one however slow it is. */
bool kkt_entry_known_faster(const kkt_entry *a, const kkt_entry *b);
/* A measured figure with the seven digits that a sample, a 32-bit float, holds. */
double kkt_figure_round(double value);
/* "measured", "replayed", "compiled", "predicted", or "stale". */
const char *kkt_entry_provenance(const kkt_entry *entry);
bool kkt_entry_made_up(const kkt_entry *entry); /* its time is the fake backend's */
/* The provenance for a reader, who is told "fake" where the time is made up. Members named
 * provenance in JSON keep the words above, beside the GPU "fake". */
const char *kkt_entry_shown(const kkt_entry *entry);
/* The entry that stands for a kernel and problem: the chunk size that a pipeline chose (else
 * KKT_DEFAULT_CHUNK; or `chunk`, where not 0) in its best style, else the best of the problem. NULL
 * where there is none. */
const kkt_entry *kkt_view_standing(const kkt_view *view, const char *kernel, const char *problem,
                                   int64_t chunk);
/* The entry with the smallest prediction among the styles of which nothing was timed on the problem
 * of `best`, a measured one that goes by time; NULL where none is expected to be faster by
 * KKT_UNTIMED_SHARE of its own time, which half of the model's errors stay below. */
const kkt_entry *kkt_view_untimed(const kkt_view *view, const kkt_entry *best);
#define KKT_UNTIMED_SHARE 0.15
/* By kernel and then by problem, the kernel's default problems first, in their order. */
int kkt_entry_compare_problem(const kkt_entry *a, const kkt_entry *b);
/* Negative where `a` is the better result; 0 only for equal configurations. */
int kkt_entry_compare(const kkt_entry *a, const kkt_entry *b);
/* The same between the winners of two chunk sizes: of two without a time what is expected of them
 * comes before whether they were compiled, for a chunk size is none the faster for that. */
int kkt_entry_compare_chunks(const kkt_entry *a, const kkt_entry *b);

#endif
