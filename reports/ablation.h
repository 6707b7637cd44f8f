/* What an ablation found: the moves of kernels/moves.h with everything the database knows of their
 * configurations side by side, and a finding for each claim. */
#ifndef KKT_REPORTS_ABLATION_H
#define KKT_REPORTS_ABLATION_H

#include "base/json.h"
#include "db/store.h"
#include "kernels/moves.h"

/* Where a figure comes from. All but a prediction can decide a claim. */
typedef enum kkt_evidence {
    KKT_EVIDENCE_PREDICTED, /* predicted */
    KKT_EVIDENCE_COMPILED,  /* read from the compiled kernel */
    KKT_EVIDENCE_COUNTED,   /* counted by the hardware */
    KKT_EVIDENCE_TIMED,     /* timed */
    KKT_EVIDENCE_COUNT
} kkt_evidence;
const char *
kkt_evidence_name(kkt_evidence evidence); /* "predicted", "compiled", "counted", "timed" */

/* A figure with the interval of its median; without one both ends are the value. NaN: unknown. */
typedef struct kkt_reading {
    double low, value, high;
} kkt_reading;
bool kkt_reading_known(const kkt_reading *reading);

typedef enum kkt_finding {
    KKT_FINDING_CONFIRMED,
    KKT_FINDING_REFUTED,
    KKT_FINDING_CONDITIONAL,  /* of a claim: confirmed by some comparisons, not by others */
    KKT_FINDING_WITHIN_NOISE, /* the intervals overlap */
    KKT_FINDING_UNDECIDED,    /* the deciding figure is not known on both sides */
    KKT_FINDING_COUNT
} kkt_finding;
const char *kkt_finding_name(kkt_finding finding); /* "confirmed", ... "undecided" */

const char *kkt_finding_words(kkt_finding finding); /* for people: "only under conditions" */

/* One comparison: `from` and `to` are what decides, `model_from` and `model_to` the prediction of
 * the same figure. Intervals that overlap are noise where something was timed (`noisy`); a figure
 * that is exact and does not move refutes that it falls or rises. */
kkt_finding kkt_finding_of(kkt_expectation expect, double within, bool noisy,
                           const kkt_reading *from, const kkt_reading *to, double model_from,
                           double model_to);
/* A claim's finding from those of its comparisons; what is undecided has no say. All confirmed:
 * confirmed; some: conditional; none, but one refuted: refuted; else noise; none decided:
 * undecided. */
kkt_finding kkt_finding_join(const kkt_finding *findings, size_t count);

/* A configuration. */
typedef struct kkt_ablation_point {
    const kkt_move_point *point;
    const char *config;  /* canonical */
    const char *outcome; /* "ok", "rejected", ...; "predicted" where nothing is known */
    const char *reason;  /* why there is no time, in words; NULL */
    kkt_reading figures[KKT_EVIDENCE_COUNT][KKT_FIGURE_COUNT];
    kkt_provenance provenance; /* of the time; PREDICTED: none */
    const char *stale_reason;  /* NULL: fresh */
    bool apart;                /* timed by itself, not in turns with the others: its interval is
                                  widened by what clocks drift */
    const char *gpu, *driver;  /* of the time; NULL */
} kkt_ablation_point;

typedef struct kkt_ablation_row {
    const kkt_move *move;
    const kkt_ablation_point *from, *to;
    kkt_evidence decided_by; /* of a comparison: of the figure that decides */
    kkt_finding finding;     /* of a comparison; of a single move, as if faster had been claimed */
    const char *reason;      /* why it is undecided, or what weakens it; NULL */
} kkt_ablation_row;

/* From one base. */
typedef struct kkt_ablation {
    int64_t chunk;      /* 0: the kernel has none */
    const char *origin; /* of the base: "given", "earlier", "measured", "replayed", "predicted" */
    const char *tier; /* of the base: "measured", "replayed", "compiled", "predicted" or "stale" */
    size_t point_count;
    kkt_ablation_point *points; /* the base first */
    size_t row_count;
    kkt_ablation_row *rows; /* single moves, then comparisons */
} kkt_ablation;

/* Several bases of one kernel and problem. */
typedef struct kkt_ablation_set {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_values problem;
    const char *command; /* what wrote it, for the page; NULL */
    size_t count;
    kkt_ablation *ablations;
} kkt_ablation_set;

/* Reads from the database what is known of the moves from `base`. Everything lives in `arena`. The
 * same database gives the same result. */
kkt_status kkt_ablation_make(const kkt_ablation_set *set, kkt_db *db,
                             const kkt_freshness *freshness, const kkt_values *base,
                             const char *origin, kkt_arena *arena, kkt_ablation *out,
                             kkt_error *err);

/* A claim over all bases. */
typedef struct kkt_claim_summary {
    const kkt_claim *claim;
    kkt_finding finding;
    size_t compared, confirmed, refuted, noise, undecided;
    const char *where; /* "confirmed at C = 32; refuted at C = 64 (row_stride 17)", or without chunk
                          sizes "confirmed (bk 16; bk 32)" */
} kkt_claim_summary;
/* In the order of the kernel's claims; those without a comparison are left out. */
kkt_claim_summary *kkt_ablation_claims(const kkt_ablation_set *set, kkt_arena *arena,
                                       size_t *count);

/* The change of a figure as a share of `from`: 0.02 is 2 % more; NaN where unknown or from 0. */
kkt_reading kkt_ablation_change(const kkt_ablation_row *row, kkt_evidence evidence,
                                kkt_figure figure);

/* Which single move or comparison has which words: "faster", "slower", "within noise", ... */
const char *kkt_ablation_effect(const kkt_ablation_row *row);

/* kkttune.ablate/1 (docs/formats.md). */
void kkt_ablation_json(const kkt_ablation_set *set, kkt_json *root);
/* A page in Markdown, appended. */
void kkt_ablation_markdown(const kkt_ablation_set *set, kkt_text *out);

#endif
