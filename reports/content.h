/* What the report says, as a document without a format. */
#ifndef KKT_REPORTS_CONTENT_H
#define KKT_REPORTS_CONTENT_H

#include "reports/document.h"
#include "reports/view.h"

/* The whole report; everything lives in `arena` and in the view's. */
void kkt_content_make(const kkt_view *view, kkt_arena *arena, kkt_document *out);

/* Its part on the published claims (claims.c). */
void kkt_content_claims(const kkt_view *view, kkt_document *document);

/* "12.3" with three significant digits, "-" where unknown; `out` is returned. */
const char *kkt_content_real(double value, char out[32]);

#endif
