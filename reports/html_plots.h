/* The plots of the HTML page: a canvas for each, and all data as one JSON text for html/plots.js.
 */
#ifndef KKT_REPORTS_HTML_PLOTS_H
#define KKT_REPORTS_HTML_PLOTS_H

#include "base/json.h"
#include "base/text.h"
#include "reports/document.h"

typedef struct kkt_html_plots {
    kkt_json *data; /* an array, one object a plot */
    int count;
} kkt_html_plots;

void kkt_html_plots_open(kkt_html_plots *plots);
/* Appends the figure of a block of kind CHART or SCATTER, and keeps its data. */
void kkt_html_plots_add(kkt_html_plots *plots, const kkt_block *block, kkt_text *out);
/* Appends data and scripts, and ends `plots`; nothing where there were no plots. */
void kkt_html_plots_close(kkt_html_plots *plots, kkt_text *out);

#endif
