/* What the decisions of statements.c and statements_styles.c share. */
#ifndef KKT_REPORTS_STATEMENTS_SCENE_H
#define KKT_REPORTS_STATEMENTS_SCENE_H

#include "model/occupancy.h"
#include "reports/statements.h"

/* The pipelines that the article compares, told apart by how many kernels they have; NULL: there is
 * none. Each by its curve on its first problem. */
typedef struct kkt_scene {
    const kkt_view *view;
    const kkt_curve *fused;      /* one kernel */
    const kkt_curve *with_t;     /* two: T goes through HBM */
    const kkt_curve *with_state; /* more: the state does, too */
} kkt_scene;

/* A decision being written. */
typedef struct kkt_decision {
    kkt_arena *arena;
    kkt_text figures;
    kkt_statement_verdict verdict;
    bool measured, compiled; /* what the figures needed had that much; both false: the model */
} kkt_decision;

typedef void (*kkt_decide)(const kkt_scene *scene, kkt_decision *out);

/* "; " before all but the first piece, then the piece. */
void kkt_decision_say(kkt_decision *decision, const char *format, ...) KKT_PRINTF(2, 3);
/* CONFIRMED where all of `total` are hits, REFUTED where none is; nothing where there are none. */
void kkt_decision_count(kkt_decision *decision, size_t hits, size_t total);
/* The kernel of a curve's pipeline that solves T (the first of several; NULL of one), or the one
 * that consumes it (the last). */
const char *kkt_scene_solver(const kkt_curve *curve);
const char *kkt_scene_consumer(const kkt_curve *curve);
/* A kernel's entry on the problem on which it (with `style`, NULL: any) is measured at the most
 * chunk sizes, its first where it is not measured; NULL: none. */
const kkt_entry *kkt_scene_entry(const kkt_scene *scene, const char *kernel, const char *style,
                                 int64_t chunk);
/* "512 threads, 128 registers, 89.2 KB, 1 block (registers)" */
void kkt_scene_resources(const kkt_scene *scene, const kkt_entry *entry, kkt_text *out);
/* Blocks per SM of an entry and what stops another one. */
kkt_limiter kkt_scene_blocks(const kkt_scene *scene, const kkt_entry *entry, int *blocks);

/* Section 2.5 (statements_styles.c). */
void kkt_decide_register_cap(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_shared_blocks(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_small_cards(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_linear_growth(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_solver_bandwidth(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_range(const kkt_scene *scene, kkt_decision *out);
void kkt_decide_three_resources(const kkt_scene *scene, kkt_decision *out);

#endif
