/* What an article on these kernels says of the chunk size, each statement held against the curves,
 * the compiler and the model. Verdicts are computed; none is written down. */
#ifndef KKT_REPORTS_STATEMENTS_H
#define KKT_REPORTS_STATEMENTS_H

#include "reports/curve.h"

typedef enum kkt_statement_verdict {
    KKT_STATEMENT_UNDECIDED, /* what would decide it is not there yet */
    KKT_STATEMENT_CONFIRMED,
    KKT_STATEMENT_REFUTED,
    KKT_STATEMENT_CONDITIONAL, /* it holds for some of what was looked at; the figures say which */
    KKT_STATEMENT_VERDICT_COUNT
} kkt_statement_verdict;
const char *kkt_statement_verdict_name(kkt_statement_verdict verdict);

typedef struct kkt_statement {
    const char *section; /* of the article */
    const char *text;
    kkt_statement_verdict verdict;
    const char *decided_by; /* "measured", "compiled" or "model": the weakest that was needed */
    const char *figures;    /* in words, with the numbers */
} kkt_statement;

/* All statements in the order of the article; they live in `arena`. The first problem of each
 * pipeline stands for it where one alone is looked at. */
const kkt_statement *kkt_statements_make(const kkt_view *view, kkt_arena *arena, size_t *count);

#endif
