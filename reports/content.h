/* What the report says, as a document without a format. */
#ifndef KKT_REPORTS_CONTENT_H
#define KKT_REPORTS_CONTENT_H

#include "reports/document.h"
#include "reports/view.h"

/* The whole report; everything lives in `arena` and in the view's. */
void kkt_content_make(const kkt_view *view, kkt_arena *arena, kkt_document *out);

/* Its part on whole pipelines: the chunk size end to end, what each costs, and the statements of an
 * article on it (content_pipelines.c); nothing where no pipeline is complete. */
void kkt_content_pipelines(const kkt_view *view, kkt_document *document);

/* Its part on what was rejected or failed, and why (content_rejects.c). */
void kkt_content_rejects(const kkt_view *view, kkt_document *document);

/* Its part on the published claims (claims.c). */
void kkt_content_claims(const kkt_view *view, kkt_document *document);

/* Its part on what a kernel takes of the device, and on its time (content_resources.c). */
void kkt_content_resources(const kkt_view *view, const char *kernel, kkt_document *document);

/* Its part on what each parameter of a kernel is worth on its first problem (content_effects.c);
 * nothing where the winner's values were the only ones measured. */
void kkt_content_effects(const kkt_view *view, const char *kernel, kkt_document *document);

/* Its part on how well the model ranks a kernel's configurations, for each style on the first
 * problem that has measured ones (content_scatter.c); nothing where there are fewer than two. */
void kkt_content_scatter(const kkt_view *view, const char *kernel, kkt_document *document);

/* Its part on what libraries take for the same (content_baselines.c); nothing where none was timed.
 */
void kkt_content_baselines(const kkt_view *view, const char *kernel, kkt_document *document);

/* An entry's problem without what all problems of its kernel agree on: "k=v, k=v". */
const char *kkt_content_problem(const kkt_view *view, const kkt_entry *entry, kkt_arena *arena);

/* Its part on counted against predicted bytes of a kernel (content_counters.c); nothing where
 * counters were not asked for. */
void kkt_content_counters(const kkt_view *view, const char *kernel, kkt_document *document);

/* An entry's configuration without what all configurations of its kernel agree on. */
const char *kkt_content_config(const kkt_view *view, const kkt_entry *entry, kkt_arena *arena);

/* What winners are chosen by where it is not time, and what disturbed the timings of those shown;
 * and the Pareto front of a kernel, where one was asked for (content_pareto.c). */
void kkt_content_objective(const kkt_view *view, kkt_document *document);
void kkt_content_pareto(const kkt_view *view, const char *kernel, kkt_document *document);

/* "12.3" with three significant digits, "-" where unknown; `out` is returned. */
const char *kkt_content_real(double value, char out[32]);
/* "382.9 to 383.1": with the digits that tell the ends apart; one number where nothing does. `out`
 * is returned. */
const char *kkt_content_interval(double low, double high, char out[80]);
/* A name in words ("shared bandwidth"), so that a narrow column can break it; "-" for NULL. */
const char *kkt_content_words(const char *name, kkt_arena *arena);
/* Whether an entry has the chunk size that stands for its kernel and problem. */
bool kkt_content_stands(const kkt_view *view, const kkt_entry *entry);
/* Whether a kernel's entries have chunk sizes. */
bool kkt_content_has_chunks(const kkt_view *view, const char *kernel);
/* A chunk size as a cell; "-" where the kernel has none. */
void kkt_content_chunk(kkt_document *document, kkt_row *row, int64_t chunk);
/* A number as a cell; "-" where it is unknown: not finite, negative. */
void kkt_content_cell_real(kkt_document *document, kkt_row *row, double value);
void kkt_content_cell_int(kkt_document *document, kkt_row *row, int64_t value);

#endif
